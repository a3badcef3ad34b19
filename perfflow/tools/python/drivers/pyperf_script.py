"""Run a script of pyperf's benchmarks, or some of them, or print the names of all, one a line.

    python pyperf_script.py list|run SCRIPT [ARGUMENT ...] [--perfflow-chosen=NAMES]

pyperf itself can do neither of the latter. NAMES is a JSON list; the script determines the order. Skipped benchmarks
are counted, because pyperf's worker processes run the script directly and select their benchmark by its number. The
exit status is the script's own, or 5 if it has no benchmark, or none of that name. In list mode, output of the script
goes to stderr.

Run by the measured interpreter, so: standard library and pyperf only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH113, PTH120

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

CHOSEN = "--perfflow-chosen="
NONE = 5


def main() -> None:
    """Run the mode of the command line."""
    mode, script, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    given = bool(arguments) and arguments[-1].startswith(CHOSEN)
    wanted = json.loads(arguments.pop()[len(CHOSEN) :]) if given else []
    try:
        import pyperf  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("pyperf is not installed for this python: pip install pyperf")
    output = os.dup(1)
    if mode == "list":
        os.dup2(2, 1)
    found = choose(pyperf.Runner, wanted, runs=mode == "run")
    # As with `python SCRIPT`.
    sys.argv[:] = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    if not os.path.isfile(script):
        sys.exit(f"there is no script {script}")
    runpy.run_path(script, run_name="__main__")
    if not found or not set(wanted).issubset(found):
        unknown = "".join(name for name in wanted if name not in found)
        sys.stderr.write(f"{script} has no benchmark {unknown or 'of pyperf'}\n")
        sys.exit(NONE)
    if mode == "list":
        with os.fdopen(output, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(f"{name}\n" for name in found)


def choose(runner: Any, wanted: list[str], *, runs: bool) -> list[str]:
    """Make every Runner skip all benchmarks but the wanted ones, if any. Return a list that gets the names of all."""
    found: list[str] = []
    original = runner._main  # noqa: SLF001

    def chosen(self: Any, task: Any) -> Any:
        found.append(task.name)
        if runs and (not wanted or task.name in wanted):
            return original(self, task)
        self.parse_args()
        self._worker_task += 1
        return None

    runner._main = chosen  # noqa: SLF001
    return found


if __name__ == "__main__":
    main()
