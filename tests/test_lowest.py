"""The lowest versions that pyproject.toml allows are those that scripts/lowest tries, in each run of CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_a_dependency_has_one_lower_bound_and_nothing_else(requirement: str) -> None:
    assert re.fullmatch(r"[\w.-]+>=\d+(\.\d+)+", requirement)


def test_ci_tries_the_lowest_versions() -> None:
    assert re.search(r"^sh scripts/lowest\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert '["project"]["dependencies"]' in (ROOT / "scripts" / "lowest").read_text()
