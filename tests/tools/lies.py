"""Who stands between perfflow and the truth in ``test_lies``, and what is told; contracts say which by ``Lied``."""

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
"""Lies about output files: nothing was done, they are gone, hold nothing, a part, or what is not theirs, or are old."""
FILES_OF_ITSELF = ("gone", "empty", "cut", "other")
"""Those of a program that spoils what a profiler in its own process writes."""
FILES_OF_CARGO = ("idle", "gone", "empty", "cut", "other", "unbuilt", "unfinished", "removed")
"""Lies of cargo about what it built; what is stale is as good as new to it, so only its age can be told."""
FILES_OF_A_SUITE = ("half", "another", "elsewhere", "lists more", "lists less", "lists nothing", "removed", "vanishes")
CHILDREN = {
    "exits 3": ["sh", "-c", "exit 3"],
    "is killed": ["sh", "-c", "kill -9 $$"],
    "aborts": ["sh", "-c", "kill -6 $$"],
    "does not exist": ["./no-such-program"],
}
"""What a program under a tool may do instead of its work."""
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
# Whoever samples from outside misses what is over at once.
LONG = [sys.executable, str(PROGRAMS / "hot.py"), "200"]
SHOWN = [sys.executable, str(PROGRAMS / "rueful.py")]
"""It gives every profiler in its process something to see, and spoils what that wrote where LIE says so."""


@dataclass(frozen=True, slots=True)
class Lied:
    """By which lies the contract's run is tried, beside those that the contract itself tells.

    ``by`` is who tells the lies about files: ``program`` stands in for the tool's own program on PATH, ``command`` is
    the measured command, ``python`` is the option of that name, ``bench`` what cargo built, ``itself`` the measured
    program; '' where there are no files. ``keys`` are further keys of the step, ``children`` what the program under the
    tool does. ``fails_with`` is the exit status where the program failed: a check that failed is a finding.
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
"""A program that runs another, and lets every process of the user look into it (PR_SET_PTRACER).

Where Yama guards processes (ptrace_scope 1), only the process that started one may.
"""


def _looked_into() -> int:
    """Return the number of this very process, which lets others look into it from now on."""
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
