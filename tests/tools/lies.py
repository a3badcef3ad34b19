"""What each adapter is lied to about: a step that goes well, and who stands between perfflow and the truth.

An adapter of the registry without an entry here fails the tests.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.tools.harness import DATA, PROGRAMS

FILES = ("idle", "gone", "empty", "cut", "other", "stale")
"""Lies about output files: nothing was done, they are gone, hold nothing, a part, or what is not theirs, or are old."""
CHILD = {
    "exits 3": ["sh", "-c", "exit 3"],
    "is killed": ["sh", "-c", "kill -9 $$"],
    "aborts": ["sh", "-c", "kill -6 $$"],
    "does not exist": ["./no-such-program"],
}
"""What a program under a tool may do instead of its work."""
PYTHON_CHILD = {
    "exits 3": [sys.executable, "-c", "import sys; sys.exit(3)"],
    "raises": [sys.executable, "-c", "raise OSError"],
    "is killed": [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    "leaves by os._exit": [sys.executable, "-c", "import os; os._exit(0)"],
    "does not exist": [sys.executable, "no_such_file.py"],
}
SCRIPT_CHILD = {
    how: [sys.executable, str(PROGRAMS / "copies.py"), "20", how] for how in ("exits 3", "raises", "is killed")
} | {"does not exist": [sys.executable, "no_such_file.py"]}
HOT = [sys.executable, str(PROGRAMS / "hot.py"), "20"]
GROWS = [sys.executable, str(PROGRAMS / "grows.py"), "5"]
# Whoever samples from outside misses what is over at once.
LONG = [sys.executable, str(PROGRAMS / "hot.py"), "200"]


@dataclass(frozen=True, slots=True)
class Lied:
    """How to run an adapter honestly, and by which lies it is tried.

    ``by`` is who tells the lies about files: ``program`` stands in for the tool's own program on PATH, ``command`` is
    the measured command, ``python`` is the option of that name, ``bench`` what cargo built; '' where there are no
    files. ``keys`` are further keys of the step, ``children`` what the program under the tool does, ``more`` files in
    the folder by name. ``fails_with`` is the exit status where the program failed: a check that failed is a finding.
    ``uses`` is the adapter's name where the entry has another.
    """

    by: str
    command: list[str] = field(default_factory=list)
    options: Mapping[str, object] = field(default_factory=dict)
    keys: Mapping[str, object] = field(default_factory=dict)
    children: Mapping[str, list[str]] = field(default_factory=lambda: CHILD)
    files: tuple[str, ...] = FILES
    fails_with: int = 3
    more: Mapping[str, str] = field(default_factory=dict)
    uses: str = ""


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


def spoiled_by_itself(lie: str) -> list[str]:
    """The command that spoils the outputs of a profiler inside its own process."""
    return [sys.executable, str(PROGRAMS / "rueful.py"), lie]


LOOKED_INTO = _looked_into()
_MEASURED = {"runs": 3}
BUILT = ("idle", "gone", "empty", "cut", "other", "unbuilt", "unfinished", "removed")
"""Lies of cargo about what it built; what is stale is as good as new to it, so only its age can be told."""
_SUITE = ("half", "another", "elsewhere", "lists more", "lists less", "lists nothing", "removed", "vanishes")
_CRATE: Mapping[str, object] = {"crate": "CRATE", "locked": True}
_TRUE, _LISTS = ["/bin/true"], ["/bin/ls", "/"]
LIES: Mapping[str, Lied] = {
    "command": Lied("", _TRUE, keys=_MEASURED),
    "hyperfine": Lied("program", _TRUE, keys=_MEASURED, files=(*FILES, "later")),
    "massif": Lied("program", _LISTS),
    "perf": Lied("program", HOT),
    "simd-share": Lied("program", HOT),
    "perf-stat": Lied("program", HOT, keys=_MEASURED, files=(*FILES, "later")),
    "py-spy": Lied("program", LONG, children=PYTHON_CHILD),
    "py-spy, attached": Lied(
        "program", ["sleep", "0.7"], options={"pid": LOOKED_INTO, "idle": True}, uses="py-spy"
    ),
    "py-spy-dump": Lied("program", options={"pid": LOOKED_INTO}, children={}),
    "scalene": Lied("itself", LONG, children=SCRIPT_CHILD, files=("gone", "empty", "cut", "other")),
    "cprofile": Lied("itself", HOT, children=PYTHON_CHILD, files=("gone", "empty", "cut", "other")),
    "line-profiler": Lied("itself", HOT, children=PYTHON_CHILD, files=("gone", "empty", "cut", "other")),
    "memory-profiler": Lied("program", GROWS, children=PYTHON_CHILD),
    "memray": Lied("itself", GROWS, children=PYTHON_CHILD, files=("gone", "empty", "cut", "other")),
    "tracemalloc": Lied("itself", GROWS, children=PYTHON_CHILD, files=("gone", "empty", "cut", "other")),
    "slow-callbacks": Lied(
        "itself", HOT, keys={"runs": 1}, children=PYTHON_CHILD,
        files=("gone", "empty", "cut", "other"),
    ),
    "sql-log": Lied(
        "itself", HOT, children=PYTHON_CHILD,
        files=("gone", "empty", "cut", "other"),
    ),
    "strace": Lied("program", _LISTS, keys={"runs": 1}),
    "iostat": Lied("program", ["/bin/sleep", "1.7"]),
    "same-output": Lied(
        "", _TRUE, options={"expected": "expected.txt", "allow-empty": True}, more={"expected.txt": ""}, fails_with=1
    ),
    "callgrind": Lied("program", _TRUE),
    "cachegrind": Lied("program", _TRUE),
    "dhat": Lied("program", _LISTS),
    "heaptrack": Lied("program", _LISTS),
    "pytest-benchmark": Lied(
        "python", options={"paths": "test_it.py"}, keys={"runs": 2}, children={}, files=(*FILES, "later"),
        more={"test_it.py": "def test_it(benchmark):\n    benchmark.pedantic(sum, args=([1] * 999,), rounds=9)\n"},
    ),
    "timeit": Lied("python", options={"stmt": "sum([1] * 99)"}, keys={"runs": 2}, children={}, files=(*FILES, "later")),
    "pyperf": Lied(
        "python", options={"script": "bench.py", "args": ["-p1", "-n3", "--min-time=0.001"]}, keys={"runs": 2},
        children={}, files=(*FILES, "later"),
        more={"bench.py": "import pyperf\npyperf.Runner().timeit('total', 'sum([1] * 99)')\n"},
    ),
    "asv": Lied(
        "python", options={"bench": "mem"}, keys={"runs": 2}, children={}, files=(*FILES, "later"),
        more={
            "asv.conf.json": '{"benchmark_dir": "benches"}\n', "benches/__init__.py": "",
            "benches/it.py": "def mem_it():\n    return [1]\n",
        },
    ),
    # Of a program that is built the compiler is not asked for; this one prints what a real one has printed.
    "mojo-bench": Lied("", ["sh", "-c", f"cat {DATA / 'mojo-bench/1.2.0/plain/printed.txt'}"], keys=_MEASURED),
    "google-benchmark": Lied(
        "command",
        ["gbench", "--benchmark_min_time=0.01"],
        options={"filter": "add/64"},
        keys={"runs": 2},
        files=(*FILES, "later"),
    ),
    "torch-profiler": Lied(
        "itself", [sys.executable, str(PROGRAMS / "tracer.py")], options={"trace": "out-*/steps/traces/*.json"}
    ),
    "stream": Lied(
        "program", options={"seconds": "10ms", "size": "8MiB", "precisions": ["f64"]}, children={},
        # Who builds may also find what is up to date.
        files=("idle", "gone", "empty", "cut", "other"),
    ),
    "cargo-build": Lied("program", options=_CRATE, children={}, files=(*BUILT, "stale")),
    "cargo-bench": Lied(
        "bench", options={**_CRATE, "bench": "lies"}, keys={"runs": 2}, children={}, files=(*FILES, "later", *_SUITE)
    ),
    "cuda-bench": Lied(
        "command", ["kernels_cpu", "--bench", "--n=32", "--repeats=5", "--kernel=sum/lanes"], keys={"runs": 2},
        files=(*FILES, "later"),
    ),
    "cargo-bench, the build": Lied(
        "program", options={**_CRATE, "bench": "lies"}, keys={"runs": 2}, children={}, files=BUILT, uses="cargo-bench"
    ),
}  # fmt: skip


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
