"""Run a Python program under cProfile as ``python`` itself would, keeping its exit status.

    python [flags] python_run.py --under=cprofile_run.py ROWS_FILE PROF_FILE script|module|code TARGET [ARGUMENT ...]

``python -m cProfile -o`` swallows the exit status, and its file is marshal of one Python version. So PROF_FILE is
written for other viewers only, and ROWS_FILE is JSON: ``status``, ``total`` (s, the sum of ``own``) and ``rows`` of
``file``, ``line``, ``function``, ``calls``, ``primitive`` (calls that are not recursive), ``own`` and ``cumulative``
(s), and ``callers`` of functions written in C: file, line, function and what it spent of its own for each (s).
Threads other than the main one are not profiled.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib, typing or, before the end, json.
# ruff: noqa: PTH100

from __future__ import annotations

import cProfile
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(runner: Any, words: list[str]) -> None:
    """Profile the program that the command line names; what it raises ends this process as it would have ended."""
    rows_file, prof_file = (os.path.abspath(path) for path in words[:2])
    profiler = cProfile.Profile()

    def profiled() -> None:
        code, namespace = runner.prepare(*words[2:])
        profiler.enable()
        try:
            runner.perfflow_program(code, namespace)
        finally:
            profiler.disable()

    def record(status: int) -> None:
        profiler.dump_stats(prof_file)
        found = rows(profiler, {os.path.abspath(__file__), os.path.abspath(runner.__file__)})
        runner.write(rows_file, status=status, total=sum(row["own"] for row in found), rows=found)

    runner.watch(profiled, record)


def rows(profiler: cProfile.Profile, own_files: set[str]) -> list[dict[str, Any]]:
    """Return one record per function the program called, without those in the driver's own files."""
    stats: dict[Any, Any] = vars(profiler)["stats"]
    return [
        {
            "file": file,
            "line": line,
            "function": function,
            "calls": calls,
            "primitive": primitive,
            # Clocks of two cores may differ by a tick; less than nothing is nothing.
            "own": max(0.0, own),
            "cumulative": max(0.0, cumulative),
            # Of what is written in C only the callers say where it was spent.
            "callers": [[*caller, max(0.0, spent[2])] for caller, spent in callers.items()] if file == "~" else [],
        }
        for (file, line, function), (primitive, calls, own, cumulative, callers) in stats.items()
        if not (file in own_files or _only_from(own_files, callers) or function.endswith("'_lsprof.Profiler' objects>"))
    ]


def _only_from(files: set[str], callers: dict[Any, Any]) -> bool:
    """Tell whether a function (``exec``, the program's top level excepted) was called by the driver alone."""
    return bool(callers) and all(caller[0] in files for caller in callers)
