"""``triton-bench``: the benchmarks of a script that calls ``triton.testing.do_bench``. All times are kept.

``do_bench`` empties the GPU's L2 cache before every launch and returns one figure of many times. A driver wraps it and
records all times by name, including those of ``perf_report``.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage, reading_of_many
from perfflow.tools import adapter, parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandText, Effort, Invocation, Role, Suite, may_leave, words
from perfflow.tools.parsed_output import Json, Name, Positive

_FILE = "triton.json"
_DRIVER = Path(__file__).with_name("drivers") / "triton_run.py"
# The last line of a traceback.
_RAISED = re.compile(r"^(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)", re.MULTILINE)
_NO_GPU = re.compile(
    r"0 active drivers|No CUDA GPUs are available|Found no NVIDIA driver|not compiled with CUDA enabled"
)
_OLD = re.compile(r"return_mode|AssertionError")


class TritonBenchOptions(adapter.Options):
    """``with`` keys of ``uses: triton-bench``."""

    script: str = Field(min_length=1, description="A Python script that calls `triton.testing.do_bench`.")
    python: str = Field(
        default="python3", min_length=1, description="Python interpreter with Triton and PyTorch installed."
    )
    args: CommandText = Field(default="", description="Arguments for the script.")


class _TritonBenchBenchmark(Json):
    name: Name
    ms: list[Positive] = Field(min_length=1)


class _TritonBenchResults(Json):
    """The file of the driver."""

    triton: Name
    gpu: str
    benchmarks: list[_TritonBenchBenchmark] = Field(min_length=1)


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the script's benchmarks, or ``only`` one of them."""
    brief = ("--perfflow-brief",) if call.effort is not Effort.NORMAL else ()
    only = (f"--perfflow-only={call.only}",) if call.only else ()
    return (Invocation((*_driven(call, "run"), *brief, *only)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the time of every launch in s.

    Raises ToolOutputError if Triton finds no GPU, if the script failed, or if the file is missing or invalid.
    """
    results = parsed_output.read_json(_TritonBenchResults, call.folder / _FILE, _why(call.folder))
    names = [row.name for row in results.benchmarks]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[:80]!r}")
    readings = []
    for row in results.benchmarks:
        # Checked again, since scaling can turn a tiny figure into 0.
        seconds = [tool_files.positive(time * 1e-3, f"time of {row.name[:80]}") for time in row.ms]
        readings.append(reading_of_many("time", seconds, row.name))
    device = tool_files.clean_name(results.gpu)[:80] if results.gpu else ""
    # Times of kernels are only meaningful together with the device.
    warnings = (f"measured on {device}, Triton {results.triton[:40]}",) if device else ()
    return Parsed(tuple(readings), warnings=warnings, device=device)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the script's benchmarks. It runs the script without them."""
    return Invocation(_driven(call, "list"))


def _driven(call: Call[TritonBenchOptions], mode: str) -> tuple[str, ...]:
    options = call.options
    return (options.python, str(_DRIVER), mode, str(call.folder / _FILE), options.script, *words(options.args))


def _why(folder: Path) -> str:
    """Return why there is no complete file: no GPU, the script's last exception, else its last line of output."""
    said = tool_files.last_bytes(folder)
    if _NO_GPU.search(said):
        return "Triton finds no GPU; add `requires: {gpu: 1}` to skip the step on machines without one"
    if not (raised := _RAISED.findall(said)):
        return tool_files.last_words(folder)
    is_old = _OLD.search(raised[-1])
    return tool_files.clean_name(raised[-1])[
        :200
    ] + ": perfflow needs Triton 3.2 or later to read all times of do_bench" * bool(is_old)


ADAPTER = Adapter(
    name="triton-bench",
    role=Role.MEASURE,
    options=TritonBenchOptions,
    metrics=builtin_metrics("time"),
    suite=Suite(listing=listing),
    gpu=True,
    invocations=invocations,
    outputs=may_leave(_FILE),
    parse=parse,
)
