"""The reference names every key of the model and every tool with its keys, and nothing that is not there."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from perfflow.cli.main import COMMANDS, app
from perfflow.library import search_path
from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.metrics import OUTSIDE, TECHNIQUES
from perfflow.report import outcomes
from perfflow.tools.adapter import Adapter, Builder, Profiler, Suite
from perfflow.workflow.declared_tool import ToolFile
from perfflow.workflow.model import Stage, Step, Workflow
from scripts import reference_tables

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS_PAGE = DOCS / "reference" / "commands.md"


def keys(model: type[Workflow | Step | Stage | ToolFile]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def between(start: str, end: str) -> str:
    """Return the part of the workflow reference between two headings."""
    text = (DOCS / "reference" / "workflow.md").read_text()
    return text[text.index(start) : text.index(end)]


def named(table: str) -> set[str]:
    """Return the names in the first cells of a table."""
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell)}


def test_the_workflow_reference_names_each_key_and_no_other() -> None:
    text = (DOCS / "reference" / "workflow.md").read_text()
    assert [key for key in keys(Workflow) | keys(Step) if f"`{key}`" not in text] == []
    assert named(between("## Keys of a step", "## The optimize stage")) <= keys(Step)
    assert named(between("## Top level", "## Stages and order")) == keys(Workflow)


CANDIDATE = {"technique", "why", "hotspot", "patch", "ref", "run", "argv", "propose", "env", "params", "matrix"}
OF_ANY_STAGE = {"steps", "role", "env", "if", "working-directory", "shell", "timeout"}


def test_the_tables_of_stages_name_all_keys_and_no_other() -> None:
    text = (DOCS / "reference" / "workflow.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith("| `stages`"))
    assert set(re.findall(r"[a-z-]+", row.split("`{")[1].split("}`")[0])) == OF_ANY_STAGE
    tables = between("## The optimize stage", "## Expressions").split("| key of ")[1:]
    assert [named(table) for table in tables] == [CANDIDATE, keys(Stage) - OF_ANY_STAGE]
    assert keys(Step) >= CANDIDATE
    techniques = re.findall(r"`([a-z-]+)`", tables[0].split("| `technique` |")[1].partition("|")[0])
    assert set(techniques) - {"ruled-out"} == {*TECHNIQUES, OUTSIDE}


def test_the_page_of_commands_names_each_one() -> None:
    rows = re.findall(r"^\| \[`perfflow ([\w-]+)`\]\(#[\w-]+\) \| (.+) \|$", COMMANDS_PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == COMMANDS


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_page_of_commands_has_a_table_of_its_options(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    inner = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    names = [f"{name} {word}" for word in inner] or [name]
    for words in names:
        assert f"### perfflow {words}\n" in COMMANDS_PAGE.read_text()
        assert f"<!-- options of {words} -->\n\n| option" in COMMANDS_PAGE.read_text()


@pytest.mark.parametrize("page", sorted(reference_tables.pages()), ids=lambda path: path.stem)
def test_the_tables_are_those_of_the_code(page: Path) -> None:
    text = page.read_text()
    assert reference_tables.updated(text) == text, "write them anew: make reference"


FRAGMENT = re.compile(r"``\s?(.+?)\s?``(?!`)|`([^`]+)`")


def test_the_page_about_trouble_has_the_words_of_messages() -> None:
    sources = (path.read_text() for path in sorted(DOCS.parent.joinpath("perfflow").rglob("*.py")))
    # Texts go over several lines of the source.
    source = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources))
    rows = [line for line in (DOCS / "reference" / "trouble.md").read_text().splitlines() if line.startswith("| `")]
    messages = [a or b for line in rows for a, b in FRAGMENT.findall(line.split(" | ")[0])]
    assert len(messages) > 30
    parts = [part.strip() for message in messages for part in message.split("…")]
    assert [part for part in parts if part not in source] == []


def test_each_package_and_each_dependency_has_its_row() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (item for item in contracts if item.get("containers") == ["perfflow"])
    packages = re.findall(r"^\| `(\w+)` \|", (DOCS.parent / "dev" / "architecture.md").read_text(), re.MULTILINE)
    assert packages == layers["layers"]
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *extras["tools"], *extras["postgres"], *extras["mcp"]]
    named = re.findall(r"^\| ([^|]+) \|", (DOCS.parent / "dev" / "dependencies.md").read_text(), re.MULTILINE)
    said = {cell.rpartition(": ")[2].lower() for cell in named if "`docs`" not in cell}
    assert {re.split(r"[<>=\[]", item)[0].lower() for item in needed} == said - {"package"}


def test_the_page_about_tool_files_names_each_key() -> None:
    table = (DOCS / "how-to" / "writing-a-tool.md").read_text().split("| key |")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert [key for key in keys(ToolFile) if not any(f"`{key}`" in cell for cell in cells)] == []


def test_the_library_page_names_each_workflow() -> None:
    page = (DOCS / "how-to" / "library.md").read_text()
    assert [path for path in search_path.SHIPPED.glob("*.yaml") if f"| `{path.stem}` |" not in page] == []


TABLES = {Adapter: "All other fields\nhave a default:", Suite: "`Suite(...)` says", Builder: "`Builder(...)` says"}
"""How the text before the table of a part of an adapter begins."""
SHOWN = {"name", "role", "invocations", "parse", "outputs"}
"""Fields that the example on the page has."""


def rows(part: type) -> dict[str, str]:
    """Return the rows of the table of fields: names in the first cell -> meaning."""
    table = re.search(r"(?:\|.*\n)+", (DOCS / "how-to" / "writing-a-tool.md").read_text().partition(TABLES[part])[2])
    assert table
    return dict(line.strip("|\n").split(" | ", 1) for line in table[0].splitlines()[2:])


def test_the_page_about_tools_names_every_field_and_no_other() -> None:
    for part in TABLES:
        found = {name for cell in rows(part) for name in re.findall(r"`(\w+)", cell)}
        assert found == {item.name for item in fields(part)} - SHOWN - {"_", "is_of_file"}, part
    (meaning,) = (text for cell, text in rows(Adapter).items() if cell.strip() == "`profiler`")
    assert set(re.findall(r"`(\w+)`", meaning)) - {"Profiler"} == {item.name for item in fields(Profiler)}


def test_each_outcome_code_and_flag_has_its_words() -> None:
    assert (set(outcomes.OUTCOMES), set(outcomes.CODES), set(outcomes.FLAGS)) == (set(Outcome), set(Code), set(Flag))
