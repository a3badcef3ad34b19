"""Two stored sets with different statistics: a statistic that both contain is compared, else none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfflow.model.readings import CAPPED, MEAN, Reading, reading_of_many, reading_of_process
from perfflow.store.history.same_statistic import statistic_of, with_same_statistic
from perfflow.store.history.stored import Stored

KEY = ("b", "time")
VALUES = [1.0, 1.0, 1.0, 2.0, 5.0]
NEW = reading_of_process("time", VALUES)
OLD = replace(NEW, value=1.0001, statistic="")
"""A value as version 0.1.0 wrote it: a quartile without the name of the statistic."""
PLAIN = Reading("time", 3.0)


def stored(label: str, *readings: Reading, started: str = "") -> Stored:
    return Stored(label, "perfflow", "", {KEY: readings}, {}, started=started)


@pytest.mark.parametrize(
    ("readings", "statistic"),
    [
        ([NEW, NEW], CAPPED),
        ([OLD], "p25"),
        ([replace(OLD, metric="throughput")], "p75"),
        ([replace(reading_of_many("time", VALUES), statistic="")], "p50"),
        ([replace(reading_of_many("time", VALUES), statistic=""), OLD], "p25"),
        ([PLAIN], ""),
    ],
)
def test_what_a_series_holds(readings: list[Reading], statistic: str) -> None:
    assert statistic_of(readings) == statistic


def test_the_mean_is_compared_where_an_older_run_holds_quartiles() -> None:
    old, new, said = with_same_statistic(stored("old", OLD, OLD), stored("new", NEW, NEW))
    for side in (old, new):
        assert [(item.value, item.statistic) for item in side.series[KEY]] == [(2.0, MEAN)] * 2
    (text,) = said
    assert text.startswith(
        "compared by the mean of each process, which both contain: b time (old was judged by the lower "
    )


def test_the_same_statistic_is_left_as_it_is() -> None:
    for reading in (NEW, OLD, PLAIN):
        sides = stored("old", reading), stored("new", reading)
        assert with_same_statistic(*sides) == (*sides, [])


def test_what_has_no_statistic_in_common_is_left_out() -> None:
    old, new, said = with_same_statistic(
        stored("old", PLAIN, started="2026-02-01"), stored("new", NEW, started="2026-01-01")
    )
    assert (old.series, new.series) == ({}, {})
    (text,) = said
    assert text.startswith(
        "skipped, because old contains single values and new the capped mean of each process: b time; "
    )
    assert text.endswith("measure new again with this version to compare them")


def test_exact_figures_have_no_other_statistic() -> None:
    sides = stored("old", replace(PLAIN, exact=True)), stored("new", replace(NEW, exact=True))
    assert with_same_statistic(*sides) == (*sides, [])
