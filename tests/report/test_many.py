"""Pages with very many rows: they show the important rows and count the others."""

from __future__ import annotations

import re

import pytest

from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.text_table import MOST_ROWS, truncated
from tests.verdict.records import criteria, ended, judged, planned, reading

MANY = MOST_ROWS + 100
WORSE = MANY - 1
"""The slower one is the last."""


def suite(*, sides: int = 2, bound: str = "") -> Result:
    before = [reading("instructions", 100.0, benchmark=f"case{number}") for number in range(MANY)]
    after = [item | {"value": 200.0 if number == WORSE else 100.0} for number, item in enumerate(before)]
    sample = {"event": "sample", "step": "b", "design": "fixed", "pair": 0, "baseline": before}
    sample |= {"candidate": after} if sides == 2 else {}
    wanted = criteria({"case*": {"instructions": bound}}) if bound else criteria()
    return judged(sample, ended("b"), steps=[planned("b", benchmark="*")], wanted=wanted)


def table(page: str, title: str) -> list[str]:
    part = page.split(f"### {title}\n")[1].split("\n### ", maxsplit=1)[0]
    return re.findall(r"`(case\d+)`", part)


def shown(result: Result) -> str:
    return terminal.render(result, width=100, color=False, unicode=True, evidence=True)


def test_the_tables_keep_what_matters_and_say_what_they_leave_out() -> None:
    page = markdown.render(suite())
    names = table(page, "Benchmarks")
    assert len(names) == MOST_ROWS
    assert names[-1] == f"case{WORSE}"
    assert "100 more are in `result.json`." in page
    assert len(re.findall("^perf: ", page, re.MULTILINE)) == MOST_ROWS


def test_the_terminal_counts_those_that_the_page_leaves_out() -> None:
    lines = shown(suite()).splitlines()
    assert f"case{WORSE}" in next(line for line in lines if "regressed" in line and line.startswith("  "))
    for what in ("comparisons", "values"):
        assert f"  … {MANY - terminal.MOST_LINES + 1} more {what} in result.json" in lines
    assert len(lines) <= terminal.MOST_ROWS


def test_single_measurements_and_their_evidence_too() -> None:
    result = suite(sides=1)
    assert len(table(markdown.render(result), "Baseline")) == MOST_ROWS
    lines = shown(result).splitlines()
    for what in ("figures", "values"):
        assert f"  … {MANY - terminal.MOST_LINES + 1} more {what} in result.json" in lines


@pytest.mark.parametrize(
    ("bound", "missed", "folded"),
    [("<300", 0, f"✓ {MANY} targets met"), ("<150", 1, f"✓ {MANY - 1} more targets met"), ("<50", MANY, "…")],
)
def test_targets_that_are_missed_come_before_those_that_are_met(bound: str, missed: int, folded: str) -> None:
    result = suite(bound=bound)
    assert [target.status for target in result.targets].count("not met") == missed
    required = markdown.render(result).split("### Requirements Met")[1]
    assert required.count("| ✅ met") + required.count("| ❌ not met") == MOST_ROWS
    assert required.count("| ❌ not met") == min(missed, MOST_ROWS)
    text = shown(result)
    assert folded in text
    assert len(text.splitlines()) < 50


def test_a_list_that_fits_is_left_as_it_is() -> None:
    values = list(range(MOST_ROWS))
    assert truncated(values, lambda value: -value).shown == tuple(values)
    assert truncated(values).others == 0


def test_of_a_longer_one_what_ranks_lowest_stays_in_order() -> None:
    kept = truncated(range(MOST_ROWS + 2), lambda value: -(value % 2))
    assert kept.others == 2
    assert list(kept.shown) == sorted(kept.shown)
    assert set(range(1, MOST_ROWS, 2)) <= set(kept.shown)
