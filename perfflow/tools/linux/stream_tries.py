"""What ``drivers/stream_run.py`` and the program built from ``drivers/stream.c`` print: every try, as it was timed.

A line of JSON each: what the machine has, how the program was built, the tries, and how many these were.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

BANDWIDTH, FLOPS = "bandwidth", "flops"
KERNELS = ("copy", "scale", "add", "triad", "load")
PRECISIONS = ("f64", "f32", "f16")
_AMOUNTS = {BANDWIDTH: "bytes", FLOPS: "flops"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found: cores in all and those that may be used, bytes of the last caches together and of free memory.

    ``quota`` is the cores' time that the cgroup may use, None without a limit; ``cache`` is 0 where nothing tells.
    """

    cores: int
    allowed: int
    quota: float | None
    threads: int
    cache: int
    available: int
    hypervisor: bool


@dataclass(frozen=True, slots=True)
class Build:
    """The compiler, bytes of a vector, the instruction set, and whether multiplying and adding is one instruction.

    ``chains`` are those of operations that do not wait for each other; ``unused`` names a set with wider vectors.
    """

    compiler: str
    width: int
    set: str
    fused: bool
    chains: int
    unused: str


@dataclass(frozen=True, slots=True)
class Group:
    """Tries of one thing: amounts per second, in B/s of a kernel on arrays of some bytes, or FLOP/s of a precision."""

    metric: str
    name: str
    array: int
    values: Sequence[float]

    @property
    def best(self) -> float:
        """The fastest try."""
        return max(self.values)

    @property
    def spread(self) -> float:
        """How far the middle try is below the best, as a share of it."""
        return 1 - median(self.values) / self.best


@dataclass(frozen=True, slots=True)
class Tries:
    """All that was printed."""

    machine: Machine
    build: Build
    groups: Sequence[Group]

    def of(self, metric: str, name: str = "") -> list[Group]:
        """Return the groups of a metric, or those of one kernel or precision."""
        return [group for group in self.groups if group.metric == metric and name in ("", group.name)]


def read(path: Path) -> Tries:
    """Read the lines. The first round, in which caches and clocks come up, is none of the tries.

    Raises ToolOutputError if the file is missing, cut or nonsense.
    """
    lines = [_line(text, path.name) for text in tool_files.read_whole(path).splitlines()]
    kinds = [str(line.get("kind")) for line in lines]
    if kinds[0] != "machine" or kinds[-1] != "end" or "built" not in kinds[1:2]:
        raise ToolOutputError(f"{path.name} is cut short")
    if set(kinds[2:-1]) - {BANDWIDTH, FLOPS}:
        raise ToolOutputError(f"{path.name} holds a line that is no try")
    if lines[-1].get("tries") != len(lines) - 3:
        raise ToolOutputError(f"{path.name} holds {len(lines) - 3} tries instead of {str(lines[-1].get('tries'))[:20]}")
    return Tries(_machine(lines[0]), _build(lines[1]), tuple(_groups(lines[2:-1])))


def _line(text: str, name: str) -> Mapping[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{name} is cut short or no JSON") from error
    if not isinstance(line, dict):
        raise ToolOutputError(f"{name} holds a line that is no object")
    return line


def _machine(line: Mapping[str, Any]) -> Machine:
    quota = line.get("quota")
    return Machine(
        cores=_count(line, "cores"),
        allowed=_count(line, "allowed"),
        quota=None if quota is None else tool_files.positive(quota, "quota"),
        threads=_count(line, "threads"),
        cache=tool_files.whole(line.get("cache"), "cache"),
        available=_count(line, "available"),
        hypervisor=_truth(line, "hypervisor"),
    )


def _build(line: Mapping[str, Any]) -> Build:
    compiler, set_, unused = (_text(line, key) for key in ("compiler", "set", "unused"))
    return Build(compiler, _count(line, "width"), set_, _truth(line, "fused"), _count(line, "chains"), unused)


def _groups(lines: Sequence[Mapping[str, Any]]) -> Iterator[Group]:
    found: dict[tuple[str, str, int], list[float]] = {}
    for line in lines:
        metric = line["kind"]
        name = _text(line, "kernel" if metric == BANDWIDTH else "precision")
        if name not in (KERNELS if metric == BANDWIDTH else PRECISIONS):
            raise ToolOutputError(f"a try is of {ascii(name)[:40]}, which nobody asked for")
        key = (metric, name, _count(line, "array") if metric == BANDWIDTH else 0)
        amount = tool_files.positive(line.get(_AMOUNTS[metric]), f"{_AMOUNTS[metric]} of {name}")
        seconds = tool_files.positive(line.get("seconds"), f"seconds of {name}")
        values = found.setdefault(key, [])
        if tool_files.whole(line.get("round"), f"round of {name}"):
            values.append(tool_files.positive(amount / seconds, f"{metric} of {name}"))
    for (metric, name, array), values in found.items():
        if not values:
            raise ToolOutputError(f"{name} was tried once only, which is to warm up")
        yield Group(metric, name, array, tuple(values))


def _count(line: Mapping[str, Any], key: str) -> int:
    count = tool_files.whole(line.get(key), key)
    if not count:
        raise ToolOutputError(f"{key} is 0, which cannot be")
    return count


def _truth(line: Mapping[str, Any], key: str) -> bool:
    value = line.get(key)
    if not isinstance(value, bool):
        raise ToolOutputError(f"{key} is {ascii(value)[:40]}, neither true nor false")
    return value


def _text(line: Mapping[str, Any], key: str) -> str:
    value = line.get(key)
    if not isinstance(value, str):
        raise ToolOutputError(f"{key} is {ascii(value)[:40]}, no text")
    return tool_files.clean_name(value)[:80] if value.strip() else ""
