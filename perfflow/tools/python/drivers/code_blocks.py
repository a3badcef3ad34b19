"""The blocks of code that line_profiler watches, and what of a line's time is its own.

Loaded by line_profiler_run.py, into the measured interpreter: standard library only, nothing newer than Python 3.8.
"""

from __future__ import annotations

import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[str, int, str]
    """A block of code: file, first line and name."""
    Place = tuple[Key, int]
    """A line of a block."""

_OPTIMIZED = 1
"""The flag (inspect.CO_OPTIMIZED) that functions have and the bodies of classes and modules have not."""
_MANY = 1000
"""Hits from which on their overhead can be told from that of a call."""
_BUSY = 10
"""How many times its undisturbed overhead a hit may cost on a busy machine."""
_RUN_AT_ONCE = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}


class Blocks:
    """The blocks of code (functions, bodies of classes and modules) that a profiler was given, and who names them."""

    def __init__(self, profiler: Any) -> None:
        self._profiler = profiler
        self._known_as: dict[str, set[Key]] = {}
        self._runs: dict[Key, list[tuple[Key, int]]] = {}
        self._names: list[tuple[Key, int, str]] = []

    def add_module(self, code: types.CodeType, name: str) -> types.CodeType:
        """Give the profiler all code of a module; return the code to run in its place."""
        self._known_as.setdefault(name.rpartition(".")[2], set()).add(_key(code))
        return self._add(code, "")

    def _add(self, code: types.CodeType, holder: str) -> types.CodeType:
        inner = tuple(self._add(each, code.co_name) if _is_code(each) else each for each in code.co_consts)
        self._read(code, holder)
        cells = tuple(types.CellType() for _ in code.co_freevars)
        function = types.FunctionType(code.replace(co_consts=inner), {}, closure=cells or None)
        # It marks the code by instructions that do nothing, so that no other code passes for it.
        self._profiler.add_function(function)
        return function.__code__

    def _read(self, code: types.CodeType, holder: str) -> None:
        """Note which lines of a block name something, and which run another block there and then."""
        import dis

        own = _key(code)
        aliases = {code.co_name, holder} if code.co_name in {"__init__", "__new__", "__call__"} else {code.co_name}
        for alias in aliases:
            self._known_as.setdefault(alias, set()).add(own)
        starts = dict(dis.findlinestarts(code))
        line = code.co_firstlineno
        for step in dis.get_instructions(code):
            line = starts.get(step.offset) or line
            value = step.argval
            if isinstance(value, types.CodeType):
                if value.co_name in _RUN_AT_ONCE or not value.co_flags & _OPTIMIZED:
                    self._runs.setdefault(_key(value), []).append((own, line))
            elif isinstance(value, str) and step.opname.startswith(("LOAD_", "IMPORT_")):
                self._names += [(own, line, word) for word in value.split(".")]

    def rows(self, stats: Any, overhead: float) -> tuple[list[dict[str, Any]], float]:
        """Return one record per line that ran, with times in s, and what a hit cost in this run (s).

        ``overhead`` (s) is that of a hit on an undisturbed machine.
        """
        lines: dict[Place, tuple[float, int]] = {}
        whole: dict[Key, tuple[float, int]] = {}
        shown: dict[Key, str] = {}
        for (file, first, name), found in stats.timings.items():
            key = (file, first, name.rpartition(".")[2])
            shown[key] = name
            for line, hits, spent in found:
                lines[key, line] = _sum(lines.get((key, line)), max(0.0, spent * stats.unit), hits)
                whole[key] = _sum(whole.get(key), max(0.0, spent * stats.unit), hits)
        callers = self._callers(lines)
        overhead = _in_this_run(callers, lines, whole, overhead)
        own = {place: spent for place, (spent, _) in lines.items()}
        for key, places in callers.items():
            seen = whole[key][0] + overhead * whole[key][1]
            among = sum(lines[place][0] for place in places)
            for place in places:
                own[place] = max(0.0, own[place] - seen * lines[place][0] / among)
        rows = [
            {
                "file": place[0][0],
                "line": place[1],
                "function": shown[place[0]],
                "hits": hits,
                "time": spent,
                "of": whole[place[0]][0],
                "own": own[place],
            }
            for place, (spent, hits) in lines.items()
            if hits
        ]
        return rows, overhead

    def _callers(self, lines: dict[Place, tuple[float, int]]) -> dict[Key, list[Place]]:
        """Return the lines that took time and name a block, or run it there and then, by block."""
        found: dict[Key, set[Place]] = {key: set(places) for key, places in self._runs.items()}
        for key, line, word in self._names:
            for named in self._known_as.get(word, ()):
                if named != key:
                    found.setdefault(named, set()).add((key, line))
        ran = {key for key, _ in lines}
        timed = {
            key: sorted(place for place in places if lines.get(place, (0.0, 0))[0]) for key, places in found.items()
        }
        return {key: places for key, places in timed.items() if places and key in ran}


def _sum(before: tuple[float, int] | None, spent: float, hits: int) -> tuple[float, int]:
    return (before[0] + spent, before[1] + hits) if before else (spent, hits)


def _in_this_run(
    callers: dict[Key, list[Place]],
    lines: dict[Place, tuple[float, int]],
    whole: dict[Key, tuple[float, int]],
    undisturbed: float,
) -> float:
    """Return what a hit cost (s): on a busy machine several times as much as on an undisturbed one.

    The lines that call certain blocks cannot have paid more for their hits than what they took beyond them.
    """
    groups: list[tuple[set[Place], float, int]] = []
    for key, places in callers.items():
        joined, spent, hits = set(places), *whole[key]
        # Lines that call several blocks belong to all of them.
        for group in [each for each in groups if each[0] & joined]:
            groups.remove(group)
            joined, spent, hits = joined | group[0], spent + group[1], hits + group[2]
        groups.append((joined, spent, hits))
    most = [
        (sum(lines[place][0] for place in places) - spent) / hits for places, spent, hits in groups if hits >= _MANY
    ]
    return min(_BUSY * undisturbed, max(undisturbed, min(most, default=undisturbed)))


def _is_code(value: object) -> bool:
    return isinstance(value, types.CodeType)


def _key(code: types.CodeType) -> Key:
    return (code.co_filename, code.co_firstlineno, code.co_name)
