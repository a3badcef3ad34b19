"""The program of a command is found in shell text and in a list of words, also if the sides have different forms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perfflow.execute.context import TreeContext
from perfflow.execute.prepare import ready
from perfflow.model.readings import Side
from perfflow.session.code_layouts.sources import executables
from perfflow.session.missing_side import side_without_program
from tests.workflow.drafts import opened

FORMS = ("run: ./program fast, candidate: [./program, a b]", "argv: [./program, a b], candidate: ./program fast")


def contexts(place: Path, form: str) -> dict[Side, TreeContext]:
    """Return the contexts of two trees, of which only the candidate's has the program."""
    plan = opened(place, f"stages: {{baseline: [{{id: one, {form}, parse: {{regex: x}}}}]}}\n").plan
    found = {side: TreeContext(plan, place / side.value, "run", 0, place) for side in Side}
    for context in found.values():
        context.root.mkdir()
    shutil.copy(shutil.which("true") or "", found[Side.CANDIDATE].root / "program")
    return found


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("form", FORMS)
def test_an_executable_is_found(tmp_path: Path, form: str, side: Side) -> None:
    context = contexts(tmp_path, form)[Side.CANDIDATE]
    prepared = ready(context, context.plan.by_id["one"], side, tmp_path)
    assert list(executables(prepared)) == [context.root / "program"]


@pytest.mark.parametrize("form", FORMS)
def test_a_tree_without_the_program_is_found(tmp_path: Path, form: str) -> None:
    found = contexts(tmp_path, form)
    planned = found[Side.CANDIDATE].plan.by_id["one"]
    assert side_without_program(found, planned, tmp_path) is Side.BASELINE
