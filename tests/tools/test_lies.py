"""Tools that lie: whatever is told about a run that failed, the real command ends in exit 3 and names the step."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.tools import registry
from tests.cli.shell import perfflow
from tests.tools.harness import OPTIONAL, PYTHON
from tests.tools.lies import LIES, Lied, liar, real_program, spoiled_by_itself

ABOUT_CHILDREN = [(name, how) for name, lied in LIES.items() for how in lied.children]
ABOUT_FILES = [(name, lie) for name, lied in LIES.items() if lied.by for lie in lied.files]
STEP = "the-step"
UNMEASURED = 3


def test_every_adapter_is_lied_to() -> None:
    assert LIES.keys() | OPTIONAL.keys() == registry.MODULES.keys()
    for name, lied in LIES.items():
        tool = registry.find(name)
        assert tool is not None
        assert bool(lied.children) == ("command" in tool.OPTIONS.model_fields)
        assert lied.children or lied.files


@pytest.mark.parametrize("name", LIES)
def test_the_truth_is_believed(name: str, tmp_path: Path, gbench: str) -> None:
    done, result = _run(name, LIES[name], "honest", tmp_path, gbench)
    assert done.returncode == 0, done.stderr
    assert result["steps"][0]["status"] == "done"


@pytest.mark.parametrize(("name", "how"), ABOUT_CHILDREN)
def test_a_program_that_fails_under_a_tool(name: str, how: str, tmp_path: Path, gbench: str) -> None:
    lied = replace(LIES[name], command=LIES[name].children[how], by="")
    # A program that is not there was never checked.
    wanted = UNMEASURED if how == "does not exist" else lied.fails_with
    _refused(name, wanted, *_run(name, lied, "honest", tmp_path, gbench))


@pytest.mark.parametrize(("name", "lie"), ABOUT_FILES)
def test_outputs_that_lie(name: str, lie: str, tmp_path: Path, gbench: str) -> None:
    if lie == "stale":
        saved = _run(name, LIES[name], "honest", tmp_path, gbench)[0]
        assert saved.returncode == 0, saved.stderr
        assert list((tmp_path / "saved").iterdir())
    _refused(name, UNMEASURED, *_run(name, LIES[name], lie, tmp_path, gbench))


def _run(
    name: str, lied: Lied, lie: str, folder: Path, gbench: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a workflow of the one step by the real command, with a liar between; return its end and its result."""
    out = folder / f"out-{lie}"
    env = {"LIE": lie, "LIE_ROOT": str(out), "LIE_SAVED": str(folder / "saved"), "LIE_REAL": ""}
    command, options, path = list(lied.command), dict(lied.options), os.environ["PATH"]
    tool = registry.find(name)
    if lied.by == "program" and tool is not None:
        env["LIE_REAL"] = real_program(tool.PROGRAM)
        path = f"{liar(folder / 'bin', tool.PROGRAM).parent}:{path}"
    elif lied.by == "command":
        env["LIE_REAL"] = gbench
        command = [str(liar(folder / "bin", command[0]))]
    elif lied.by == "python":
        env["LIE_REAL"] = PYTHON
        options["python"] = str(liar(folder / "bin", "python3"))
    elif lied.by == "itself":
        command = spoiled_by_itself(lie)
    for file, text in lied.more.items():
        (folder / file).write_text(text)
    given = {**options, **({"command": command} if command else {})}
    step = {"id": STEP, "uses": name, "with": given, **lied.keys}
    stage = "verify" if name == "same-output" else "baseline"
    (folder / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {stage: [step]}}))
    done = perfflow("run", "flow.yaml", "--out", str(out), cwd=folder, env=env, path=path, measured=True)
    result: Mapping[str, Any] = json.loads((out / "result.json").read_text()) if out.exists() else {}
    return done, dict(result)


def _refused(name: str, wanted: int, done: subprocess.CompletedProcess[str], result: dict[str, Any]) -> None:
    said = done.stdout + done.stderr
    # A program's own, quoted from its log, is indented.
    assert not any(line.startswith("Traceback") for line in said.splitlines()), said
    assert done.returncode == wanted, said
    assert STEP in done.stderr, said
    assert "review:gate:perf = pass" not in said
    (step,) = [step for step in result["steps"] if step["id"] == STEP]
    assert step["status"] == "failed"
    assert len(step["reason"]) > len(name)
    assert result["gate"]["status"] == "fail"
    assert not [row for row in result["benchmarks"] if row["decision"] in {"same", "improved"}]
