"""The rules of the house that import-linter cannot see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "perfflow"
MODULES = sorted(PACKAGE.rglob("*.py"))
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
LONGEST_FUNCTION, LONGEST_FILE = 60, 500


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_keeps_to_the_house(path: Path) -> None:
    text = path.read_text()
    assert path.stem not in BANNED_NAMES
    assert len(text.splitlines()) <= LONGEST_FILE
    if path.name == "__init__.py" and path.parent.name != "testing":
        assert text == ""  # but where it is the door for those who write adapters
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, node.name


def test_every_room_is_in_the_picture() -> None:
    picture = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    for room in rooms - {"__init__", "__main__"}:
        assert f"| `{room}` |" in picture


def test_changelog_says_something_of_the_current_version() -> None:
    from perfflow.version import VERSION

    assert f"## {VERSION}" in (PACKAGE.parent / "CHANGELOG.md").read_text()


NAMING = {
    "library": "starters are text for users",
    "cli/init_command.py": "the kinds of project that starters are for",
    "run/gpus.py": "the program that lists the GPUs",
}
"""Where tools are called by their names outside of ``tools``, and why."""
WORDS = {"command", "stream"}
"""Names of tools that are ordinary keys as well."""


def test_tools_are_known_by_what_they_say_of_themselves() -> None:
    from perfflow.tools.registry import MODULES as TOOLS

    found = [
        f"{place}:{node.lineno}: {node.value}"
        for path in MODULES
        if not (place := str(path.relative_to(PACKAGE))).startswith(("tools/", *NAMING))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in TOOLS.keys() - WORDS
    ]
    assert found == []
