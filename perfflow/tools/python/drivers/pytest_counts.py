"""Run pytest with benchmarks that run a fixed number of times, to count what one iteration does.

    PERFFLOW_ITERATIONS=N PERFFLOW_ITERATED=FILE python pytest_counts.py [PYTEST ARGUMENT ...]

Instead of timing a function, pytest-benchmark's fixture calls it N times. In pedantic mode, ``setup`` and ``teardown``
run for each call. The number of calls of all benchmarks is written to FILE. The exit status is pytest's own.

Run by the measured interpreter, so: standard library, pytest and pytest-benchmark only, and nothing newer than Python
3.8.
"""

# ruff: noqa: PTH109, PTH123

from __future__ import annotations

import os
import sys
from typing import Any


class Repeater:
    """A plugin that lets every benchmark run a number of times, and counts the runs."""

    def __init__(self, iterations: int) -> None:
        self.iterations, self.calls = iterations, 0

    def pytest_configure(self) -> None:
        """Replace the two methods that choose how often a function runs."""
        # Imported here, since pytest must load its plugins first.
        from pytest_benchmark.fixture import BenchmarkFixture

        BenchmarkFixture._raw = lambda _, function, *args, **kwargs: self.repeat(lambda: function(*args, **kwargs))  # type: ignore[method-assign]  # noqa: SLF001
        BenchmarkFixture._raw_pedantic = self.pedantic()  # type: ignore[method-assign]  # noqa: SLF001

    def pedantic(self) -> Any:
        """Return the pedantic mode, without its numbers of rounds and iterations."""

        def run(
            _fixture: Any,
            target: Any,
            args: Any = (),
            kwargs: Any = None,
            setup: Any = None,
            teardown: Any = None,
            **_: Any,
        ) -> Any:
            def once() -> Any:
                given, named = (setup and setup()) or (args, kwargs or {})
                result = target(*given, **named)
                if teardown:
                    teardown(*given, **named)
                return result

            return self.repeat(once)

        return run

    def repeat(self, once: Any) -> Any:
        """Run a benchmark and return its last result."""
        result = None
        for _ in range(self.iterations):
            result = once()
        self.calls += self.iterations
        return result


def main() -> None:
    """Run the benchmarks that the command line selects."""
    # As with `python -m pytest`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    try:
        import pytest
    except ImportError:
        sys.exit("pytest is not installed for this python: pip install pytest pytest-benchmark")
    repeater = Repeater(int(os.environ["PERFFLOW_ITERATIONS"]))
    status = int(pytest.main(sys.argv[1:], plugins=[repeater]))
    with open(os.environ["PERFFLOW_ITERATED"], "w", encoding="utf-8") as file:
        file.write(f"{repeater.calls}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
