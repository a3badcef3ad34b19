"""Run some benchmarks of a pytest suite in a given order.

    python pytest_chosen.py [PYTEST ARGUMENT ...] --perfflow-chosen NODE_ID...

The files of these benchmarks are collected, and other tests in them do not run. The exit status is pytest's own, but 0
if tests failed: the report names them, and the others have results.

Run by the measured interpreter, so: standard library and pytest only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH109

from __future__ import annotations

import os
import sys
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


def main() -> None:
    """Run the benchmarks that the command line names."""
    # As with `python -m pytest`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    try:
        import pytest
    except ImportError:
        sys.exit("pytest is not installed for this python: pip install pytest pytest-benchmark")
    place = sys.argv.index(CHOSEN)
    chosen = sys.argv[place + 1 :]
    files = dict.fromkeys(name.partition("::")[0] for name in chosen)
    # After pytest's own order, which groups items by their fixtures.
    last = pytest.hookimpl(trylast=True)
    Order.pytest_collection_modifyitems = last(Order.pytest_collection_modifyitems)  # type: ignore[method-assign]
    status = int(pytest.main([*sys.argv[1:place], *files], plugins=[Order(chosen)]))
    sys.exit(0 if status == FAILED else status)


if __name__ == "__main__":
    main()
