"""``cuda-bench``: a program that times its own GPU kernels with CUDA events, and prints a line for each repetition.

    gpu="NVIDIA H200" cc=9.0 driver=13.0 runtime=13.0
    kernel=transpose/tiled ms=0.0402 bytes=134217728 batch=1 warmup=1
    kernel=transpose/tiled ms=0.0312 bytes=134217728 flops=0 batch=10
    end kernels=1 times=1

Lines consist of ``key=value``; a value with blanks is in double quotes. A line with ``kernel`` is one repetition: its
name, its time in ``ms``, ``us``, ``ns`` or ``s``, and optionally the bytes, floating-point operations and elements of
one launch. ``warmup=1`` marks a warm-up, ``batch`` is the number of launches whose mean the time is, and ``error`` is
why the kernel could not be launched. ``end`` is the last line, with the number of kernels and, optionally, of
repetitions. JSON objects, one per line, work as well: ``{"kernel": "sum", "ms": 0.1}`` and ``{"end": true, "kernels":
1}``. Other keys and lines are ignored. perfflow trusts the program's clock and device; this module does not need CUDA.

At the end are the folders of NVIDIA's CUDA toolkit, and the command that installs it, for all adapters of its programs.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.kernels import together
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import BATCH, Parsed, Reading, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, Suite, may_leave
from perfflow.tools.tool_files import clean_name

_FILE = "cuda-bench.txt"
_BEGINS = {"kernel", "gpu", "end"}
_WORD = re.compile(r'(?P<key>[A-Za-z_]\w*)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))(?:\s+|$)')
_RESULT_LINE = re.compile(r"(?P<key>kernel|gpu)\s*=|end(?=\s+\w+=|$)")
_UNITS: Mapping[str, float] = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0}
_AMOUNTS: Mapping[str, str] = {"bytes": "bandwidth", "flops": "flops", "elements": "rate"}
_Fields = Mapping[str, object]
_Kernels = dict[str, dict[str, list[float]]]
"""The values of each metric of each kernel, one per repetition; BATCH has the launches in each repetition."""


class CudaBenchOptions(CommandOptions):
    """``with`` keys of ``uses: cuda-bench``."""

    list: str = Field(default="--list", description="Flag that makes the program list its kernels; '' if it has none.")
    only: str = Field(default="--kernel=", description="Flag before the name of a kernel to run alone.")
    brief: str = Field(default="--repeats=10", description="Flag for the shortest useful run; '' if it has none.")


def invocations(call: Call[CudaBenchOptions]) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its kernels. Raises ToolOutputError for a shell command."""
    brief = (call.options.brief,) if call.options.brief and call.effort is not Effort.NORMAL else ()
    only = (f"{call.options.only}{call.only}",) if call.only else ()
    return (Invocation((*call.program_words, *brief, *only), stdout=_FILE),)


