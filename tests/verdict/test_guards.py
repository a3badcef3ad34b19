"""The rows that gate for the guards of an optimize stage."""

from __future__ import annotations

import pytest

from tests.verdict.records import ended, judged, pairs, planned, row

STEPS = (planned("b"), planned("m", benchmark="b"))
TIMES = [1.0 + 0.001 * (number % 3) for number in range(20)]
SIZES = [1000.0 * value for value in TIMES]


@pytest.mark.parametrize(
    ("metric", "guard", "at_most", "gates"),
    [
        ("rss", ["b"], False, True),
        ("rss", ["*"], False, True),
        ("rss", ["other"], False, False),
        ("rss", [], False, False),
        # A candidate known only as an upper bound is not proven worse.
        ("rss", ["b"], True, False),
        ("page_faults", ["b"], False, False),
    ],
)
def test_a_guarded_metric_with_a_direction_gates(metric: str, guard: list[str], at_most: bool, gates: bool) -> None:
    worse = [1.2 * value for value in SIZES]
    keys = {"at_most": True} if at_most else {}
    events = [*pairs("b", TIMES, TIMES), ended("b"), *pairs("m", SIZES, worse, metric, **keys), ended("m")]
    result = judged(*events, steps=STEPS, guard=guard)
    assert row(result, metric=metric).gating is gates
    assert result.verdict == ("fail" if gates else "pass")
    assert result.run.guard == guard
