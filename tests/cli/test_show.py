"""``perfflow show``, and the origins in ``perfflow list``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.tools import registry
from tests.cli.shell import perfflow, write

FLOW = """\
description: "A \\u202e text"
params:
  size: {default: 10, enum: [10, 20], help: how much}
  who: {type: string}
targets: {run: {time: {max: 5s}}}
stages:
  baseline:
    - {id: run, uses: command, with: {command: "touch ${{ params.who }}"}}
    - {id: again, uses: massif, benchmark: run}
"""


def test_a_workflow_is_shown_as_it_would_run_and_is_not_run(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    done = perfflow("show", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "A \\u202e text" in lines
    assert "run it: perfflow run flow.yaml --set who=..." in lines
    assert "size  integer; one of 10, 20; default 10; how much" in lines
    assert "who   string; required" in lines
    assert "run  time: max 5s" in lines
    assert "touch '<params.who>'" in lines
    assert any(line.startswith("massif   valgrind ") for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["flow.yaml"]


def test_a_tool_that_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    (tmp_path / "empty").mkdir()
    done = perfflow("show", "flow.yaml", cwd=tmp_path, path=str(tmp_path / "empty"))
    assert "massif   valgrind is missing: apt-get install valgrind" in done.stdout


def test_mistakes_are_shown_where_they_are_in_an_extended_file(tmp_path: Path) -> None:
    (tmp_path / "bases").mkdir()
    write(tmp_path / "bases", "stages:\n  baseline:\n    - {id: run, uses: comand}\n", "base.yaml")
    write(tmp_path, "extends: bases/base.yaml\nparms: {}\n")
    done = perfflow("show", "flow.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "flow.yaml:3:1: error: unknown key `parms`" in done.stderr
    shown = "bases/base.yaml:4:23: error: unknown tool 'comand'\n    4 |     - {id: run, uses: comand}\n"
    assert f"{shown}{' ' * 30}^\n" in done.stderr


def test_raw_is_the_file_itself(tmp_path: Path) -> None:
    path = write(tmp_path, FLOW)
    assert perfflow("show", "flow.yaml", "--raw", cwd=tmp_path).stdout == path.read_text()
    done = perfflow("show", "command", "--raw", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a YAML file" in done.stderr


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_tool_can_be_shown(name: str, tmp_path: Path) -> None:
    shown = json.loads(perfflow("show", name, "--json", cwd=tmp_path).stdout)
    tool = registry.find(name)
    assert tool
    assert (shown["name"], shown["role"], shown["install"]) == (name, tool.role.value, tool.program.install)
    names = [option["name"].replace("-", "_") for option in shown["with"]]
    assert names == list(tool.options.model_fields)
    assert shown["step"] == (["stdout"] if tool.passes_stdout else [])
    assert shown["description"]
    assert perfflow("show", name, cwd=tmp_path).stdout.startswith(f"{name}  (tool, from perfflow)\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("massiv", "did you mean 'massif'?"),
        ("two-comands", "did you mean 'two-commands'?"),
        ("zzzzzzzz", "`perfflow list` shows all names"),
        ("lib:two-comands", "did you mean lib:two-commands?"),
        ("no.yaml", "no.yaml: no such file"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, said: str, tmp_path: Path) -> None:
    done = perfflow("show", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_name_of_both_needs_a_word_more(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    write(tmp_path / "workflows", FLOW, "massif.yaml")
    assert "is a workflow and a tool" in perfflow("show", "massif", cwd=tmp_path).stderr
    assert "(tool, from perfflow)" in perfflow("show", "massif", "--tool", cwd=tmp_path).stdout
    assert "(workflow, from this project)" in perfflow("show", "workflows/massif.yaml", cwd=tmp_path).stdout


def test_lists_say_whose_a_workflow_is(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    write(tmp_path / "workflows", FLOW, "own.yaml")
    rows = {row["name"]: row for row in json.loads(perfflow("list", "--json", cwd=tmp_path).stdout)["workflows"]}
    assert rows["own"]["origin"] == "project"
    assert rows["two-commands"]["origin"] == "lib:two-commands"
    assert "(lib:two-commands)" in perfflow("list", cwd=tmp_path).stdout
