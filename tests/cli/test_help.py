"""What ``--help`` shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from perfflow.cli.main import COMMANDS, EXAMPLES, GROUPS, app, named_commands
from tests.cli.shell import perfflow


def every_command() -> dict[str, click.Command]:
    context = click.Context(app)
    found = [(name, app.get_command(context, name)) for name in COMMANDS]
    return {words: part for name, command in found if command for words, part in named_commands(name, command)}


def test_each_command_is_in_one_group(tmp_path: Path) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    shown = perfflow("--help", cwd=tmp_path).stdout
    assert [title for title in GROUPS if f"\n{title}:\n" in shown] == list(GROUPS)
    assert [name for name in COMMANDS if f"\n  {name} " not in shown] == []


@pytest.mark.parametrize("name", every_command())
def test_the_help_of_a_command_ends_with_examples_of_it(name: str, tmp_path: Path) -> None:
    shown = perfflow(*name.split(), "--help", cwd=tmp_path).stdout
    lines = shown.rstrip().partition("Examples:\n")[2].splitlines()
    assert tuple(line.strip() for line in lines) == EXAMPLES[name]
    assert 2 <= len(lines) <= 3
    assert any(f"perfflow {name}" in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("line", sorted({line for lines in EXAMPLES.values() for line in lines}))
def test_an_example_is_a_command_line_that_perfflow_accepts(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmarks").mkdir()
    reached: list[str] = []
    # Everything but the work itself, which needs files and the network.
    monkeypatch.setattr(click.Command, "invoke", lambda command, _: reached.append(command.name))
    words = shlex.split(line.partition(" > ")[0].partition(" || ")[0].removeprefix("sudo "))
    for name in [word for word in words if word.endswith((".yaml", ".json"))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert words[0] == "perfflow"
    app.main(words[1:], "perfflow", standalone_mode=False)
    assert reached[:2] == ["app", words[1]]
    assert reached[-1] in words


def test_no_command_has_examples_that_nobody_sees() -> None:
    assert sorted(EXAMPLES) == sorted(every_command())
