"""Reports of an optimize stage: the plan, each try, its diff, and the location of the kept changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.page import MOST_DIFF_LINES, ledger_of
from perfflow.report.sanitize import cells
from perfflow.store.result_file import to_text
from perfflow.verdict.evidence import parse
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.optimized import BRANCH, DIFF, hostile_ledger, nothing_kept, optimized
from tests.report.results import JOINED_OR_EACH, everything
from tests.report.test_markdown import OWN_HTML, every, parsed, tables

GOLDEN = Path(__file__).parent / "golden"
FENCES = {"text", "diff", "sh", "yaml"}


def on_a_terminal(result: Result, width: int = 100) -> str:
    return terminal.render(result, width=width, color=False, unicode=True, where="report.md")


def check_safe(text: str) -> None:
    tokens = parsed(text)
    for token in every(tokens):
        if token.type in ("html_block", "html_inline"):
            assert OWN_HTML.fullmatch(token.content), token.content
        assert token.type not in ("link_open", "image", "hr", "blockquote_open", "code_block", "s_open", "em_open")
    assert {token.info for token in tokens if token.type == "fence"} <= FENCES
    plain = "".join(token.content for token in every(tokens) if token.type == "text")
    assert not re.search(r"@\w|#\d|\bGH-\d|://|\bwww\.", plain, re.IGNORECASE), plain
    assert all(letter.isprintable() or letter in "\n\t\u200b" for letter in text)
    for title, rows in tables(tokens).items():
        assert len({len(row) for row in rows}) == 1, title
    headings = [token for token in tokens if token.type == "heading_open"]
    opened = sum("<details>" in token.content for token in tokens if token.type == "html_block")
    assert opened == sum("</details>" in token.content for token in tokens if token.type == "html_block")
    assert len(headings) == text.count("\n### ") - _headings_in_fences(text) + text.startswith("## ")


def _headings_in_fences(text: str) -> int:
    fences = [token.content for token in parsed(text) if token.type == "fence"]
    return sum(f"\n{content}".count("\n### ") for content in fences)


@pytest.mark.parametrize("template", ["report", "analysis"])
@pytest.mark.parametrize("name", JOINED_OR_EACH, ids=ascii)
def test_no_word_breaks_the_report_or_acts(name: str, template: str) -> None:
    result = hostile_ledger(name, template)
    text = markdown.render(result)
    check_safe(text)
    assert len(tables(parsed(text))["Optimizations Applied"]) == 1 + 3
    assert len(tables(parsed(text))["Optimization Plan"]) == 1 + 3 + 1
    for width in (40, 100):
        lines = on_a_terminal(result, width).split("\n")
        assert all(cells(line) <= width and line.isprintable() for line in lines)
        assert len(lines) <= 25 + 1


@given(st.text(max_size=40) | st.text(alphabet="`|\\<>[]()*_~#@:/!-+=.1w \n", max_size=24))
def test_any_text_anywhere(name: str) -> None:
    check_safe(markdown.render(hostile_ledger(name)))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("optimized.md", lambda: markdown.render(optimized()), id="report"),
        pytest.param("analysis.md", lambda: markdown.render(optimized(template="analysis")), id="analysis"),
        pytest.param("optimized.txt", lambda: on_a_terminal(optimized()), id="terminal"),
        pytest.param("nothing-kept.md", lambda: markdown.render(nothing_kept()), id="nothing kept"),
    ],
)
def test_golden(name: str, shown: Callable[[], str]) -> None:
    """To accept a change: look at the .got file, then move it over the golden one."""
    golden, got = GOLDEN / name, GOLDEN / f"{name}.got"
    text = shown()
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


def test_the_plan_stands_in_the_order_of_the_hierarchy_with_what_is_ruled_out() -> None:
    rows = tables(parsed(markdown.render(optimized())))["Optimization Plan"][1:]
    words = [re.split("[:,]| ", row[1])[0] for row in rows]
    assert words == [
        *("algorithm", "data-structure", "io", "memory", "vectorization", "caching"),
        *("configuration", "configuration"),
    ]
    assert [row[0] for row in rows] == ["1", "–", "–", "2", "3", "4", "5", "6"]
    by_word = dict(zip(words, rows, strict=True))
    assert by_word["algorithm"][2] == "at most 1.33x: its hotspot takes 25%"
    assert by_word["io"][2] == "ruled out: it reads nothing"
    assert by_word["memory"][2] == "at most 2.50x: its hotspot takes 60%"
    assert by_word["caching"][2] == "not tried: interrupted before it ended"
    assert by_word["configuration"][2] == "unknown: no profile of its hotspot"


def test_alternatives_and_attempts_are_one_line_of_the_plan() -> None:
    rows = tables(parsed(markdown.render(optimized())))["Optimization Plan"][1:]
    assert [row[1] for row in rows if "(2 " in row[1]] == [
        "algorithm: `ideas`, one malloc per item (2 attempts)",
        "configuration: `level`, one malloc per item (2 alternatives)",
    ]


def test_every_try_is_told_with_what_became_of_it() -> None:
    rows = tables(parsed(markdown.render(optimized())))["Optimizations Applied"][1:]
    assert {row[1]: row[0].split(" ", 1)[1] for row in rows} == {
        "`lto`": "kept",
        "`slab`": "kept",
        "`level[n=2]`": "reverted",
        "`level[n=3]`": "kept",
        "`ideas.1`": "reverted",
        "`ideas.2`": "reverted",
        "`simd`": "not tried",
    }
    (slab,) = [row for row in rows if row[1] == "`slab`"]
    assert slab[2:6] == ["+50.0% [+49.0%, +51.0%]", "`decode cpu`", "12.0 ms → 6.00 ms", "14"]
    (lost,) = [row for row in rows if row[1] == "`level[n=2]`"]
    assert lost[6].startswith("another alternative is better")


def test_a_diff_is_shown_as_it_is_whatever_is_in_it() -> None:
    fences = [token for token in parsed(markdown.render(optimized())) if token.type == "fence"]
    assert DIFF in [token.content for token in fences if token.info == "diff"]


def test_a_long_diff_is_cut_and_its_file_is_named() -> None:
    text = markdown.render(optimized())
    (cut,) = [token for token in parsed(text) if token.type == "fence" and token.content.endswith(" more\n")]
    assert len(cut.content.splitlines()) == MOST_DIFF_LINES
    left_out = len(DIFF.splitlines()) + 300 - MOST_DIFF_LINES
    assert f"{left_out} more lines are in `steps/ideas.1/change.diff` in the run folder." in text
    assert "The diff is in `steps/ideas.2/change.diff` in the run folder." in text


def test_many_long_diffs_do_not_make_a_report_that_nobody_shows() -> None:
    result = optimized()
    long = result.optimizations[0].model_copy(update={"diff": "x" * 60_000 + "\n" + "y" * 5_000, "diff_file": "d"})
    tries = [long.model_copy(update={"id": str(number)}) for number in range(50)]
    text = markdown.render(result.model_copy(update={"optimizations": tries}))
    assert 100_000 < len(text) < 300_000


def test_what_was_kept_beside_the_code_is_told_as_it_is_written() -> None:
    fences = [token.content for token in parsed(markdown.render(optimized())) if token.info == "yaml"]
    assert fences == [
        'params:\n  opt: 3\n  fast: true\nenv:\n  LTO: "fat"\n  NAME: "a \\"b\\""\n  LEVEL: "3"\n',
    ]


def test_the_branch_is_named_and_how_to_look_at_it() -> None:
    text = markdown.render(optimized())
    assert "The first commit holds your uncommitted changes" in text
    kept = sum(1 for item in optimized().optimizations if item.decision == "accepted" and item.files)
    picked = f"git cherry-pick '{BRANCH}~{kept}..{BRANCH}'"
    assert kept
    assert f"git log -p main..{BRANCH}\n{picked}\n" in text
    assert f"branch: {picked}" in on_a_terminal(optimized())
    trees = {**optimized().trees, "baseline": {**(optimized().trees["baseline"] or {}), "dirty": False}}
    clean = optimized().model_copy(update={"trees": trees})
    assert f"git log -p main..{BRANCH}\ngit merge {BRANCH}\n" in markdown.render(clean)
    assert "your uncommitted changes" not in markdown.render(clean)


def test_code_that_was_kept_without_a_branch_says_why() -> None:
    result = optimized()
    checks = [item.model_copy(update={"status": "failed"}) for item in result.verification]
    trees = {**result.trees, "candidate": {**(result.trees["candidate"] or {}), "branch": None}}
    text = markdown.render(result.model_copy(update={"trees": trees, "verification": checks}))
    assert "There is no branch with the kept changes: tests failed on the kept changes." in text
    assert "git merge" not in text


def test_after_optimization_has_every_metric_of_both_sides() -> None:
    rows = tables(parsed(markdown.render(optimized())))["After Optimization"][1:]
    assert [(row[1], row[4]) for row in rows] == [("`cpu p50`", "-54.2%"), ("`allocs`", "-94.2%")]
    assert rows[1][2:4] == ["120", "7"]


def test_the_analysis_of_two_sides_has_both_without_any_candidate() -> None:
    result = everything()
    text = markdown.render(result.model_copy(update={"run": result.run.model_copy(update={"template": "analysis"})}))
    assert re.findall(r"^##+ (.*)$", text, re.MULTILINE)[:5] == [
        *("Performance Analysis: JSON codec", "Why", "Baseline", "Bottlenecks", "After Optimization"),
    ]
    found = tables(parsed(text))
    assert {row[0] for row in found["After Optimization"][1:]} == {"`decode`", "`encode`", "`noisy`"}
    assert "`parse`" in {row[0] for row in found["Baseline"][1:]}


def test_nothing_kept_is_said_and_nothing_stands_after_it() -> None:
    text = markdown.render(nothing_kept())
    assert "Nothing was kept." in text
    assert "After Optimization" not in text
    assert "  nothing was kept\n" in on_a_terminal(nothing_kept())


def test_profiles_are_shown_before_and_after() -> None:
    rows = tables(parsed(markdown.render(optimized())))["Profiling Results"][1:]
    assert [(row[1], row[3]) for row in rows] == [("`parse_object`", "60% → 20%")]


def test_evidence_of_an_optimized_run_tells_the_change() -> None:
    assert [(found.what, found.change) for found in map(parse, optimized().evidence)] == [("decode cpu", "-54.2%")]


def test_a_result_alone_is_judged_to_the_same_bytes() -> None:
    for result in (optimized(), nothing_kept(), hostile_ledger("x")):
        again = judge(record_of_result(result), criteria_from_json(result.criteria))
        assert to_text(again) == to_text(result)
        assert markdown.render(again) == markdown.render(result)


def test_a_run_without_candidates_has_no_ledger() -> None:
    result = optimized()
    steps = [step for step in result.steps if step.stage != "optimize"]
    result = result.model_copy(update={"optimizations": [], "steps": steps})
    result = result.model_copy(update={"run": result.run.model_copy(update={"ruled_out": {}})})
    assert ledger_of(result, criteria_from_json(result.criteria)) is None


def test_what_explains_a_time_stands_beside_profiles_before_and_after() -> None:
    result = optimized()
    row = next(row for row in result.benchmarks if row.baseline and row.candidate)
    told = [row.model_copy(update={"metric": name}) for name in ("simd_share", "cache_misses", "page_faults")]
    alone = told[0].model_copy(update={"name": "alone", "candidate": None})
    whole = result.model_copy(update={"benchmarks": [*result.benchmarks, *told, alone]})
    for shown in (whole, whole.model_copy(update={"hotspots": []})):
        section = markdown.render(shown).partition("### Profiling Results")[2].partition("\n### ")[0]
        lines = section.partition("| Benchmark | Metric | Before → after |")[2].strip().splitlines()[1:]
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
        assert [(name, metric, " → " in values) for name, metric, values in rows] == [
            ("`decode`", "`cache_misses`", True),
            ("`decode`", "`simd_share`", True),
            ("`alone`", "`simd_share`", False),
        ]
    assert "| Benchmark | Metric | Before → after |" not in markdown.render(result)
