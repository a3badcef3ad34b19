"""Memory without a target: it gates if two trees are compared, and is a concern otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfflow.model.criteria import Criteria, MemoryThresholds, OwnThresholds, criteria_from_json
from perfflow.model.result import GatesBy, Result
from perfflow.report import terminal
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, pairs, planned, reading, record, row
from tests.verdict.test_routing import REVISIONS

BASE = [1 + 0.001 * (number % 3) for number in range(20)]
MIB = 2.0**20


def measured(
    metric: str,
    before: float,
    after: float,
    wanted: Criteria | None = None,
    *,
    gate: bool = True,
    own: bool = False,
    bound: bool = False,
) -> Result:
    """Return a benchmark ``b`` with unchanged time and one memory metric."""
    known = wanted or Criteria()
    events = pairs("b", BASE, BASE)
    for event in events:
        event["baseline"].append(reading(metric, before))
        event["candidate"].append(reading(metric, after, **({"at_most": True} if bound else {})))
    step = planned("b", in_one_tree=True) if own else planned("b")
    made = record(*events, ended("b"), steps=[step], criteria=known)
    if gate:
        made.trees = dict(REVISIONS)
    return judge(made, known)


@pytest.mark.parametrize(
    ("metric", "before", "after", "verdict", "level"),
    [
        ("rss", 40 * MIB, 120 * MIB, "fail", "action"),
        ("rss", 40 * MIB, 43 * MIB, "pass", "concern"),
        ("rss", 4 * MIB, 4.9 * MIB, "pass", None),  # less than 1 MiB
        ("heap_peak", 1000.0, 1200.0, "fail", "action"),  # exact
        ("alloc", 1000.0, 1200.0, "fail", "action"),
        ("allocs", 1000.0, 1200.0, "fail", "action"),
        ("rss", 120 * MIB, 40 * MIB, "pass", None),
        ("leaked", 1000.0, 1200.0, "pass", None),
    ],
)
def test_memory_that_grew_gates(metric: str, before: float, after: float, verdict: str, level: str | None) -> None:
    result = measured(metric, before, after)
    found = row(result, metric)
    assert (result.verdict, found.gating) == (verdict, level is not None)
    if level:
        assert (found.level, found.gates_by) == (level, GatesBy.MEMORY)
        assert [text.partition(":")[0] for text in result.reason_texts] == [
            "regressed" if verdict == "fail" else "concern"
        ]


def test_an_upper_bound_is_no_proof_of_growth() -> None:
    assert measured("rss", 4 * MIB, 9 * MIB, bound=True).verdict == "pass"


def test_memory_has_thresholds_of_its_own_and_can_be_left_alone() -> None:
    wide = replace(criteria(action=0.01, concern=0.005), memory=MemoryThresholds(0.5, 1.0))
    assert measured("rss", 40 * MIB, 56 * MIB, wide).verdict == "pass"
    assert measured("rss", 40 * MIB, 120 * MIB, wide).verdict == "fail"
    alone = replace(Criteria(), memory=None)
    one = replace(Criteria(), per_glob={"b": OwnThresholds(memory=None)})
    assert (measured("rss", 40 * MIB, 120 * MIB, one).verdict, measured("rss", 1e8, 3e8, one).reason_texts) == (
        "pass",
        [],
    )
    assert (measured("rss", 40 * MIB, 120 * MIB, alone).verdict, measured("rss", 1e8, 3e8, alone).reason_texts) == (
        "pass",
        [],
    )


@pytest.mark.parametrize(("gate", "own"), [(False, False), (True, True)])
def test_where_no_trees_are_compared_it_is_a_concern_in_the_headline(gate: bool, own: bool) -> None:
    result = measured("rss", 40 * MIB, 120 * MIB, gate=gate, own=own)
    assert (result.verdict, row(result, "rss").gating) == ("pass", False)
    assert result.reason_texts == ["concern: b rss +200.0%, over the action threshold of 10%"]
    assert terminal.render_summary(result).splitlines()[0].endswith("; concern: rss +200.0%")
    assert "concern: rss +200.0%" in terminal.render(result, width=120, color=False, unicode=True).splitlines()[0]


@pytest.mark.parametrize("memory", [None, MemoryThresholds(), MemoryThresholds(0.2, 0.3)])
def test_the_thresholds_are_kept_with_the_run(memory: MemoryThresholds | None) -> None:
    known = replace(Criteria(), memory=memory)
    assert criteria_from_json(known.to_json()).memory == memory
    for own in (False, True):
        result = measured("rss", 40 * MIB, 50 * MIB, known, own=own)
        assert judge(record_of_result(result), known) == result
