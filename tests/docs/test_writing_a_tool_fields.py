"""The page about writing tools names the fields of adapters as the code does, and all of them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from perfflow.tools.adapter import Adapter, Profiler

PAGE = Path(__file__).parents[2] / "docs/writing-a-tool.md"
SHOWN = {"name", "role", "invocations", "parse", "outputs"}
"""Fields that the example on the page has."""
INTERNAL = {"_", "is_of_file"}


def rows() -> dict[str, str]:
    """Return the rows of the table of fields: names in the first cell -> meaning."""
    (table,) = re.findall(r"All other fields\nhave a default:\n\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"))
    cells = [line.strip("|\n").split(" | ", 1) for line in table.splitlines()[2:]]
    return dict(cells)


def test_the_page_names_every_field_of_an_adapter_and_no_other() -> None:
    named = {name for cell in rows() for name in re.findall(r"`(\w+)", cell)}
    assert named == {item.name for item in fields(Adapter)} - SHOWN - INTERNAL


def test_the_page_names_every_field_of_a_profiler_and_no_other() -> None:
    (meaning,) = (text for cell, text in rows().items() if cell.strip() == "`profiler`")
    assert set(re.findall(r"`(\w+)`", meaning)) - {"Profiler"} == {item.name for item in fields(Profiler)}
