"""Accepted regressions: for one metric, until a date, and not after the base contains them."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.result import Benchmark, GatesBy, Result
from perfflow.verdict import acceptance
from perfflow.verdict.gating import is_accepted, thresholds_for
from perfflow.verdict.judge import judge
from tests.verdict.comparisons import shown_row
from tests.verdict.records import REVISIONS, beside, criteria, ended, judged, pairs, record, row, scaled

BASE = scaled(1.0)
SLOWER = Accepted("b", 0.3, "a correct parser is slower", "2026-12-31")
TODAY = "2026-01-02"
"""Start time of the hand-made records."""


def gated(*accepted: Accepted, time: float = 1.0, rss: float = 1.0) -> Result:
    known = criteria({"b": {"rss change": "<500%"}}, accepted=accepted)
    events = beside(pairs("b", BASE, [time * value for value in BASE]), "rss", 1e8, rss * 1e8)
    return judge(record(*events, ended("b"), criteria=known, trees=REVISIONS), known)


@pytest.mark.parametrize(
    ("metric", "time", "rss", "verdict"),
    [
        # Without a metric it is meant for time, and one timing metric stands for all.
        *[("", 1.2, 1.0, "pass"), ("", 1.0, 1.2, "fail"), ("time", 1.2, 1.0, "pass"), ("cpu", 1.2, 1.0, "pass")],
        *[("time", 1.0, 1.2, "fail"), ("rss", 1.0, 1.2, "pass"), ("rss", 1.2, 1.0, "fail"), ("rss", 1.0, 1.4, "fail")],
    ],
)
def test_an_entry_is_about_one_metric(metric: str, time: float, rss: float, verdict: str) -> None:
    result = gated(replace(SLOWER, metric=metric), time=time, rss=rss)
    assert result.verdict == verdict
    used = [item.metric for item in result.benchmarks if item.accepted]
    assert used == ([] if verdict == "fail" else ["rss" if rss > 1 else "time"])


def test_one_that_the_base_has_is_spent() -> None:
    result = gated(replace(SLOWER, spent=True), time=1.2)
    assert result.verdict == "fail"
    assert (
        result.reason_texts[1]
        == "b time: the base already contains the regression accepted until 2026-12-31: a correct parser is slower"
    )
    assert any("no longer accepted" in text for text in row(result).warnings)


CHECKSUMS = Accepted("b", 0.25, "new checksums", "2026-06-30")
PASSED = "b time was accepted until 2026-06-30, which has passed: new checksums"
BEYOND = "regressed: b time +{}%, over the action threshold of 10%"
PASSES = "accepted until 2026-06-30: b time +20.0%: new checksums"


@pytest.mark.parametrize(
    ("started", "factor", "verdict", "level", "reasons"),
    [
        ("2026-01-02T00:00:00Z", 1.2, "pass", "concern", [PASSES]),
        ("2026-06-30T23:59:59Z", 1.2, "pass", "concern", [PASSES]),
        # If it would have passed before the date, the reasons mention the date.
        ("2026-07-01T00:00:00Z", 1.2, "fail", "action", [BEYOND.format("20.0"), PASSED]),
        ("2026-01-02T00:00:00Z", 1.3, "fail", "action", [BEYOND.format("30.0")]),
        (
            *("2026-01-02T00:00:00Z", 1.07, "pass", "concern"),
            ["concern: b time +7.0%, over the concern threshold of 5% (action threshold 10%)"],
        ),
        ("2026-01-02T00:00:00Z", 1.01, "pass", "ok", []),
    ],
)
def test_an_accepted_regression(started: str, factor: float, verdict: str, level: str, reasons: list[str]) -> None:
    events = (*pairs("b", BASE, scaled(factor)), ended("b"))
    result = judged(*events, wanted=criteria(accepted=[CHECKSUMS]), started=started)
    found = row(result)
    assert (result.verdict, found.level, result.reason_texts) == (verdict, level, reasons)
    assert any("2026-06-30" in text for text in found.warnings[:1]) is (factor > 1.05)


def test_what_is_excluded_only_by_what_is_accepted_says_so() -> None:
    coin = random.Random(5)
    events = [*pairs("b", BASE, [1.08 * value * math.exp(coin.gauss(0, 0.2)) for value in BASE]), ended("b")]
    assert judged(*events).verdict == "unproven"
    result = judged(*events, wanted=criteria(accepted=[replace(CHECKSUMS, change=0.5)]))
    assert (row(result).decision, result.verdict) == ("unproven", "pass")
    (reason,) = result.reason_texts
    assert re.fullmatch(r"accepted until 2026-06-30: b time unproven, up to \+\d+\.\d%: .*", reason)


@pytest.mark.parametrize(
    ("until", "action"), [("2026-01-01", 0.1), ("2026-01-02", 0.4), ("2026-01-03", 0.4), ("2025-12-31", 0.1)]
)
def test_an_accepted_regression_passes_to_the_end_of_its_day(until: str, action: float) -> None:
    item = Accepted("b", 0.4, "why", until)
    wanted = Criteria(accepted=(item,))
    assert thresholds_for(record(), wanted, ("b", "time"), GatesBy.CHOSEN)[0].action == action
    assert is_accepted(replace(item, benchmark="c"), wanted, ("b", "time"), GatesBy.CHOSEN) is False


@pytest.mark.parametrize(
    ("decision", "level", "worst"),
    [
        *[("regressed", "concern", 0.2), ("regressed", "ok", 0.2), ("unproven", "ok", 0.3)],
        *[("regressed", "action", None), ("unproven", None, None), ("same", "ok", None), ("improved", "ok", None)],
    ],
)
def test_how_much_worse_a_row_is_that_passes(decision: str, level: str | None, worst: float | None) -> None:
    assert acceptance.worst(shown_row(decision, level, 0.2, 0.1, 0.3)) == worst
    assert acceptance.worst(shown_row(decision, level, -0.2, -0.3, -0.1, better="higher")) == worst


def known(*accepted: Accepted) -> Criteria:
    return Criteria(accepted=accepted)


@pytest.mark.parametrize(("value", "passes"), [(0.101, True), (0.1, False)])
def test_a_row_needs_a_trade_off_beyond_the_action_threshold(value: float, *, passes: bool) -> None:
    small, large = (Accepted("b", change, "why", TODAY) for change in (0.2, 0.3))
    found = shown_row("regressed", "concern", value, 0.05, 0.2)
    assert acceptance.trade_off(record(), found, known(small, large)) == (large if passes else None)
    assert acceptance.trade_off(record(), found.model_copy(update={"gating": False}), known(large)) is None
    assert acceptance.trade_off(record(), found, known(replace(large, until="2026-01-01"))) is None
    marked = acceptance.marked_tradeoffs(record(), found, known(small, large))
    assert marked.accepted == ("until 2026-01-02: why" if passes else "")
    if passes:
        assert acceptance.taken(marked, known(small, large)) == large
        assert acceptance.taken(marked, known(replace(large, why="another"))) is None


FAILING = shown_row("regressed", "action", 0.2, 0.15, 0.3)
RATE = shown_row("regressed", "action", -0.2, -0.3, -0.1, better="higher")
OVER = Accepted("b", 0.2, "slower", "2026-01-01")
LAPSED = "b time was accepted until 2026-01-01, which has passed: slower"
SPENT = "b time: the base already contains the regression accepted until 2026-01-02: slower"


@pytest.mark.parametrize(
    ("item", "found", "said"),
    [
        (OVER, FAILING, [LAPSED]),
        (OVER, RATE, [LAPSED]),
        (replace(OVER, until=TODAY), FAILING, []),
        (replace(OVER, change=0.19), FAILING, []),
        (replace(OVER, change=0.19), RATE, []),
        (replace(OVER, benchmark="c"), FAILING, []),
        (OVER, FAILING.model_copy(update={"change": None}), []),
        (replace(OVER, until=TODAY, spent=True), FAILING, [SPENT]),
    ],
)
def test_a_lapsed_trade_off_that_would_be_enough_is_named(item: Accepted, found: Benchmark, said: list[str]) -> None:
    assert [lapsed.text for lapsed in acceptance.lapsed_tradeoffs(record(), found, known(item))] == said
