"""Figures of one row: if the change and the medians differ, a note explains why."""

from __future__ import annotations

import pytest

from perfflow.model.result import Benchmark, Bounds, Result
from perfflow.report import terminal
from perfflow.report.footer import notes
from perfflow.report.payloads.comment import comment
from perfflow.report.rows import OTHER_THAN_MEDIANS, differ_from_medians, speedup_text
from tests.verdict.records import ended, judged, pairs, row

DRIFT = [1.0 + 0.0831 * number for number in range(20)]


def drifting(factor: float) -> Result:
    """Return a result in which both sides drift. Later pairs count less, and the medians are from other pairs."""
    return judged(*pairs("b", DRIFT, [value * factor for value in DRIFT]), ended("b"))


@pytest.mark.parametrize(
    ("change", "candidate", "puzzles"),
    [(-0.036, 1.01, True), (0.036, 0.99, True), (0.18, 1.15, False), (0.18, 1.01, True), (-0.003, 1.002, False)],
)
def test_a_change_on_the_other_side_of_the_medians_puzzles(change: float, candidate: float, *, puzzles: bool) -> None:
    found = row(drifting(1.0))
    assert found.baseline
    assert found.candidate
    sides = {
        "baseline": found.baseline.model_copy(update={"value": 1.0}),
        "candidate": found.candidate.model_copy(update={"value": candidate}),
    }
    bounds = Bounds(value=change, low=change, high=change)
    assert differ_from_medians(found.model_copy(update={"change": bounds, **sides})) is puzzles


def test_every_page_explains_it_once() -> None:
    result = drifting(1.0)
    found = row(result)
    apart = found.model_copy(update={"change": Bounds(value=-0.2, low=-0.21, high=-0.19)})
    result = result.model_copy(update={"benchmarks": [apart]})
    pages = [
        "\n".join(map(str, notes(result))),
        terminal.render(result, width=200, color=False, unicode=True),
        terminal.render_summary(result),
        comment(result),
    ]
    assert [page.count(OTHER_THAN_MEDIANS) for page in pages] == [1, 1, 1, 1]


@pytest.mark.parametrize("decision", ["regressed", "same"])
def test_a_clock_has_a_name_that_needs_no_legend(decision: str) -> None:
    result = drifting(1.3 if decision == "regressed" else 1.0)
    clock = row(result).model_copy(update={"metric": "uncontended"})
    assert clock.decision == decision
    result = result.model_copy(update={"benchmarks": [clock]})
    for page in (terminal.render(result, width=200, color=False, unicode=True), terminal.render_summary(result)):
        assert "time without core waits" in page
        assert "uncontended" not in page


def test_the_terminal_shows_a_slowdown_once_and_every_other_row_that_got_worse() -> None:
    result = drifting(1.3)
    (time,) = result.benchmarks
    others = [time.model_copy(update={"metric": name, "gating": False}) for name in ("cpu", "rss")]

    def shown(*rows: Benchmark) -> list[str]:
        text = terminal.render(
            result.model_copy(update={"benchmarks": list(rows)}), width=200, color=False, unicode=True
        )
        return [line.split()[1] for line in text.splitlines() if line.startswith("  b ")]

    assert shown(time, *others) == ["time", "rss"]
    assert shown(time.model_copy(update={"decision": "same"}), *others) == ["cpu", "rss", "time"]


def test_an_end_that_is_not_known_is_said_to_be_unbounded() -> None:
    found = row(drifting(1.0))
    one, both = Bounds(value=1.04, low=None, high=1.2), Bounds(value=1.04, low=None, high=None)
    assert speedup_text(found.model_copy(update={"speedup": one})) == "1.04x [unbounded, 1.20x]"
    assert speedup_text(found.model_copy(update={"speedup": both})) == "1.04x"
