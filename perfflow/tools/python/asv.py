"""``asv``: the benchmarks of an airspeed velocity suite, run by asv_runner (see drivers/asv_run.py).

The driver writes the file that asv would write. As in asv, a failed benchmark does not stop the others. ``track_``
functions return values in a unit that their author chose.

``FORMAT`` reads files of ``asv run``: one file of ``results/MACHINE/``, with the samples of each benchmark if recorded.
Without samples there are the median and its 99% interval, which asv computes from at least three samples. Rows are
lists in the order of ``result_columns``, without empty values at the end. A benchmark with parameters has a list in
each column, with one result per combination: null if it failed, NaN if it was skipped. Units are in
``benchmarks.json``, two folders above the results file. If that is missing, the name gives the type, as in asv itself.
asv writes ``Infinity`` and ``NaN``, which is not strict JSON. Only drivers/asv_run.py writes ``errors``, the reasons
why benchmarks failed, and the columns ``cpu`` and ``uncontended``, the samples by other clocks.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.stats.paired_test import student_t_quantile
from perfflow.tools import adapter, parsed_output, tool_files
from perfflow.tools.adapter import TRACE, Adapter, Call, Effort, Invocation, Role, Suite, may_leave
from perfflow.tools.parsed_output import Counted, Figures, Json, Name, Whole, one_of_keys
from perfflow.tools.result_set import JsonFormat, ResultSet, StoredSummary, ValueCollector, facts, label, listed, moment

_ABOUT = "benchmarks.json"
_METRICS: Mapping[str, str] = {"time": "time", "peakmemory": "rss", "memory": "object_size", "track": ""}
# The type by the last part of the name, as in asv_runner/benchmarks.
_NAMES: Mapping[str, str] = {
    r"Time[A-Z_]|time(?:raw)?_|Timeraw[A-Z_]": "time",
    r"PeakMem[A-Z_]|peakmem_": "peakmemory",
    r"Mem[A-Z_]|mem_": "memory",
    r"Track[A-Z_]|track_": "track",
}
_MOST_CELLS = 1_000_000


class _AsvAbout(Json):
    """A benchmark in benchmarks.json. ``type`` is read as the metric, '' for a value in the author's own unit."""

    type: Annotated[str, one_of_keys(_METRICS)]
    unit: str | None = "unit"


class _AsvResults(Json):
    result_columns: list[str]
    results: dict[str, list[object]]
    params: dict[str, object] = Field(default={})
    python: object = None
    commit_hash: object = None
    about: object = Field(None, alias=_ABOUT)
    errors: dict[str, str] = Field(default={})


class _AsvRow(Json):
    """The results of one benchmark: each column has one per combination of parameters, or null for all of them."""

    model_config = ConfigDict(allow_inf_nan=True)

    result: list[float | None] | None = None
    params: list[list[object]]
    version: Name | None = None
    started_at: object = None
    stats_ci_99_a: list[float | None] | None = None
    stats_ci_99_b: list[float | None] | None = None
    stats_number: list[Counted | None] | None = None
    stats_repeat: list[Whole | None] | None = None
    samples: list[Figures | None] | None = None
    cpu: list[Figures | None] | None = None
    uncontended: list[Figures | None] | None = None


def _gather(content: _AsvResults) -> ResultSet:
    """Return every benchmark with every combination of its parameters. Raises ToolOutputError for invalid values."""
    samples = ValueCollector()
    starts: list[str] = []
    skipped: list[str] = []
    for name, cells in content.results.items():
        by_column = dict(zip(content.result_columns, cells, strict=False))
        row = parsed_output.checked_json(_AsvRow, by_column, label(name))
        starts.append(moment(row.started_at))
        skipped += _add(samples, name, row, _kind(name, content.about), content.errors)
    if skipped:
        samples.warnings.append(f"skipped by the suite: {listed(skipped)}")
    told_of = {**content.params, "python": content.python, "commit": content.commit_hash}
    machine = facts(told_of, cpu="cpu", cpus="num_cpu", os="os", arch="arch", python="python")
    # For an existing environment asv stores the interpreter's path, which shows a user's folders.
    if "/" in machine.get("python", ""):
        del machine["python"]
    commit = facts(told_of, commit="commit")
    return samples.result_set(FORMAT.tool, "", machine, commit, min(filter(None, starts), default=""))


def _kind(name: str, about: object) -> _AsvAbout:
    """Return a benchmark's type and unit. Raises ToolOutputError if neither benchmarks.json nor its name gives them."""
    if isinstance(about, dict) and isinstance(about.get(name), dict):
        return parsed_output.checked_json(_AsvAbout, about[name], f"{_ABOUT}: {label(name)}")
    for pattern, kind in _NAMES.items():
        if re.match(pattern, name.rpartition(".")[2]):
            return _AsvAbout(type=kind)
    raise ToolOutputError(f"the type of {label(name)} is unknown: {_ABOUT}, two folders above, is missing")


