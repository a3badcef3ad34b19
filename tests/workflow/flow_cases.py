"""Cases in text files: a workflow, and what is found when it is opened.

The lines of a case, in files that ``tests.text_cases`` reads:

- ``@ PATH`` writes a file with the indented lines that follow. ``flow.yaml`` is opened.
- ``edit PATH OLD -> NEW`` replaces a text of such a file, once; ``\\n`` is an end of a line.
- ``set NAME=VALUE`` gives a parameter a value.
- ``error PLACE MESSAGE`` and ``warning PLACE MESSAGE``: a problem. Together they are all problems, in file order. PLACE
  is LINE:COLUMN, with ``PATH:`` before it in another file than flow.yaml. PLACE, and `` [RULE]`` at the end, can be
  left out.
- ``hint TEXT``: the hint of the problem of the line before. In a hint and a message, ``...`` stands for any text.
- ``order IDS``: the steps of the plan. ``before ID IDS``: the steps that run before a step, by name.
- ``step ID NAME TEXT``: an attribute of a planned step; the items of a tuple are separated by spaces.
- ``data PATH VALUE``: what the workflow has there, in JSON; null if it has nothing. PATH has names and numbers joined
  with dots.
- ``row TEXT ;; TEXT => PROBLEM => hint TEXT``: the case is run once for each row, with ``<1>``, ``<2>`` in its lines
  replaced by these texts (``-`` is an empty one). Its problems are errors, unless they begin with ``warning``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import Problem, UserError
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.workflow.model import as_data
from tests import text_cases

_PLACE = r"(?:[\w./-]+:)?\d+:\d+ "
_RULE = r" \[[a-z][a-z-]+\]"


@dataclass(frozen=True)
class Case:
    """The lines of a case: the first word of each, and the text after it."""

    lines: list[tuple[str, str]]

    def texts(self, *words: str) -> list[str]:
        return [text for word, text in self.lines if word in words]


def read(folder: Path) -> Iterator[Any]:
    """Yield the cases of all files of a folder, as parameters of a test."""
    for path in sorted(folder.glob("*.txt")):
        for name, lines in text_cases.read(path):
            rows = [line.removeprefix("row ") for line in lines if line.startswith("row ")]
            others = [line for line in lines if not line.startswith("row ")]
            for row in rows or [""]:
                yield pytest.param(_case(others, row), id=f"{path.stem}: {name} {row.partition(' => ')[0]}"[:120])


def _case(lines: list[str], row: str) -> Case:
    values, *problems = row.split(" => ")
    for number, value in enumerate(values.split(" ;; "), 1):
        lines = [line.replace(f"<{number}>", "" if value == "-" else value) for line in lines]
    lines += [text if text.startswith(("warning ", "hint ")) else f"error {text}" for text in problems]
    split = [line.partition(" ") for line in lines]
    assert {word for word, _, _ in split} <= {"@", "edit", "set", "error", "warning", "hint", *_FOUND}, lines
    return Case([(word, text) for word, _, text in split])


def check(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the files of a case, open its workflow, and compare what is found."""
    monkeypatch.chdir(folder)
    for file in case.texts("@"):
        text_cases.write(Path(), file)
    for edit in case.texts("edit"):
        name, _, texts = edit.replace("\\n", "\n").partition(" ")
        old, new = texts.split(" -> ")
        assert old in Path(name).read_text()
        Path(name).write_text(Path(name).read_text().replace(old, new, 1))
    try:
        found = open_workflow("flow.yaml", case.texts("set"))
    except UserError as error:
        _require(case, error.problems)
        assert not case.texts(*_FOUND)
        return
    _require(case, (*found.problems, *found.unavailable))
    for word, text in case.lines:
        if word in _FOUND:
            actual = _FOUND[word](found, text)
            assert actual == text.rstrip(), (actual, text)


def _require(case: Case, problems: tuple[Problem, ...]) -> None:
    expected = [(word, text) for word, text in case.lines if word in ("error", "warning", "hint")]
    found: list[tuple[str, str]] = []
    for problem in problems:
        rule = f" [{problem.rule}]" if problem.rule else ""
        found.append((problem.severity.value, f"{_place(problem)}{problem.message}{rule}"))
        # A hint is compared only if the case has one.
        if expected[len(found) : len(found) + 1] and expected[len(found)][0] == "hint":
            found.append(("hint", problem.hint))
    assert len(found) == len(expected), found
    for (word, text), (wanted_word, wanted) in zip(found, expected, strict=True):
        pattern = ".*".join(map(re.escape, wanted.split("...")))
        assert word == wanted_word, found
        assert re.fullmatch(f"(?:{_PLACE})?{pattern}(?:{_RULE})?", text, re.DOTALL), (text, wanted)


def _place(problem: Problem) -> str:
    if problem.place is None:
        return ""
    file = "" if problem.place.file == "flow.yaml" else f"{problem.place.file}:"
    return f"{file}{problem.place.line}:{problem.place.column} "


def _order(found: Opened, text: str) -> str:
    return " ".join(item.id for item in found.plan.steps)


def _before(found: Opened, text: str) -> str:
    """Return all steps that must come before a step, directly or indirectly."""
    name = text.split(maxsplit=1)[0]
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        item = found.plan.by_id[waiting.pop()]
        new = {*item.needs, *item.after} - seen
        seen |= new
        waiting += new
    return " ".join([name, *sorted(seen)])


def _step(found: Opened, text: str) -> str:
    name, attribute, *_ = text.split()
    value = getattr(found.plan.by_id[name], attribute)
    return f"{name} {attribute} {' '.join(value) if isinstance(value, tuple) else value}".rstrip()


def _data(found: Opened, text: str) -> str:
    path, _, expected = text.partition(" ")
    value = as_data(found.draft.workflow, by_alias=True)
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value.get(name)
    return text if value == json.loads(expected) else f"{path} {value}"


_FOUND = {"order": _order, "before": _before, "step": _step, "data": _data}
"""What the workflow has, as a line that asks for it says it."""
