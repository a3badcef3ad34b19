"""Run a script of pyperf's benchmarks, one of them alone, or print their names, one a line.

    python pyperf_script.py list|run SCRIPT [ARGUMENT ...] [--perfflow-only=NAME]

pyperf itself can do neither of the latter. Benchmarks that are passed over are counted, since its worker processes,
which run the script directly, are told the number of theirs. The exit status is the script's own, or 5 where it has no
benchmark, or none of that name. What the script prints while it is listed goes to stderr.

Run by the measured interpreter, so: standard library and pyperf only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH113, PTH120

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

ONLY = "--perfflow-only="
NONE = 5


def main() -> None:
    """Do what the command line says."""
    mode, script, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    only = arguments.pop()[len(ONLY) :] if arguments and arguments[-1].startswith(ONLY) else ""
    try:
        import pyperf  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("pyperf is not installed for this python: pip install pyperf")
    output = os.dup(1)
    if mode == "list":
        os.dup2(2, 1)
    found = choose(pyperf.Runner, only, runs=mode == "run")
    # As `python SCRIPT` does.
    sys.argv[:] = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    if not os.path.isfile(script):
        sys.exit(f"there is no script {script}")
    runpy.run_path(script, run_name="__main__")
    if not found or (only and only not in found):
        sys.stderr.write(f"{script} has no benchmark {only}\n" if only else f"{script} has no benchmark of pyperf\n")
        sys.exit(NONE)
    if mode == "list":
        with os.fdopen(output, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(f"{name}\n" for name in found)


def choose(runner: Any, only: str, *, runs: bool) -> list[str]:
    """Have every Runner pass over all benchmarks but ``only``; return the list that will hold the names of all."""
    found: list[str] = []
    original = runner._main  # noqa: SLF001

    def chosen(self: Any, task: Any) -> Any:
        found.append(task.name)
        if runs and only in ("", task.name):
            return original(self, task)
        self.parse_args()
        self._worker_task += 1
        return None

    runner._main = chosen  # noqa: SLF001
    return found


if __name__ == "__main__":
    main()
