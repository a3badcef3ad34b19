"""``perfflow show`` of every tool, and what ``perfflow list`` knows of workflows and tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.tools import registry
from tests.cli.shell import perfflow, write


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_tool_can_be_shown(name: str, tmp_path: Path) -> None:
    shown = json.loads(perfflow("show", name, "--json", cwd=tmp_path).stdout)
    tool = registry.find(name)
    assert tool
    assert (shown["name"], shown["role"], shown["install"]) == (name, tool.role.value, tool.program.install)
    names = [option["name"].replace("-", "_") for option in shown["with"]]
    assert names == [(field.alias or key).replace("-", "_") for key, field in tool.options.model_fields.items()]
    assert shown["step"] == (["stdout"] if tool.passes_stdout else [])
    assert shown["description"]
    assert perfflow("show", name, cwd=tmp_path).stdout.startswith(f"{name}  (tool, from perfflow)\n")


def test_lists_say_whose_a_workflow_is_and_which_version_a_tool_has(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    path = write(tmp_path / "workflows", "description: one line\nstages: {build: [{run: 'true'}]}\n", "own.yaml")
    found = json.loads(perfflow("list", "--json", cwd=tmp_path).stdout)
    rows = {row["name"]: row for row in found["workflows"]}
    own = {"name": "own", "path": str(path), "description": "one line", "origin": "project"}
    assert rows["own"] == rows["own"] | own
    assert rows["two-commands"]["origin"] == "lib:two-commands"
    assert "(lib:two-commands)" in perfflow("list", cwd=tmp_path).stdout
    tools = {tool["name"]: tool for tool in found["tools"]}
    assert tools["hyperfine"]["available"]
    assert tools["hyperfine"]["version"][0].isdigit()
    assert {"name", "available", "version"} <= set(tools["command"])
