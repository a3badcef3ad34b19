"""What ``--help`` shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.cli.main import COMMANDS, EXAMPLES, GROUPS
from tests.cli.shell import perfflow


def test_each_command_is_in_one_group(tmp_path: Path) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    shown = perfflow("--help", cwd=tmp_path).stdout
    assert [title for title in GROUPS if f"\n{title}:\n" in shown] == list(GROUPS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_ends_with_examples(name: str, tmp_path: Path) -> None:
    shown = perfflow(name, "--help", cwd=tmp_path).stdout
    assert shown.rstrip().endswith("\n".join(["Examples:", *(f"    {line}" for line in EXAMPLES[name])]))
