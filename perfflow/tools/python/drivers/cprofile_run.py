"""Run a Python program under cProfile as ``python`` itself would, and keep its exit status.

    python [flags] python_run.py --under=cprofile_run.py ROWS_FILE PROF_FILE script|module|code TARGET [ARGUMENT ...]

``python -m cProfile -o`` loses the exit status, and its file is marshal data of one Python version. So PROF_FILE is
only written for other viewers, and ROWS_FILE is JSON: ``status``, ``total`` (s, the sum of ``own``) and ``rows`` of
``file``, ``line``, ``function``, ``calls``, ``own`` and ``cumulative`` (s), and ``callers``: file, line and function of
each caller, and the function's own time (s) when called from there. Threads other than the main one are not profiled.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib, typing or, before the end, json.
# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import cProfile
import os
import types


def main(runner: types.ModuleType, words: list[str]) -> None:
    """Profile the program of the command line. Its exceptions end this process as they would have ended the program."""
    rows_file, prof_file = (os.path.abspath(path) for path in words[:2])
    profiler = cProfile.Profile()

    def record(status: int) -> None:
        profiler.dump_stats(prof_file)
        rows = runner.records("file line function calls own cumulative callers", called(profiler, runner.FOLDER))
        runner.write(rows_file, status=status, total=sum(row["own"] for row in rows), rows=rows)

    runner.watch(words[2:], lambda *program: profiler.runcall(runner.perfflow_program, *program), record)


def called(profiler: cProfile.Profile, drivers: str) -> list[tuple[object, ...]]:
    """Return one row per function that the program called, without functions of the driver."""
    rows: list[tuple[object, ...]] = []
    for (file, line, function), (_, calls, own, cumulative, callers) in vars(profiler)["stats"].items():
        # Only the driver calls ``exec`` and the function that ends the profile.
        of_driver = os.path.dirname(file) == drivers or {os.path.dirname(caller[0]) for caller in callers} == {drivers}
        if of_driver or function.endswith("'_lsprof.Profiler' objects>"):
            continue
        asked = {caller: times for caller, times in callers.items() if os.path.dirname(caller[0]) != drivers}
        spent = [[*caller, max(0.0, times[2])] for caller, times in asked.items()]
        # Clocks of two cores can differ by a tick, so times can be slightly negative.
        rows.append((file, line, function, calls, max(0.0, own), max(0.0, cumulative), spent))
    return rows
