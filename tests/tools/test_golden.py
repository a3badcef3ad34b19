"""Every captured or synthetic output under data/ is parsed to exactly its golden ``parsed.json`` and ``stacks.folded``.

A file that differs is left as ``.got`` beside the golden one; to accept it, rename it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfflow.errors import ToolOutputError
from tests.tools.harness import DATA, USAGE, call_of, check_sane, shown, tool

GOLDEN = ("parsed.json", "stacks.folded")
COMMANDS = {"perf-stat": "/tmp/demo/crash"}
CASES = sorted(folder for folder in DATA.glob("*/*/*") if folder.is_dir())


def _parsed(name: str, folder: Path) -> dict[str, str]:
    """Return the text of each golden file that the adapter now gives."""
    call = call_of(name, folder, COMMANDS.get(name, "/usr/bin/true"))
    try:
        parsed = tool(name).parse(call, USAGE)
    except ToolOutputError as error:
        return {"parsed.json": json.dumps({"error": str(error)}, indent=1) + "\n"}
    check_sane(parsed)
    folded = folder / "stacks.folded"
    return {"parsed.json": shown(parsed), **({"stacks.folded": folded.read_text()} if folded.exists() else {})}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_golden(case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns(*GOLDEN, "*.got"))
    got = _parsed(case.relative_to(DATA).parts[0], folder)
    wanted = {name: (case / name).read_text() for name in GOLDEN if (case / name).exists()}
    for name, text in got.items():
        (case / f"{name}.got").unlink(missing_ok=True)
        if wanted.get(name) != text:
            (case / f"{name}.got").write_text(text)
    assert got == wanted


def test_every_adapter_has_a_case() -> None:
    covered = {case.relative_to(DATA).parts[0] for case in CASES}
    assert covered == {"hyperfine", "massif", "perf", "perf-stat", "py-spy", "cprofile"}
