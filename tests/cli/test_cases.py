"""Runs the cases in ``cases/*.txt``: commands with the files that they read, and what they must answer.

The lines of a case, in files that ``tests.text_cases`` reads:

- ``@ PATH`` writes a file with the indented lines that follow. PATH ends with ``!`` if the file is a program.
- ``$ COMMAND`` is a command for bash, in a new folder for each case. It must end with the status in ``exit STATUS``, 0
  without that line; ``exit 0 or 4`` allows both. ``timed $ COMMAND`` is for one that measures Python programs.
  ``perfflow`` is forked, and ``python3 -m perfflow`` starts an interpreter, which takes a second.
- ``out TEXT``, ``err TEXT``: standard output or error has this text, after that of the line before it. ``no out TEXT``
  and ``no err TEXT``: it does not have it anywhere; without TEXT: it is empty.
- ``json PATH VALUE``: the JSON on standard output has this value there. PATH has names and numbers joined with dots;
  ``*`` stands for all items of a list, and gives a list; ``NAME=TEXT`` for those items that have this text there.
- ``needs PROGRAM ...`` skips the case where one of these programs is not on PATH or cannot tell its version.
- ``with NAME=VALUE ...`` before the first command: the case is run once for each such line, with each ``<NAME>`` in its
  lines replaced. ``<tests>`` is the folder of the tests.
- ``long REASON`` before the first command: only ``sh scripts/test long`` runs the case. ``long with NAME=VALUE ...`` is
  ``with`` for values that only it runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import text_cases
from tests.cli.shell import path_of_shells, perfflow

FOLDER = Path(__file__).with_name("cases")
_WORDS = r"@|(?:timed )?\$|exit|(?:no )?(?:out|err)|json|(?:long )?with|needs|long"
_LINE = re.compile(rf"(?P<word>{_WORDS})(?: (?P<text>.*))?")
_WORD = r"(?:[\w./@:=,+%~-]|'[^']*')+"
_PLAIN = re.compile(rf"(?P<names>(?:[A-Z_]+={_WORD} )*)perfflow(?P<words>(?: {_WORD})*)(?: > (?P<file>[\w./-]+))?")
"""A command whose words need no shell: no interpreter is started for it."""
_GIT = {f"GIT_{who}_{what}": f"a@{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass
class Line:
    place: str
    word: str
    text: str


@dataclass
class Case:
    name: str
    lines: list[Line]
    values: dict[str, str] = field(default_factory=dict)
    is_long: bool = False


def cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file, each with the lines that belong to all."""
    for name, texts in text_cases.read(path):
        lines = [_line(f"{path.name}: {name}", text) for text in texts]
        tables = [(line.text, line.word != "with") for line in lines if line.word.endswith("with")]
        is_long = any(line.word == "long" for line in lines)
        lines = [line for line in lines if not line.word.endswith("with") and line.word != "long"]
        for text, also in tables or [("", False)]:
            yield Case(name + (f" [{text}]" if text else ""), lines, _named(text), is_long or also)


def _line(place: str, text: str) -> Line:
    first, end, rest = text.partition("\n")
    parts = _LINE.fullmatch(first)
    assert parts, f"{place}: not a line of a case: {text}"
    return Line(place, parts["word"], f"{parts['text'] or ''}{end}{rest}")


def _named(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in shlex.split(text))}


def filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"<{name}>", value)
    return text


def run(command: str, folder: Path, *, measured: bool) -> subprocess.CompletedProcess[str]:
    own = {"XDG_CACHE_HOME": str(folder.parent / "cache"), "XDG_STATE_HOME": str(folder.parent / "state"), **_GIT}
    if plain := _PLAIN.fullmatch(command):
        own |= _named(plain["names"])
        done = perfflow(*shlex.split(plain["words"]), cwd=folder, env=own, measured=measured)
        if plain["file"]:
            (folder / plain["file"]).write_text(done.stdout)
            done.stdout = ""
        return done
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | own | {"PATH": path_of_shells()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@cache
def is_usable(program: str) -> bool:
    """Return whether a program tells its version. That of rustup is there also without a toolchain, and does not."""
    found = shutil.which(program)
    # Go has a word for it.
    asked = ([found or "", word] for word in ("--version", "version"))
    # wrk fails after it has told its version.
    return found is not None and (
        program == "wrk" or any(not subprocess.run(each, capture_output=True, check=False).returncode for each in asked)
    )


def at(data: Any, path: str) -> Any:
    """Return what is at a path such as ``benchmarks.*.decision``."""
    first, _, rest = path.partition(".")
    if not first:
        return data
    if first == "*":
        return [at(item, rest) for item in data]
    name, equals, text = first.partition("=")
    if equals:
        return at([item for item in data if str(item[name]) == text], rest)
    return at(data[int(first)] if isinstance(data, list) else data[first], rest)


def perform(case: Case, folder: Path) -> None:
    """Do what the lines of a case say."""
    (folder / "project").mkdir()
    folder /= "project"
    values = {"tests": str(FOLDER.parents[1]), **case.values}
    steps = [Line(line.place, line.word, filled(line.text, values)) for line in case.lines]
    position, done = {"out": 0, "err": 0}, subprocess.CompletedProcess[str]([], 0, "", "")
    for number, line in enumerate(steps):
        told = f"{line.place}: {line.word} {line.text}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
        shown = {"out": done.stdout, "err": done.stderr}
        match line.word.split():
            case ["needs"]:
                if missing := [name for name in line.text.split() if not is_usable(name)]:
                    pytest.skip(f"not usable: {', '.join(missing)}")
            case ["@"]:
                text_cases.write(folder, line.text)
            case [*before, "$"]:
                done = run(line.text, folder, measured=bool(before))
                position = {"out": 0, "err": 0}
                after = next((later for later in steps[number + 1 :] if later.word.endswith(("$", "exit"))), None)
                expected = after.text if after is not None and after.word == "exit" else "0"
                told = f"{line.place}: {line.text}\n{done.stdout}\n{done.stderr}"
                assert str(done.returncode) in expected.split(" or "), f"exit {done.returncode}: {told}"
            case ["no", stream]:
                assert (line.text not in shown[stream]) if line.text else not shown[stream], told
            case ["out" | "err" as stream]:
                text = line.text.replace("\n  ", "\n").removeprefix("\n")
                found = shown[stream].find(text, position[stream])
                assert found >= 0, told
                position[stream] = found + len(text)
            case ["json"]:
                name, _, value = line.text.partition(" ")
                there = at(json.loads(done.stdout), name)
                assert there == json.loads(value), f"{there}: {told}"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{path.stem}: {case.name}"[:100], marks=[pytest.mark.long] if case.is_long else [])
        for path in sorted(FOLDER.glob("*.txt"))
        for case in cases(path)
    ],
)
def test_commands_answer_as_their_case_says(case: Case, tmp_path: Path) -> None:
    perform(case, tmp_path)