def _add(
    samples: ValueCollector, name: str, row: _AsvRow, about: _AsvAbout, errors: Mapping[str, str]
) -> Iterator[str]:
    """Add the values of one benchmark; yield the names of those that were skipped."""
    sizes = math.prod(len(each) for each in row.params)
    if sizes > _MOST_CELLS:
        raise ToolOutputError(f"{label(name)} has {sizes} combinations of parameters")
    # In asv's order. Without parameters, there is one empty combination.
    cells = list(itertools.product(*(map(str, each) for each in row.params)))
    columns = (
        *(row.result, row.samples, row.stats_number, row.stats_ci_99_a, row.stats_ci_99_b, row.stats_repeat),
        *(row.cpu, row.uncontended),
    )
    for cell, *of_cell in zip(cells, *(_column(name, column, len(cells)) for column in columns), strict=True):
        result, taken, number, low, high, repeat, cpu, uncontended = of_cell
        shown = f"{name}({', '.join(cell)})" if cell else name
        if result is None:
            samples.fail(shown, f"failed: {label(errors[shown])}" if errors.get(shown) else "failed")
            continue
        if math.isnan(result):
            yield shown
            continue
        if samples.holds(shown):
            raise ToolOutputError(f"two benchmarks are called {label(shown)[:80]!r}")
        if row.version is not None:
            samples.versions[label(shown)] = row.version
        summary = _summary(low, high, repeat)
        if not about.type:
            samples.add_custom(shown, about.unit or "unit", [result])
        elif summary and not taken:
            samples.add_summary(shown, about.type, result, summary)
        else:
            samples.add(shown, about.type, taken or [result], batch=number or 1.0)
            for clock, values in (("cpu", cpu), ("uncontended", uncontended)):
                samples.add(shown, clock, values or [], batch=number or 1.0)


def _summary(low: float | None, high: float | None, repeat: int | None) -> StoredSummary | None:
    """Return asv's error of the median, half its 99% interval; None if the interval is unbounded."""
    if low is None or high is None or not math.isfinite(high - low) or not repeat or repeat < 2:
        return None
    return StoredSummary(repeat, (high - low) / 2 / student_t_quantile(0.995, repeat - 1), "p50")


def _column(name: str, found: Sequence[Any] | None, cells: int) -> Sequence[Any]:
    """Return one value per combination. A benchmark that failed as a whole has null for all of them."""
    if found is not None and len(found) != cells:
        raise ToolOutputError(
            f"{label(name)} does not have one result for each of its {cells} combinations of parameters"
        )
    return [None] * cells if found is None else found


FORMAT = JsonFormat(
    "asv",
    "asv run --record-samples",
    lambda content: isinstance(content.get("result_columns"), list) and isinstance(content.get("results"), dict),
    _AsvResults,
    _gather,
    companion=_ABOUT,
)


_FILE = "asv.json"
_DRIVER = Path(__file__).with_name("drivers") / "asv_run.py"
# One process with twenty samples of 5 ms, instead of two with five samples of 10 ms each.
_BRIEF: Mapping[str, object] = {"rounds": 1, "sample_time": 0.005, "warmup_time": 0.02}
_FEWEST, _ENOUGH, _MOST, _SECONDS = 1, 5, 20, 0.2
# For a profiler: a second in samples of 50 ms.
_SAMPLED: Mapping[str, object] = {**_BRIEF, "sample_time": 0.05, "repeat": [1, 20, 1.0]}
# What calls the benchmark, and what that is called in timeit.
_HARNESS = r"(?:.*/)?asv_runner/benchmarks/\w+\.py:(?:.*\.)?run\b|<timeit-src>:inner\b"


class AsvOptions(adapter.Options):
    """``with`` keys of ``uses: asv``."""

    config: str = Field(default="asv.conf.json", min_length=1, description="Path of the suite's asv.conf.json.")
    bench: str = Field(
        default="", description="Only run benchmarks that match this regular expression, as with `asv run --bench`."
    )
    python: str = Field(
        default="python3", min_length=1, description="Python interpreter with asv and the project installed."
    )


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the suite's benchmarks, or the chosen ones in their order, each in a process of its own.

    For a profiler, they run in the process that it starts.
    """
    if call.effort is Effort.SAMPLED:
        how = (f"--attributes={json.dumps(_SAMPLED)}", "--forks=no")
        return (Invocation((*_driver(call, "run"), str(call.folder / _FILE), *how, *_chosen(call))),)
    repeat = [adapter.samples_of_pace(call.pace, _FEWEST, _ENOUGH), _MOST, _SECONDS]
    brief = (f"--attributes={json.dumps({**_BRIEF, 'repeat': repeat})}",) if call.effort is not Effort.NORMAL else ()
    return (Invocation((*_driver(call, "run"), str(call.folder / _FILE), *brief, *_chosen(call))),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read samples in s per call, peak memory and sizes of objects in bytes, and the values of ``track_`` functions.

    Raises ToolOutputError if every benchmark failed, if none was measured, or if the file is missing or invalid.
    """
    return FORMAT.read(call.folder / _FILE, tool_files.last_words(call.folder)).parsed(single=True)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the benchmarks, with parameters as in asv: ``f(100, 'x')``."""
    return Invocation(_driver(call, "list"))


def tracing(call: Call[AsvOptions]) -> Invocation:
    """Return the process that records what each benchmark executes and reads."""
    return Invocation((*_driver(call, "trace"), str(call.folder / TRACE)))


def _chosen(call: Call) -> tuple[str, ...]:
    return (f"--chosen={json.dumps(call.chosen)}",) if call.chosen else ()


def _driver(call: Call[AsvOptions], mode: str) -> tuple[str, ...]:
    return (call.options.python, str(_DRIVER), mode, call.options.config, call.options.bench)


ADAPTER = Adapter(
    "asv",
    Role.MEASURE,
    invocations,
    parse,
    options=AsvOptions,
    metrics=builtin_metrics("time", "cpu", "uncontended", "rss", "object_size"),
    suite=Suite(together=_SECONDS, harness=_HARNESS, listing=listing, tracing=tracing),
    counters=True,
    outputs=may_leave(_FILE),
)
