"""The recipe for several machines: GitHub takes it, and its commands give one verdict."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.docs.test_action import linter
from tests.docs.test_recipes_page import RECIPES, project
from tests.repositories import git

__all__ = ["linter", "project"]
NAME = ".github/workflows/perf-shards.yml"
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(RECIPES[NAME])["jobs"]


def script(job: str, step: str) -> str:
    (found,) = (item["run"] for item in JOBS[job]["steps"] if item.get("name") == step)
    return str(found)


def test_actionlint_takes_it(linter: str, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.parent.mkdir(parents=True)
    path.write_text(RECIPES[NAME])
    git(tmp_path, "init", "-q")
    words = [linter, "-shellcheck=", str(path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_its_parts_are_measured_and_merged(project: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, shard in enumerate(JOBS["measure"]["strategy"]["matrix"]["shard"]):
        told = {**os.environ, "BASE": "main", "SHARD": shard, "RUNNER_TEMP": str(tmp_path)}
        done = subprocess.run(["bash", "-e", "-c", script("measure", "Measure")], cwd=project, env=told, check=False)
        assert done.returncode == 0
        (tmp_path / "part").rename(parts / f"perf-part-{number}")
    parts.rename(project / "parts")
    merged = subprocess.run(["bash", "-e", "-c", script("gate", "Merge")], cwd=project, check=False)
    assert merged.returncode == 0
    told = {**os.environ, "GITHUB_STEP_SUMMARY": str(project / "summary")}
    subprocess.run(["bash", "-e", "-c", script("gate", "Files")], cwd=project, env=told, check=True)
    assert "PASS" in (project / "summary").read_text()
