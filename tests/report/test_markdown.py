"""The Markdown report and that of an optimize stage: their content."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.page import MOST_OPENING, ledger_of
from perfflow.store.result_file import to_text
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.optimized import BRANCH, hostile_ledger, nothing_kept, optimized
from tests.report.rendered import every, headings, parsed, rows, section, tables
from tests.report.results import everything
from tests.verdict.records import ended, judged, pairs, planned


@given(st.text(alphabet="`|\\ ab", min_size=1, max_size=30))
def test_a_name_in_a_table_is_one_code_span_that_shows_it(name: str) -> None:
    (row, *others) = tables(parsed(f"### T\n\n| a | b |\n|---|---|\n| {markdown.cell(name)} | end |\n"))["T"][1:]
    assert not others
    assert row[1] == "end"
    (shown,) = (token for token in every(parsed(row[0])) if token.type == "code_inline")
    assert shown.content.split() == name.replace("\\|", "\\ |").split()


def test_the_commands_to_reproduce_it_are_quoted_for_a_shell() -> None:
    result = judged(ended("b"), steps=[planned("b")], params={"x": "a'; touch pwned; '", "l": ["a", "b c"], "t": True})
    (line,) = [line for line in markdown.render(result).splitlines() if line.startswith("perfflow run")]
    assert shlex.split(line) == [
        *("perfflow", "run", "flow.yaml", "--set", "x=a'; touch pwned; '", "--set", "l=a,b c", "--set", "t=true"),
        *("--seed", "1"),
    ]


def test_sections_without_data_are_left_out() -> None:
    result = judged(ended("make"), steps=[planned("make", role="work")])
    assert headings(result) == ["Performance Report: Component", "Why", "How to reproduce it"]
    assert "Further figures" not in markdown.render(result)


@pytest.mark.parametrize(("count", "opens"), [(MOST_OPENING, True), (MOST_OPENING + 1, False), (70, False)])
def test_a_report_opens_with_little_evidence_and_folds_much(count: int, opens: bool) -> None:
    names = [f"b{number}" for number in range(count)]
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    lines = markdown.render(judged(*events, steps=[planned(name) for name in names])).splitlines()
    evidence = [number for number, line in enumerate(lines) if line.startswith("perf: ")]
    assert len(evidence) == count
    assert (evidence[0] < lines.index("### Baseline")) is opens
    assert ("<details><summary>Evidence</summary>" in lines) is not opens


# ---- reports of an optimize stage: the plan, each try, its diff, and the location of the kept changes ----


def with_run(result: Result, **changes: Any) -> Result:
    return result.model_copy(update={"run": result.run.model_copy(update=changes)})


def test_many_long_diffs_do_not_make_a_report_that_nobody_shows() -> None:
    result = optimized()
    long = result.optimizations[0].model_copy(update={"diff": "x" * 60_000 + "\n" + "y" * 5_000, "diff_file": "d"})
    tries = [long.model_copy(update={"id": str(number)}) for number in range(50)]
    text = markdown.render(result.model_copy(update={"optimizations": tries}))
    assert 100_000 < len(text) < 300_000


def test_a_branch_of_a_clean_tree_is_merged() -> None:
    result = optimized()
    trees = {**result.trees, "baseline": {**(result.trees["baseline"] or {}), "dirty": False}}
    clean = markdown.render(result.model_copy(update={"trees": trees}))
    assert f"git log -p main..{BRANCH}\ngit merge {BRANCH}\n" in clean
    assert "your uncommitted changes" not in clean


def test_code_that_was_kept_without_a_branch_says_why() -> None:
    result = optimized()
    checks = [item.model_copy(update={"status": "failed"}) for item in result.verification]
    trees = {**result.trees, "candidate": {**(result.trees["candidate"] or {}), "branch": None}}
    text = markdown.render(result.model_copy(update={"trees": trees, "verification": checks}))
    assert "There is no branch with the kept changes: tests failed on the kept changes." in text
    assert "git merge" not in text


def test_the_analysis_of_two_sides_has_both_without_any_candidate() -> None:
    result = with_run(everything(), template="analysis")
    assert headings(result)[:5] == [
        *("Performance Analysis: JSON codec", "Why", "Baseline", "Bottlenecks", "After Optimization"),
    ]
    assert {row[0] for row in rows(result, "After Optimization")} == {"`decode`", "`encode`", "`noisy`"}
    assert "`parse`" in {row[0] for row in rows(result, "Baseline")}


def test_a_result_alone_is_judged_to_the_same_bytes() -> None:
    for result in (optimized(), nothing_kept(), hostile_ledger("x")):
        again = judge(record_of_result(result), criteria_from_json(result.criteria))
        assert to_text(again) == to_text(result)
        assert markdown.render(again) == markdown.render(result)


def test_a_run_without_candidates_has_no_ledger() -> None:
    result = with_run(optimized(), ruled_out={})
    steps = [step for step in result.steps if step.stage != "optimize"]
    result = result.model_copy(update={"optimizations": [], "steps": steps})
    assert ledger_of(result, criteria_from_json(result.criteria)) is None


def test_what_explains_a_time_stands_beside_profiles_before_and_after() -> None:
    result = optimized()
    row = next(row for row in result.benchmarks if row.baseline and row.candidate)
    told = [row.model_copy(update={"metric": name}) for name in ("simd_share", "cache_misses", "page_faults")]
    alone = told[0].model_copy(update={"name": "alone", "candidate": None})
    whole = result.model_copy(update={"benchmarks": [*result.benchmarks, *told, alone]})
    head = "| Benchmark | Metric | Before → after |"
    for shown in (whole, whole.model_copy(update={"hotspots": []})):
        lines = section(shown, "Profiling Results").partition(head)[2].strip().splitlines()[1:]
        found = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
        assert [(name, metric, " → " in values) for name, metric, values in found] == [
            ("`decode`", "`cache_misses`", True),
            ("`decode`", "`simd_share`", True),
            ("`alone`", "`simd_share`", False),
        ]
    assert head not in markdown.render(result)
