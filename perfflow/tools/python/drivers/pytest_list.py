"""Print the node ids of the benchmarks that pytest collects, one a line.

    python pytest_list.py [PYTEST ARGUMENT ...]

A benchmark is a test that uses pytest-benchmark's fixture, directly or through another one, and is not skipped. If
PERFFLOW_GROUPS is a JSON list, its mark must have a group of this list. Output of pytest and of the collected files
goes to stderr. The exit status is pytest's own, or 5 if there is no benchmark, or one in a file outside the root, for
which a node id is not a valid argument.

Run by the measured interpreter, so: standard library and pytest only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH109

from __future__ import annotations

import json
import os
import sys
from typing import Any

FIXTURES = {"benchmark", "benchmark_weave"}
NO_TESTS = 5


class Collector:
    """A plugin that keeps the ids of the benchmarks among the selected items."""

    found: tuple[str, ...] = ()

    def pytest_collection_finish(self, session: Any) -> None:
        """Keep the benchmarks' ids in the order in which they would run."""
        groups = json.loads(os.environ.get("PERFFLOW_GROUPS", "[]"))
        self.found = tuple(item.nodeid for item in session.items if is_benchmark(item, groups))


def is_benchmark(item: Any, groups: list[str]) -> bool:
    """Return whether pytest-benchmark would time a test, and whether it is in one of the groups, if there are any."""
    mark = item.get_closest_marker("benchmark")
    if FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return False
    if groups and (mark is None or mark.kwargs.get("group") not in groups):
        return False
    try:
        from _pytest.skipping import evaluate_skip_marks

        # A skip condition that raises is left for the run to report.
        return evaluate_skip_marks(item) is None
    except Exception:  # noqa: BLE001 (a function of pytest's own, and conditions written by anyone)
        return item.get_closest_marker("skip") is None


def main() -> None:
    """Print the benchmarks that the command line selects."""
    # As with `python -m pytest`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    try:
        import pytest
    except ImportError:
        sys.exit("pytest is not installed for this python: pip install pytest pytest-benchmark")
    output = os.dup(1)
    os.dup2(2, 1)
    collector = Collector()
    status = int(pytest.main(["--collect-only", *sys.argv[1:]], plugins=[collector]))
    if status == 0 and not collector.found:
        marked = ", marked with a group that is asked for" if os.environ.get("PERFFLOW_GROUPS") else ""
        sys.stderr.write(f"no test uses the fixture `benchmark` of pytest-benchmark{marked}\n")
        status = NO_TESTS
    if any(name.startswith("::") for name in collector.found):
        sys.stderr.write("the benchmarks are in a file outside the current folder: set `working-directory`\n")
        collector.found, status = (), NO_TESTS
    with os.fdopen(output, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.writelines(f"{name}\n" for name in collector.found)
    sys.exit(status)


if __name__ == "__main__":
    main()
