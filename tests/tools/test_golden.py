"""Every captured or synthetic output under data/ is parsed to exactly its golden ``parsed.json`` and ``stacks.folded``.

The text of a file that differs is written as ``.got`` beside the golden file. Rename it to accept it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.testing.contract import check_sane
from perfflow.tools.adapter import Role
from tests.tools.contracts import contract_of
from tests.tools.harness import DATA, USAGE, shown, tool, tools

GOLDEN = ("parsed.json", "stacks.folded")
CASES = sorted(folder for folder in DATA.glob("*/*/*") if folder.is_dir())


def _parsed(name: str, case: str, folder: Path) -> dict[str, str]:
    """Return the text of each golden file from the current adapter."""
    call = contract_of(name).call_of_case(case, folder)
    try:
        parsed = tool(name).parse(call, USAGE)
        if tool(name).role is Role.WORK:
            handed_on = {
                key: value.replace(str(folder), "/tmp/out") for key, value in tool(name).build.results(call).items()
            }
            return {"parsed.json": json.dumps(handed_on, indent=1) + "\n"}
    except ToolOutputError as error:
        return {"parsed.json": json.dumps({"error": str(error)}, indent=1) + "\n"}
    if tool(name).role is not Role.CHECK:
        check_sane(parsed)
    folded = folder / "stacks.folded"
    return {"parsed.json": shown(parsed), **({"stacks.folded": folded.read_text()} if folded.exists() else {})}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_golden(case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns(*GOLDEN, "*.got"))
    name = case.relative_to(DATA).parts[0]
    got = _parsed(name, case.name, folder)
    wanted = {name: (case / name).read_text() for name in GOLDEN if (case / name).exists()}
    for name, text in got.items():
        (case / f"{name}.got").unlink(missing_ok=True)
        if wanted.get(name) != text:
            (case / f"{name}.got").write_text(text)
    assert got == wanted


def test_every_adapter_has_a_case() -> None:
    covered = {case.relative_to(DATA).parts[0] for case in CASES}
    assert covered == {name for name in tools() if contract_of(name).samples}
