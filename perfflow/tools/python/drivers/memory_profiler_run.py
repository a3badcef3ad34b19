"""Run a Python program as ``python`` itself would, with memory_profiler on the lines of the named modules.

    python [flags] python_run.py --under=memory_profiler_run.py ROWS_FILE NAMES script|module|code TARGET [ARGUMENT ...]

memory_profiler reads the size of the process at every line of a watched module, which takes some 20 µs each time. So
without NAMES (joined by commas) no line is watched, and memory_profiler need not be installed for the program's
interpreter. ROWS_FILE is JSON: ``status``, the watched ``modules``, and ``rows`` of ``file``, ``line``, ``function``,
``hits`` and ``grown`` (MiB by which the process grew in the line, < 0 if it shrank). Threads other than the main one
are not watched.

Run by the measured interpreter, so: standard library and memory_profiler only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100

from __future__ import annotations

import os
import types


def main(runner: types.ModuleType, words: list[str]) -> None:
    """Profile the program of the command line. Its exceptions end this process as they would have ended the program."""
    rows_file, names = os.path.abspath(words[0]), words[1]
    own = runner.OwnModules(*words[2:4], names)
    watcher = Watcher(runner.require("memory_profiler", rows_file)) if names else None
    if watcher:
        own.change(watcher.add)

    def watched(code: types.CodeType, namespace: dict[str, object]) -> None:
        if not watcher:
            runner.perfflow_program(code, namespace)
            return
        with watcher.profiler:
            runner.perfflow_program(own.program(code), namespace)

    def record(status: int) -> None:
        rows = runner.records("file line function hits grown", watcher.rows() if watcher else ())
        runner.write(rows_file, status=status, modules=own.loaded, rows=rows)

    runner.watch(words[2:], watched, record)


class Watcher:
    """memory_profiler's own profiler and the code to watch."""

    def __init__(self, memory_profiler: types.ModuleType) -> None:
        class Growth(memory_profiler.CodeMap):  # type: ignore[misc,name-defined]
            """The growth of the process since the last watched line.

            memory_profiler itself subtracts the maximum of the line that ran before, found by its number alone, which
            is wrong after a call and in a loop.
            """

            last: float | None = None

            def trace(self, code: types.CodeType, line: int, _before: int) -> None:
                size = memory_profiler._get_memory(-1, self.backend)  # noqa: SLF001 (what its own `trace` calls)
                step = 0.0 if self.last is None else size - self.last
                hits, grown = self[code].get(max(line, 1), (0, 0.0))
                self[code][max(line, 1)] = hits + 1, grown + step
                self.last = size

        self.profiler = memory_profiler.LineProfiler(backend="psutil")
        self.profiler.code_map = Growth(include_children=False, backend="psutil")

    def add(self, code: types.CodeType, name: str) -> types.CodeType:
        """Watch all code of a module."""
        # Its own method to add code reads the source, which does not always exist.
        self.profiler.code_map[code] = {}
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self.add(inner, name)
        return code

    def rows(self) -> list[tuple[object, ...]]:
        """Return file, line, function, hits and growth (MiB) of each line that ran."""
        return [
            (code.co_filename, line, getattr(code, "co_qualname", code.co_name), *found)
            for code, lines in dict.items(self.profiler.code_map)
            for line, found in lines.items()
        ]
