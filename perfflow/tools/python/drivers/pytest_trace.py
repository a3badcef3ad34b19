"""Run each benchmark of pytest-benchmark a few times in a process of its own, and record what it executes and reads.

    python pytest_trace.py SETTINGS [PYTEST ARGUMENT ...]

SETTINGS is a JSON file: ``benchmarks`` are the node ids to run, ``out`` is the folder for one JSON file per test file,
the rest is described in python_trace.py. A test file's record has what runs before its first benchmark, under
``common``, and what each benchmark runs, under ``benchmarks``; those that did not run successfully are missing.

The benchmarks of a file start from the same state of the process, so what one of them does first, such as filling a
cache, is not hidden from the next one.

Run by the measured interpreter, so: standard library, pytest and pytest-benchmark only, and nothing newer than Python
3.8.
"""

# ruff: noqa: PTH109, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from typing import Any

import python_trace  # type: ignore[import-not-found]
from pytest_counts import Repeater  # type: ignore[import-not-found]

try:
    import pytest
except ImportError:
    sys.exit("pytest is not installed for this python: pip install pytest pytest-benchmark")


class Tracer(Repeater):  # type: ignore[misc]
    """A plugin that runs every benchmark in a fork of the process, with two numbers of calls."""

    def __init__(self, recorder: python_trace.Recorder) -> None:
        super().__init__(0)
        self.recorder = recorder
        self.done: dict[str, Any] = {}
        self.common: dict[str, Any] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Begin to record before pytest loads a file of the tree, and after it has loaded its plugins."""
        self.recorder.start()

    def pytest_runtest_protocol(self, item: Any) -> bool:
        """Run a test in a fork."""
        if self.common is None:
            self.common = self.recorder.record()
            self.recorder.codes.clear()
        reading, writing = os.pipe()
        child = self.recorder.fork()
        if child == 0:
            os.close(reading)
            self._run(item, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            text = stream.read()
        _, status = os.waitpid(child, 0)
        if status == 0 and text:
            self.done[item.nodeid] = json.loads(text)
        return True

    def _run(self, item: Any, number: int) -> None:
        """Run a test, write its record, and end the process."""
        status = 1
        try:
            from _pytest.runner import runtestprotocol

            self.recorder.begin_part()
            reports = runtestprotocol(item, log=False, nextitem=None)
            gc.collect()
            record = self.recorder.record()
            if self.calls and all(report.passed for report in reports):
                with os.fdopen(number, "w", encoding="utf-8") as stream:
                    json.dump(record, stream)
                status = 0
        finally:
            os._exit(status)

    def repeat(self, once: Any) -> Any:
        """Run a benchmark with two numbers of calls, and return its last result."""
        # pytest-benchmark takes it away while it times a function.
        self.recorder.follow()
        result = None

        def calls(number: int) -> None:
            nonlocal result
            self.iterations = number
            result = super(Tracer, self).repeat(once)

        self.recorder.repeat(calls)
        return result


def trace(settings: dict[str, Any], arguments: list[str], benchmarks: list[str], out: str) -> int:
    """Run the benchmarks of one test file, and write their record."""
    tracer = Tracer(python_trace.Recorder(settings))
    status = int(pytest.main([*arguments, *benchmarks], plugins=[tracer]))
    with open(out, "w", encoding="utf-8") as stream:
        json.dump({"common": tracer.common, "benchmarks": tracer.done}, stream)
    return status


def main() -> None:
    """Trace the benchmarks that the settings name, each test file in a process of its own."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        settings = json.load(stream)
    # As with `python -m pytest`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    # Loads the installed plugins, once for all files.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["--version", "--noconftest", "-c", os.devnull, "--rootdir", os.path.dirname(sys.argv[1])])
    files: dict[str, list[str]] = {}
    for name in settings["benchmarks"]:
        files.setdefault(name.partition("::")[0], []).append(name)
    worst = 0
    for number, benchmarks in enumerate(files.values()):
        child = os.fork()
        if child == 0:
            status = 70
            try:
                status = trace(settings, sys.argv[2:], benchmarks, os.path.join(settings["out"], f"{number}.json"))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        worst = max(worst, os.WEXITSTATUS(status) if os.WIFEXITED(status) else 70)
    sys.exit(0 if worst in (0, 1) else worst)


if __name__ == "__main__":
    main()
