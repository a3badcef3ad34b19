"""The lines in which a program tells the times of its GPU kernels, by CUDA events or any other clock.

    gpu="NVIDIA H200" cc=9.0 driver=13.0 runtime=13.0
    kernel=transpose/tiled ms=0.0402 bytes=134217728 batch=1 warmup=1
    kernel=transpose/tiled ms=0.0312 bytes=134217728 flops=0 batch=10
    end kernels=1 times=1

Words are ``key=value``, a value with blanks between double quotes. A line of a kernel is one repetition: its name, its
time in ``ms``, ``us``, ``ns`` or ``s``, and where they are known the bytes, floating-point operations and elements of
one launch. ``warmup=1`` marks what is no measurement, ``batch`` of how many launches the time is the mean, ``error``
why the kernel could not be launched. ``end`` comes last, with the number of kernels, and if it likes that of the
repetitions. The same as JSON objects, one a line: ``{"kernel": "sum", "ms": 0.1}``, ``{"end": true, "kernels": 1}``.
Other keys and lines are the program's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

_BEGINS = ("kernel", "gpu", "end")
_WORD = re.compile(r'(?P<key>[A-Za-z_]\w*)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))(?:\s+|$)')
_OURS = re.compile(r"(?P<key>kernel|gpu)\s*=|end(?=\s+\w+=|$)")
_UNITS: Mapping[str, float] = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0}
_AMOUNTS: Mapping[str, str] = {"bytes": "bandwidth", "flops": "flops", "elements": "rate"}
_Fields = Mapping[str, object]


@dataclass
class Kernel:
    """What was told of one kernel: values of each metric, one a repetition, and the launches in each."""

    metrics: dict[str, list[float]] = field(default_factory=dict)
    batches: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Told:
    """All kernels by name; the GPUs with what is told of each, and by their names alone."""

    kernels: Mapping[str, Kernel]
    devices: tuple[str, ...]
    gpus: tuple[str, ...] = ()


def read(text: str) -> Told:
    """Read a whole output. Raises ToolOutputError if it is cut or nonsense, or if a kernel could not be launched."""
    kernels: dict[str, Kernel] = {}
    devices: dict[str, str] = {}
    found = [fields for line in text.splitlines() if (fields := _fields(line.strip()))]
    for fields in found:
        if "kernel" in fields:
            _take(fields, kernels)
        elif "gpu" in fields:
            devices[_device(fields)] = _gpu(fields)
        elif fields is not found[-1]:
            raise ToolOutputError("it tells more after its `end`")
        else:
            _require_all(fields, kernels)
    if not kernels:
        raise ToolOutputError("it tells no time of a kernel: print `kernel=NAME ms=...` for each repetition")
    if found[-1].keys() & {"kernel", "gpu"}:
        raise ToolOutputError("it is cut short: a whole output ends with `end kernels=N`")
    return Told(kernels, tuple(devices), tuple(dict.fromkeys(devices.values())))


def _fields(line: str) -> _Fields:
    """Return keys and values of a line that is for us; {} for any other. Raises ToolOutputError for a damaged one."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ToolOutputError(f"a line is cut short or no JSON: {_shown(line)}") from error
        return found if isinstance(found, dict) and found.keys() & set(_BEGINS) else {}
    match = _OURS.match(line)
    if not match:
        return {}
    head, rest = ({}, line) if match["key"] else ({"end": True}, line[match.end() :].lstrip())
    words = _WORD.findall(rest)
    if _WORD.sub("", rest) or len({key for key, *_ in words} - head.keys()) < len(words):
        raise ToolOutputError(f"a line is no list of key=value: {_shown(line)}")
    return head | {key: quoted or plain for key, quoted, plain in words}


def _take(found: _Fields, kernels: dict[str, Kernel]) -> None:
    name = tool_files.clean_name(str(found["kernel"]))
    if found.get("error"):
        said = tool_files.clean_name(str(found["error"]))[:200]
        raise ToolOutputError(f"kernel {name[:80]} could not be run: {said}")
    times = [key for key in _UNITS if key in found]
    if len(times) != 1:
        raise ToolOutputError(f"a line of {name[:80]} has {len(times) or 'no'} times: write one of {', '.join(_UNITS)}")
    (unit,) = times
    seconds = _positive(found[unit], f"{unit} of {name[:80]}") * _UNITS[unit]
    kernel = kernels.setdefault(name, Kernel())
    warmup = found.get("warmup", 0)
    if warmup is True or _number(warmup or 0, "warmup"):
        return
    kernel.metrics.setdefault("time", []).append(tool_files.positive(seconds, f"time of {name[:80]}"))
    kernel.batches.append(_positive(found.get("batch", 1), "batch"))
    for key, metric in _AMOUNTS.items():
        amount = _number(found.get(key, 0), f"{key} of {name[:80]}")
        if amount:
            rate = amount / seconds
            kernel.metrics.setdefault(metric, []).append(tool_files.number(rate, f"{metric} of {name[:80]}"))


def _device(found: _Fields) -> str:
    """Return ``NVIDIA H200, compute capability 9.0, driver 13.0``."""
    parts = [("compute capability", found.get("cc")), ("driver", found.get("driver"))]
    told = (f"{what} {tool_files.clean_name(str(value))[:40]}" for what, value in parts if value)
    return ", ".join((_gpu(found), *told))


def _gpu(found: _Fields) -> str:
    return tool_files.clean_name(str(found["gpu"]))[:80]


def _require_all(found: _Fields, kernels: Mapping[str, Kernel]) -> None:
    """Compare what was read with what the last line says."""
    times = sum(len(kernel.metrics.get("time", ())) for kernel in kernels.values())
    for key, count in (("kernels", len(kernels)), ("times", times)):
        if key in found and tool_files.whole(_number(found[key], key), key) != count:
            raise ToolOutputError(f"{count} {key} are told, but the last line says {_shown(str(found[key]))}")
    if "kernels" not in found:
        raise ToolOutputError("the last line is cut short: write `end kernels=N`")


def _number(value: object, what: str) -> float:
    """Return a figure >= 0. A comma might stand for a point or between thousands, so that it is refused."""
    if isinstance(value, str) and "," in value:
        raise ToolOutputError(f"{what} is {_shown(value)}: write a point, and nothing between thousands")
    return tool_files.number_in(value, what) if isinstance(value, str) else tool_files.number(value, what)


def _positive(value: object, what: str) -> float:
    return tool_files.positive(_number(value, what), what)


def _shown(line: str) -> str:
    return repr(tool_files.clean_name(line)[:80])


def series(told: Told) -> Iterator[tuple[str, str, list[float], float]]:
    """Yield kernel, metric, values and the mean number of launches in each. Raises ToolOutputError.

    A figure that some repetitions have and others lack would be of other repetitions than the time.
    """
    for name, kernel in told.kernels.items():
        if "time" not in kernel.metrics:
            raise ToolOutputError(f"of {name[:80]} only the warm-up is told")
        for metric, values in kernel.metrics.items():
            if len(values) != len(kernel.batches):
                raise ToolOutputError(f"{metric} of {name[:80]} is told of some repetitions alone")
            yield name, metric, values, sum(kernel.batches) / len(kernel.batches)
