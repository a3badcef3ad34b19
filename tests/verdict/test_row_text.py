"""Every text about a row agrees with its decision, its level and its interval."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Accepted, Criteria, Thresholds, criteria_from_json
from perfflow.model.result import Benchmark, Result
from perfflow.report.gate_table import gates_of
from perfflow.verdict import row_text
from perfflow.verdict.judge import judge
from tests.verdict.records import REVISIONS, criteria, ended, judged, pairs, planned, record

factor = st.integers(70, 150).map(lambda share: share / 100)
noise = st.sampled_from([0.0005, 0.03, 0.06, 0.3])
METRIC = st.sampled_from(["time", "throughput", "allocs"])


@st.composite
def results(draw: st.DrawFn) -> Result:
    """A gate of up to three benchmarks, each faster or slower, with little or much noise, with many or two pairs."""
    events, steps = [], []
    for name in draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]])):
        metric, times, spread = draw(METRIC), draw(factor), draw(noise)
        count = draw(st.sampled_from([1, 2, 6, 14, 40]))
        chance = random.Random(draw(st.integers(0, 10**6)))
        base, head = ([scale * math.exp(chance.gauss(0, spread)) for _ in range(count)] for scale in (1.0, times))
        events += [*pairs(name, base, head, metric), ended(name)]
        steps.append(planned(name))
    concern, action = draw(st.sampled_from([(0.05, 0.1), (0.01, 0.3), (0.2, 0.2)]))
    accepted = draw(st.sampled_from([[], [Accepted("a", 0.4, "why", "2026-12-31")]]))
    known = criteria(accepted=accepted, concern=concern, action=action)
    return judge(record(*events, steps=steps, criteria=known, trees=REVISIONS), known)


def worse(row: Benchmark) -> tuple[float, float, float]:
    """Return estimate and interval, up is worse."""
    assert row.change is not None
    sign = -1 if row.better == "higher" else 1
    found = [sign * value if value is not None else None for value in (row.change.low, row.change.high)]
    low, high = found if sign > 0 else found[::-1]
    estimate = math.inf if row.change.value is None else sign * row.change.value
    return estimate, -math.inf if low is None else low, math.inf if high is None else high


def sentences(result: Result) -> Iterator[str]:
    yield from result.reason_texts
    for gate in gates_of(result, criteria_from_json(result.criteria)).shown:
        if gate.gate == "regressions":
            yield from re.split(r"; |\d of \d: ", gate.evidence)
    for route in result.routes:
        yield from (f"brief regressed: {text}" for text in route.brief.regressed)
        yield from (f"brief undecided: {text}" for text in route.brief.undecided)


@given(results())
def test_each_sentence_is_true_of_its_row(result: Result) -> None:
    known = criteria_from_json(result.criteria)
    for text in sentences(result):
        for row in (row for row in result.benchmarks if f"{row.name} {row.metric}" in text):
            if " unproven: " in text:
                assert row.decision == "unproven"
                continue
            if row.change is not None:
                check(text, row, known.thresholds_of(row.name, row.metric))


def check(text: str, row: Benchmark, thresholds: Thresholds) -> None:
    estimate, low, high = worse(row)
    if row.change and row.change.value is not None and "%" in text and "unproven: " not in text:
        assert "accepted until" in text or row_text.change_of(row, Criteria()) in text
    if found := re.search(r"over the (action|concern) threshold of (\S+?)%( by its estimate)?(?=$|[ ,;])", text):
        limit = float(found[2]) / 100
        if "a regression over" not in text:
            assert limit == getattr(thresholds, found[1])
            assert row.decision == "regressed"
            assert estimate > limit
            assert bool(found[3]) == (low <= limit)
    if "under the concern threshold" in text:
        assert row.decision == "regressed"
        assert estimate <= thresholds.concern
        assert ("by its estimate" in text) == (high > thresholds.concern)
    if "is not excluded" in text:
        assert row.decision == "unproven"
        assert high >= thresholds.action or row.confidence is None
    elif "is excluded" in text:
        assert row.decision == "unproven"
        assert high < thresholds.action or row.accepted
    if text.startswith(("regressed", "brief regressed")):
        assert row.decision == "regressed"
        assert low > 0
    if text.startswith(("unproven", "brief undecided")):
        assert row.decision == "unproven"
    if text.endswith(", improved"):
        assert row.decision == "improved"
        assert high < 0


def test_a_change_that_nothing_bounds_shows_no_interval() -> None:
    result = judged(*pairs("b", [1.0], [0.634]), ended("b"))
    row = result.benchmarks[0]
    assert row_text.change_of(row, Criteria()) == "-36.6% (no interval yet)"
    assert result.reason_texts == ["unproven: b time: not settled after 1 pair, too few to tell"]
