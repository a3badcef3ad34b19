"""The reference names every key of the model and every tool with its keys, and nothing that is not there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from perfflow.cli.main import COMMANDS
from perfflow.errors import Exit
from perfflow.library import shelf
from perfflow.samples.techniques import OUTSIDE, TECHNIQUES
from perfflow.tools import registry
from perfflow.tools.adapter import CommandOptions
from perfflow.workflow.declared_tool import ToolFile
from perfflow.workflow.model import Stage, Step, Workflow

DOCS = Path(__file__).parents[2] / "docs"
COMMON = set(CommandOptions.model_fields)


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


def test_the_readme_names_every_command_and_exit_code() -> None:
    text = (DOCS.parent / "README.md").read_text()
    table = text[text.index("## Commands and exit codes") : text.index("## Why its verdicts")]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    assert {name for cell in first_cells for name in re.findall(r"`perfflow (\w+)", cell)} == set(COMMANDS)
    assert {int(cell) for cell in first_cells if cell.strip().isdigit()} == {int(code) for code in Exit}


def test_each_room_and_each_dependency_has_its_row() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (item for item in contracts if item.get("containers") == ["perfflow"])
    rooms = re.findall(r"^\| `(\w+)` \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    assert rooms == layers["layers"]
    needed = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["tools"]
    named = re.findall(r"^\| ([^|]+) \|", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    said = {cell.rpartition(": ")[2].lower() for cell in named}
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


@pytest.mark.parametrize("path", sorted(shelf.SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_library_page_names_the_workflow(path: Path) -> None:
    assert f"| `{path.stem}` |" in (DOCS / "library.md").read_text()


@pytest.mark.parametrize("name", sorted(registry.MODULES))
def test_the_tools_page_names_the_tool_its_keys_and_metrics(name: str) -> None:
    tool = registry.find(name)
    assert tool is not None
    rows = [line for line in (DOCS / "tools.md").read_text().splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    cells = rows[0].split("|")
    named = {key.replace("-", "_") for key in re.findall(r"`([\w-]+)`", cells[4])}
    assert named == set(tool.options.model_fields) - COMMON
    assert set(tool.metrics) <= set(re.findall(r"\w+", cells[3]))
    assert tool.program.install in cells[5]
