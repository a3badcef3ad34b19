"""Values of a replaced machine are scaled to the new one by shared revisions, and marked everywhere."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from perfflow.store.history.connections import SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.history.summary import MeasuredState
from tests.cli.shell import perfflow
from tests.store.history.summaries import summary

OLD, NEW = "old-0123456789abcdef", "new-0123456789abcdef"
RATIO = 0.5
SHARED = range(20, 26)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """26 revisions on the old machine, 20 on a new one that is twice as fast, 6 of them on both."""
    luck = random.Random(4)
    (tmp_path / ".perfflow").mkdir()
    history = History(SqliteConnection(tmp_path / ".perfflow" / "history.sqlite"))
    for machine, factor, numbers in ((OLD, 1.0, range(26)), (NEW, RATIO, range(20, 40))):
        for number in numbers:
            state = MeasuredState("baseline", f"{number:040x}", "main", committed=f"2026-01-01T00:{number:02}:00Z")
            value = factor * math.exp(luck.gauss(0, 0.01))
            made = summary(number, value, benchmarks=1, id=f"{machine}-{number}", machine=machine, states=(state,))
            history.add([made])
    history.close()
    return tmp_path


def _rebased(folder: Path, *words: str) -> Any:
    done = perfflow("history", *words, "--machine", "new", "--rebase", "old", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_machines_are_apart_unless_somebody_asks(project: Path) -> None:
    rows = json.loads(perfflow("history", "--json", cwd=project).stdout)
    assert sorted((row["machine"], row["runs"], row["rebased"]) for row in rows) == [(NEW, 20, None), (OLD, 26, None)]


def test_each_value_is_scaled_and_marked(project: Path) -> None:
    (row,) = _rebased(project)
    assert (row["machine"], row["runs"]) == (NEW, 40)
    by = row["rebased"]
    assert (by["machine"], by["revisions"]) == (OLD, len(SHARED))
    assert by["low"] < RATIO < by["high"]
    assert by["high"] / by["low"] < 1.1
    (shown,) = _rebased(project, "show", "b0")
    points = shown["points"]
    assert [point["rebased"] for point in points] == [OLD] * 20 + [""] * 20
    assert all(point["value"] == pytest.approx(RATIO, rel=0.06) for point in points)
    assert all(point["low"] < point["value"] for point in points)
    rows = list(csv.DictReader(io.StringIO(_text(project, "--csv"))))
    assert [row["rebased"] for row in rows] == [OLD] * 20 + [""] * 20
    # Without the scale the change of machines would be the largest change of all.
    assert _rebased(project, "changes") == []


def _text(folder: Path, *words: str) -> str:
    done = perfflow("history", *words, "--machine", NEW, "--rebase", OLD, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_terminal_and_the_pages_say_so(project: Path) -> None:
    assert "values of machine old-01234567" in " ".join(_text(project).split())
    table = _text(project, "show", "b0")
    assert table.count("rebased from machine old-01234567") == 20
    assert perfflow("history", "build", "site", "--machine", "new", "--rebase", "old", cwd=project).returncode == 0
    (page,) = (project / "site/benchmarks").glob("*.html")
    text = page.read_text()
    assert text.count("rebased from machine old-01234567") == 20
    assert "values of machine old-01234567 × 0." in text
    assert text.count('class="dots rebased"') == 1
    assert "values of machine old-01234567" in (project / "site/index.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rebase", "old"), "--rebase needs the machine to convert values to"),
        (("--rebase", "older", "--machine", "new"), "--rebase older is not a machine of the history"),
        (("--rebase", "old", "--machine", "old"), "are the same"),
        (("--rebase", "old", "--machine", "new", "--since", "2026-01-01T00:23"), "have 3 revisions"),
    ],
    ids=["no target", "unknown", "same", "too few"],
)
def test_what_cannot_be_rebased_is_said_with_a_remedy(words: tuple[str, ...], said: str, project: Path) -> None:
    done = perfflow("history", *words, cwd=project)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "hint:" in done.stderr
