"""Small projects in C and C++, built by real compilers under the recorder, and checks of their executables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfflow.execute.layouts.relinking import Relinker, recording, relinker
from tests.toolchains import why_no_cargo

FUNCTIONS = 12
CALLED = "".join(
    f"__attribute__((noinline)) int f{number}(int x) {{ static volatile int v; v += x; return v * {number + 3}; }}\n"
    for number in range(FUNCTIONS)
)
MAIN = (
    "#include <stdio.h>\n"
    + "".join(f"int f{number}(int);\n" for number in range(FUNCTIONS))
    + "int main(void) { int s = 1;"
    + "".join(f" s += f{number}(s);" for number in range(FUNCTIONS))
    + ' printf("%d\\n", s); return 0; }\n'
)


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    reason = f"needs {', '.join(missing)}" if missing else why_no_cargo() if "cargo" in programs else ""
    return pytest.mark.skipif(bool(reason), reason=reason)


@dataclass(frozen=True)
class Project:
    """A folder with ``called.c`` and ``main.c``, and the folder of its recorded links."""

    folder: Path
    recordings: Path
    work: Path

    def build(self, command: str, **env: str) -> subprocess.CompletedProcess[str]:
        found = self.attempt(command, **env)
        assert found.returncode == 0, found.stderr
        return found

    def attempt(self, command: str, **env: str) -> subprocess.CompletedProcess[str]:
        environment = recording({**os.environ, **env}, self.recordings)
        return subprocess.run(
            ["/bin/bash", "-ec", command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def relinker(self, executable: str) -> Relinker:
        return relinker(self.folder / executable, self.recordings, self.work)


def project(place: Path, name: str = "project") -> Project:
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "called.c").write_text(CALLED)
    (folder / "main.c").write_text(MAIN)
    return Project(folder, place / "recordings", place / "work")


def order(executable: Path, pattern: str = r"f\d+") -> list[str]:
    """Return the functions in the order of their addresses."""
    listed = subprocess.run(["nm", "-n", str(executable)], capture_output=True, text=True, check=True).stdout
    functions = [words[2] for line in listed.splitlines() if len(words := line.split()) == 3 and words[1] in "tT"]
    return [name for name in functions if re.fullmatch(pattern, name)]


def printed(executable: Path) -> str:
    return subprocess.run([str(executable)], capture_output=True, text=True, check=True).stdout


def require_layouts(found: Relinker, executable: Path, place: Path, pattern: str = r"f\d+") -> None:
    """Assert that seeds give other orders of the same functions with the same output, and the same bytes again."""
    place.mkdir(parents=True, exist_ok=True)
    first, again, second = (place / name for name in ("first", "again", "second"))
    for seed, path in ((1, first), (1, again), (2, second)):
        found.link(seed, path)
    assert first.read_bytes() == again.read_bytes()
    orders = [order(path, pattern) for path in (executable, first, second)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
    assert len({tuple(names) for names in orders}) == 3
    assert printed(executable) == printed(first) == printed(second)
    assert found.seconds > 0
