"""The Gates table: the rows behind each group's status, and other causes that prevent a pass."""

from __future__ import annotations

from perfflow.model.criteria import Accepted, Criteria, criteria_from_json
from perfflow.model.result import Result
from perfflow.report.gate_table import GateLine, gates_of
from tests.report.results import wave
from tests.verdict.records import criteria, ended, judged, pairs, planned


def gates(result: Result) -> dict[str, GateLine]:
    return {line.gate: line for line in gates_of(result, criteria_from_json(result.criteria)).shown}


def compared(factor: float, wanted: Criteria | None = None) -> Result:
    events = pairs("b", wave(0.01, 1, 0.01), wave(0.01, factor, 0.01))
    return judged(*events, ended("b"), wanted=wanted)


def test_a_regression_is_told_with_its_change_and_threshold() -> None:
    found = gates(compared(1.25))
    assert (found["regressions"].status, found["review:gate:perf"].status) == ("fail", "fail")
    assert found["regressions"].evidence == "1 of 1: b time: +25.0%, over the action threshold of 10%"
    assert list(found) == ["review:gate:perf", "measured", "regressions"]


def test_an_accepted_trade_off_is_told_with_what_it_allows() -> None:
    accepted = [Accepted("b", 0.3, "safer", "2026-12-31"), Accepted("*", 0.1, "safer", "2026-12-31")]
    found = gates(compared(1.25, criteria(accepted=accepted)))["regressions"]
    assert found.status == "accepted"
    assert found.evidence == "1 of 1: b time: +25.0%, accepted up to 30% until 2026-12-31 (action threshold 10%)"


def test_a_target_without_a_figure_is_told_with_what_it_lacks() -> None:
    result = judged(*pairs("b", [0.01] * 8, None), ended("b"), wanted=criteria({"b": {"time p99": "<1s"}}))
    (target,) = result.targets
    assert target.measured is None
    assert gates(result)["targets"].evidence == f"b time p99: unproven, {target.detail}, required <1s"


def test_a_failed_check_and_an_allowed_one() -> None:
    steps = [planned("b"), planned("tests", role="check"), planned("lint", role="check", allowed=True)]
    events = [ended("b"), ended("tests", "failed", "exited with 1"), ended("lint", "failed", "exited with 1")]
    found = gates(judged(*pairs("b", [0.01] * 6, [0.01] * 6), *events, steps=steps))
    assert found["correctness"] == GateLine("correctness", "", "fail", "0 of 1 passed; failed: tests")


def test_what_kept_a_run_from_its_end_is_a_gate_of_its_own() -> None:
    gone = gates(judged(*pairs("b", [0.01] * 6, None), ended("b", "failed", "exited with 139")))
    assert gone["run"] == GateLine("run", "", "error", "step b: exited with 139")
    lost = gates(judged(ended("b"), steps=[planned("b", expect=["b/fast"])]))
    assert lost["measured"].evidence == "0 of 1 benchmark measured; not run: b/fast"
    assert "run" not in lost
    killed = gates(judged(*pairs("b", [0.01] * 6, [0.01] * 6), end=None))
    assert killed["run"].evidence == "it did not finish"
