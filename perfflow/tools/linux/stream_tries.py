"""What ``drivers/stream_run.py`` and the program built from ``drivers/stream.c`` print: every try, as it was timed.

A line of JSON each: what the machine has, how the program was built, the tries, and how many these were.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.tool_json import Counted, Json, Positive, Whole, checked

BANDWIDTH, FLOPS = "bandwidth", "flops"
KERNELS = ("copy", "scale", "add", "triad", "load")
PRECISIONS = ("f64", "f32", "f16")
_Words = Annotated[str, AfterValidator(lambda text: tool_files.clean_name(text)[:80] if text.strip() else "")]


class Machine(Json):
    """What was found: cores in all and those that may be used, bytes of the last caches together and of free memory.

    ``quota`` is the cores' time that the cgroup may use, None without a limit; ``cache`` is 0 where nothing tells.
    """

    kind: Literal["machine"]
    cores: Counted
    allowed: Counted
    quota: Positive | None
    threads: Counted
    cache: Whole
    available: Counted
    hypervisor: bool


class Build(Json):
    """The compiler, bytes of a vector, the instruction set, and whether multiplying and adding is one instruction.

    ``chains`` are those of operations that do not wait for each other; ``unused`` names a set with wider vectors.
    """

    kind: Literal["built"]
    compiler: _Words
    width: Counted
    set: _Words
    fused: bool
    chains: Counted
    unused: _Words


class _Try(Json):
    round: Whole
    seconds: Positive


class _Moved(_Try):
    name: Literal["copy", "scale", "add", "triad", "load"] = Field(alias="kernel")
    array: Counted
    amount: Positive = Field(alias="bytes")


class _Calculated(_Try):
    name: Literal["f64", "f32", "f16"] = Field(alias="precision")
    array: Literal[0] = 0
    amount: Positive = Field(alias="flops")


_TRIES: Mapping[str, type[_Moved | _Calculated]] = {BANDWIDTH: _Moved, FLOPS: _Calculated}


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
    try:
        lines = [json.loads(line) for line in tool_files.read_whole(path).splitlines()]
        kinds = [str(line["kind"]) for line in lines]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ToolOutputError(f"{path.name} is cut short or no JSON") from error
    if len(lines) < 3 or kinds[1] != "built" or kinds[-1] != "end":
        raise ToolOutputError(f"{path.name} is cut short")
    if set(kinds[2:-1]) - _TRIES.keys():
        raise ToolOutputError(f"{path.name} holds a line that is no try")
    if lines[-1].get("tries") != len(lines) - 3:
        raise ToolOutputError(f"{path.name} holds {len(lines) - 3} tries instead of {str(lines[-1].get('tries'))[:20]}")
    machine, build = checked(Machine, lines[0], path.name), checked(Build, lines[1], path.name)
    return Tries(machine, build, tuple(_groups(lines[2:-1], path.name)))


def _groups(lines: Sequence[Mapping[str, Any]], file: str) -> Iterator[Group]:
    found: dict[tuple[str, str, int], list[float]] = {}
    for line in lines:
        metric = line["kind"]
        tried = checked(_TRIES[metric], line, file)
        values = found.setdefault((metric, tried.name, tried.array), [])
        if tried.round:
            values.append(tool_files.positive(tried.amount / tried.seconds, f"{metric} of {tried.name}"))
    for (metric, name, array), values in found.items():
        if not values:
            raise ToolOutputError(f"{name} was tried once only, which is to warm up")
        yield Group(metric, name, array, tuple(values))
