"""Run a Python program as ``python`` itself would, with line_profiler on the lines of its own modules.

    python [flags] python_run.py --under=line_profiler_run.py ROWS_FILE NAMES script|module|code TARGET [ARGUMENT ...]

``kernprof`` imports what it is to profile before the program starts, sees no code of a module's top level, and leaves a
pickle. This driver hands line_profiler the code of every own module as it is loaded (NAMES, joined by commas, chooses
others), in all threads, and ROWS_FILE is JSON: ``status``, ``modules`` that were watched, ``elapsed`` (s), ``overhead``
(s, that of one hit), ``total`` (s, ``elapsed`` without the overhead, at least the sum of ``own``) and ``rows`` of
``file``, ``line``, ``function``, ``hits``, ``time``, ``of`` (all lines of the function) and ``own`` (s).

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


def main(runner: Any, words: list[str]) -> None:
    """Profile the program that the command line names; what it raises ends this process as it would have ended."""
    rows_file, names, form, target = os.path.abspath(words[0]), *words[1:4]
    modules, code_blocks = runner.beside("own_modules"), runner.beside("code_blocks")
    try:
        from line_profiler import LineProfiler
    except ImportError:
        modules.stop_without("line_profiler", rows_file)
    profiler = LineProfiler()
    blocks = code_blocks.Blocks(profiler)
    own = modules.OwnModules(form, target, modules.names_in(names))
    elapsed = 0.0

    def profiled() -> None:
        nonlocal elapsed
        own.change(blocks.add_module)
        code, namespace = runner.prepare(*words[2:])
        code = own.program(blocks.add_module, code)
        _follow_threads(profiler)
        started = time.perf_counter()
        profiler.enable_by_count()
        try:
            runner.perfflow_program(code, namespace)
        finally:
            profiler.disable_by_count()
            elapsed = time.perf_counter() - started

    def record(status: int) -> None:
        rows, overhead = blocks.rows(profiler.get_stats(), overhead_of_a_hit(LineProfiler))
        watching = overhead * sum(row["hits"] for row in rows)
        total = max(elapsed - watching, sum(row["own"] for row in rows))
        times = {"elapsed": elapsed, "overhead": overhead, "total": total}
        runner.write(rows_file, status=status, modules=own.loaded, **times, rows=rows)

    runner.watch(profiled, record)


def overhead_of_a_hit(profiler_class: Any) -> float:
    """Return what line_profiler takes for one hit (s) of a function, which is in the time of the line that calls it."""
    text = "def callee():\n    for _ in range(1000):\n        pass\ndef caller():\n    callee()\n"
    namespace: dict[str, Any] = {}
    exec(compile(text, "<calibration>", "exec"), namespace)
    found: list[float] = []
    for _ in range(5):
        profiler = profiler_class()
        # Adding a function changes its code, so each round starts from code of its own.
        pair = {name: types.FunctionType(namespace[name].__code__, namespace) for name in ("callee", "caller")}
        for function in pair.values():
            profiler.add_function(function)
        namespace["callee"] = pair["callee"]
        profiler.enable_by_count()
        pair["caller"]()
        profiler.disable_by_count()
        stats = profiler.get_stats()
        seen = {key[2]: lines for key, lines in stats.timings.items()}
        spent = {name: sum(line[2] for line in lines) for name, lines in seen.items()}
        hits = sum(line[1] for line in seen["callee"])
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
