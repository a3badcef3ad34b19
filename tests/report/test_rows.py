"""Figures of one row, the words beside the verdict, and one unit for a figure on every page."""

from __future__ import annotations

import re

import pytest

from perfflow.model.result import Benchmark, Bounds, Result
from perfflow.model.units import Dimension, column_unit
from perfflow.report import history_tables, markdown, tables, terminal
from perfflow.report.footer import notes
from perfflow.report.history_tables import IndexRow
from perfflow.report.html.charts import samples_chart
from perfflow.report.page import page_of
from perfflow.report.payloads import files
from perfflow.report.payloads.comment import comment
from perfflow.report.rows import OTHER_THAN_MEDIANS, differ_from_medians, speedup_text
from perfflow.report.table import Table
from perfflow.report.text_table import laid_out
from perfflow.verdict.row_text import unit_of_row
from tests.report.gated import as_gate
from tests.report.histories import a_point, a_series
from tests.report.rendered import screen
from tests.report.results import wave
from tests.verdict.records import criteria, ended, judged, pairs, planned, row

DRIFT = [1.0 + 0.0831 * number for number in range(20)]


def drifting(factor: float) -> Result:
    """Return a result in which both sides drift. Later pairs count less, and the medians are from other pairs."""
    return judged(*pairs("b", DRIFT, [value * factor for value in DRIFT]), ended("b"))


def lines_of(table: Table) -> list[str]:
    laid = laid_out(table, 200)
    return [laid.head, *(line for entry in laid.entries for line in entry)]


@pytest.mark.parametrize(
    ("change", "candidate", "puzzles"),
    [(-0.036, 1.01, True), (0.036, 0.99, True), (0.18, 1.15, False), (0.18, 1.01, True), (-0.003, 1.002, False)],
)
def test_a_change_on_the_other_side_of_the_medians_puzzles(change: float, candidate: float, *, puzzles: bool) -> None:
    found = row(drifting(1.0))
    assert found.baseline
    assert found.candidate
    sides = {
        "baseline": found.baseline.model_copy(update={"value": 1.0}),
        "candidate": found.candidate.model_copy(update={"value": candidate}),
    }
    bounds = Bounds(value=change, low=change, high=change)
    assert differ_from_medians(found.model_copy(update={"change": bounds, **sides})) is puzzles


def test_every_page_explains_it_once() -> None:
    result = drifting(1.0)
    apart = row(result).model_copy(update={"change": Bounds(value=-0.2, low=-0.21, high=-0.19)})
    result = result.model_copy(update={"benchmarks": [apart]})
    pages = ["\n".join(map(str, notes(result))), screen(result, 200), terminal.render_summary(result), comment(result)]
    assert [page.count(OTHER_THAN_MEDIANS) for page in pages] == [1, 1, 1, 1]


@pytest.mark.parametrize(("factor", "decision"), [(1.3, "regressed"), (1.0, "same")])
def test_a_clock_has_a_name_that_needs_no_legend(factor: float, decision: str) -> None:
    result = drifting(factor)
    clock = row(result).model_copy(update={"metric": "uncontended"})
    assert clock.decision == decision
    result = result.model_copy(update={"benchmarks": [clock]})
    for page in (screen(result, 200), terminal.render_summary(result)):
        assert "time without core waits" in page
        assert "uncontended" not in page


def test_the_terminal_shows_a_slowdown_once_and_every_other_row_that_got_worse() -> None:
    result = drifting(1.3)
    (time,) = result.benchmarks
    others = [time.model_copy(update={"metric": name, "gating": False}) for name in ("cpu", "rss")]

    def shown(*rows: Benchmark) -> list[str]:
        text = screen(result.model_copy(update={"benchmarks": list(rows)}), 200)
        return [line.split()[1] for line in text.splitlines() if line.startswith("  b ")]

    assert shown(time, *others) == ["time", "rss"]
    assert shown(time.model_copy(update={"decision": "same"}), *others) == ["cpu", "rss", "time"]


@pytest.mark.parametrize(("high", "text"), [(1.2, "1.04x [unbounded, 1.20x]"), (None, "1.04x")])
def test_an_end_that_is_not_known_is_said_to_be_unbounded(high: float | None, text: str) -> None:
    bounds = Bounds(value=1.04, low=None, high=high)
    assert speedup_text(row(drifting(1.0)).model_copy(update={"speedup": bounds})) == text


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.03, "comparisons: 1 improved"), (1.3, "comparisons: 1 improved; concern: rss +30.0%")],
)
def test_a_metric_that_does_not_decide_is_named_beside_the_verdict_if_it_is_a_concern(
    factor: float, words: str
) -> None:
    time = pairs("b", wave(0.012, 1, 0.02), wave(0.006, 1, 0.02))
    memory = pairs("b", wave(14e6, 1, 0.001), wave(14e6, factor, 0.001), "rss", at_most=False)
    result = judged(*time, *memory, ended("b", identical=True), wanted=criteria({}))
    assert [(row.decision, row.gating) for row in result.benchmarks] == [("improved", True), ("regressed", False)]
    assert page_of(result).headline == words


