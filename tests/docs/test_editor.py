"""What repositories with workflows use of this one: hooks for pre-commit, and the entry of a schema catalog."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.shell import perfflow
from tests.docs.console import blocks

ROOT = Path(__file__).parents[2]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
PAGE = ROOT / "docs" / "how-to" / "editor.md"


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: str(hook["id"]))
def test_a_hook_runs_on_the_files_that_it_names(hook: dict[str, Any], tmp_path: Path) -> None:
    name = "workflows/flow.yaml"
    assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "docs/flow.yaml")
    (tmp_path / "workflows").mkdir()
    text = "perfflow: 1\nname: flow\nstages:\n  baseline:\n    - {id: a, uses: command, with: {command: 'true'}}\n"
    (tmp_path / name).write_text(text)
    program, *words = shlex.split(hook["entry"])
    assert program == "perfflow"
    assert perfflow(*words, name, cwd=tmp_path).returncode == 0


def test_pre_commit_takes_the_hooks_and_the_page_names_them(tmp_path: Path) -> None:
    manifest, own = ROOT / ".pre-commit-hooks.yaml", tmp_path / "config.yaml"
    (shown,) = (text for text in blocks(PAGE, "yaml") if text.startswith("# .pre-commit"))
    own.write_text(shown)
    for words in (["validate-manifest", str(manifest)], ["validate-config", str(own)]):
        done = subprocess.run([sys.executable, "-m", "pre_commit", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (repo,) = yaml.safe_load(shown)["repos"]
    assert [item["id"] for item in repo["hooks"]] == [item["id"] for item in HOOKS]


def test_the_catalog_entry_names_the_schema() -> None:
    entry = json.loads((ROOT / "schemas" / "catalog-entry.json").read_text())
    assert entry.keys() == {"name", "description", "fileMatch", "url"}
    assert entry["url"].endswith("/schemas/workflow.schema.json")
