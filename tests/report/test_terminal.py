"""The terminal report: its content at any width, what it leaves out of much, and no control characters from names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.report import bisect_page, markdown, terminal
from perfflow.report.sanitize import NO_EDGE, cells, fitted, padded, shortened, visible, wrapped
from perfflow.report.tables import described
from perfflow.report.text_table import MOST_ROWS, truncated
from perfflow.store.calibrations import CalibrationFinding
from tests.report.optimized import optimized
from tests.report.rendered import check_lines, screen, section
from tests.report.results import CALIBRATED, HOSTILE, everything
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading

TEXTS = st.text(max_size=80).map(visible)


def test_colour_is_only_added_where_it_is_asked_for() -> None:
    plain, colored = screen(everything()), screen(everything(), color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m✗ FAIL" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain


def test_what_failed_is_never_folded_and_many_met_targets_are() -> None:
    names = [f"b{number}" for number in range(12)]
    wanted = criteria({**{name: {"time": "<2s"} for name in names}, "b3": {"time": "<0.5s"}})
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    text = screen(judged(*events, wanted=wanted, steps=[planned(name) for name in names]))
    assert "✗ b3 time p50  <0.5s  1.00 s" in text
    assert "✓ 11 more targets met" in text
    assert "more figures in the report" in text


def test_candidates_are_folded_after_figures() -> None:
    names = [f"b{number}" for number in range(20)]
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    others = judged(*events, steps=[planned(name) for name in names]).benchmarks
    result = optimized()
    text = screen(result.model_copy(update={"benchmarks": [*result.benchmarks, *others]}))
    assert "more figures in the report" in text
    assert "more candidates" not in text


def test_the_first_reason_is_what_failed() -> None:
    wanted = criteria({"slow": {"time": "<0.5s"}})
    open_ = [1.0, 2.0] * 7
    slow, noisy = pairs("slow", [1.0] * 14, [1.0] * 14), pairs("noisy", open_, open_[::-1])
    steps = [planned("slow"), planned("noisy")]
    text = screen(judged(*slow, ended("slow"), *noisy, ended("noisy"), wanted=wanted, steps=steps))
    whys = [line for line in text.splitlines() if line.startswith("  why: ")]
    assert whys[0] == "  why: target not met: slow time p50 <0.5s"
    assert whys[1].startswith("  why: unproven: noisy time")


def test_an_upper_bound_is_shown_as_one() -> None:
    wanted = criteria({"b": {"rss": "<64MiB"}})
    text = screen(judged(*pairs("b", [9e6] * 6, None, "rss", at_most=True), ended("b"), wanted=wanted))
    assert "✓ b rss p50  <64MiB  ≤ 8.58 MiB    " in text


def test_a_long_reason_is_told_once() -> None:
    long = "needs 1 GPU, none found: nvidia-smi, which comes with NVIDIA's driver, is not on PATH"
    reasons = {"a": long, "b": long, "c": "not here"}
    wanted = criteria({name: {"time": "<1s"} for name in reasons})
    events = [ended(name, "skipped", reason) for name, reason in reasons.items()]
    text = screen(judged(*events, wanted=wanted, steps=[planned(name) for name in reasons]), 160)
    rows = [line.partition("<1s")[2].strip() for line in text.splitlines() if "time p50" in line]
    assert rows == [f"step a: {long}", "step b: for the same reason", "step c: not here"]


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_line_of_a_calibration_is_wider_than_the_terminal(width: int, unicode: bool) -> None:
    hostile_rows = [CalibrationFinding("s", name, name, noise=0.1) for name in HOSTILE]
    text = bisect_page.render([*CALIBRATED, *hostile_rows], width=width, unicode=unicode)
    check_lines(text, width)
    assert unicode or text.isascii()
    assert bisect_page.render([], width=width, unicode=unicode) == ""


# ---- names and texts at any width ----


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👧", 2), ("", 0)])
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width
    assert cells(padded(text, 9)) == 9


@given(st.text(max_size=60).map(visible), st.integers(4, 50))
def test_cutting_keeps_the_width_and_what_fits(text: str, width: int) -> None:
    for cut in (fitted(text, width), fitted(text, width, "..."), shortened(text, width)):
        assert cells(cut) <= width
        assert cut == text or "…" in cut or "..." in cut
        if cells(text) <= width:
            assert cut == text
    assert text.startswith(fitted(text, width)[:-1])


def test_a_long_name_is_cut_in_its_middle() -> None:
    assert shortened("core/decode/really/long/name[size=10]", 20) == "core/deco…e[size=10]"


@given(st.text())
def test_visible_text_is_one_line_and_stays_as_it_is(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    assert not any(letter in once for letter in "\n\x1b\u202e\u2066\u200b\u2028\x85")


@given(TEXTS, st.integers(8, 60), st.integers(0, 6))
def test_a_broken_text_fits_and_is_whole(text: str, width: int, indent: int) -> None:
    lines = wrapped(text, width, " " * indent)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_blanks_inside_a_line_stay() -> None:
    assert wrapped("  why: a  b", 40) == ["  why: a  b"]
    assert wrapped("  why: one two  three", 12, "    ") == ["  why: one", "    two", "    three"]
    assert wrapped("日本語日本語", 5) == ["日本", "語日", "本語"]
    assert wrapped("", 5) == [""]


def test_without_an_edge_nothing_is_broken() -> None:
    assert wrapped("x " * 5000, NO_EDGE) == ["x " * 5000]
    assert len(described([("a", "b " * 900)], NO_EDGE)) == 1


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 90, "日本語" * 20], ids=ascii)
@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
def test_every_list_fits(name: str, width: int) -> None:
    text = f"what {name} is for, said at some length so that it has to go on below"
    check_lines("\n".join(described([(name, text), ("short", "")], width)), width)


def test_a_text_beside_a_name_goes_on_below_itself() -> None:
    rows = [("one", "a text that is too long for it"), ("three", "short")]
    assert described(rows, 30) == ["  one    a text that is too", "         long for it", "  three  short"]
    assert described([("a-name-that-is-long", "a text")], 30) == ["  a-name-that-is-long", "    a text"]


# ---- very many rows: pages show the important ones and count the others ----

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


@pytest.mark.parametrize(("sides", "title", "what"), [(2, "Benchmarks", "comparisons"), (1, "Baseline", "figures")])
def test_tables_keep_what_matters_and_count_what_they_leave_out(sides: int, title: str, what: str) -> None:
    result = suite(sides=sides)
    names = re.findall(r"`(case\d+)`", section(result, title))
    assert len(names) == MOST_ROWS
    lines = screen(result, evidence=True, where="").splitlines()
    for each in (what, "values"):
        assert f"  … {MANY - terminal.MOST_LINES + 1} more {each} in result.json" in lines
    assert len(lines) <= terminal.MOST_ROWS
    if sides == 2:
        page = markdown.render(result)
        assert names[-1] == f"case{WORSE}"
        assert "100 more are in `result.json`." in page
        assert len(re.findall("^perf: ", page, re.MULTILINE)) == MOST_ROWS
        assert f"case{WORSE}" in next(line for line in lines if "regressed" in line and line.startswith("  "))


@pytest.mark.parametrize(
    ("bound", "missed", "folded"),
    [("<300", 0, f"✓ {MANY} targets met"), ("<150", 1, f"✓ {MANY - 1} more targets met"), ("<50", MANY, "…")],
)
def test_targets_that_are_missed_come_before_those_that_are_met(bound: str, missed: int, folded: str) -> None:
    result = suite(bound=bound)
    assert [target.status for target in result.targets].count("not met") == missed
    required = section(result, "Requirements Met")
    assert required.count("| ✅ met") + required.count("| ❌ not met") == MOST_ROWS
    assert required.count("| ❌ not met") == min(missed, MOST_ROWS)
    text = screen(result, evidence=True, where="")
    assert folded in text
    assert len(text.splitlines()) < 50


def test_a_list_that_fits_is_whole_and_of_a_longer_one_what_ranks_lowest_stays_in_order() -> None:
    values = list(range(MOST_ROWS))
    assert truncated(values, lambda value: -value).shown == tuple(values)
    assert truncated(values).others == 0
    kept = truncated(range(MOST_ROWS + 2), lambda value: -(value % 2))
    assert kept.others == 2
    assert list(kept.shown) == sorted(kept.shown)
    assert set(range(1, MOST_ROWS, 2)) <= set(kept.shown)
