"""Run a pytest suite whose benchmarks are timed by several clocks, or some of its benchmarks in a given order.

    python pytest_run.py [PYTEST ARGUMENT ...] [--perfflow-chosen NODE_ID...]

In the file of ``--benchmark-json``, the statistics of each benchmark have the lists ``cpu`` and ``uncontended`` beside
``data``, in s per iteration (see clocks.py), unless the suite chooses its own timer. With chosen benchmarks, their
files are collected, and other tests in them do not run. The exit status is pytest's own; with chosen benchmarks it is 0
if tests failed: the report names them, and the others have results.

Run by the measured interpreter, so: standard library and pytest only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH109, PTH118, PTH120

from __future__ import annotations

import os
import sys
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

CHOSEN = "--perfflow-chosen"
FAILED = 1


class Order:
    """A plugin that runs only the chosen items, in the order of their ids."""

    def __init__(self, chosen: list[str]) -> None:
        self.chosen = chosen

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave only the chosen items, in the given order."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in self.chosen if name in found]


class Timer:
    """A plugin that times the benchmarks by several clocks at once."""

    def __init__(self, clocks: Any) -> None:
        self.clocks = clocks

    def pytest_sessionstart(self, session: Any) -> None:
        """Replace the default timer of pytest-benchmark, if it is installed."""
        options = getattr(getattr(session.config, "_benchmarksession", None), "options", {})
        timer: Any = options.get("timer")
        if getattr(timer, "target", None) is time.perf_counter:
            options["timer"] = type(timer)(self.clocks.Clocks().read)

    def pytest_benchmark_update_json(self, benchmarks: Any, output_json: Any) -> None:
        """Add the times of the other clocks to the file."""
        written = {each["fullname"]: each["stats"] for each in output_json["benchmarks"]}
        for each in benchmarks:
            if each.fullname in written and not each.has_error:
                # pytest-benchmark has divided the times of the rounds by their iterations.
                written[each.fullname].update(self.clocks.parts(each.stats.data))


def beside(name: str) -> Any:
    """Import a file beside this one, which is not on sys.path."""
    module = ModuleType(name)
    module.__file__ = os.path.join(os.path.dirname(__file__), f"{name}.py")
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


def main() -> None:
    """Run the benchmarks that the command line names."""
    # As with `python -m pytest`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    try:
        import pytest
    except ImportError:
        sys.exit("pytest is not installed for this python: pip install pytest pytest-benchmark")
    last = pytest.hookimpl(trylast=True)
    optional = pytest.hookimpl(optionalhook=True)
    Timer.pytest_sessionstart = last(Timer.pytest_sessionstart)  # type: ignore[method-assign]
    Timer.pytest_benchmark_update_json = optional(Timer.pytest_benchmark_update_json)  # type: ignore[method-assign]
    arguments, plugins = sys.argv[1:], [Timer(beside("clocks"))]
    if CHOSEN not in arguments:
        sys.exit(int(pytest.main(arguments, plugins=plugins)))
    place = arguments.index(CHOSEN)
    chosen = arguments[place + 1 :]
    files = dict.fromkeys(name.partition("::")[0] for name in chosen)
    # After pytest's own order, which groups items by their fixtures.
    Order.pytest_collection_modifyitems = last(Order.pytest_collection_modifyitems)  # type: ignore[method-assign]
    status = int(pytest.main([*arguments[:place], *files], plugins=[*plugins, Order(chosen)]))
    sys.exit(0 if status == FAILED else status)


if __name__ == "__main__":
    main()
