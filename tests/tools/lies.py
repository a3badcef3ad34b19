"""The lies of ``test_lies``: faults of a tool's output or of its program. Contracts choose theirs by ``Lied``."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.tools.harness import PROGRAMS

FILES = ("idle", "gone", "empty", "cut", "other", "stale")
"""Lies about output files: not written, deleted, empty, truncated, with other content, or old."""
FILES_OF_ITSELF = ("gone", "empty", "cut", "other")
"""Lies of a program that spoils the output of a profiler in its own process."""
FILES_OF_CARGO = ("idle", "gone", "empty", "cut", "other", "unbuilt", "unfinished", "removed")
"""Lies of cargo about its build. cargo reuses stale files, so only their age can be checked."""
FILES_OF_A_SUITE = ("half", "another", "elsewhere", "lists more", "lists less", "lists nothing", "removed", "vanishes")
CHILDREN = {
    "exits 3": ["sh", "-c", "exit 3"],
    "is killed": ["sh", "-c", "kill -9 $$"],
    "aborts": ["sh", "-c", "kill -6 $$"],
    "does not exist": ["./no-such-program"],
}
"""Failures of a program under a tool."""
PYTHON_CHILDREN = {
    "exits 3": [sys.executable, "-c", "import sys; sys.exit(3)"],
    "raises": [sys.executable, "-c", "raise OSError"],
    "is killed": [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    "leaves by os._exit": [sys.executable, "-c", "import os; os._exit(0)"],
    "does not exist": [sys.executable, "no_such_file.py"],
}
SCRIPT_CHILDREN = {
    how: [sys.executable, str(PROGRAMS / "copies.py"), "20", how] for how in ("exits 3", "raises", "is killed")
} | {"does not exist": [sys.executable, "no_such_file.py"]}
HOT = [sys.executable, str(PROGRAMS / "hot.py"), "20"]
GROWS = [sys.executable, str(PROGRAMS / "grows.py"), "5"]
# Samplers from outside miss short programs.
LONG = [sys.executable, str(PROGRAMS / "hot.py"), "200"]
SHOWN = [sys.executable, str(PROGRAMS / "rueful.py")]
"""A program that every profiler in its process can profile, and that spoils their output as LIE says."""


@dataclass(frozen=True, slots=True)
class Lied:
    """The lies with which the contract's run is tested, in addition to those of the contract itself.

    ``by`` is the process that lies about files: ``program`` replaces the tool's own program on PATH, ``command`` is the
    measured command, ``python`` the option of that name, ``bench`` the program that cargo built, ``itself`` the
    measured program; '' if there are no files. ``keys`` are further keys of the step, ``children`` failures of the
    program under the tool. ``fails_with`` is perfflow's exit status if the program failed: a failed check is a finding.
    """

    by: str = ""
    keys: Mapping[str, object] = field(default_factory=dict)
    children: Mapping[str, list[str]] = field(default_factory=lambda: CHILDREN)
    files: tuple[str, ...] = FILES
    fails_with: int = 3


ALLOWING = """
import ctypes, runpy, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A program that runs another, and lets every process of the user trace it (PR_SET_PTRACER).

With Yama's ptrace_scope 1, only the parent of a process can trace it otherwise.
"""


def _looked_into() -> int:
    """Return the id of this process, and let others trace it from now on."""
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)
    return os.getpid()


LOOKED_INTO = _looked_into()


def real_program(name: str) -> str:
    """Return the path of a tool's own program."""
    return shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name) or ""


def liar(folder: Path, name: str) -> Path:
    """Write a program called ``name`` that lies."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAMS / "liar.py"} "$@"\n')
    path.chmod(0o755)
    return path
