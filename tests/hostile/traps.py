"""Files that are something else than they seem, and settings and programs of a project that wait to be used.

They are in ``cases/*.txt``, which ``tests.text_cases`` reads. Their lines:

- ``@ PATH`` writes a file of the project with the indented lines that follow.
- ``$ COMMAND`` is run by a shell in the project, to prepare it.
- ``env NAME=VALUE`` is set for perfflow.
- ``do WORDS``: a command of perfflow; ``look NAME`` stands for several. ``says TEXT``: what one of them must say.

Words in braces stand for the texts of ``FILLED``, folders and the secret.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from tests import text_cases
from tests.hostile.place import SECRET, Place

READING = ["validate", "plan", "show", "show --raw", "run -n"]
ASKING = ["plan", "show", "run -n", "gate -n --base HEAD", "validate"]
LOOKS: dict[str, list[list[str]]] = {
    "reading": [*([*words.split(), "flow.yaml"] for words in READING), ["make"]],
    # It asks programs for their versions, which takes a while.
    "asking": [["list"], *([*words.split(), "flow.yaml"] for words in ASKING), ["show", "perf"]],
}
LOOKS["listing"] = [*LOOKS["reading"], ["validate"], ["list"]]
FILLED = {
    "nearly secret": SECRET[:-1],
    "secret": SECRET,
    "path": os.environ["PATH"],
    "programs": "git perf valgrind hyperfine cargo rustc py-spy python3 python env sh bash nvidia-smi nsys ncu strace "
    "memray heaptrack mojo g++ nvcc asv pyperf iostat",
    "escape": "\x1b",
    "override": "\u202e",
    "deep": "[" * 500_000 + "]" * 500_000,
    "zeros": "0" * 64,
}
AS_NOBODY = {
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


@dataclass
class Trap:
    """Commands of perfflow, their environment, and what one of them must say."""

    commands: list[list[str]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    says: list[str] = field(default_factory=list)


def trap_in(place: Place, lines: list[str]) -> Trap:
    """Prepare a project, and return how perfflow is to look at it."""
    trap = Trap()
    for line in lines:
        word, _, text = _filled(line, place).partition(" ")
        match word:
            case "@":
                name, _, content = text.partition("\n")
                place.write(textwrap.dedent(content) + "\n", name)
            case "$":
                subprocess.run(["sh", "-ec", text], cwd=place.project, env=os.environ | AS_NOBODY, check=True)
            case "env":
                name, _, value = text.partition("=")
                trap.env[name] = value
            case "do":
                trap.commands.append(shlex.split(text))
            case "look":
                trap.commands += LOOKS[text]
            case "says":
                trap.says.append(text)
            case _:
                raise AssertionError(line)
    return trap


def _filled(text: str, place: Place) -> str:
    for name, value in (FILLED | {"project": str(place.project), "outside": str(place.outside)}).items():
        text = text.replace(f"{{{name}}}", value)
    return text


TRAPS = dict(trap for path in sorted(Path(__file__).with_name("cases").glob("*.txt")) for trap in text_cases.read(path))
