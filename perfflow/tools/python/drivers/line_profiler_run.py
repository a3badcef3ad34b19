"""Run a Python program as ``python`` itself would, with line_profiler on the lines of its own modules.

    python [flags] python_run.py --under=line_profiler_run.py ROWS_FILE NAMES script|module|code TARGET [ARGUMENT ...]

``kernprof`` imports what it is to profile before the program starts, sees no code of a module's top level, and leaves a
pickle. This driver hands line_profiler the code of every own module as it is loaded (NAMES, joined by commas, chooses
others), in all threads, and ROWS_FILE is JSON: ``status``, ``modules`` that were watched, ``total`` (s, the time of the
program without the overhead of hits, at least the sum of ``own``) and ``rows`` of ``file``, ``line``, ``function``,
``hits``, ``time``, ``of`` (all lines of the function) and ``own`` (s).

line_profiler's ``time`` of a line includes the functions that it calls, and what it cost to watch those. ``own`` is an
estimate without those of them that are profiled too: each such function's time, with the overhead of its hits, is taken
from the lines that name it, in proportion to theirs.

Run by the measured interpreter, so: standard library and line_profiler only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100, S102

from __future__ import annotations

import os
import time
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


def main(runner: Any, words: list[str]) -> None:
    """Profile the program that the command line names; what it raises ends this process as it would have ended."""
    rows_file, names, form, target = os.path.abspath(words[0]), *words[1:4]
    new_profiler = runner.require("line_profiler", rows_file).LineProfiler
    profiler = new_profiler()
    blocks = Blocks(profiler)
    own = runner.OwnModules(form, target, names)
    own.change(blocks.add_module)
    elapsed = 0.0

    def profiled(code: types.CodeType, namespace: dict[str, Any]) -> None:
        nonlocal elapsed
        code = own.program(code)
        _follow_threads(profiler)
        started = time.perf_counter()
        try:
            with profiler:
                runner.perfflow_program(code, namespace)
        finally:
            elapsed = time.perf_counter() - started

    def record(status: int) -> None:
        found, overhead = blocks.rows(profiler.get_stats(), overhead_of_a_hit(new_profiler))
        rows = runner.records("file line function hits time of own", found)
        watching = overhead * sum(row["hits"] for row in rows)
        total = max(elapsed - watching, sum(row["own"] for row in rows))
        runner.write(rows_file, status=status, modules=own.loaded, total=total, rows=rows)

    runner.watch(words[2:], profiled, record)


def overhead_of_a_hit(profiler_class: Any) -> float:
    """Return what line_profiler takes for one hit (s) of a function, which is in the time of the line that calls it."""
    text = "def callee():\n    for _ in range(1000):\n        pass\ndef caller():\n    callee()\n"
    found: list[float] = []
    for _ in range(5):
        profiler = profiler_class()
        # Adding a function changes its code, so each round starts from code of its own.
        namespace: dict[str, Any] = {}
        exec(compile(text, "<calibration>", "exec"), namespace)
        for name in ("callee", "caller"):
            profiler.add_function(namespace[name])
        with profiler:
            namespace["caller"]()
        stats = profiler.get_stats()
        spent = {key[2]: sum(line[2] for line in lines) for key, lines in stats.timings.items()}
        hits = sum(line[1] for key, lines in stats.timings.items() if key[2] == "callee" for line in lines)
        found.append(max(0.0, (spent["caller"] - spent["callee"]) * stats.unit / max(1, hits)))
    return min(found)


def _follow_threads(profiler: Any) -> None:
    """Profile threads, too: line_profiler is switched on for one thread at a time."""
    import threading

    base: Any = threading.Thread
    original = base._bootstrap_inner  # noqa: SLF001 (the one place that every thread passes, whatever its `run` is)

    def bootstrap_inner(self: Any) -> None:
        profiler.enable_by_count()
        try:
            original(self)
        finally:
            profiler.disable_by_count()

    base._bootstrap_inner = bootstrap_inner  # noqa: SLF001


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
        inner = tuple(
            self._add(each, code.co_name) if isinstance(each, types.CodeType) else each for each in code.co_consts
        )
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
        # What makes or calls an object is known by its class.
        for alias in (code.co_name, holder) if code.co_name in {"__init__", "__new__", "__call__"} else (code.co_name,):
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

    def rows(self, stats: Any, overhead: float) -> tuple[list[tuple[Any, ...]], float]:
        """Return one row per line that ran, with times in s, and what a hit cost in this run (s).

        ``overhead`` (s) is that of a hit on an undisturbed machine.
        """
        lines: dict[Place, tuple[float, int]] = {}
        whole: dict[Key, tuple[float, int]] = {}
        shown: dict[Key, str] = {}
        for (file, first, name), found in stats.timings.items():
            key = (file, first, name.rpartition(".")[2])
            shown[key] = name
            for line, hits, spent in found:
                _add(lines, (key, line), max(0.0, spent * stats.unit), hits)
                _add(whole, key, max(0.0, spent * stats.unit), hits)
        callers = self._callers(lines)
        overhead = _in_this_run(callers, lines, whole, overhead)
        own = {place: spent for place, (spent, _) in lines.items()}
        for key, places in callers.items():
            seen = whole[key][0] + overhead * whole[key][1]
            among = sum(lines[place][0] for place in places)
            for place in places:
                own[place] = max(0.0, own[place] - seen * lines[place][0] / among)
        rows: list[tuple[Any, ...]] = [
            (key[0], line, shown[key], hits, spent, whole[key][0], own[key, line])
            for (key, line), (spent, hits) in lines.items()
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
        timed = {key: sorted(place for place in found[key] if place in lines and lines[place][0]) for key in found}
        return {key: places for key, places in timed.items() if places and key in ran}


def _add(sums: dict[Any, tuple[float, int]], key: Key | Place, spent: float, hits: int) -> None:
    before = sums.get(key, (0.0, 0))
    sums[key] = (before[0] + spent, before[1] + hits)


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


def _key(code: types.CodeType) -> Key:
    return (code.co_filename, code.co_firstlineno, code.co_name)
