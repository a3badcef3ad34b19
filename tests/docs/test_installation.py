"""Nobody is told to install perfflow from a package index, where its name is another project's."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from perfflow.model.version import DISTRIBUTION

ROOT = Path(__file__).parents[2]
# After `install`, or with an extra, the name stands for what an index has, unless ` @ ` says otherwise.
FROM_INDEX = re.compile(
    r"""(?:\b(?:install|(?<!git\ )(?<!library\ )(?<!history\ )add|uvx|pipx\ run)\b[^\n`]*?
    ['"\s]perfflow(?:-cli)?(?:\[[\w,]+\])?(?=['"\s`]|$)(?!['"]?\ @\ )"""
    r"""|\bperfflow(?:-cli)?\[[\w,]+\](?!\ @\ ))""",
    re.VERBOSE | re.MULTILINE,
)
NOT_FOR_USERS = ("CHANGELOG.md", "tests/")


def texts() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {}
    for name in listed.split("\0"):
        if name and not name.startswith(NOT_FOR_USERS) and (ROOT / name).is_file():
            found[name] = (ROOT / name).read_bytes().decode("utf-8", "replace")
    return found


def test_nothing_tells_to_install_it_from_an_index() -> None:
    told = {name: match[0] for name, text in texts().items() if (match := FROM_INDEX.search(text))}
    assert told == {}


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("pip install perfflow", True),
        ("`pip install 'perfflow[tools]'`", True),
        ("python3 -m pip install -q perfflow-cli", True),
        ("uv tool install perfflow-cli", True),
        ("missing: perfflow[tools]", True),
        ("pip install 'perfflow-cli[tools] @ git+https://git.example.com/perfflow.git@0123'", False),
        ("pip install '.[tools]'", False),
        ("git add -A; perfflow run flow.yaml", False),
        ("uv add perfflow", True),
        ("pip install dist/perfflow_cli-0.1.0-py3-none-any.whl", False),
        ("perfflow names the command that installs a tool", False),
    ],
)
def test_what_the_search_finds(text: str, tells: bool) -> None:
    assert bool(FROM_INDEX.search(text)) is tells


def test_the_distribution_has_a_name_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION == "perfflow-cli"
    assert project["scripts"] == {"perfflow": "perfflow.cli.main:main"}
