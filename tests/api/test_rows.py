"""Tidy rows and data frames: every sample of the result once, with its partner and its place in the order."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import perfflow
from perfflow.api.run import Library, columns_of
from perfflow.model.criteria import Criteria
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.store.record import MetricSeries, record_of
from perfflow.store.sample_order import Wanted, taking_order
from tests.api.stored import KINDS
from tests.cli.shell import perfflow as command
from tests.long import rest_long


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", KINDS)
def test_the_rows_are_the_samples_of_the_result(name: str, kinds: dict[str, Path]) -> None:
    run = perfflow.load(kinds[name])
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in run.to_rows():
        found[row["benchmark"], row["metric"], row["side"]].append(row["value"])
        assert row["run"] == run.id
    expected = {
        (row.name, row.metric, side): list(sample.samples)
        for row in run.benchmarks
        for side, sample in (("baseline", row.baseline), ("candidate", row.candidate))
        if sample
    }
    assert found == expected


@pytest.mark.parametrize("name", KINDS)
def test_the_order_is_that_of_the_events(name: str, kinds: dict[str, Path]) -> None:
    run = perfflow.load(kinds[name])
    firsts = {
        (event["step"], event["pair"]): event["first"]
        for event in events(kinds[name])
        if event["event"] == "sample" and len({"baseline", "candidate"} & set(event)) == 2
    }
    pairs: dict[tuple[str, str, int], list[tuple[int, str]]] = defaultdict(list)
    alone = {row.name for row in run.benchmarks if row.design in ("looks", "fixed") and row.in_pairs}
    steps = defaultdict(set)
    for row in run.benchmarks:
        steps[row.step].add(row.name)
    for sample in run.to_rows():
        pair, order = sample["pair"], sample["order"]
        # A step with many benchmarks has several events with the same pair number.
        if pair is not None and order is not None and sample["benchmark"] in alone and len(steps[sample["step"]]) == 1:
            pairs[sample["step"], sample["metric"], pair].append((order, sample["side"]))
    assert pairs
    whole = {step: {number for at, number in firsts if at == step} for step in steps}
    for (step, metric, pair), taken in pairs.items():
        # A metric that some processes lack, such as the time of uncontended ones, has fewer pairs than its step.
        if whole[step] != {number for at, name, number in pairs if (at, name) == (step, metric)}:
            continue
        assert sorted(order for order, _ in taken) == [2 * pair, 2 * pair + 1]
        assert min(taken)[1] == firsts[step, pair]


def test_both_orders_come_up(here: Path) -> None:
    rows = perfflow.load().to_rows()
    first = {row["pair"]: row["side"] for row in sorted(rows, key=lambda row: -(row["order"] or 0))}
    assert set(first.values()) == {"baseline", "candidate"}
    assert sorted(row["order"] or 0 for row in rows) == list(range(20))


def test_a_result_that_does_not_belong_to_the_events_has_no_order(here: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(here / ".perfflow/runs/latest/", folder)
    data = json.loads((folder / "result.json").read_text())
    data["benchmarks"][0]["baseline"]["samples"][3] *= 2
    (folder / "result.json").write_text(json.dumps(data))
    rows = perfflow.load(folder).to_rows()
    assert {row["order"] for row in rows} == {None}
    assert rows[6]["value"] == data["benchmarks"][0]["baseline"]["samples"][3]


def test_a_row_has_the_columns_and_no_other(here: Path) -> None:
    run = perfflow.load()
    assert list(run.to_rows()[0]) == list(columns_of(perfflow.SampleRow))
    assert list(run.decisions()[0]) == list(columns_of(perfflow.DecisionRow))
    types = columns_of(perfflow.SampleRow)
    assert (types["run"], types["pair"], types["value"], types["at_most"]) == (str, int, float, bool)
    more = columns_of(perfflow.DecisionRow)
    assert (more["change_low"], more["decision"], more["better"], more["pairs"]) == (float, str, str, int)


def test_an_upper_bound_is_marked(kinds: dict[str, Path]) -> None:
    rows = perfflow.load(kinds["run"]).to_rows()
    data = json.loads((kinds["run"] / "result.json").read_text())
    bounded = {
        (row["name"], row["metric"])
        for row in data["benchmarks"]
        for side in ("baseline", "candidate")
        if any(item.get("at_most") for item in (row[side] or {}).get("readings") or [])
    }
    assert {(row["benchmark"], row["metric"]) for row in rows if row["at_most"]} == bounded


# -- samples that the record sets aside or reorders

OPENING: dict[str, Any] = {
    "event": "run",
    "run": {"id": "r", "workflow": "f", "component": "f", "started": "2026-01-01T00:00:00Z", "seed": 1},
    "machine": {},
    "trees": {},
    "criteria": Criteria().to_json(),
    "steps": [{"id": "s", "stage": "s", "tool": "command", "role": "measure", "benchmark": "b"}],
}


class Taking:
    """Events of one benchmark. All values differ, so a value identifies its sample."""

    def __init__(self, seed: int) -> None:
        self.events = [OPENING]
        self.order: dict[float, int] = {}
        self._random, self._number = random.Random(seed), 0

    def pair(self, design: str, *, lone: bool = False, **more: Any) -> None:
        sides = list(self._random.sample(["baseline", "candidate"], 2))
        event = {"event": "sample", "step": "s", "design": design, "pair": self._number, "first": sides[0], **more}
        taken = {side: self._reading() for side in (sides[:1] if lone else sides)}
        # Events list the baseline first, whichever side ran first; a second metric keeps both sides in the events.
        beside = [{"metric": "other", "value": 1.0}]
        for side in ("baseline", "candidate"):
            event[side] = [*taken.get(side, []), *beside]
        self._add(event)

    def single(self, design: str, side: str, **more: Any) -> None:
        event = {"event": "sample", "step": "s", "design": design, "pair": self._number, "first": side, **more}
        self._add(event | {side: self._reading()})

    def _add(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._number += 1

    def _reading(self) -> list[dict[str, Any]]:
        value = self._random.random()
        self.order[value] = len(self.order)
        return [{"metric": "time", "value": value}]


def looks(taking: Taking) -> None:
    for number in range(12):
        taking.pair("looks", lone=number in (3, 7))


def few(taking: Taking) -> None:
    for side in taking._random.sample(["baseline", "candidate"] * 5, 10):
        taking.single("few", side)


def confirmed_twice(taking: Taking) -> None:
    for confirmation in (0, 1, 2):
        more: dict[str, Any] = {"confirmation": confirmation} if confirmation else {}
        for _ in range(5):
            taking.pair("confirm" if confirmation else "fixed", **more)


def fresh_layouts(taking: Taking) -> None:
    looks(taking)
    for number in range(6):
        taking.pair("layouts", layout=number + 1)


def few_layouts(taking: Taking) -> None:
    few(taking)
    for _ in range(2):
        for side, layout in taking._random.sample([(s, n) for s in ("baseline", "candidate") for n in (1, 2, 3)], 6):
            taking.single("few layouts", side, layout=layout)


def one_side(taking: Taking) -> None:
    for _ in range(4):
        taking.single("fixed", "baseline")


def series_of(taking: Taking) -> MetricSeries:
    return record_of(iter(taking.events)).series["b", "time"]


def values_of(series: MetricSeries) -> dict[str, list[float]]:
    found = {side.value: [item.value for item in series.readings(side)] for side in Side}
    return {side: values for side, values in found.items() if values}


def orders_in(events: list[dict[str, Any]], series: MetricSeries, metric: str = "time") -> dict[str, list[int]]:
    found = taking_order(events).of(Wanted("s", "b", metric, values_of(series)))
    return {side: list(order) for side, order in found.items()}


def taken(taking: Taking, series: MetricSeries) -> dict[str, list[int]]:
    return {side: [taking.order[value] for value in own] for side, own in values_of(series).items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("design", [looks, few, confirmed_twice, fresh_layouts, few_layouts, one_side])
def test_the_order_follows_what_the_record_sets_aside(design: Any, seed: int) -> None:
    taking = Taking(seed)
    design(taking)
    series = series_of(taking)
    for each in (series, series.built) if series.built else (series,):
        assert orders_in(taking.events, each) == taken(taking, each)


def test_what_was_kept_of_candidates_is_found_in_its_trial() -> None:
    taking = Taking(1)
    looks(taking)
    inside = [{**event, "trial": "compare"} for event in taking.events[1:]]
    # An interrupted attempt starts again.
    stale = [{"trial": "compare", "event": "begun"}, inside[0], {"trial": "compare", "event": "begun"}]
    own = {"event": "sample", "step": "s", "design": "fixed", "pair": 0, "baseline": [{"metric": "time", "value": 9.0}]}
    series = series_of(taking)
    assert orders_in([OPENING, own, *stale, *inside], series) == taken(taking, series)


@pytest.mark.parametrize("change", [{"design": "unpaired"}, {"first": None}])
def test_no_order_is_made_up_where_none_was_recorded(change: dict[str, Any]) -> None:
    taking = Taking(1)
    looks(taking)
    changed = [
        {name: value for name, value in (event | change).items() if value is not None} for event in taking.events
    ]
    assert orders_in(taking.events, series_of(taking))
    assert orders_in(changed, series_of(taking)) == orders_in([], series_of(taking)) == {}


def test_memory_is_that_of_what_was_built() -> None:
    taking = Taking(1)
    fresh_layouts(taking)
    renamed = json.loads(json.dumps(taking.events).replace('"time"', '"rss"'))
    series = record_of(iter(renamed)).series["b", "rss"]
    assert series.built is None
    assert [len(own) for own in orders_in(renamed, series, "rss").values()] == [10, 10]


def test_stored_results_that_are_compared_have_no_pairs(here: Path, tmp_path: Path, kinds: dict[str, Path]) -> None:
    words = ("compare", str(kinds["run"]), str(kinds["run"]), "--out", str(tmp_path / "out"))
    assert command(*words, cwd=here).returncode == 0
    run = perfflow.load(tmp_path / "out")
    assert (run.verdict, run.gate) == (None, None)
    assert {(row["pair"], row["order"]) for row in run.to_rows()} == {(None, None)}
    assert "not judged" in repr(run)
    assert "<caption>" in run._repr_html_()


# ---- tables as data frames of pandas and polars, and the error if neither is installed ----

BOTH = ["pandas", "polars"]


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", KINDS)
def test_a_frame_holds_what_the_rows_hold(name: str, library: Library, kinds: dict[str, Path]) -> None:
    run = perfflow.load(kinds[name])
    frame = run.to_frame(library=library)
    rows = run.to_rows()
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == list(rows[0])
    assert frame["value"].to_list() == [row["value"] for row in rows]
    assert plain(frame["pair"]) == [row["pair"] for row in rows]
    decisions = run.to_frame("decisions", library)
    assert plain(decisions["decision"]) == [row["decision"] for row in run.decisions()]


def plain(column: object) -> list[object]:
    """Return the values of a column, missing ones as None."""
    values: list[object] = column.to_list()  # type: ignore[attr-defined]
    return [None if type(value).__name__ in ("NAType", "NoneType") else value for value in values]


@pytest.mark.parametrize("library", BOTH)
def test_a_frame_without_rows_has_its_columns(library: Library, here: Path, tmp_path: Path) -> None:
    data = json.loads((here / ".perfflow/runs/latest/result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "benchmarks": []}))
    frame = perfflow.load(tmp_path).to_frame(library=library)
    assert (len(frame), list(frame.columns)) == (0, list(columns_of(perfflow.SampleRow)))


def test_pandas_comes_first_and_words_are_checked(here: Path) -> None:
    run = perfflow.load()
    assert type(run.to_frame()).__module__.startswith("pandas")
    with pytest.raises(UserError, match="write one of: samples, decisions"):
        run.to_frame("rows")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="write one of: pandas, polars"):
        run.to_frame(library="numpy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("missing", "call", "said"),
    rest_long(
        [
            (
                BOTH,
                "to_frame()",
                ["neither pandas nor polars is installed", "one with `python -m pip install pandas`"],
            ),
            (["polars"], "to_frame(library='polars')", ["polars is not installed", "python -m pip install polars"]),
            (["pandas"], "to_frame()", ["polars.dataframe"]),
        ]
    ),
)
def test_what_is_not_installed_has_a_remedy(here: Path, missing: list[str], call: str, said: list[str]) -> None:
    # None in sys.modules marks a module that cannot be imported.
    absent = f"import sys; sys.modules |= dict.fromkeys({missing})"
    code = f"{absent}; import perfflow; print(type(perfflow.load().{call}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert all(words in done.stdout + done.stderr for words in said)
