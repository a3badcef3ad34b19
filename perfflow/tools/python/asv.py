"""``asv``: the benchmarks of an airspeed velocity suite, run by asv_runner (see drivers/asv_run.py).

The driver writes the file that asv would write. As in asv, a failed benchmark does not stop the others. ``track_``
functions return values in a unit that their author chose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import adapter, pacing, tool_files
from perfflow.tools.adapter import TRACE, Adapter, Call, Effort, Invocation, Role, may_leave
from perfflow.tools.python.asv_json import FORMAT

_FILE = "asv.json"
_DRIVER = Path(__file__).with_name("drivers") / "asv_run.py"
# One process with twenty samples of 5 ms, instead of two with five samples of 10 ms each.
_BRIEF: Mapping[str, object] = {"rounds": 1, "sample_time": 0.005, "warmup_time": 0.02}
_FEWEST, _ENOUGH, _MOST, _SECONDS = 1, 5, 20, 0.2
# For a profiler: a second in samples of 50 ms.
_SAMPLED: Mapping[str, object] = {**_BRIEF, "sample_time": 0.05, "repeat": [1, 20, 1.0]}
# What calls the benchmark, and what that is called in timeit.
_HARNESS = r"(?:.*/)?asv_runner/benchmarks/\w+\.py:(?:.*\.)?run\b|<timeit-src>:inner\b"


class Options(adapter.Options):
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
    repeat = [pacing.samples(call.pace, _FEWEST, _ENOUGH), _MOST, _SECONDS]
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


def tracing(call: Call[Options]) -> Invocation:
    """Return the process that records what each benchmark executes and reads."""
    return Invocation((*_driver(call, "trace"), str(call.folder / TRACE)))


def _chosen(call: Call) -> tuple[str, ...]:
    return (f"--chosen={json.dumps(call.chosen)}",) if call.chosen else ()


def _driver(call: Call[Options], mode: str) -> tuple[str, ...]:
    return (call.options.python, str(_DRIVER), mode, call.options.config, call.options.bench)


ADAPTER = Adapter(
    "asv",
    Role.MEASURE,
    invocations,
    parse,
    options=Options,
    metrics=builtin_metrics("time", "cpu", "uncontended", "rss", "object_size"),
    suite=True,
    together=_SECONDS,
    counters=True,
    harness=_HARNESS,
    listing=listing,
    tracing=tracing,
    outputs=may_leave(_FILE),
)
