"""The recipes of the pages about CI, and how tests run them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.docs.console import blocks
from tests.repositories import git

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "ci.md"
HOW_TO = ROOT / "docs" / "how-to"
KINDS = ("yaml", "sh", "just", "ini", "python", "toml", "rust")
PINNED = re.compile(r"perfflow-cli(\[tools\])? @ git\+https://git\.example\.com/perfflow\.git@[0-9a-f]{40}")
FLOW = """perfflow: 1
name: perf
stages:
  baseline:
    - {id: cost, run: cat costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
"""


def recipes(page: Path, *kinds: str) -> dict[str, str]:
    """Return the files that a page shows: each begins with a comment that names it."""
    return {text.split(maxsplit=2)[1]: text for kind in kinds for text in blocks(page, kind)}


OF_CI = recipes(PAGE, "yaml", "sh") | recipes(HOW_TO / "messages.md", "sh")
OF_RUNNERS = recipes(HOW_TO / "ci-recipes.md", *(kind for kind in KINDS if kind != "sh"))
OF_HISTORY = recipes(HOW_TO / "history.md", "yaml")
GITHUB = {
    name: text for page in (OF_CI, OF_RUNNERS, OF_HISTORY) for name, text in page.items() if name.startswith(".github/")
}


def github(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true; GitHub does not.
    known: dict[Any, Any] = yaml.safe_load(GITHUB[name])
    return {"on" if key is True else key: value for key, value in known.items()}


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in github(name)["jobs"].values() for step in job["steps"]]


def run(words: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=900, check=False
    )


def run_script(lines: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the lines of a job but the installation, which stands in one of them: what is tested is this tree."""
    script = [line for line in lines if "pip install" not in line]
    assert len(script) == len(lines) - 1
    return run(["bash", "-eo", "pipefail", "-c", "\n".join(script)], folder, **env)


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """Make a repository with these files in one commit on its branch main."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root
