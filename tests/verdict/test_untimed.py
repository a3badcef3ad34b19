"""Benchmarks that execute the same on both sides: rows without figures, and the audit of the method."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.readings import Design
from perfflow.model.result import Result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, pairs, planned, record

VALUES = [1.0 + number / 1000 for number in range(40)]


def unchanged(name: str, *, by: str = "code", audited: bool = False) -> dict[str, Any]:
    return {"event": "unchanged", "step": "b", "benchmark": name, "by": by, "audited": audited}


def judged(*events: dict[str, Any], targets: dict[str, Any] | None = None) -> Result:
    rules = criteria(targets or {})
    return judge(record(*events, ended("b"), steps=(planned("b", expect=["b"]),), criteria=rules), rules)


def audited(factor: float, *, confirmed: bool) -> Result:
    events = pairs("b", VALUES, [value * factor for value in VALUES])
    again = pairs("b", VALUES, [value * factor for value in VALUES])
    for event in again:
        event |= {"design": Design.CONFIRM.value, "confirmation": 1, "pair": event["pair"] + len(VALUES)}
    return judged(unchanged("b", audited=True), *events, *(again if confirmed else []))


def test_a_benchmark_that_was_not_timed_is_the_same_and_not_missing() -> None:
    result = judged(unchanged("b", by="files"), targets={"b": {"time": "<1ms"}})
    (row,) = result.benchmarks
    assert (row.decision, row.level, row.gating, row.unchanged) == ("same", "ok", True, "files")
    assert (row.baseline, row.candidate, row.change, row.pairs) == (None, None, None, 0)
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert [item.status for item in result.targets] == ["not looked at"]


@pytest.mark.parametrize("factor", [1.0, 1.2, 0.8])
def test_an_audit_that_is_not_confirmed_leaves_it_the_same(factor: float) -> None:
    result = audited(factor, confirmed=False)
    (row,) = result.benchmarks
    assert (row.decision, row.level, row.unchanged) == ("same", "ok", "code")
    assert row.change
    assert result.verdict == "pass"


def test_a_confirmed_regression_of_the_same_code_is_an_error_of_the_method() -> None:
    result = audited(1.2, confirmed=True)
    assert result.verdict == "error"
    assert result.reason_texts[0].startswith("audit: b time (+20.0%")
    assert "defect of the method" in result.reason_texts[0]


def test_a_confirmed_change_within_the_concern_threshold_is_none() -> None:
    assert audited(1.03, confirmed=True).verdict == "pass"
