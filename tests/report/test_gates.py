"""The Gates table: each group's status follows from what is in the result, and its evidence has the figures."""

from __future__ import annotations

from perfflow.report.gates import GateRow, gate_rows
from perfflow.result import Result
from perfflow.samples.criteria import Accepted, Criteria, criteria_from_json
from tests.report.results import wave
from tests.verdict.records import criteria, ended, judged, pairs, planned


def gates(result: Result) -> dict[str, GateRow]:
    return {row.name: row for row in gate_rows(result, criteria_from_json(result.criteria))}


def compared(factor: float, wanted: Criteria | None = None) -> Result:
    events = pairs("b", wave(0.01, 1, 0.01), wave(0.01, factor, 0.01))
    return judged(*events, ended("b"), wanted=wanted)


def test_a_regression_is_told_with_its_change_and_threshold() -> None:
    found = gates(compared(1.25))
    assert found["regressions"] == GateRow(
        "regressions", "fail", "regressed: b time Δ +25.0% > 10%; 0 of 1 within threshold 10%"
    )
    assert found["review:gate:perf"].status == "fail"
    assert list(found) == ["review:gate:perf", "regressions"]


def test_what_passes_is_told_by_its_threshold() -> None:
    wanted = criteria({"b": {"time": "<1s"}}, action=0.3, concern=0.2)
    found = gates(compared(1.001, wanted))
    assert found["regressions"] == GateRow("regressions", "pass", "1 of 1 within threshold 30%")
    assert found["targets"] == GateRow("targets", "pass", "1 of 1 met")


def test_an_accepted_trade_off_is_named() -> None:
    accepted = Accepted("b", 0.3, "safer", "2026-12-31")
    found = gates(compared(1.25, criteria(accepted=[accepted])))
    assert found["regressions"].status == "pass"
    assert found["accepted trade-offs"].evidence == "accepted until 2026-12-31: b time +25.0%: safer"


def test_a_failed_check_and_an_allowed_one() -> None:
    steps = [planned("b"), planned("tests", role="check"), planned("lint", role="check", allowed=True)]
    events = [ended("b"), ended("tests", "failed", "exited with 1"), ended("lint", "failed", "exited with 1")]
    found = gates(judged(*pairs("b", [0.01] * 6, [0.01] * 6), *events, steps=steps))
    assert found["correctness"] == GateRow("correctness", "fail", "failed: tests; 0 of 2 passed")


def test_what_was_not_measured_is_a_gate_of_its_own() -> None:
    gone = gates(judged(*pairs("b", [0.01] * 6, None), ended("b", "failed", "exited with 139")))
    assert gone["measurement"] == GateRow("measurement", "error", "step b: exited with 139")
    lost = gates(judged(ended("b"), steps=[planned("b", expect=["b/fast"])]))
    assert lost["measurement"].status == "error"
    assert "expected benchmark did not appear: b/fast (step b)" in lost["measurement"].evidence
    killed = gates(judged(*pairs("b", [0.01] * 6, [0.01] * 6), end=None))
    assert killed["measurement"].evidence.startswith("the run did not come to its end")
