"""The page for agents is short, and its workflows, tools and commands are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfflow.cli.main import COMMANDS
from perfflow.tools import registry
from tests.cli.shell import perfflow

PAGE = Path(__file__).parents[2] / "perfflow" / "library" / "for-agents.md"
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_it_is_printed_and_short(tmp_path: Path) -> None:
    done = perfflow("show", "--for-agents", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, PAGE.read_text())
    assert len(done.stdout.splitlines()) <= 150


def test_its_workflows_are_valid(tmp_path: Path) -> None:
    assert len(WORKFLOWS) == 2
    for number, text in enumerate(WORKFLOWS):
        (tmp_path / f"{number}.yaml").write_text(text)
        done = perfflow("validate", f"{number}.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_first_one_runs(tmp_path: Path) -> None:
    (tmp_path / "count.yaml").write_text(WORKFLOWS[0])
    done = perfflow(
        *("run", "count.yaml", "--only", "data", "--only", "count", "--only", "same", "--only", "complete"),
        *("--set", "size=200000", "--budget", "60s", "--progress", "off"),
        cwd=tmp_path,
        measured=True,
    )
    # The speedup depends on the machine. The check ensures that both print the same number.
    assert done.returncode in (0, 1, 4), done.stdout + done.stderr
    assert "same-output" not in done.stdout or "failed" not in done.stdout


def test_it_names_tools_and_commands_that_exist() -> None:
    text = PAGE.read_text()
    commands = set(re.findall(r"^    perfflow (\w+)", text, re.MULTILINE))
    assert commands
    assert commands <= set(COMMANDS)
    cells = re.findall(r"^\| [^|]+ \| ([^|]+) \|", text.partition("## Which tool")[2].partition("## ")[0], re.MULTILINE)
    names = [name for cell in cells[2:] for name in re.findall(r"`([a-z-]+)`", cell)]
    assert names
    assert set(names) <= set(registry.known())


@pytest.mark.parametrize(
    ("words", "said"), [((), "no workflow or tool is named"), (("perf", "--for-agents"), "leave out perf")]
)
def test_one_of_both_is_asked_for(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = perfflow("show", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
