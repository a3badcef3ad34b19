"""Tools that lie: for every lie about a failed run, the real command exits with 3 and names the step.

The contract of each tool tests its parser with the usual lies and a program that fails, in CI. Here, CI tests one tool
with all lies, and each other one whose program needs no compiler with stale files and lies of this tool only.
``scripts/test long`` tests all tools with all lies.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from tests.cli.shell import perfflow
from tests.toolchains import node_project
from tests.tools.contracts import CONTRACTS, lied_of
from tests.tools.harness import PROGRAMS, PYTHON
from tests.tools.lies import CHILDREN, FILES, PYTHON_CHILDREN, SHOWN, Lied, liar, real_program

STALE = "stale"
LIES = {name: lied for name, each in CONTRACTS.items() if (lied := lied_of(each))}
TOLD_ALL = "TestHyperfine"
COMPILED = ("TestCargoBench", "TestCargoBenchBuild", "TestCudaBench", "TestMojoBench")
"""Whose program is compiled first: in CI their own tests run it."""


def lies(name: str, told: Iterable[str]) -> Iterator[ParameterSet]:
    """Yield the name of a contract with each of its lies."""
    usual = {*CHILDREN, *PYTHON_CHILDREN, *FILES}
    for lie in told:
        in_ci = name == TOLD_ALL or (name not in COMPILED and lie not in usual)
        yield pytest.param(name, lie, marks=() if in_ci else pytest.mark.long)


ABOUT_CHILDREN = [case for name, lied in LIES.items() for case in lies(name, lied.children)]
ABOUT_FILES = [
    case for name, lied in LIES.items() if lied.by for case in lies(name, [lie for lie in lied.files if lie != STALE])
]
Real = Callable[[str], str]
"""Return the path of ``gbench`` or ``crate``, built only for tests that need it."""
STEP = "the-step"
UNMEASURED = 3
OTHER_STAGES = {"same-output": "verify", "cargo-build": "build"}
"""Tool -> the stage of one that measures nothing."""


@pytest.fixture
def real(request: pytest.FixtureRequest) -> Real:
    names = {"text.test": "go_tests"}
    return lambda name: shutil.which(name) or str(request.getfixturevalue(names.get(name, name)))


def test_every_adapter_is_lied_to() -> None:
    for name, lied in LIES.items():
        assert bool(lied.children) == CONTRACTS[name].adapter.takes_command
        assert lied.children or lied.files


# The contract runs each tool in CI, and tests each parser with stale files and with a program that fails.
@pytest.mark.parametrize(
    "name", [name if name == TOLD_ALL else pytest.param(name, marks=pytest.mark.long) for name in LIES]
)
def test_the_truth_is_believed_when_it_is_new(name: str, tmp_path: Path, real: Real) -> None:
    done, result = _run(name, LIES[name], "honest", tmp_path, real)
    # A run that measures nothing is no success.
    alone = CONTRACTS[name].adapter.name in OTHER_STAGES
    assert done.returncode == (UNMEASURED if alone else 0), done.stderr
    assert result["steps"][0]["status"] == "done"
    if STALE in LIES[name].files and LIES[name].by:
        assert list((tmp_path / "saved").iterdir())
        _refused(name, UNMEASURED, *_run(name, LIES[name], STALE, tmp_path, real))


@pytest.mark.parametrize(("name", "how"), ABOUT_CHILDREN)
def test_a_program_that_fails_under_a_tool(name: str, how: str, tmp_path: Path, real: Real) -> None:
    lied = replace(LIES[name], by="")
    # A missing program was never checked.
    wanted = UNMEASURED if how == "does not exist" else lied.fails_with
    _refused(name, wanted, *_run(name, lied, "honest", tmp_path, real, LIES[name].children[how]))


@pytest.mark.parametrize(("name", "lie"), ABOUT_FILES)
def test_outputs_that_lie(name: str, lie: str, tmp_path: Path, real: Real) -> None:
    _refused(name, UNMEASURED, *_run(name, LIES[name], lie, tmp_path, real))


def _run(
    name: str, lied: Lied, lie: str, folder: Path, real: Real, child: Sequence[str] = ()
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a workflow of one step by the real command, with a lying program; return its exit and its result."""
    out = folder / f"out-{lie}"
    env = {"LIE": lie, "LIE_ROOT": str(out), "LIE_SAVED": str(folder / "saved"), "LIE_REAL": ""}
    contract = CONTRACTS[name]
    command, options, path = [*(child or contract.command)], dict(contract.options), os.environ["PATH"]
    tool = contract.adapter
    if lied.by == "program":
        env["LIE_REAL"] = real_program(tool.program.name)
        path = f"{liar(folder / 'bin', tool.program.name).parent}:{path}"
    elif lied.by == "command":
        env["LIE_REAL"] = real(command[0])
        command = [str(liar(folder / "bin", command[0])), *command[1:]]
    elif lied.by == "python":
        env["LIE_REAL"] = PYTHON
        options["python"] = str(liar(folder / "bin", "python3"))
    elif lied.by == "bench":
        env["LIE_BENCH"] = str(liar(folder / "bin", "liar"))
    elif lied.by == "itself" and command[-1] != str(PROGRAMS / "tracer.py"):  # This program lies itself.
        command = [*SHOWN, lie]
    for file, text in contract.files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    if "crate" in options:
        options["crate"] = real("crate")
    if tool.name == "node-bench":
        options["file"] = str(node_project(folder / "project") / options["file"])
    given = {**options, **({"command": command} if command else {})}
    step = {"id": STEP, "uses": tool.name, "with": given, **lied.keys}
    stage = OTHER_STAGES.get(tool.name, "baseline")
    (folder / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {stage: [step]}}))
    done = perfflow("run", "flow.yaml", "--out", str(out), cwd=folder, env=env, path=path, measured=True)
    result: Mapping[str, Any] = json.loads((out / "result.json").read_text()) if out.exists() else {}
    return done, dict(result)


def _refused(name: str, wanted: int, done: subprocess.CompletedProcess[str], result: dict[str, Any]) -> None:
    said = done.stdout + done.stderr
    # A traceback of a program, quoted from its log, is indented.
    assert not any(line.startswith("Traceback") for line in said.splitlines()), said
    assert done.returncode == wanted, said
    assert STEP in done.stderr, said
    assert "✓ PASS" not in said
    (step,) = [step for step in result["steps"] if step["id"] == STEP]
    assert step["status"] == "failed"
    assert len(step["reason"]) > len(name)
    assert result["gate"]["status"] == "fail"
    assert not [row for row in result["benchmarks"] if row["decision"] in {"same", "improved"}]