def listing(call: Call[CudaBenchOptions]) -> Invocation | None:
    """Return the process that prints the names of the kernels; None for a program without such a flag."""
    flag = call.options.list
    return Invocation((*call.program_words, flag)) if flag else None


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the time of every repetition in s per launch, and its bytes, operations and elements per second.

    Raises ToolOutputError if the output is truncated or invalid, or if a kernel could not be launched.
    """
    text = tool_files.read_whole(call.folder / _FILE, tool_files.last_words(call.folder))
    lines = [fields for line in text.splitlines() if (fields := _fields(line.strip()))]
    kernels: _Kernels = {}
    for fields in lines:
        if "kernel" in fields:
            _add_repetition(fields, kernels)
        elif "gpu" not in fields:
            _require_end(fields, kernels, is_last=fields is lines[-1])
    if not kernels:
        raise ToolOutputError("the output contains no time of a kernel: print `kernel=NAME ms=...` for each repetition")
    if lines[-1].keys() & {"kernel", "gpu"}:
        raise ToolOutputError("the output is cut short: its last line must be `end kernels=N`")
    if call.only and call.only not in kernels:
        raise ToolOutputError(f"the program measured {', '.join(kernels)[:80]} instead of {call.only[:80]}")
    devices = {_device(fields): _gpu(fields) for fields in lines if "gpu" in fields and "kernel" not in fields}
    # Times of kernels are only meaningful together with the device.
    warnings = [f"measured on {device}" for device in devices]
    if len(devices) > 1:
        warnings.append("the program used several GPUs: only results of the same GPU can be compared")
    return Parsed(tuple(_readings(kernels)), warnings=tuple(warnings), device=together(devices.values()))


def _fields(line: str) -> _Fields:
    """Return keys and values of a result line; {} for any other line. Raises ToolOutputError for a damaged one."""
    if line.startswith("{"):
        fields = tool_files.decoded(line, f"a line, {_shown(line)},")
        return fields if isinstance(fields, dict) and fields.keys() & _BEGINS else {}
    match = _RESULT_LINE.match(line)
    if not match:
        return {}
    head, rest = ({}, line) if match["key"] else ({"end": True}, line[match.end() :].lstrip())
    words = _WORD.findall(rest)
    if _WORD.sub("", rest) or len({key for key, *_ in words} - head.keys()) < len(words):
        raise ToolOutputError(f"a line is not a list of key=value: {_shown(line)}")
    return head | {key: quoted or plain for key, quoted, plain in words}


def _add_repetition(fields: _Fields, kernels: _Kernels) -> None:
    """Add the figures of one repetition. Raises ToolOutputError."""
    name = clean_name(str(fields["kernel"]))
    if fields.get("error"):
        raise ToolOutputError(f"kernel {name[:80]} could not be run: {clean_name(str(fields['error']))[:200]}")
    times = [key for key in _UNITS if key in fields]
    if len(times) != 1:
        raise ToolOutputError(f"a line of {name[:80]} has {len(times) or 'no'} times: write one of {', '.join(_UNITS)}")
    (unit,) = times
    seconds = _positive(fields[unit], f"{unit} of {name[:80]}") * _UNITS[unit]
    figures = kernels.setdefault(name, {})
    warmup = fields.get("warmup", 0)
    if warmup is True or _number(warmup or 0, "warmup"):
        return
    figures.setdefault("time", []).append(tool_files.positive(seconds, f"time of {name[:80]}"))
    figures.setdefault(BATCH, []).append(_positive(fields.get("batch", 1), "batch"))
    for key, metric in _AMOUNTS.items():
        if amount := _number(fields.get(key, 0), f"{key} of {name[:80]}"):
            figures.setdefault(metric, []).append(tool_files.number(amount / seconds, f"{metric} of {name[:80]}"))


def _device(found: _Fields) -> str:
    """Return ``NVIDIA H200, compute capability 9.0, driver 13.0``."""
    parts = [("compute capability", found.get("cc")), ("driver", found.get("driver"))]
    return ", ".join([_gpu(found), *(f"{what} {clean_name(str(value))[:40]}" for what, value in parts if value)])


def _gpu(found: _Fields) -> str:
    return clean_name(str(found["gpu"]))[:80]


def _require_end(fields: _Fields, kernels: _Kernels, *, is_last: bool) -> None:
    """Compare the results with the numbers in the last line. Raises ToolOutputError if they differ."""
    if not is_last:
        raise ToolOutputError("the output continues after its `end` line")
    times = sum(len(figures.get("time", ())) for figures in kernels.values())
    for key, count in (("kernels", len(kernels)), ("times", times)):
        if key in fields and tool_files.whole(_number(fields[key], key), key) != count:
            raise ToolOutputError(
                f"the output contains {count} {key}, but its last line says {_shown(str(fields[key]))}"
            )
    if "kernels" not in fields:
        raise ToolOutputError("the last line is cut short: write `end kernels=N`")


def _number(value: object, what: str) -> float:
    """Return a figure >= 0. A comma is refused, since it can be a decimal mark or separate thousands."""
    if isinstance(value, str) and "," in value:
        raise ToolOutputError(f"{what} is {_shown(value)}: write a decimal point, and no separator of thousands")
    return tool_files.number_in(value, what) if isinstance(value, str) else tool_files.number(value, what)


def _positive(value: object, what: str) -> float:
    return tool_files.positive(_number(value, what), what)


def _shown(line: str) -> str:
    return repr(clean_name(line)[:80])


def _readings(kernels: _Kernels) -> Iterator[Reading]:
    """Yield the figures of each kernel. Raises ToolOutputError.

    A metric must be present in all repetitions: otherwise it would be of other repetitions than the time.
    """
    for name, figures in kernels.items():
        if not (batches := figures.pop(BATCH, [])):
            raise ToolOutputError(f"the output contains only warm-ups of {name[:80]}")
        for metric, values in figures.items():
            if len(values) != len(batches):
                raise ToolOutputError(f"{metric} of {name[:80]} is missing in some repetitions")
            reading = reading_of_many(metric, values, name)
            yield replace(reading, inner={**reading.inner, BATCH: sum(batches) / len(batches)})


ADAPTER = Adapter(
    name="cuda-bench",
    role=Role.MEASURE,
    options=CudaBenchOptions,
    metrics=builtin_metrics("time", "bandwidth", "flops", "rate"),
    suite=Suite(listing=listing),
    gpu=True,
    invocations=invocations,
    outputs=may_leave(_FILE),
    parse=parse,
)


_SITE_PACKAGES = sysconfig.get_path("purelib")

TOOLKIT_PLACES = (
    "$CUDA_HOME/bin",
    "$CUDA_PATH/bin",
    "/usr/local/cuda/bin",
    # Wheels of PyPI, installed with perfflow or in the active environment.
    f"{_SITE_PACKAGES}/nvidia/cu*/bin",
    "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cu*/bin",
    "/usr/local/cuda-*/bin",
)
"""Folders of the toolkit's programs, which its installers do not add to PATH."""

COMPILER = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm"
"""Installs nvcc with its headers and the runtime. It needs a C++ compiler but no GPU."""
