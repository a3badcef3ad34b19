"""The experiment on change points: it goes on where it stopped, and the documents show what it stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import changes
from benchmarks.change_experiment import tables, trial
from benchmarks.change_experiment.series import NOISES
from tests.modules import ROOT, run_module

STORED = ROOT / "dev" / "experiments" / "changes.jsonl"
PAGE = ROOT / "dev" / "change-points.md"
OF_USERS = ROOT / "docs" / "explanation" / "change-points.md"


def entries_of(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    return {changes.subject_of(entry): entry for entry in changes.stored(path)}


@pytest.mark.long  # an experiment, stopped and continued
def test_the_experiment_on_change_points_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "changes.jsonl"
    asked = ("--series", "1", "--only", "step", "watched", "published", "--out", str(out))
    first = run_module("benchmarks.changes", *asked)
    assert "No Otava: name a Python with --otava." in first.stdout
    before = entries_of(out)
    assert len(before) == 10 + 10 + 2
    assert before["perfflow", "step", "gauss"]["exact"] == 1

    # As if it had been ended while it wrote an entry; one is by other code, and another program's stays.
    lines = out.read_text().splitlines(keepends=True)
    other = {**before["perfflow", "step", "t3"], "version": "of last month", "near": -1}
    otava = {**before["perfflow", "step", "t3"], "program": "Otava"}
    kept = [line for line in lines[:-1] if json.loads(line) != before["perfflow", "step", "t3"]]
    out.write_text("".join([*kept, *(json.dumps(entry) + "\n" for entry in (other, otava)), lines[-1][:40]]))
    again = run_module("benchmarks.changes", *asked)
    counted = [line.split(": ")[1] for line in again.stderr.splitlines()]
    assert counted == ["perfflow step t3", "perfflow published fib_20"]
    assert entries_of(out) == {**before, ("Otava", "step", "t3"): otava}


def test_the_tables_on_change_points_are_those_of_the_counts() -> None:
    shown = STORED.with_suffix(".md").read_text()
    assert run_module("benchmarks.changes", "--stored", STORED).stdout == shown


def of_tigerbeetle(entries: Sequence[tables.Entry]) -> Iterator[str]:
    return tables.published_table(entries, "TigerBeetle")


@pytest.mark.parametrize("table", [tables.noise_table, tables.other_table, of_tigerbeetle])
def test_the_page_on_change_points_shows_the_counts(table: Callable[[Sequence[tables.Entry]], Iterator[str]]) -> None:
    lines = table(list(changes.stored(STORED)))
    assert "\n".join(lines) in PAGE.read_text()


def test_the_figures_on_newest_runs_are_those_of_the_counts() -> None:
    page, entries = " ".join(OF_USERS.read_text().split()), entries_of(STORED)
    watched = {noise: entries["perfflow", "watched", noise] for noise in tables.ALL}
    for noise, named in (("gauss", "normal noise"), ("ar6", "a correlation of 0.6")):
        half, most = tables.delays_of(watched[noise])
        assert f"{named}, half of the shifts were suspected after {half:.0f} runs and 90% after {most:.0f}" in page
    rates = [tables.alarms_of(watched[noise]) for noise in NOISES]
    assert f"{min(rates):.1f} to {max(rates):.1f} in 1,000 runs" in page
    assert f"{len(watched['gauss']['delays'])} shifts by 5%" in page
    assert f"{watched['gauss']['points']:,} runs" in page


def test_the_figures_on_the_series_that_became_quiet_are_those_of_the_counts() -> None:
    last = entries_of(STORED)["perfflow", "published", "fib_20"]["changes"][-1]
    size, low, high = (f"{100 * math.expm1(last[key]):.1f}%" for key in ("size", "low", "high"))
    page = " ".join(PAGE.read_text().split())
    assert f"on {last['date']}" in page
    assert f"{size}, with an interval of {low} to {high}" in page


@pytest.mark.parametrize("name", trial.PUBLISHED)
def test_the_changes_of_public_series_are_those_that_are_stored(name: str) -> None:
    stored = entries_of(STORED)["perfflow", "published", name]
    found = json.loads(json.dumps(trial.published(name)))
    assert found["outliers"] == stored["outliers"]
    assert [one["at"] for one in found["changes"]] == [one["at"] for one in stored["changes"]]
    assert [one["size"] for one in found["changes"]] == pytest.approx([one["size"] for one in stored["changes"]])


@pytest.mark.long
@pytest.mark.parametrize("key", [("quiet", "ar6"), ("step", "gauss"), ("newest", "calmer")])
def test_the_stored_counts_are_those_of_this_code(key: tuple[str, str]) -> None:
    stored = entries_of(STORED)["perfflow", *key]
    assert {**trial.count_perfflow(key, stored["series"]), "version": stored["version"]} == stored
