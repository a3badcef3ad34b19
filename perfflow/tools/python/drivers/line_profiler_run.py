"""Run a Python program as ``python`` itself would, with line_profiler on the lines of its own modules.

    python [flags] python_run.py --under=line_profiler_run.py ROWS_FILE NAMES script|module|code TARGET [ARGUMENT ...]

``kernprof`` imports the profiled modules before the program starts, does not see the top level of modules, and writes a
pickle. This driver gives line_profiler the code of every own module as it is loaded (NAMES, joined by commas, selects
others), in all threads. ROWS_FILE is JSON: ``status``, the profiled ``modules``, ``total`` (s, the time of the program
without the overhead of hits, at least the sum of ``own``) and ``rows`` of ``file``, ``line``, ``function``, ``hits``,
``time``, ``of`` (all lines of the function) and ``own`` (s).

line_profiler's ``time`` of a line includes the functions that it calls and their profiling overhead. ``own`` is an
estimate without those called functions that are profiled, too: the time of each such function, with the overhead of its
hits, is subtracted from the lines that name it, in proportion to their times.

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
    """A block of code: its file, first line and name."""
    Place = tuple[Key, int]
    """A line of a block."""

_OPTIMIZED = 1
"""The flag (inspect.CO_OPTIMIZED) of functions, which bodies of classes and modules do not have."""
_MANY = 1000
"""The number of hits from which their overhead is distinguishable from that of a call."""
_BUSY = 10
"""The largest overhead of a hit on a busy machine, as a multiple of the undisturbed one."""
_RUN_AT_ONCE = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}


def main(runner: Any, words: list[str]) -> None:
    """Profile the program of the command line. Its exceptions end this process as they would have ended the program."""
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
    """Return line_profiler's overhead (s) of one hit of a function, which is in the time of the line that calls it."""
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
    """Profile threads, too: line_profiler must be enabled in each thread."""
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
    """The profiled blocks of code (functions, bodies of classes and modules), and the lines that name them."""

    def __init__(self, profiler: Any) -> None:
        self._profiler = profiler
        self._known_as: dict[str, set[Key]] = {}
        self._runs: dict[Key, list[tuple[Key, int]]] = {}
        self._names: list[tuple[Key, int, str]] = []

    def add_module(self, code: types.CodeType, name: str) -> types.CodeType:
        """Give the profiler all code of a module. Return the code to run in its place."""
        self._known_as.setdefault(name.rpartition(".")[2], set()).add(_key(code))
        return self._add(code, "")

    def _add(self, code: types.CodeType, holder: str) -> types.CodeType:
        inner = tuple(
            self._add(each, code.co_name) if isinstance(each, types.CodeType) else each for each in code.co_consts
        )
        self._read(code, holder)
        cells = tuple(types.CellType() for _ in code.co_freevars)
        function = types.FunctionType(code.replace(co_consts=inner), {}, closure=cells or None)
        # The profiler adds no-op instructions to the code, so that it differs from all other code.
        self._profiler.add_function(function)
        return function.__code__

    def _read(self, code: types.CodeType, holder: str) -> None:
        """Record which lines of a block use which names, and which run another block immediately."""
        import dis

        own = _key(code)
        # Methods that create or call an object are also known by the name of the class.
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
        """Return one row per line that ran, with times in s, and the overhead of a hit in this run (s).

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
        """Return, by block, the lines that took time and name the block or run it immediately."""
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
    """Return the overhead of a hit (s): on a busy machine, it is several times that on an undisturbed one.

    The time of the calling lines beyond the time of the called blocks is an upper bound of the blocks' overhead.
    """
    groups: list[tuple[set[Place], float, int]] = []
    for key, places in callers.items():
        joined, spent, hits = set(places), *whole[key]
        # Blocks with a common calling line form one group.
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
