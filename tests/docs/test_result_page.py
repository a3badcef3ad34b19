"""docs/reference/result.md against the model: every field and every word it may hold, and nothing that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from perfflow.model import kernels, result
from perfflow.model.errors import Exit
from perfflow.model.readings import Design
from perfflow.model.result_part import ResultPart
from perfflow.sampling.stop_rule import Stop
from perfflow.tools.adapter import Role
from scripts import reference_tables

SECTIONS = reference_tables.SECTIONS
TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "result.md").read_text()
# Words of fields that are plain texts in the model.
WORDS: dict[tuple[str, str], set[str]] = {
    # Fresh pairs that confirm a change are added to those before; only events have this design.
    ("benchmarks", "design"): {*Design} - {Design.CONFIRM},
    ("benchmarks", "stopped"): set(Stop),
    ("steps", "role"): set(Role),
    ("gate", "name"): {result.GATE},
}


def table(section: str) -> dict[str, str]:
    """Field -> what the section's table says of it; fields of one row share the text."""
    return {name: text for names, text in reference_tables.fields_of(section).items() for name in names}


def words(annotation: Any) -> Iterator[str]:
    """The texts that a field may hold, of a Literal however deep it stands."""
    for item in get_args(annotation):
        if isinstance(item, str):
            yield item
        else:
            yield from words(item)


def test_the_page_has_a_table_for_each_part() -> None:
    assert set(re.findall(r"<!-- fields of (.+) -->", TEXT)) == set(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_field_with_a_list_of_words_has_them_all(section: str) -> None:
    told = table(section)
    for name, about in SECTIONS[section].model_fields.items():
        known = set(words(about.annotation)) | WORDS.get((section, name), set())
        if known:
            said = set(re.findall(r"`([^`]+)`", told[about.alias or name]))
            assert known <= said, name
            # What else stands in backquotes is no word of the field's.
            allowed = {"continue-on-error"} | {field for model in SECTIONS.values() for field in model.model_fields}
            assert said - known <= allowed, name


def test_every_part_of_the_model_has_a_section() -> None:
    modules = (result, kernels)
    named = [value for module in modules for value in vars(module).values()]
    models = {part for part in named if isinstance(part, type) and issubclass(part, BaseModel)}
    assert models - {BaseModel, ResultPart, result.PlannedStep} == set(SECTIONS.values())


def test_exit_codes_are_those_of_the_command() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", page.read_text(), re.MULTILINE)
    assert {(int(number), name) for number, name in rows} == {(int(code), code.name.lower()) for code in Exit}
