"""The gallery: the script makes what the page shows, and the page shows all projects of the script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts import gallery
from scripts.screenshots import IMAGES
from tests.docs.recipes import FLOW, ROOT, repository
from tests.repositories import git

PAGE = (ROOT / "docs" / "gallery.md").read_text()
PROJECTS = gallery.projects()


@pytest.mark.parametrize("name", PROJECTS)
def test_each_project_has_pictures_in_both_themes_a_section_and_a_row(name: str) -> None:
    for theme in ("light", "dark"):
        assert f"](images/{name}-{theme}.webp)" in PAGE
        assert 5_000 < (IMAGES / f"{name}-{theme}.webp").stat().st_size < 150_000
    project = PROJECTS[name]
    assert f"| [{project['repository']}](https://github.com/{project['repository']}) | `{project['head']}` | " in PAGE


def test_there_is_no_picture_that_no_page_shows() -> None:
    pages = "".join(path.read_text() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    assert {path.name for path in IMAGES.iterdir()} == set(re.findall(r"images/([\w-]+\.webp)", pages))


@pytest.mark.parametrize("workflow", [FLOW, pytest.param("", marks=pytest.mark.long)], ids=["given", "by init"])
def test_a_change_is_measured_and_becomes_a_row(tmp_path: Path, own_machine: None, workflow: str) -> None:
    clone = repository(tmp_path / "tool", {"costs": "100\n", "sum.py": "print(sum(range(10)))\n"})
    (clone / "costs").write_text("130\n")
    git(clone, "commit", "-qam", "two")
    head = git(clone, "rev-parse", "HEAD").strip()
    project: dict[str, Any] = {
        "name": "tool",
        "repository": "me/tool",
        "base": "HEAD~1",
        "head": head,
        "workflow": workflow,
    }
    by_init = {
        "files": {
            "asv.conf.json": '{"project": "tool"}',
            "benchmarks/suite.py": "def time_sum():\n    sum(range(1000))\n",
        },
        "prepare": "touch prepared",
    }
    project |= {"options": ["--budget", "1m", *([] if workflow else ["--all"])], **({} if workflow else by_init)}
    run = tmp_path / "gallery" / "tool"
    gallery.measured(project, tmp_path, run)
    result = json.loads((run / "result.json").read_text())
    assert result["run"]["workflow"] == ("perf" if workflow else "tool")
    shown = gallery.row(project, run)
    decided = "1 regressed" if workflow else r"1 (same|unproven|regressed|improved)"
    assert re.fullmatch(
        rf"\| \[me/tool\]\(https://github.com/me/tool\) \| `{head}` \| 1 \| {decided} \| \d+ s \|", shown
    )
    assert (tmp_path / "tool-gallery" / "prepared").exists() is not bool(workflow)
