"""A git project whose costs are numbers in files, with a history of each of its commits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.history.collect import add
from perfflow.machine.facts import facts
from perfflow.store.history.summary import MeasuredState, Point, RunSummary
from tests import histories
from tests.cli.shell import perfflow
from tests.repositories import git

FLOW = """\
perfflow: 1
name: costs
stages:
  baseline:
    - {id: cost, run: cat costs, parse: {regex: '(?P<instructions>\\d+)', units: {instructions: '1'}}}
"""
"""A workflow with an exact metric, so that one run of each side decides."""
NOISY = FLOW.replace("instructions: '1'}}", "cost: '1'}, better: {cost: lower}}").replace("instructions", "cost")


def make(root: Path, costs: Sequence[int], flow: str = FLOW) -> list[str]:
    """Create a repository with a commit for each cost. Return the ids, the oldest first. The newest is checked out."""
    first = {"flow.yaml": flow, ".gitignore": ".perfflow/\n"}
    return histories.make(root, [{**(first if not at else {}), "costs": f"{cost}\n"} for at, cost in enumerate(costs)])


def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a project with its own caches and lock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(folder / "lock"))
    return folder / "project"


def remember(
    root: Path,
    revisions: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    *,
    ago: Sequence[float] | None = None,
    machine: str = "",
    better: str = "lower",
    exact: bool = False,
    dirty: bool = False,
    width: float = 0.001,
    params: str = "",
) -> None:
    """Add a run of each revision to the history, one per day until now. ``values``: by benchmark, None for no value.

    ``ago``: days since each was measured. ``width``: half width of the 95% interval, as a share. ``params``: of the
    series.
    """
    days = ago or range(len(revisions) - 1, -1, -1)
    kind = ("instructions", "value") if exact else ("cost", "p50")
    runs = []
    for number, (revision, age) in enumerate(zip(revisions, days, strict=True)):
        started = (datetime.now(UTC) - timedelta(days=age)).isoformat(timespec="seconds").replace("+00:00", "Z")
        points = tuple(
            Point("baseline", name, *kind, "1", better, value, value * (1 - width), value * (1 + width), 5)
            for name, each in values.items()
            if (value := each[number]) is not None
        )
        runs.append(
            RunSummary(
                id=f"{machine or 'here'}-{age}-{revision[:12]}-{len(values)}",
                tool="perfflow",
                version="1",
                started=started,
                machine=machine or str(facts()["identity"]),
                workflow="costs",
                params=params,
                states=(MeasuredState("baseline", revision, "main", dirty),),
                points=points,
            )
        )
    add(root, runs, pytest.fail)


def gate(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return perfflow("gate", "flow.yaml", "--progress", "off", *words, cwd=root)


def result_of(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / ".perfflow/runs/latest/result.json").read_text())
    return found


def commit(root: Path, **files: str) -> str:
    """Change files, commit them and return the commit."""
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")
    return git(root, "rev-parse", "HEAD").strip()
