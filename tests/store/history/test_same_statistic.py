"""Two stored sets with different statistics: a statistic that both contain is compared, else none."""

from __future__ import annotations

from dataclasses import replace

from perfflow.model.readings import Reading, reading_of_process
from perfflow.store.history.stored import Stored, with_same_statistic

KEY = ("b", "time")
VALUES = [1.0, 1.0, 1.0, 2.0, 5.0]
NEW = reading_of_process("time", VALUES)
OLD = replace(NEW, value=1.0, statistic="p50")
PLAIN = Reading("time", 3.0)


def stored(label: str, *readings: Reading, started: str = "") -> Stored:
    return Stored(label, "perfflow", "", {KEY: readings}, {}, started=started)


def test_medians_are_compared_where_one_side_was_judged_by_them() -> None:
    old, new, said = with_same_statistic(stored("old", OLD, OLD), stored("new", NEW, NEW))
    for side in (old, new):
        assert [(item.value, item.statistic) for item in side.series[KEY]] == [(1.0, "p50")] * 2
    (text,) = said
    assert text.startswith(
        "compared by the median of each process, which both contain: b time (old was judged by the median "
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
    assert text.endswith("measure new again to compare them")


def test_exact_figures_have_no_other_statistic() -> None:
    sides = stored("old", replace(PLAIN, exact=True)), stored("new", replace(NEW, exact=True))
    assert with_same_statistic(*sides) == (*sides, [])
