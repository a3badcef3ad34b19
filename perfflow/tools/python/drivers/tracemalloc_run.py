"""Run a Python program as ``python`` itself would, with tracemalloc on, and write its largest snapshot.

    python [flags] python_run.py --under=tracemalloc_run.py ROWS_FILE FRAMES script|module|code TARGET [ARGUMENT ...]

tracemalloc records the highest sum of all blocks of Python's allocators, but not their owners at that time. So a timer
of CPU time (SIGPROF) checks the sum every 20 ms and takes a snapshot when the sum is a quarter above that of the last,
and once more at the end. ROWS_FILE is JSON: ``status``, ``peak`` (B), ``seen`` (B, the sum in the largest snapshot),
``other`` (B, in its lines beyond ``rows``), ``own_memory`` (B, of tracemalloc itself) and ``rows`` of ``file``,
``line``, ``function``, ``size`` (B) and ``count`` in that snapshot.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100, PTH120, PTH123

from __future__ import annotations

import os
import signal
import tracemalloc
import types

_EVERY = 0.02
_GROWTH = 1.25
_KEPT = 200


def main(runner: types.ModuleType, words: list[str]) -> None:
    """Trace the program of the command line. Its exceptions end this process as they would have ended the program."""
    rows_file, frames = os.path.abspath(words[0]), int(words[1])
    runner.OwnModules(*words[2:4]).always_compile()
    album = Album()
    peak = 0

    def traced(code: types.CodeType, namespace: dict[str, object]) -> None:
        nonlocal peak
        tracemalloc.start(frames)
        signal.signal(signal.SIGPROF, album.look)
        signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
        try:
            runner.perfflow_program(code, namespace)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            peak = tracemalloc.get_traced_memory()[1]
            album.look()

    def record(status: int) -> None:
        own_memory = tracemalloc.get_tracemalloc_memory() if tracemalloc.is_tracing() else 0
        tracemalloc.stop()
        found = runner.records("file line function size count", rows(album.fullest, runner.FOLDER))
        found.sort(key=lambda row: (-row["size"], row["file"], row["line"]))
        seen, other = (sum(row["size"] for row in some) for some in (found, found[_KEPT:]))
        sizes = {"peak": peak, "seen": seen, "own_memory": own_memory, "other": other}
        runner.write(rows_file, status=status, **sizes, rows=found[:_KEPT])

    runner.watch(words[2:], traced, record)


class Album:
    """Keeps the largest snapshot of the memory."""

    def __init__(self) -> None:
        self.fullest: tracemalloc.Snapshot | None = None
        self._size = 0.0
        self._recording = False

    def look(self, *_signal: object) -> None:
        """Take a snapshot if the memory has grown by _GROWTH since the last one, or at the end if it has grown."""
        # A snapshot of many blocks takes longer than the time to the next signal.
        if self._recording or not tracemalloc.is_tracing():
            return
        self._recording = True
        try:
            size = tracemalloc.get_traced_memory()[0]
            if size > self._size * (_GROWTH if _signal else 1):
                # Blocks of the snapshot itself are not traced.
                self.fullest, self._size = tracemalloc.take_snapshot(), size
        finally:
            self._recording = False


def rows(snapshot: tracemalloc.Snapshot | None, drivers: str) -> list[tuple[object, ...]]:
    """Return one row per line with blocks in the snapshot, without lines of the drivers and of tracemalloc."""
    functions: dict[str, list[tuple[int, int, str]]] = {}
    found: list[tuple[object, ...]] = []
    for statistic in snapshot.statistics("lineno") if snapshot else ():
        file, line = statistic.traceback[0].filename, statistic.traceback[0].lineno
        if os.path.dirname(file) == drivers or file == tracemalloc.__file__:
            continue
        if file not in functions:
            functions[file] = functions_of(file)
        around = [(first, name) for first, last, name in functions[file] if first <= line <= last]
        found.append((file, line, max(around)[1] if around else "<module>", statistic.size, statistic.count))
    return found


def functions_of(path: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and qualified name of every function of a file; [] if it cannot be read."""
    import ast

    try:
        with open(path, "rb") as stream:
            tree = ast.parse(stream.read())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []
    found = []
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((child.lineno, child.end_lineno or child.lineno, prefix + child.name))
                inner = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inner = f"{prefix}{child.name}."
            waiting.append((child, inner))
    return found
