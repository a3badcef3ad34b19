"""Run a Python program under scalene as ``python`` itself would, and keep its exit status.

    python [flags] scalene_run.py PROFILE RATE memory|cpu STATUS_FILE script|module|code TARGET [ARGUMENT ...]

scalene itself runs a module in its own namespace, loses the interpreter's flags when it restarts to load its allocator,
and exits with 0 after SIGINT and with 1 after ``sys.exit()``. So this driver starts it with the complete environment,
and scalene runs python_run.py, which records the exit status. PROFILE is JSON in scalene's own form. It is missing or
empty if scalene took no sample of the program's own code, which is code below the working directory or beside the
script. Installed packages and the standard library count for the line that calls them.

Run by the measured interpreter, which must have scalene, so: nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH109, PTH110, PTH118, PTH120, PTH123, S606

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
OWN = 3
"""Number of arguments before those of python_run.py."""
LACKING = "scalene is not installed for this interpreter"
WINDOW = 1 << 20
"""Bytes allocated between two memory samples: a little more than 1 MB, scalene's own default."""


def main() -> None:
    """Profile the program of the command line."""
    profile, rate, mode = os.path.abspath(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    # The program must not import modules from this file's folder.
    if sys.path and os.path.abspath(sys.path[0]) == FOLDER:
        del sys.path[0]
    try:
        preload = import_module("scalene.scalene_preload").ScalenePreload
        profiler = import_module("scalene.scalene_profiler").Scalene
    except ImportError as error:
        sys.exit(f"{LACKING}: {error}")
    start_again(preload, mode == "memory")
    words = sys.argv[1 + OWN :]
    if hasattr(sys, "orig_argv"):
        first = len(sys.orig_argv) - len(sys.argv) + 1
        del sys.orig_argv[first : first + OWN]
    flags = ["--no-stacks", "--no-async", "--cpu-sampling-rate", repr(1 / rate), "--program-path", root(*words[1:3])]
    flags += ["--profile-exclude", FOLDER, *(["--cpu-only"] if mode == "cpu" else [])]
    sys.argv = ["scalene", "run", *flags, "-o", profile, os.path.join(FOLDER, "python_run.py"), "---", *words]
    status_file = os.path.abspath(words[0])
    try:
        profiler.main()
    except SystemExit:
        # scalene exits with 1 for ``sys.exit(None)``, and with 0 for SIGINT.
        if not os.path.exists(status_file):
            raise
        with open(status_file, encoding="utf-8") as stream:
            status = int(stream.read().split()[-1].strip("}"))
        raise SystemExit(status) from None


def start_again(preload: Any, memory: bool) -> None:
    """Restart in scalene's environment, which preloads its allocator, unless this process already has it.

    Otherwise scalene restarts itself, but as a child process and without the interpreter's flags.
    """
    import argparse

    wanted = preload.get_preload_environ(argparse.Namespace(memory=memory, allocation_sampling_window=WINDOW))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        words = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
        os.execve(sys.executable, [sys.executable, *words[1:]], {**os.environ, **wanted})


def root(form: str, target: str) -> str:
    """Return the folder of the program's own code."""
    here = os.getcwd()
    script = os.path.abspath(target)
    inside = form != "script" or script.startswith(os.path.join(here, ""))
    return here if inside else os.path.dirname(os.path.realpath(script))


if __name__ == "__main__":
    main()
