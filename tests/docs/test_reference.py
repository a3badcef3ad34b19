"""The reference names every key of the model and every tool with its keys, and nothing that is not there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from perfflow.cli.main import COMMANDS, app
from perfflow.library import search_path
from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.metrics import OUTSIDE, TECHNIQUES
from perfflow.report import outcomes
from perfflow.workflow.declared_tool import ToolFile
from perfflow.workflow.model import Stage, Step, Workflow
from scripts import reference_tables

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS_PAGE = DOCS / "reference" / "commands.md"


def keys(model: type[Workflow | Step | Stage | ToolFile]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_the_tables_of_the_workflow_page_have_each_key_with_a_meaning() -> None:
    told = {name: dict(described()) for name, described in reference_tables.KEYS.items()}
    assert [(name, key) for name, table in told.items() for key, meaning in table.items() if not meaning] == []
    assert {*told["a step"], *told["a candidate"]} == keys(Step)
    assert {*told["a tool file"]} == keys(ToolFile)
    assert {*told["a stage"], *told["the optimize stage"]} == keys(Stage)
    page = (DOCS / "reference" / "workflow.md").read_text() + (DOCS / "how-to" / "writing-a-tool.md").read_text()
    assert [name for name in told if f"<!-- keys of {name} -->" not in page] == []
    assert [name for name in (*TECHNIQUES, OUTSIDE) if f"`{name}`" not in page] == []


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


def test_the_library_page_names_each_workflow() -> None:
    page = (DOCS / "how-to" / "library.md").read_text()
    assert [path for path in search_path.SHIPPED.glob("*.yaml") if f"| `{path.stem}` |" not in page] == []


def test_each_outcome_code_and_flag_has_its_words() -> None:
    assert (set(outcomes.OUTCOMES), set(outcomes.CODES), set(outcomes.FLAGS)) == (set(Outcome), set(Code), set(Flag))
