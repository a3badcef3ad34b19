"""Test a library of workflows: each workflow must be valid, and each test under ``tests/`` must pass."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.workflow.model import EnvText, WorkflowPart
from perfflow.workflow.readable import Readable
from perfflow.workflow.shape import read_shape
from perfflow.workflow.yaml_text import read_file

TESTS = "tests"
_LEFT_OUT = shutil.ignore_patterns(".git", ".perfflow", ".venv", "node_modules", "__pycache__")


class LibraryTest(WorkflowPart):
    """One file under ``tests/``: a workflow, its parameters, and the expected results."""

    perfflow_test: Literal[1] = Field(description="format version")
    workflow: str = Field(description="its file, from the top of the library")
    set: dict[str, EnvText] = Field(default_factory=dict, description="values of its parameters")
    budget: str = Field("60s", description="longest time of the run, builds included")
    exit: int = Field(0, description="exit status of `perfflow run`")
    steps: list[str] | None = Field(None, description="ids of its steps in order, as `perfflow plan` shows them")
    benchmarks: list[str] | None = Field(None, description="names of what it measures, in any order")


@dataclass(frozen=True)
class Outcome:
    """The name of a test, and its failures; none if it passed."""

    name: str
    wrong: tuple[str, ...] = ()


def tested(folder: Path) -> Iterator[Outcome]:
    """Validate each workflow of a library and run its tests, one by one, in a copy of it. Raises UserError."""
    flows = [path for path in search_path.workflows(folder) if path.parent == folder / search_path.FOLDER]
    if not flows:
        hint = "name the folder that holds workflows/; `perfflow library init DIR` writes a first one"
        raise UserError.of(f"{folder} has no workflows/", hint)
    tests = {
        path: _read(path) for suffix in search_path.SUFFIXES for path in sorted((folder / TESTS).glob(f"*{suffix}"))
    }
    with tempfile.TemporaryDirectory(prefix="perfflow-library-") as place:
        copy = Path(place, folder.resolve().name or "library")
        shutil.copytree(folder, copy, symlinks=True, ignore=_LEFT_OUT)
        for path in flows:
            name = f"{search_path.FOLDER}/{path.name}"
            yield Outcome(name, tuple(_invalid(copy, name)))
        for path, test in tests.items():
            yield Outcome(f"{TESTS}/{path.name}", tuple(_failures(copy, test)))
    known = {(folder / test.workflow).resolve() for test in tests.values()}
    for path in flows:
        if path.resolve() not in known:
            yield Outcome(f"{search_path.FOLDER}/{path.name}", ("no test under tests/ runs it",))


def _read(path: Path) -> LibraryTest:
    document = read_file(path, Readable.of(path.parent))
    data = document.data()
    shaped = read_shape(document, LibraryTest, data, ())
    problems = (*document.problems, *shaped.problems)
    if problems or shaped.model is None:
        raise UserError(problems)
    return shaped.model


def _invalid(copy: Path, name: str) -> Iterator[str]:
    done = _perfflow(copy, "validate", name)
    if done.returncode:
        yield done.stderr.strip()


def _failures(copy: Path, test: LibraryTest) -> Iterator[str]:
    """Yield the differences from the test's expectations: the plan's first, and the run's only if the plan is right."""
    words = [test.workflow, *(f"--set={name}={value}" for name, value in test.set.items())]
    planned = _perfflow(copy, "plan", *words, "--format=json")
    if planned.returncode:
        yield f"plan: {planned.stderr.strip()}"
        return
    steps = [step["id"] for step in json.loads(planned.stdout)["steps"]]
    if test.steps is not None and steps != test.steps:
        yield f"steps: {', '.join(steps)}; expected {', '.join(test.steps)}"
        return
    done = _perfflow(copy, "run", *words, f"--budget={test.budget}", "--json", "--progress=off")
    result: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
    if done.returncode != test.exit:
        why = "\n".join([*result.get("reasons", []), done.stderr.strip()]).strip()
        yield f"exit status {done.returncode}; expected {test.exit}{chr(10) if why else ''}{why}"
    if test.benchmarks is not None:
        measured = sorted({row["name"] for row in result.get("benchmarks", [])})
        if measured != sorted(test.benchmarks):
            yield f"benchmarks: {', '.join(measured) or 'none'}; expected {', '.join(sorted(test.benchmarks))}"


def _perfflow(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "perfflow", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
