"""Every result file under data/ is read as exactly its golden ``parsed.json``.

A file that differs is left as ``.got`` beside the golden one; to accept it, rename it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.tools.read_file import read
from tests.imports.harness import CASES, DATA, GOLDEN, TOOLS, check_sane, shown, source


def _read(case: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(case)
    try:
        imported = read(Path(source(case).name))
    except UserError as error:
        return json.dumps({"error": str(error).splitlines()}, indent=1, ensure_ascii=False) + "\n"
    check_sane(imported)
    return shown(imported)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_golden(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = _read(case, monkeypatch)
    golden, left = case / GOLDEN, case / f"{GOLDEN}.got"
    left.unlink(missing_ok=True)
    wanted = golden.read_text() if golden.exists() else ""
    if got != wanted:
        left.write_text(got)
    assert got == wanted


def test_every_tool_has_a_case() -> None:
    assert {case.relative_to(DATA).parts[0] for case in CASES} == set(TOOLS)