def test_waiting_is_named_beside_what_the_run_took() -> None:
    events = pairs("bench", [0.1] * 8, [0.1] * 8)
    quiet, waited = (judged(*events, ended("bench") | keys, steps=[planned("bench")]) for keys in ({}, {"waited": 6.0}))
    assert (quiet.run.seconds, waited.run.seconds, quiet.waited) == (10, 10, 0)
    assert "took 10.0 s\n" in markdown.render(quiet)
    assert "took 4.00 s, plus 6.00 s waiting for the machine\n" in markdown.render(waited)
    assert 'time="4.000"' in files.junit_text(waited)


def test_what_its_measuring_warned_of_is_said_below_the_answer() -> None:
    events = pairs("b", [1.0] * 10, [1.5] * 10)
    quiet, warned = (
        terminal.render_summary(judged(*events, ended("b", warnings=warnings)))
        for warnings in ([], ["took longer\x1b[31m"])
    )
    assert quiet.startswith("the second is 1.50x slower")
    said = [line.strip() for line in warned.splitlines() if line not in quiet.splitlines()]
    assert said == ["note: took longer\\u001b[31m"]


@pytest.mark.parametrize(
    ("metric", "base", "limit", "unit"),
    [
        ("rss", 9e6, "<100MB", "MB"),
        ("rss", 9e6, "<100MiB", "MiB"),
        ("time", 0.15, "<1s", "ms"),
        ("throughput", 2e9, "≥1GB/s", "GB/s"),
    ],
)
@pytest.mark.parametrize("sides", [1, 2])
def test_a_figure_has_the_same_unit_in_every_table(metric: str, base: float, limit: str, unit: str, sides: int) -> None:
    # Spread, so that intervals are shown as well.
    values = [base * (1 + 0.01 * number) for number in range(14)]
    events = [*pairs("b", values, [value * 1.5 for value in values] if sides == 2 else None, metric), ended("b")]
    result = judged(*events, wanted=criteria({"b": {metric: limit}}))
    result = as_gate(result) if sides == 2 else result
    page = markdown.render(result).split("Environment")[0]
    assert "\nperf: b" in page
    for text in (screen(result, 200), page):
        units = set(re.findall(r"\d [kKMG]?i?B(?:/s)?\b|\d [mμn]?s\b", text.replace(limit, "")))
        assert {found[2:] for found in units} == {unit}, text


def test_a_chart_and_a_drawing_have_the_unit_of_the_row_beside_them() -> None:
    # The values begin below 1 ms and end above it.
    known = criteria()
    events = [*pairs("b", [0.0005 + 0.00001 * number for number in range(14)], [0.0011] * 14), ended("b")]
    found = judged(*events, wanted=known).benchmarks[0]
    unit = unit_of_row(found, known)
    (table,) = tables.distributions(found, Dimension.TIME, ("baseline", "candidate"), "b", unit)
    for text in (samples_chart(found, {}, known), "\n".join(lines_of(table))):
        assert set(re.findall(r"\d ([mμn]?s)\b", text)) == {unit} == {"μs"}


def test_a_row_of_zeros_has_the_unit_of_its_intervals_and_a_column_of_nothing_has_none() -> None:
    rest = [0.0] * 7
    found = judged(*pairs("b", [*rest, 0.0011], [*rest, 0.0012], "system"), ended("b")).benchmarks[0]
    assert (found.baseline and found.baseline.value, unit_of_row(found, criteria())) == (0.0, "ms")
    assert column_unit([None, 0.0], Dimension.TIME) == ""


def test_the_runs_of_a_series_have_one_unit() -> None:
    points = [a_point(number, value) for number, value in enumerate([0.00098, 0.00104, 0.0099])]
    text = "\n".join(lines_of(history_tables.runs(a_series("b"), points, [""] * 3))[1:])
    assert re.findall(r"\d (\w?s)\b", text) == ["ms"] * 9


@pytest.mark.parametrize(
    ("values", "shown"),
    [((0.0009, 0.2), [["0.900", "ms"], ["200", "ms"]]), ((0.0009, 2.0), [["900", "μs"], ["2.00", "s"]])],
)
def test_the_newest_values_of_series_have_one_unit_unless_they_differ_by_orders_of_magnitude(
    values: tuple[float, ...], shown: list[list[str]]
) -> None:
    rows = [
        IndexRow(a_series(f"b{number}"), [value], a_point(number, value), None, is_flaky=False)
        for number, value in enumerate(values)
    ]
    assert [line.split()[-2:] for line in lines_of(history_tables.index(rows))[1:]] == shown
