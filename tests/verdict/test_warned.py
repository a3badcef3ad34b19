"""Warnings of runs that pass; and a run that measured and checked nothing does not pass."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from perfflow.model.criteria import Accepted
from perfflow.model.result import Gate, Result
from perfflow.report import markdown, terminal
from perfflow.verdict.judge import NO_STEP_MEASURES
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading, row


def scaled(factor: float, count: int = 20) -> list[float]:
    return [factor * (1 + 0.001 * (number % 3)) for number in range(count)]


BASE = scaled(1.0)


def shown(result: Result) -> str:
    return terminal.render(result, width=100, color=False, unicode=True)


@pytest.mark.parametrize(
    ("metric", "factor", "said"),
    [
        ("time", 1.87, "concern: b time +87.0%, over the concern threshold of 5% (action threshold 300%)"),
        ("throughput", 0.5, "concern: b throughput -50.0%, over the concern threshold of 5% (action threshold 300%)"),
    ],
)
def test_a_concern_passes_and_is_said(metric: str, factor: float, said: str) -> None:
    result = judged(*pairs("b", BASE, scaled(factor), metric=metric), ended("b"), wanted=criteria(action=3.0))
    assert (result.verdict, result.reason_texts) == ("pass", [said])
    assert f"\n  note: {said}\n" in shown(result)
    assert result.gate == Gate(status="pass")
    assert "why:" not in shown(result)
    page = markdown.render(result)
    assert "### Warnings" in page
    assert "### Why" not in page


def test_beside_a_failure_a_concern_is_a_note_and_no_reason() -> None:
    events = [*pairs("a", BASE, scaled(1.2)), *pairs("b", BASE, scaled(1.07)), ended("a"), ended("b")]
    result = judged(*events, steps=[planned("a"), planned("b")])
    assert result.verdict == "fail"
    assert re.findall(r"(why|note): (\w+)", shown(result)) == [("why", "regressed"), ("note", "concern")]


def test_a_row_that_does_not_gate_warns_of_nothing() -> None:
    sides = {"baseline": [reading("cycles", 100)], "candidate": [reading("cycles", 107)]}
    result = judged(ended("p", readings=sides), steps=[planned("p", role="profile", benchmark="b")])
    assert not row(result, "cycles").gating
    assert result.reason_texts == []


@pytest.mark.parametrize(
    ("factor", "reasons"),
    [
        (1.2, ["accepted until 2026-06-30: b time +20.0%: new checksums"]),
        (1.07, ["concern: b time +7.0%, over the concern threshold of 5% (action threshold 10%)"]),
        (1.01, []),
        (1.3, ["regressed: b time +30.0%, over the action threshold of 10%"]),
    ],
)
def test_an_accepted_regression_says_until_when_and_why(factor: float, reasons: list[str]) -> None:
    accepted = criteria(accepted=[Accepted("b", 0.25, "new checksums", "2026-06-30")])
    result = judged(*pairs("b", BASE, scaled(factor)), ended("b"), wanted=accepted)
    assert result.reason_texts == reasons


def test_what_is_excluded_only_by_what_is_accepted_says_so() -> None:
    coin = random.Random(5)
    candidate = [1.08 * value * math.exp(coin.gauss(0, 0.2)) for value in BASE]
    events = [*pairs("b", BASE, candidate), ended("b")]
    assert judged(*events).verdict == "unproven"
    result = judged(*events, wanted=criteria(accepted=[Accepted("b", 0.5, "new checksums", "2026-06-30")]))
    assert (row(result).decision, result.verdict) == ("unproven", "pass")
    assert len(result.reason_texts) == 1
    assert re.fullmatch(r"accepted until 2026-06-30: b time unproven, up to \+\d+\.\d%: .*", result.reason_texts[0])


@pytest.mark.parametrize(
    ("role", "status", "said"),
    [
        ("check", "failed", "failed (allowed): t: exited with 3"),
        ("check", "timeout", "failed (allowed): t: exited with 3"),
        ("measure", "failed", "failed (allowed): t: exited with 3"),
        ("work", "failed", "failed (allowed): t: exited with 3"),
        ("check", "done", None),
        ("check", "skipped", None),
    ],
)
def test_an_allowed_failure_passes_and_is_named(role: str, status: str, said: str | None) -> None:
    events = [*pairs("b", BASE, None), ended("b"), ended("t", status, "exited with 3")]
    result = judged(*events, steps=[planned("b"), planned("t", role=role, allowed=True)])
    assert (result.verdict, result.reason_texts) == ("pass", [said] if said else [])
    assert ("failed (allowed)" in shown(result)) == bool(said)


WORK, CHECK = planned("w", role="work"), planned("c", role="check")
MEASURE, PROFILE = planned("b"), planned("p", role="profile")
LEFT_OUT = {"selected": False}


@pytest.mark.parametrize(
    ("steps", "events", "verdict", "reasons"),
    [
        ([WORK], [ended("w")], "error", [f"nothing was measured: {NO_STEP_MEASURES}"]),
        ([CHECK], [ended("c")], "error", [f"nothing was measured: {NO_STEP_MEASURES}"]),
        ([WORK, CHECK], [ended("w"), ended("c", "skipped")], "error", [f"nothing was measured: {NO_STEP_MEASURES}"]),
        ([PROFILE], [ended("p", "skipped")], "error", ["nothing was measured"]),
        ([PROFILE], [ended("p")], "pass", []),
        (
            [WORK, CHECK, MEASURE | LEFT_OUT],
            [ended("w"), ended("c")],
            "error",
            ["nothing was measured: the steps that measure are in the stage `baseline`"],
        ),
        ([WORK, MEASURE], [ended("w"), ended("b", "skipped")], "error", ["nothing was measured"]),
        ([MEASURE, WORK], [*pairs("b", BASE, None), ended("b"), ended("w")], "pass", []),
    ],
)
def test_a_run_without_figures(
    steps: list[dict[str, Any]], events: list[dict[str, Any]], verdict: str, reasons: list[str]
) -> None:
    result = judged(*events, steps=steps)
    assert (result.verdict, result.reason_texts) == (verdict, reasons)
    if reasons:
        assert "nothing measured" in shown(result).splitlines()[0]


def test_evidence_tells_a_first_run_from_what_has_no_share() -> None:
    def evidence(*events: dict[str, Any]) -> list[str]:
        return judged(*events, ended("b")).evidence

    assert evidence(*pairs("b", [1.0], None, metric="allocs")) == ["perf: b allocs: 1; Δ vs baseline: none"]
    assert evidence(*pairs("b", [0.0], [1.0], metric="allocs")) == ["perf: b allocs: 1; Δ vs baseline: n/a"]
    bounds = pairs("b", [9e6] * 6, [8e6] * 6, metric="rss", at_most=True)
    assert evidence(*bounds) == ["perf: b rss: ≤7.63 MiB; Δ vs baseline: n/a"]
    events = pairs("b", BASE, BASE)
    for event in events:
        event["baseline"].append(reading("time", 2.0, benchmark="gone"))
        event["candidate"].append(reading("time", 3.0, benchmark="fresh"))
    assert evidence(*events)[1:] == ["perf: fresh: 3.00 s; Δ vs baseline: n/a"]


def test_a_regression_from_nothing_says_both_values() -> None:
    result = judged(*pairs("b", [0.0], [1.0], metric="allocs"), ended("b"))
    assert result.reason_texts == ["regressed: b allocs 0 → 1, over the action threshold of 10%"]
