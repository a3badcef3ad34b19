"""Run a Python program as ``python`` itself would, with memory_profiler on the lines of the modules named.

    python [flags] python_run.py --under=memory_profiler_run.py ROWS_FILE NAMES script|module|code TARGET [ARGUMENT ...]

memory_profiler asks for the size of the process at every line of a watched module, which takes some 20 µs each time, so
without NAMES (joined by commas) no line is watched, and memory_profiler need not be installed for the program's
interpreter. ROWS_FILE is JSON: ``status``, ``modules`` that were watched, and ``rows`` of ``file``, ``line``,
``function``, ``hits``, ``grown`` (MiB by which the process grew in the line, < 0 where it shrank) and ``size`` (MiB, of
the process after the line, at most). Threads other than the main one are not watched.

Run by the measured interpreter, so: standard library and memory_profiler only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100

from __future__ import annotations

import os
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(runner: Any, words: list[str]) -> None:
    """Profile the program that the command line names; what it raises ends this process as it would have ended."""
    rows_file, modules = os.path.abspath(words[0]), runner.beside("own_modules")
    names = modules.names_in(words[1])
    own = modules.OwnModules(*words[2:4], names)
    watcher = Watcher(modules, rows_file) if names else None

    def profiled() -> None:
        if watcher:
            own.change(watcher.add)
        code, namespace = runner.prepare(*words[2:])
        if watcher:
            code = own.program(watcher.add, code)
            watcher.profiler.enable_by_count()
        try:
            runner.perfflow_program(code, namespace)
        finally:
            if watcher:
                watcher.profiler.disable_by_count()

    def record(status: int) -> None:
        runner.write(rows_file, status=status, modules=own.loaded, rows=watcher.rows() if watcher else [])

    runner.watch(profiled, record)


class Watcher:
    """memory_profiler's own profiler, with the code that it was given."""

    def __init__(self, modules: Any, rows_file: str) -> None:
        try:
            import memory_profiler  # type: ignore[import-untyped]
        except ImportError:
            modules.stop_without("memory_profiler", rows_file)

        base: Any = memory_profiler.CodeMap

        class Growth(base):  # type: ignore[misc]
            """What the process grew by since the last watched line.

            memory_profiler itself asks what the line before had at most, by its number alone, which is wrong after a
            call and in a loop.
            """

            last: float | None = None

            def trace(self, code: types.CodeType, line: int, _before: int) -> None:
                size = memory_profiler._get_memory(-1, self.backend)  # noqa: SLF001 (what its own `trace` calls)
                line = max(line, 1)
                grown, most, hits = self[code].get(line, (0.0, 0.0, 0))
                step = 0.0 if self.last is None else size - self.last
                self[code][line], self.last = (grown + step, max(most, size), hits + 1), size

        self.profiler = memory_profiler.LineProfiler(backend="psutil")
        self.profiler.code_map = Growth(include_children=False, backend="psutil")
        self._codes: list[types.CodeType] = []

    def add(self, code: types.CodeType, name: str) -> types.CodeType:
        """Watch all code of a module."""
        self._codes.append(code)
        # Its own way to add code reads the source, which is not always there.
        self.profiler.code_map[code] = {}
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self.add(inner, name)
        return code

    def rows(self) -> list[dict[str, Any]]:
        """Return one record per line that ran."""
        return [
            {
                "file": code.co_filename,
                "line": line,
                "function": getattr(code, "co_qualname", code.co_name),
                "hits": hits,
                "grown": grown,
                "size": size,
            }
            for code in self._codes
            for line, (grown, size, hits) in self.profiler.code_map[code].items()
        ]
