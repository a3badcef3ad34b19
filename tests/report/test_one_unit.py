"""One figure has one unit on every page, and so has a column."""

from __future__ import annotations

import re

import pytest

from perfflow.model.units import Dimension, column_unit
from perfflow.report import history_tables, markdown, tables, terminal
from perfflow.report.history_tables import IndexRow
from perfflow.report.html.charts import samples_chart
from perfflow.report.text_table import laid_out
from perfflow.verdict.row_text import unit_of_row
from tests.report.gated import as_gate
from tests.report.histories import a_point, a_series
from tests.verdict.records import criteria, ended, judged, pairs


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
    for text in (terminal.render(result, width=200, color=False, unicode=True), page):
        units = set(re.findall(r"\d [kKMG]?i?B(?:/s)?\b|\d [mμn]?s\b", text.replace(limit, "")))
        assert {found[2:] for found in units} == {unit}, text


def test_a_chart_and_a_drawing_have_the_unit_of_the_row_beside_them() -> None:
    # The values begin below 1 ms and end above it.
    known = criteria()
    events = [*pairs("b", [0.0005 + 0.00001 * number for number in range(14)], [0.0011] * 14), ended("b")]
    row = judged(*events, wanted=known).benchmarks[0]
    unit = unit_of_row(row, known)
    drawn = samples_chart(row, {}, known)
    (table,) = tables.distributions(row, Dimension.TIME, ("baseline", "candidate"), "b", unit)
    laid = laid_out(table, 200)
    for text in (drawn, "\n".join([laid.head, *(line for entry in laid.entries for line in entry)])):
        assert set(re.findall(r"\d ([mμn]?s)\b", text)) == {unit} == {"μs"}


def test_a_row_of_zeros_has_the_unit_of_its_intervals() -> None:
    rest = [0.0] * 7
    events = [*pairs("b", [*rest, 0.0011], [*rest, 0.0012], "system"), ended("b")]
    row = judged(*events).benchmarks[0]
    assert (row.baseline and row.baseline.value, unit_of_row(row, criteria())) == (0.0, "ms")


def test_the_runs_of_a_series_have_one_unit() -> None:
    points = [a_point(number, value) for number, value in enumerate([0.00098, 0.00104, 0.0099])]
    text = "\n".join(
        line for entry in laid_out(history_tables.runs(a_series("b"), points, [""] * 3), 200).entries for line in entry
    )
    assert re.findall(r"\d (\w?s)\b", text) == ["ms"] * 9


def test_the_newest_values_of_series_have_one_unit_unless_they_differ_by_orders_of_magnitude() -> None:
    def shown(*values: float) -> list[str]:
        rows = [
            IndexRow(a_series(f"b{number}"), [value], a_point(number, value), None, is_flaky=False)
            for number, value in enumerate(values)
        ]
        table = history_tables.index(rows)
        return [line for entry in laid_out(table, 200).entries for line in entry]

    assert [line.split()[-2:] for line in shown(0.0009, 0.2)] == [["0.900", "ms"], ["200", "ms"]]
    assert [line.split()[-2:] for line in shown(0.0009, 2.0)] == [["900", "μs"], ["2.00", "s"]]


def test_a_column_of_nothing_has_no_unit() -> None:
    assert column_unit([None, 0.0], Dimension.TIME) == ""
