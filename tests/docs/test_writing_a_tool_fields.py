"""The page about writing tools names the fields of adapters as the code does, and all of them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from perfflow.tools.adapter import Adapter, Builder, Profiler, Suite

PAGE = Path(__file__).parents[2] / "docs/writing-a-tool.md"
SHOWN = {"name", "role", "invocations", "parse", "outputs"}
"""Fields that the example on the page has."""
INTERNAL = {"_", "is_of_file"}


TABLES = {Adapter: "All other fields\nhave a default:", Suite: "`Suite(...)` says", Builder: "`Builder(...)` says"}
"""How the text before the table of a part begins."""


def rows(part: type) -> dict[str, str]:
    """Return the rows of the table of fields: names in the first cell -> meaning."""
    after = PAGE.read_text(encoding="utf-8").partition(TABLES[part])[2]
    table = re.search(r"(?:\|.*\n)+", after)
    assert table
    cells = [line.strip("|\n").split(" | ", 1) for line in table[0].splitlines()[2:]]
    return dict(cells)


@pytest.mark.parametrize("part", TABLES)
def test_the_page_names_every_field_and_no_other(part: type) -> None:
    named = {name for cell in rows(part) for name in re.findall(r"`(\w+)", cell)}
    assert named == {item.name for item in fields(part)} - SHOWN - INTERNAL


def test_the_page_names_every_field_of_a_profiler_and_no_other() -> None:
    (meaning,) = (text for cell, text in rows(Adapter).items() if cell.strip() == "`profiler`")
    assert set(re.findall(r"`(\w+)`", meaning)) - {"Profiler"} == {item.name for item in fields(Profiler)}
