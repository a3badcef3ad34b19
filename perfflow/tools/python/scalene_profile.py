"""What is in scalene's JSON: shares of time in percent, sizes in MiB, by line of each file.

Functions are summed from lines here. scalene's own sums (2.4.0) are only asked for names: it spreads a sample in a loop
over the lines of the loop, and counts one of them in the sum, so that a function that loops has too little. ``system``
is time in which the process was not on a core: in the kernel, asleep, or while others ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

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


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    line: int
    starts: int
    """Where the function starts that the line is in; 0 at the top level."""
    python: float
    native: float
    system: float
    gpu: float
    allocated: float
    copied: float
    samples: tuple[float, ...]

    @property
    def share(self) -> float:
        return self.python + self.native + self.system


def read(data: object, file: str) -> Found:
    """Take a profile apart; one without files says nothing about the program's own code, and has no functions.

    Raises ToolOutputError naming ``file`` where figures are missing or cannot be.
    """
    if data == {}:
        return Found(0.0, (), 0, 0.0)
    files = data.get("files") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(files, dict):
        raise ToolOutputError(f"{file} is no profile of scalene's: it has no files")
    elapsed = tool_files.positive(data.get("elapsed_time_sec"), "elapsed_time_sec")
    peak = data.get("max_footprint_fname"), tool_files.whole(data.get("max_footprint_lineno") or 0, "line")
    functions: list[Function] = []
    samples: set[float] = set()
    for path, content in files.items():
        rows = [_row(item) for item in _listed(content, "lines", file)]
        samples.update(*(row.samples for row in rows))
        names = _listed(content, "functions", file)
        functions += _functions(path, rows, names, peak[1] if peak[0] == path else 0)
    if sum(item.share for item in functions) > _WHOLE:
        raise ToolOutputError(f"{file} is damaged: its shares add up to more than the whole")
    footprint = tool_files.number(data.get("max_footprint_mb"), "max_footprint_mb") * _MIB
    return Found(elapsed, tuple(functions), len(samples), footprint)


def _functions(path: str, rows: Sequence[_Row], names: Sequence[Mapping[str, object]], peak: int) -> Iterator[Function]:
    """Yield what each function of a file has, the sums of its lines."""
    texts = {row.line: row.text for row in rows}
    for start in sorted({row.starts for row in rows}):
        own = [row for row in rows if row.starts == start]
        yield Function(
            name=tool_files.clean_name(_name(start, texts.get(start, ""), names) if start else _TOP),
            file=tool_files.clean_name(path),
            line=max(own, key=lambda row: (row.share, -row.line)).line,
            python=sum(row.python for row in own),
            native=sum(row.native for row in own),
            system=sum(row.system for row in own),
            gpu=max(row.gpu for row in own),
            allocated=sum(row.allocated for row in own),
            copied=sum(row.copied for row in own),
            peak=peak if peak in {row.line for row in own} else 0,
        )


def _name(start: int, text: str, names: Sequence[Mapping[str, object]]) -> str:
    """Return the name, with its class, of the function whose ``def`` stands in the line ``start``."""
    match = _DEFINITION.match(text)
    plain = match[1] if match else f"line {start}"
    # A function's first line is that of its first decorator, where it has some.
    called = (str(item.get("line")) for item in reversed(names) if _first(item) <= start)
    return next((name for name in called if name.rpartition(".")[2] == plain), plain)


def _first(item: Mapping[str, object]) -> int:
    return tool_files.whole(item.get("lineno"), "lineno")


def _listed(content: object, key: str, file: str) -> list[dict[str, object]]:
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ToolOutputError(f"{file} is damaged: a file has no {key}")
    return found


def _row(item: Mapping[str, object]) -> _Row:
    kept = item.get("cpu_samples_list")
    return _Row(
        text=str(item.get("line")),
        line=tool_files.whole(item.get("lineno"), "lineno"),
        starts=tool_files.whole(item.get("start_function_line"), "start_function_line"),
        python=_share(item, "n_cpu_percent_python"),
        native=_share(item, "n_cpu_percent_c"),
        system=_share(item, "n_sys_percent"),
        gpu=_share(item, "n_gpu_percent"),
        allocated=tool_files.number(item.get("n_malloc_mb"), "n_malloc_mb") * _MIB,
        copied=tool_files.number(item.get("n_copy_mb_s"), "n_copy_mb_s") * _MIB,
        samples=tuple(time for time in kept if isinstance(time, float)) if isinstance(kept, list) else (),
    )


def _share(item: Mapping[str, object], key: str) -> float:
    found = tool_files.number(item.get(key, 0), key) / 100
    if found > _WHOLE:
        raise ToolOutputError(f"{key} is {found * 100:g}, more than the whole")
    return found
