"""The page for agents names tools and commands that exist. See also ``cases/for_agents.txt``."""

from __future__ import annotations

import re
from pathlib import Path

from perfflow.cli.main import COMMANDS
from perfflow.tools import registry

PAGE = Path(__file__).parents[2] / "perfflow" / "library" / "for-agents.md"


def test_it_names_tools_and_commands_that_exist() -> None:
    text = PAGE.read_text()
    commands = set(re.findall(r"^    perfflow (\w+)", text, re.MULTILINE))
    assert commands
    assert commands <= set(COMMANDS)
    cells = re.findall(r"^\| [^|]+ \| ([^|]+) \|", text.partition("## Which tool")[2].partition("## ")[0], re.MULTILINE)
    names = [name for cell in cells[2:] for name in re.findall(r"`([a-z-]+)`", cell)]
    assert names
    assert set(names) <= set(registry.known())
