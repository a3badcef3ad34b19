"""No name or text from outside acts in a report or on a screen, or changes the layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from tests.report.gated import hostile_gate
from tests.report.optimized import hostile_ledger
from tests.report.rendered import TRICKY, check_inert, check_lines, screen, tables
from tests.report.results import HOSTILE, JOINED, hostile, on_gpu, stored
from tests.report.test_joined import SMALL, profiled, spot


def profilers(name: str) -> Result:
    """Return a run with hotspots of two profilers that contradict each other."""
    return profiled(spot("calls", f"f{name}", 0.9, f"a{name}", 3, **SMALL), spot("cpu", f"f{name}", 0.1, f"a{name}", 3))


MAKERS: Mapping[str, Callable[[str], Result]] = {
    "run": hostile,
    "gate": hostile_gate,
    "stored": stored,
    "gpu": on_gpu,
    "profilers": profilers,
} | {"ledger": hostile_ledger, "analysis": partial(hostile_ledger, template="analysis")}


def shape(text: str) -> tuple[list[str], dict[str, list[int]], list[str], set[int]]:
    """Return the headings, the sizes of the rows of each table, the fences, and how deep lists are."""
    tokens = check_inert(text)
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    rows = {title: [len(row) for row in found] for title, found in tables(tokens).items()}
    fences = [token.info for token in tokens if token.type == "fence"]
    return headings, rows, fences, {token.level for token in tokens if token.type == "list_item_open"}


TEXTS = st.text(max_size=40) | st.text(alphabet=TRICKY, max_size=24)


@cache
def usual_shape(maker: str) -> object:
    return shape(markdown.render(MAKERS[maker]("name")))


@pytest.mark.parametrize("name", [*HOSTILE, *JOINED], ids=ascii)
@pytest.mark.parametrize("maker", MAKERS)
def test_no_name_changes_the_layout(maker: str, name: str) -> None:
    result = MAKERS[maker](name)
    found = shape(markdown.render(result))
    # Without a name some rows are not there, and a very long one is not proposed as an entry of the workflow.
    assert found == usual_shape(maker) or name == "" or len(name) > 300
    missed = sum(target.status != "met" for target in result.targets)
    for width in (40, 80, 120):
        for unicode in (True, False):
            text = screen(result, width, unicode=unicode)
            check_lines(text, width)
            assert unicode or text.isascii()
            # Unmet targets are shown even if they take more rows.
            assert len(text.splitlines()) <= terminal.MOST_ROWS + (missed if width == 40 else 0)


@given(text=TEXTS, width=st.integers(20, 140), unicode=st.booleans())
@example(text="**", width=20, unicode=True)
def test_no_text_acts(text: str, width: int, unicode: bool) -> None:
    for make in MAKERS.values():
        result = make(text)
        check_inert(markdown.render(result))
        check_lines(screen(result, width, unicode=unicode), width)
