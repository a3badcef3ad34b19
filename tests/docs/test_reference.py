"""The reference names every key of the model and every tool with its keys, and nothing that is not there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from perfflow.cli.main import COMMANDS, app
from perfflow.library import search_path
from perfflow.model.metrics import OUTSIDE, TECHNIQUES
from perfflow.workflow.declared_tool import ToolFile
from perfflow.workflow.model import Stage, Step, Workflow
from scripts import reference_tables

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS_PAGE = DOCS / "reference" / "commands.md"


def keys(model: type[Workflow | Step | Stage | ToolFile]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("key", sorted(keys(Workflow) | keys(Step)))
def test_the_workflow_reference_names_the_key(key: str) -> None:
    assert f"`{key}`" in (DOCS / "workflow.md").read_text()


def test_the_step_table_names_no_key_that_is_not_there() -> None:
    text = (DOCS / "workflow.md").read_text()
    table = text[text.index("## Keys of a step") : text.index("## The optimize stage")]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for cell in first_cells for name in re.findall(r"`([a-z-]+)`", cell)}
    assert named <= keys(Step)


def test_the_table_of_the_top_level_names_its_keys_and_no_other() -> None:
    text = (DOCS / "workflow.md").read_text()
    table = text[text.index("## Top level") : text.index("## Stages and order")]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in first_cells for name in re.findall(r"`([a-z-]+)`", cell)} == keys(Workflow)


OF_ANY_STAGE = {"steps", "role", "env", "if", "working-directory", "shell", "timeout"}


def test_the_reference_names_the_keys_of_a_stage() -> None:
    text = (DOCS / "workflow.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith("| `stages`"))
    every = set(re.findall(r"[a-z-]+", row.split("`{")[1].split("}`")[0]))
    # Those of the optimize stage have a table of their own.
    assert every == OF_ANY_STAGE


def test_the_page_of_commands_names_each_one() -> None:
    rows = re.findall(r"^\| \[`perfflow (\w+)`\]\(#[\w-]+\) \| (.+) \|$", COMMANDS_PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == COMMANDS


def words_of(name: str, command: click.Command) -> Iterator[str]:
    """The command as it is typed, or of a group each of its commands."""
    if isinstance(command, click.Group):
        for inner in command.list_commands(click.Context(command)):
            yield f"{name} {inner}"
    else:
        yield name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_page_of_commands_has_a_table_of_its_options(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    text = COMMANDS_PAGE.read_text()
    for words in words_of(name, command):
        assert f"### perfflow {words}\n" in text
        assert f"<!-- options of {words} -->\n\n| option" in text


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
    packages = re.findall(r"^\| `(\w+)` \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    assert packages == layers["layers"]
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *extras["tools"], *extras["postgres"], *extras["mcp"]]
    named = re.findall(r"^\| ([^|]+) \|", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    said = {cell.rpartition(": ")[2].lower() for cell in named if "`docs`" not in cell}
    assert {re.split(r"[<>=\[]", item)[0].lower() for item in needed} == said - {"package"}


CANDIDATE = {"technique", "why", "hotspot", "patch", "ref", "run", "argv", "propose", "env", "params", "matrix"}


def test_the_optimize_tables_name_all_keys_and_no_other() -> None:
    text = (DOCS / "workflow.md").read_text()
    section = text[text.index("## The optimize stage") : text.index("## Expressions")]
    tables = section.split("| key of ")[1:]
    named = [
        {
            name
            for line in table.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])
        }
        for table in tables
    ]
    assert named == [CANDIDATE, keys(Stage) - OF_ANY_STAGE]
    assert keys(Step) >= CANDIDATE
    assert set(re.findall(r"`([a-z-]+)`", tables[0].split("| `technique` |")[1].partition("|")[0])) - {"ruled-out"} == {
        *TECHNIQUES,
        OUTSIDE,
    }


@pytest.mark.parametrize("key", sorted(keys(ToolFile)))
def test_the_page_about_tool_files_names_the_key(key: str) -> None:
    table = (DOCS / "writing-a-tool.md").read_text().split("| key |")[1]
    assert any(f"`{key}`" in line.split("|")[1] for line in table.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("path", sorted(search_path.SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_library_page_names_the_workflow(path: Path) -> None:
    assert f"| `{path.stem}` |" in (DOCS / "library.md").read_text()
