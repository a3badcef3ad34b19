"""Benchmarks under ``ignore`` are measured, judged and shown, but decide nothing."""

from __future__ import annotations

from dataclasses import replace

from perfflow.model.result import Result
from perfflow.report import terminal
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, pairs, record, row
from tests.verdict.test_routing import REVISIONS

FAST = [1 + 0.001 * (number % 3) for number in range(20)]
SLOW = [1.5 * value for value in FAST]


def judged(*ignore: str) -> Result:
    """Return a gate in which ``b`` regressed and missed its target, and ``other`` did not change."""
    wanted = replace(criteria({"b": {"time": "<0.5s"}, "*": {"time": "<3s"}}), ignore=ignore)
    made = record(*pairs("b", FAST, SLOW), *pairs("other", FAST, FAST), ended("b"), criteria=wanted)
    made.trees = dict(REVISIONS)
    return judge(made, wanted)


def test_an_ignored_benchmark_does_not_decide() -> None:
    assert judged().verdict == "fail"
    result = judged("b")
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert [target.benchmark for target in result.targets] == ["other"]
    ignored = row(result, "time")
    assert (ignored.name, ignored.ignored, ignored.gating, ignored.decision, ignored.level) == (
        "b",
        True,
        False,
        "regressed",
        "ok",
    )
    assert judge(record_of_result(result), replace(criteria(), ignore=("b",))).verdict == "pass"


def test_a_name_that_looks_like_a_glob_ignores_itself_only() -> None:
    wanted = replace(criteria(), ignore=("mul(a*b)",))
    both = (*pairs("mul(a*b)", FAST, FAST), *pairs("mul(a+b)", FAST, SLOW))
    result = judge(record(*both, ended("b"), criteria=wanted), wanted)
    assert {item.name: item.ignored for item in result.benchmarks} == {"mul(a*b)": True, "mul(a+b)": False}
    assert result.verdict == "fail"


def test_the_terminal_marks_what_is_ignored() -> None:
    text = terminal.render(judged("b"), width=120, color=False, unicode=True)
    assert "regressed (ignored)" in text
    assert "1 same" in text.splitlines()[0]
