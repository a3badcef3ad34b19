"""Captures real output into data/ again: ``python -m tests.tools.capture``, after a new version of a tool.

Programs are built in /tmp/demo, so that no developer's folders end up in the fixtures; the driver's path is replaced.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.tools.harness import DATA, PROGRAMS, call_of, run, tool

DEMO = Path("/tmp/demo")
PYTHON = "/usr/bin/python3"
HOT, HOT_PY = str(DEMO / "hot"), str(DEMO / "hot.py")
DRIVERS = b"/opt/perfflow/tools/drivers/"
# tool -> case -> command and options
CASES: dict[str, dict[str, tuple[list[str], dict[str, Any]]]] = {
    "hyperfine": {
        "plain": ([HOT, "100000"], {}),
        "shell": ([f"{HOT} 100000 | cat"], {"shell": True}),
        "exit-3": ([HOT, "1000", "3"], {}),
    },
    "massif": {
        "c": ([HOT, "1000"], {}),
        "stacks": ([HOT, "1000"], {"stacks": True}),
        "fork": ([str(DEMO / "forks")], {}),
        "leaks": ([str(DEMO / "leaks")], {}),
        "no-heap": ([str(DEMO / "idle")], {}),
    },
    "perf": {
        "dwarf": ([HOT, "700000"], {}),
        "no-call-graph": ([HOT, "3000000"], {"call_graph": "none"}),
        "python-fp": ([PYTHON, HOT_PY, "8"], {"call_graph": "fp"}),
        "no-samples": ([str(DEMO / "idle")], {}),
    },
    "perf-stat": {
        "no-pmu": ([HOT, "1000000"], {}),
        "crash": ([str(DEMO / "crash")], {}),
        "not-found": ([str(DEMO / "missing")], {}),
    },
    "py-spy": {
        "plain": ([PYTHON, HOT_PY, "150"], {}),
        "native": ([PYTHON, HOT_PY, "150"], {"native": True}),
        "subprocesses": (
            [PYTHON, "-c", f"import subprocess as s; s.run(['{PYTHON}', '{HOT_PY}', '100'])"],
            {"subprocesses": True},
        ),
        "exit-3": ([PYTHON, HOT_PY, "40", "3"], {}),
    },
    "cprofile": {"plain": ([PYTHON, HOT_PY, "5"], {}), "exit-3": ([PYTHON, HOT_PY, "1", "3"], {})},
}


def main() -> None:
    """Build the programs and capture every case; test_golden.py then writes the golden files."""
    DEMO.mkdir(exist_ok=True)
    for source in PROGRAMS.iterdir():
        if source.suffix == ".c":
            level = "-O2" if source.stem == "hot" else "-O0"
            shutil.copy(source, DEMO)
            subprocess.run(["cc", "-g", level, "-w", "-o", source.stem, source.name], cwd=DEMO, check=True)
        elif source.suffix == ".py":
            shutil.copy(source, DEMO)
    for name, cases in CASES.items():
        version = _version(name)
        for case, (command, options) in cases.items():
            _capture(name, DATA / name / version / case, command, options)


def _version(name: str) -> str:
    """Return the first word with a digit that the tool, or else the interpreter, prints as its version."""
    adapter = tool(name)
    argv = (call_of(name, DEMO, HOT).program, *adapter.VERSION_ARGV) if adapter.PROGRAM else (PYTHON, "--version")
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return next(word for word in printed.replace("valgrind-", "").split() if word[0].isdigit())


def _capture(name: str, target: Path, command: list[str], options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        ran = run(name, Path(temporary) / "out", *command, **options)
        target.mkdir(parents=True, exist_ok=True)
        for file in ran.call.folder.iterdir():
            # Binary files are not what is parsed.
            if file.suffix not in {".data", ".prof"} and (file.name != "stderr" or file.stat().st_size):
                content = file.read_bytes().replace(str(ran.call.folder).encode(), b"/tmp/out")
                drivers = str(Path(__file__).parents[2] / "perfflow/tools/drivers").encode() + b"/"
                (target / file.name).write_bytes(content.replace(drivers, DRIVERS))


if __name__ == "__main__":
    main()
