"""Workflows of installed packages: found by metadata, without importing the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.long import rest_long

FLOW = """\
perfflow: 1
description: Of a package.
extends: parts/limits.yaml
stages:
  baseline:
    - {id: program, uses: command, with: {command: 'true'}}
    - {id: words, uses: tools/words.yaml, with: {}}
"""
WORDS = "perfflow-tool: 1\nargv: [echo, 3 words]\nparse: {regex: '(?P<words>\\d+) words', units: {words: '1'}}\n"


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """A folder as installed by pip, on PYTHONPATH. Importing its package raises an error."""
    site = tmp_path / "site"
    for name, text in {
        "acme_perf/__init__.py": "raise SystemExit('imported')\n",
        "acme_perf/flows/latency.yaml": FLOW,
        "acme_perf/flows/parts/limits.yaml": "perfflow: 1\nthresholds: {concern: 3%}\n",
        "acme_perf/flows/tools/words.yaml": WORDS,
        "acme_perf-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-perf\nVersion: 1.2\n",
        "acme_perf-1.2.dist-info/entry_points.txt": "[perfflow.workflows]\nacme = acme_perf.flows\n",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return {"PYTHONPATH": str(site)}


@pytest.mark.long  # builds and installs a package
def test_a_workflow_of_a_package_is_extended_and_run(installed: dict[str, str], tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "own.yaml").write_text("perfflow: 1\nextends: pkg:acme/latency\nstages: {baseline: [{program: null}]}\n")
    assert perfflow("validate", "own.yaml", cwd=root, env=installed).returncode == 0
    done = perfflow("run", "own.yaml", "--budget=60s", "--progress=off", cwd=root, env=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = perfflow("show", "own.yaml", "--resolved", cwd=root, env=installed).stdout
    assert '  concern: "3%"  # pkg:acme/parts/limits.yaml:2' in shown
    listed = json.loads(perfflow("list", "--json", cwd=root, env=installed).stdout)["workflows"]
    (row,) = (row for row in listed if row["origin"] == "pkg:acme/latency")
    assert row["description"] == "Of a package."
    direct = perfflow("plan", "pkg:acme/latency", cwd=root, env=installed)
    assert "echo '3 words'" in direct.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    rest_long(
        [
            ("pkg:acme/latancy", "it has: latency"),
            ("pkg:acmee/latency", "installed here: pkg:acme/..."),
            ("pkg:acme/../__init__.py", "'..' cannot be a part of its path"),
            ("pkg:acme", "names no file"),
        ],
        keep=2,
    ),
)
def test_a_wrong_name_has_its_remedy(name: str, said: str, installed: dict[str, str], tmp_path: Path) -> None:
    done = perfflow("validate", name, cwd=tmp_path, env=installed)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_package_leads_nowhere_else(installed: dict[str, str], tmp_path: Path) -> None:
    flow = tmp_path / "site/acme_perf/flows/latency.yaml"
    flow.write_text("perfflow: 1\nextends: ../../../secret.yaml\n")
    (tmp_path / "secret.yaml").write_text("token: 1\n")
    (tmp_path / "project").mkdir()
    done = perfflow("validate", "pkg:acme/latency", cwd=tmp_path / "project", env=installed)
    assert (done.returncode, "token" in done.stderr) == (2, False)
    assert "leads out of pkg:acme/latency" in done.stderr
