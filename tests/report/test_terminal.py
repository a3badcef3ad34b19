"""The terminal report: its content at any width, without control characters from names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.report import terminal
from perfflow.report.sanitize import cells, fitted, padded, shortened, visible
from tests.report.results import HOSTILE, everything, hostile, single, stored
from tests.verdict.records import criteria, ended, judged, pairs, planned

GOLDEN = Path(__file__).parent / "golden"


def shown(result: Result, width: int = 100, *, color: bool = False, unicode: bool = True) -> str:
    return terminal.render(result, width=width, color=color, unicode=unicode, where=".perfflow/runs/x/report.md")


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_a_line_or_acts(name: str, width: int) -> None:
    result = hostile(name)
    text = shown(result, width)
    assert len(text.splitlines()) <= 25
    for line in text.split("\n"):
        assert cells(line) <= width
        assert line.isprintable()
    plain = shown(result, width, unicode=False)
    assert plain.isascii()
    assert max(map(len, plain.split("\n"))) <= width
    assert len(plain.splitlines()) <= 25


@given(st.text(max_size=40), st.integers(20, 140), st.booleans())
def test_any_text_in_any_width(name: str, width: int, unicode: bool) -> None:
    for result in (hostile(name), stored(name)):
        for line in shown(result, width, unicode=unicode).split("\n"):
            assert cells(line) <= width
            assert line.isprintable()


def test_colour_is_only_added_where_it_is_asked_for() -> None:
    plain, colored = shown(everything()), shown(everything(), color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m✗ FAIL" in colored
    import re

    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain


def test_the_decision_survives_a_narrow_terminal() -> None:
    lines = shown(everything(), 60).splitlines()
    for name, word in (("encode", "regressed (over 10%)"), ("noisy", "unproven")):
        assert any(line.startswith(f"  {name}") and word in line for line in lines), name


def test_what_failed_is_never_folded_and_many_met_targets_are() -> None:
    names = [f"b{number}" for number in range(12)]
    wanted = criteria({**{name: {"time": "<2s"} for name in names}, "b3": {"time": "<0.5s"}})
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    text = shown(judged(*events, wanted=wanted, steps=[planned(name) for name in names]))
    assert "✗ b3 time p50  <0.5s  1.00 s" in text
    assert "✓ 11 more targets met" in text
    assert "more figures in the report" in text


def test_the_first_reason_is_what_failed() -> None:
    wanted = criteria({"slow": {"time": "<0.5s"}})
    open_ = [1.0, 2.0] * 7
    events = [
        *pairs("slow", [1.0] * 14, [1.0] * 14),
        ended("slow"),
        *pairs("noisy", open_, open_[::-1]),
        ended("noisy"),
    ]
    result = judged(*events, wanted=wanted, steps=[planned("slow"), planned("noisy")])
    whys = [line for line in shown(result).splitlines() if line.startswith("  why: ")]
    assert whys[0] == "  why: target not met: slow time p50 <0.5s"
    assert whys[1].startswith("  why: unproven: noisy time")


def test_an_upper_bound_is_shown_as_one() -> None:
    wanted = criteria({"b": {"rss": "<64MiB"}})
    text = shown(judged(*pairs("b", [9e6] * 6, None, "rss", at_most=True), ended("b"), wanted=wanted))
    assert "✓ b rss p50  <64MiB  ≤ 8.58 MiB    " in text


@pytest.mark.parametrize(
    ("name", "result", "unicode", "width"),
    [
        ("everything", everything(), True, 100),
        ("everything-60", everything(), True, 60),
        ("everything-160", everything(), True, 160),
        ("everything-ascii-80", everything(), False, 80),
        ("stored-80", stored(), True, 80),
        ("single", single(), True, 100),
    ],
)
def test_golden(name: str, result: Result, unicode: bool, width: int) -> None:
    """To accept a change: look at the .got file, then move it over the golden one."""
    golden, got = GOLDEN / f"{name}.txt", GOLDEN / f"{name}.txt.got"
    text = shown(result, width, unicode=unicode)
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


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
    assert "\n" not in once
    assert visible(once) == once
    assert not any(letter in once for letter in "\x1b\u202e\u2066\u200b\u2028\x85")


def test_a_long_reason_is_told_once() -> None:
    names = ("a", "b", "c")
    wanted = criteria({name: {"time": "<1s"} for name in names})
    reason = "needs 1 GPU, none found: nvidia-smi, which comes with NVIDIA's driver, is not on PATH"
    steps = [planned(name) for name in names]
    events = [ended("a", "skipped", reason), ended("b", "skipped", reason), ended("c", "skipped", "not here")]
    text = shown(judged(*events, wanted=wanted, steps=steps), 160)
    rows = [line for line in text.splitlines() if "time p50" in line]
    assert [line.partition("<1s")[2].strip() for line in rows] == [
        f"step a: {reason}",
        "step b: for the same reason",
        "step c: not here",
    ]
