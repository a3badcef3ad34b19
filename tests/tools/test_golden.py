"""Every captured or synthetic output under data/ is parsed to exactly its golden ``parsed.json`` and ``stacks.folded``.

A file that differs is left as ``.got`` beside the golden one; to accept it, rename it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfflow.errors import ToolOutputError
from perfflow.tools.adapter import Role
from tests.tools.harness import DATA, USAGE, call_of, check_sane, shown, tool, tools
from tests.tools.mojo_sources import OLD

GOLDEN = ("parsed.json", "stacks.folded")
COMMANDS = {"perf-stat": "/tmp/demo/crash"}
# What a case was captured with, where that decides what is read.
OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("cachegrind", "no-cache"): {"cache": False, "branches": True},
    ("cachegrind", "inlined"): {"cache": False},
    ("dhat", "heap"): {"report": "dhat-heap.json"},
    ("dhat", "ad-hoc"): {"report": "dhat-ad-hoc.json"},
    ("line-profiler", "nothing"): {"profile": ["json"]},
    ("memory-profiler", "lines"): {"profile": ["__main__"]},
    ("py-spy", "speedscope"): {"format": "speedscope"},
    ("py-spy", "speedscope-processes"): {"format": "speedscope", "subprocesses": True, "native": True},
    ("py-spy", "attached"): {"pid": 4711, "duration": "1s"},
    ("py-spy", "attached-gil"): {"pid": 4711, "gil": True},
    ("py-spy", "not-allowed"): {"pid": 4711, "duration": "1s"},
    ("py-spy", "not-there"): {"pid": 4711, "duration": "1s"},
    ("py-spy", "not-python"): {"pid": 4711, "duration": "1s"},
    ("py-spy-dump", "not-allowed"): {"pid": 4711},
    ("strace", "files"): {"files": True},
    ("sql-log", "echo"): {"log": "stdout"},
    ("sql-log", "debug"): {"log": "stderr"},
    ("sql-log", "log-statement"): {"log": "stderr"},
    ("sql-log", "psql"): {"log": "file"},
    ("stream", "sizes"): {"precisions": ["f64", "f16"]},
    ("nsys", "gpu"): {"report": "saxpy.sqlite"},
    ("compute-sanitizer", "races"): {"check": "racecheck"},
    ("compute-sanitizer", "race-warnings"): {"check": "racecheck"},
    ("compute-sanitizer", "leaks"): {"leaks": True},
    ("pyperf", "stmt"): {"stmt": "sum(values)"},
    **{("mojo-bench", f"old-{case}"): {"file": "old.mojo"} for case in OLD},
}
CASES = sorted(folder for folder in DATA.glob("*/*/*") if folder.is_dir())


def _parsed(name: str, folder: Path, options: dict[str, Any]) -> dict[str, str]:
    """Return the text of each golden file that the adapter now gives."""
    call = call_of(name, folder, COMMANDS.get(name, "/usr/bin/true"), **options)
    try:
        parsed = tool(name).parse(call, USAGE)
        if tool(name).role is Role.WORK:
            handed_on = {key: value.replace(str(folder), "/tmp/out") for key, value in tool(name).results(call).items()}
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
    got = _parsed(name, folder, OPTIONS.get((name, case.name), {}))
    wanted = {name: (case / name).read_text() for name in GOLDEN if (case / name).exists()}
    for name, text in got.items():
        (case / f"{name}.got").unlink(missing_ok=True)
        if wanted.get(name) != text:
            (case / f"{name}.got").write_text(text)
    assert got == wanted


def test_every_adapter_has_a_case() -> None:
    covered = {case.relative_to(DATA).parts[0] for case in CASES}
    assert covered == tools().keys() - {"command", "same-output"}
