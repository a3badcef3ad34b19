"""What is in scalene's JSON: shares of time in percent, sizes in MiB, by line of each file.

Functions are summed from lines here. scalene's own sums (2.4.0) are only asked for names: it spreads a sample in a loop
over the lines of the loop, and counts one of them in the sum, so that a function that loops has too little. ``system``
is time in which the process was not on a core: in the kernel, asleep, or while others ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files, tool_json
from perfflow.tools.tool_json import Figure, Json, Whole

_MIB = 1024.0 * 1024.0
_WHOLE = 1.005
"""What parts may add up to, since they are rounded."""
_TOP = "<module>"
_DEFINITION = re.compile(r"\s*(?:(?:async\s+)?def|class)\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Function:
    """A function, a class body or a file's top level without what it calls, except in libraries.

    ``line`` is the costliest; shares of the time are 0..1, ``allocated`` is in B, ``copied`` in B a second.
    ``peak`` is the line in which the program's memory was at its largest, 0 if that was elsewhere.
    """

    name: str
    file: str
    line: int
    python: float
    native: float
    system: float
    gpu: float
    allocated: float
    copied: float
    peak: int

    @property
    def share(self) -> float:
        """The time, wherever it was spent."""
        return self.python + self.native + self.system


@dataclass(frozen=True, slots=True)
class Found:
    """A profile: how long the program ran (s), its functions, distinct samples, and its largest memory (B, or 0)."""

    elapsed: float
    functions: tuple[Function, ...]
    samples: int
    footprint: float


Share = Annotated[float, Field(ge=0, le=100 * _WHOLE)]
"""In percent."""


class _Row(Json):
    """A line; ``start_function_line`` is where the function starts that it is in, 0 at the top level."""

    line: str
    lineno: Whole
    start_function_line: Whole
    n_cpu_percent_python: Share = 0.0
    n_cpu_percent_c: Share = 0.0
    n_sys_percent: Share = 0.0
    n_gpu_percent: Share = 0.0
    n_malloc_mb: Figure
    n_copy_mb_s: Figure
    cpu_samples_list: list[float] = Field(default=[])

    @property
    def share(self) -> float:
        """The time, wherever it was spent."""
        return self.n_cpu_percent_python + self.n_cpu_percent_c + self.n_sys_percent


class _Named(Json):
    """What scalene calls the function, with its class, that starts in a line."""

    line: str
    lineno: Whole


class _File(Json):
    lines: list[_Row]
    functions: list[_Named]


class _Profile(Json):
    files: dict[str, _File] = Field(default={})
    elapsed_time_sec: Figure = 0.0
    max_footprint_mb: Figure = 0.0
    max_footprint_fname: str | None = None
    max_footprint_lineno: Whole | None = None


def read(path: Path, remedy: str) -> Found:
    """Take a profile apart; one without files says nothing about the program's own code, and has no functions.

    Raises ToolOutputError where figures are missing or cannot be.
    """
    found = tool_json.read(_Profile, path, remedy)
    functions: list[Function] = []
    samples: set[float] = set()
    for name, content in found.files.items():
        samples.update(*(row.cpu_samples_list for row in content.lines))
        peak = found.max_footprint_lineno if found.max_footprint_fname == name else 0
        functions += _functions(name, content, peak or 0)
    if sum(item.share for item in functions) > _WHOLE:
        raise ToolOutputError(f"{path.name} is damaged: its shares add up to more than the whole")
    return Found(found.elapsed_time_sec, tuple(functions), len(samples), found.max_footprint_mb * _MIB)


def _functions(path: str, content: _File, peak: int) -> Iterator[Function]:
    """Yield what each function of a file has, the sums of its lines."""
    texts = {row.lineno: row.line for row in content.lines}
    for start in sorted({row.start_function_line for row in content.lines}):
        own = [row for row in content.lines if row.start_function_line == start]
        yield Function(
            name=tool_files.clean_name(_name(start, texts.get(start, ""), content.functions) if start else _TOP),
            file=tool_files.clean_name(path),
            line=max(own, key=lambda row: (row.share, -row.lineno)).lineno,
            python=sum(row.n_cpu_percent_python for row in own) / 100,
            native=sum(row.n_cpu_percent_c for row in own) / 100,
            system=sum(row.n_sys_percent for row in own) / 100,
            gpu=max(row.n_gpu_percent for row in own) / 100,
            allocated=sum(row.n_malloc_mb for row in own) * _MIB,
            copied=sum(row.n_copy_mb_s for row in own) * _MIB,
            peak=peak if peak in {row.lineno for row in own} else 0,
        )


def _name(start: int, text: str, names: Sequence[_Named]) -> str:
    """Return the name, with its class, of the function whose ``def`` stands in the line ``start``."""
    match = _DEFINITION.match(text)
    plain = match[1] if match else f"line {start}"
    # A function's first line is that of its first decorator, where it has some.
    called = (item.line for item in reversed(names) if item.lineno <= start)
    return next((name for name in called if name.rpartition(".")[2] == plain), plain)
