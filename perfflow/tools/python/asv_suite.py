"""``asv``: the benchmarks of an airspeed velocity suite, run by asv_runner (see drivers/asv_run.py).

A benchmark that fails has the result null in asv, and ``asv run`` goes on; here it fails the step. What ``track_``
functions return has a unit and a direction of their author's and is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import BATCH, Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, pacing, tool_files
from perfflow.tools.adapter import Adapter, Call, Effort, Invocation, Role

_FILE = "asv.json"
_LIST = "benchmarks.txt"
_DRIVER = Path(__file__).with_name("drivers") / "asv_run.py"
_ONLY = "--only="
# One process of twenty samples of 5 ms, instead of two with five of 10 ms each.
_BRIEF: Mapping[str, object] = {"rounds": 1, "sample_time": 0.005, "warmup_time": 0.02}
_FEWEST, _ENOUGH, _MOST, _SECONDS = 1, 5, 20, 0.2
_METRICS: Mapping[str, str] = {"peakmemory": "rss", "memory": "object_size"}


class Options(adapter.Options):
    """``with`` keys of ``uses: asv``."""

    config: str = Field(default="asv.conf.json", min_length=1, description="The suite's asv.conf.json.")
    bench: str = Field(default="", description="Which benchmarks: a regular expression, as for `asv run --bench`.")
    python: str = Field(default="python3", min_length=1, description="The interpreter that has asv and the project.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the suite's benchmarks, or ``only`` one of them, each in a process of its own."""
    repeat = [pacing.samples(call.pace, _FEWEST, _ENOUGH), _MOST, _SECONDS]
    brief = (f"--attributes={json.dumps({**_BRIEF, 'repeat': repeat})}",) if call.effort is Effort.BRIEF else ()
    only = (f"{_ONLY}{call.only}",) if call.only else ()
    return (Invocation((*_driver(call, "run"), str(call.folder / _FILE), *brief, *only)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON file if it is there; ``parse`` says why it is not."""
    return tool_files.left(call.folder / _FILE)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every sample in s per call, peak memory and the sizes of objects in bytes.

    Raises ToolOutputError if a benchmark failed, if none was measured, or if the file is missing or nonsense.
    """
    content = tool_files.read_json(call.folder / _FILE, tool_files.last_words(call.folder))
    benchmarks = content.get("benchmarks") if isinstance(content, dict) else None
    if not isinstance(benchmarks, list) or not benchmarks:
        raise ToolOutputError(f"{_FILE} holds no benchmark")
    readings: list[Reading] = []
    left_out: dict[str, list[str]] = {"skipped by the suite": [], "a figure of its author's own, left out": []}
    skipped, own = left_out.values()
    for benchmark in benchmarks:
        name, result = _result(benchmark)
        if isinstance(result, float) and math.isnan(result):
            skipped.append(name)
        elif benchmark.get("type") == "track":
            own.append(name)
        else:
            readings.append(_reading(name, benchmark.get("type"), result))
    warnings = tuple(f"{why}: {', '.join(names)[:200]}" for why, names in left_out.items() if names)
    if not readings:
        raise ToolOutputError(f"no benchmark was measured; {'; '.join(warnings)}")
    names = [reading.benchmark for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[:80]!r}")
    return Parsed(tuple(readings), warnings=warnings)


def listing(call: Call) -> Invocation:
    """Return the process that prints the benchmarks' names, with parameters as asv writes them: ``f(100, 'x')``."""
    return Invocation(_driver(call, "list"), stdout=_LIST)


def _driver(call: Call, mode: str) -> tuple[str, ...]:
    options = cast(Options, call.options)
    return (options.python, str(_DRIVER), mode, options.config, options.bench)


def _result(benchmark: object) -> tuple[str, object]:
    """Return a benchmark's name and what it gave. Raises ToolOutputError if it failed."""
    name = benchmark.get("name") if isinstance(benchmark, dict) else None
    if not isinstance(benchmark, dict) or not isinstance(name, str) or not name.strip():
        raise ToolOutputError(f"{_FILE} holds a benchmark without a name")
    shown = tool_files.clean_name(name)
    if benchmark.get("result") is None:
        said = tool_files.clean_name(str(benchmark.get("error") or "it gave nothing"))[:200]
        raise ToolOutputError(f"{shown[:80]} failed: {said}")
    return shown, benchmark["result"]


def _reading(name: str, kind: object, result: object) -> Reading:
    if kind != "time":
        if not isinstance(kind, str) or kind not in _METRICS:
            raise ToolOutputError(f"{name[:80]} is of the kind {ascii(kind)[:30]}, which perfflow does not know")
        # asv takes the size of what a copy adds, which is nothing for what need not be copied.
        checked = tool_files.number if kind == "memory" else tool_files.positive
        return Reading(_METRICS[kind], checked(result, f"bytes of {name[:80]}"), name)
    samples = result.get("samples") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(samples, list) or not samples:
        raise ToolOutputError(f"{_FILE} holds no samples of {name[:80]}")
    values = [tool_files.positive(value, f"sample of {name[:80]}") for value in samples]
    number = tool_files.whole(tool_files.positive(result.get("number"), "number"), "number")
    reading = reading_of_process("time", values, name)
    return replace(reading, inner={**reading.inner, BATCH: float(number)}) if number > 1 else reading


ADAPTER = Adapter(
    name="asv",
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("time", "rss", "object_size"),
    suite=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
    listing=listing,
)
