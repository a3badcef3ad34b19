"""``triton-bench``: the benchmarks of a script that calls ``triton.testing.do_bench``, all times of each kept.

``do_bench`` empties the GPU's L2 cache before every launch and gives one figure of many; a driver stands between it and
the script and writes down all of them, by name. Also what ``perf_report`` runs is measured by it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Reading, Usage, reading_of_many
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandText, Effort, Invocation, Role

_FILE = "triton.json"
_LIST = "benchmarks.txt"
_DRIVER = Path(__file__).with_name("drivers") / "triton_run.py"
_ONLY, _BRIEF = "--perfflow-only=", "--perfflow-brief"
# How Python ends a traceback.
_RAISED = re.compile(r"^(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)", re.MULTILINE)
_NO_GPU = re.compile(
    r"0 active drivers|No CUDA GPUs are available|Found no NVIDIA driver|not compiled with CUDA enabled"
)
_WITHOUT = "Triton finds no GPU; `requires: {gpu: 1}` skips the step where there is none"
_OLD = re.compile(r"return_mode|AssertionError")


class Options(adapter.Options):
    """``with`` keys of ``uses: triton-bench``."""

    script: str = Field(min_length=1, description="A Python script that calls `triton.testing.do_bench`.")
    python: str = Field(default="python3", min_length=1, description="The interpreter that has Triton and PyTorch.")
    args: CommandText = Field(default="", description="Arguments of the script.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the script's benchmarks, or ``only`` one of them."""
    brief = (_BRIEF,) if call.effort is Effort.BRIEF else ()
    only = (f"{_ONLY}{call.only}",) if call.only else ()
    return (Invocation((*_driven(call, "run"), *brief, *only)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON file if it is there; ``parse`` says why it is not."""
    return tool_files.left(call.folder / _FILE)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the time of every launch in s.

    Raises ToolOutputError if Triton finds no GPU, if the script failed, or if the file is missing or nonsense.
    """
    content = tool_files.read_json(call.folder / _FILE, _why(call.folder))
    rows = content.get("benchmarks") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(rows, list) or not rows:
        raise ToolOutputError(f"{_FILE} holds no benchmark")
    readings = [_reading(row) for row in rows]
    names = [reading.benchmark for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[:80]!r}")
    gpu = content.get("gpu")
    device = tool_files.clean_name(gpu)[:80] if isinstance(gpu, str) and gpu else ""
    return Parsed(tuple(readings), warnings=tuple(_device(content)), device=device)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the script's benchmarks; it runs all of the script but them."""
    return Invocation(_driven(call, "list"), stdout=_LIST)


def _driven(call: Call, mode: str) -> tuple[str, ...]:
    options = cast(Options, call.options)
    words = shlex.split(options.args) if isinstance(options.args, str) else options.args
    return (options.python, str(_DRIVER), mode, str(call.folder / _FILE), options.script, *words)


def _why(folder: Path) -> str:
    """Return why there is no whole file: no GPU, what the script raised last, else its last line."""
    said = tool_files.last_bytes(folder)
    raised: Sequence[str] = _RAISED.findall(said)
    if _NO_GPU.search(said):
        return _WITHOUT
    if raised and _OLD.search(raised[-1]):
        return f"{tool_files.clean_name(raised[-1])[:160]}: all times of do_bench need Triton 3.2 or later"
    return tool_files.clean_name(raised[-1])[:200] if raised else tool_files.last_words(folder)


def _reading(row: object) -> Reading:
    name, times = (row.get("name"), row.get("ms")) if isinstance(row, dict) else (None, None)
    if not isinstance(name, str) or not name.strip() or not isinstance(times, list) or not times:
        raise ToolOutputError(f"{_FILE} holds a benchmark without a name or times")
    shown = tool_files.clean_name(name)
    what = f"time of {shown[:80]}"
    # Checked in seconds, in which a tiny figure may have become 0.
    values = [tool_files.positive(tool_files.number(value, what) * 1e-3, what) for value in times]
    return reading_of_many("time", values, shown)


def _device(content: Mapping[str, object]) -> Iterator[str]:
    """Say on what was measured, without which times of kernels mean little."""
    gpu, version = content.get("gpu"), content.get("triton")
    if isinstance(gpu, str) and gpu:
        yield f"measured on {tool_files.clean_name(gpu)[:80]}, Triton {tool_files.clean_name(str(version))[:40]}"


ADAPTER = Adapter(
    name="triton-bench",
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("time"),
    suite=True,
    gpu=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
    listing=listing,
)
