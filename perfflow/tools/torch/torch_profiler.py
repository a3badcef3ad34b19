"""``torch-profiler``: operators, regions and steps of a PyTorch program, from Chrome traces that it exports itself.

The program profiles itself by ``torch.profiler`` and writes where it likes; drivers/written_files.py keeps copies of
the traces that are new. Several traces are those of several ranks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Profile, Reading, Usage
from perfflow.tools import tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role, leaves
from perfflow.tools.tool_json import Json
from perfflow.tools.torch import torch_ranks, torch_trace
from perfflow.tools.torch.torch_trace import Row, Trace

NAME = "torch-profiler"
_DRIVER = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "drivers" / "written_files.py"))
_LISTED = "written.json"
_TABLE = "operators.json"
_KEPT = 20


class Options(CommandOptions):
    """``with`` keys of ``uses: torch-profiler``."""

    trace: str = Field(
        default="trace*.json*",
        min_length=1,
        description="The traces that the program writes, a path or glob, .json or .json.gz; one for each rank.",
    )


class _File(Json):
    # As the driver names them.
    copied: str = Field(alias="copy", pattern=r"^written-[0-9]{1,6}(\.[A-Za-z0-9_]{1,20}){0,2}$")


class _Listed(Json):
    files: list[_File]
    old: list[str]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program, and copy the traces that it wrote."""
    pattern = cast(Options, call.options).trace
    return (Invocation((*_DRIVER, str(call.folder), pattern, "--", *call.command)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the traces into figures and hotspots; every operator goes into ``operators.json``.

    Raises ToolOutputError with a remedy if there is no new trace, or if one is damaged or holds nothing.
    """
    names = _copies(call)
    traces = [torch_trace.read(call.folder / name) for name in names]
    _check_ranks(traces)
    rows = _together([trace.rows for trace in traces])
    device = _together([trace.device_rows for trace in traces])
    steps = [{str(number): end - start for number, (start, end) in trace.steps.items()} for trace in traces]
    table = {"unit": "us", "steps": steps, "cpu": [*map(asdict, rows)], "device": [*map(asdict, device)]}
    (call.folder / _TABLE).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    figures = ((metric, figure(traces)) for metric, figure in torch_ranks.FIGURES.items())
    return Parsed(
        tuple(Reading(metric, value) for metric, value in figures if value is not None),
        (*_hotspots(rows, "time"), *_hotspots(device, "device time")),
        (*(Profile(name, "chrome-trace") for name in names), Profile(_TABLE, "operators")),
        tuple(_warnings(traces)),
    )


def _copies(call: Call) -> list[str]:
    """Names of the copies of the traces. Raises ToolOutputError if the list is nonsense, or there is none."""
    listed = tool_json.read(_Listed, call.folder / _LISTED)
    if not listed.files:
        pattern = tool_files.clean_name(cast(Options, call.options).trace)[:100]
        there = "only older ones match" if listed.old else "nothing matches"
        raise ToolOutputError(
            f"the program wrote no trace, {there} {pattern!r}: have it call `export_chrome_trace` with such a path, "
            "or say under `trace` where it writes"
        )
    return [file.copied for file in listed.files]


def _check_ranks(traces: Sequence[Trace]) -> None:
    """Raise ToolOutputError where two traces are of one rank: their sums would count it twice."""
    ranks = [trace.rank for trace in traces]
    twice = [rank for rank in set(ranks) if rank is not None and ranks.count(rank) > 1]
    if twice:
        raise ToolOutputError(f"{ranks.count(twice[0])} traces are of rank {twice[0]}: name one for each under `trace`")


def _together(tables: Sequence[Mapping[tuple[str, str], Row]]) -> list[Row]:
    """Sum the rows of several traces, the largest first."""
    sums: dict[tuple[str, str], Row] = {}
    for table in tables:
        for key, row in table.items():
            sums.setdefault(key, Row(row.name, row.kind)).add(row.own, row.total, row.calls)
    return sorted(sums.values(), key=lambda row: (-row.own, row.name, row.kind))


def _hotspots(rows: Sequence[Row], unit: str) -> Iterator[Hotspot]:
    """Yield the largest rows by their own time."""
    whole = sum(max(0.0, row.own) for row in rows)
    for row in rows[:_KEPT]:
        if row.own > 0:
            calls = "1 call" if row.calls == 1 else f"{row.calls:,} calls"
            within = "" if unit != "time" else f", {row.total / 1e3:.3g} ms with all in it"
            cause = f"measured: {row.kind}, {calls}, {row.own / 1e3:.3g} ms of its own{within}"
            yield Hotspot(row.name, row.own / whole, unit, NAME, cause=cause)


def _warnings(traces: Sequence[Trace]) -> Iterator[str]:
    """Say what the traces cannot tell."""
    if not all(trace.steps for trace in traces):
        remedy = "give the profiler a `schedule` and call its `step()`"
        yield f"a trace has no ProfilerStep, so shares of steps are not told: {remedy}"
    elif not any(trace.loading for trace in traces):
        yield "no step takes from a DataLoader, so dataloader_wait is not told"
    if len(traces) > 1 and any(trace.rank is None for trace in traces):
        yield "not every trace says its rank: each is taken for a rank of its own"


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    metrics=of_perfflow(*torch_ranks.FIGURES),
    invocations=invocations,
    outputs=leaves(_LISTED),
    parse=parse,
)
