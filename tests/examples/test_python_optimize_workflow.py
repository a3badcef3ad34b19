"""The workflow of the Python example on fewer rows: three candidates are proven, one is wrong, one brings nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.examples.trees import committed, copied
from tests.repositories import git

EXAMPLE, WORKFLOW = "examples/python-pipeline", "workflows/python-optimize.yaml"
PATCHES = "workflows/patches/python-optimize"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    return committed(copied(tmp_path / "clone", EXAMPLE, PATCHES, WORKFLOW, ".gitignore"))


@pytest.mark.long
def test_three_candidates_are_kept_and_two_are_not(clone: Path) -> None:
    settings = {"rows": "5000", "python": sys.executable, "budget": "60s"}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    done = perfflow(
        *("run", WORKFLOW, *words, "--unproven=pass", "--progress", "off", "--json"),
        cwd=clone,
        measured=True,
        timeout=1200,
    )
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["reasons"]
    tried = {item["id"]: item for item in result["optimizations"]}
    decisions = {name: item["decision"] for name, item in tried.items()}
    assert decisions == dict.fromkeys(("sort", "batch", "numpy"), "accepted") | {
        "float32": "rejected",
        "cache": "rejected",
    }
    assert "more than the allowed" in tried["float32"]["reason"]
    assert tried["cache"]["reason"].split(":")[0] in {"same", "unproven"}
    assert all(tried[name]["effect"]["low"] > 0.1 for name in ("sort", "batch", "numpy"))
    spots = [spot for spot in result["hotspots"] if spot["tree"] == "baseline"]
    assert {spot["source"] for spot in spots} >= {"py-spy", "cprofile", "line-profiler", "memray"}
    # So few rows make the two hottest functions near each other, and a sampler on a busy machine may swap them.
    for tool, among in (("py-spy", 2), ("cprofile", 1), ("line-profiler", 1)):
        ranked = sorted((spot for spot in spots if spot["source"] == tool), key=lambda spot: int(spot["rank"]))
        first = {(Path(spot["file"]).name, spot["location"]) for spot in ranked[:among]}
        assert ("pairing.py", "nearest") in first, tool
    own = {(spot["source"], Path(spot["file"]).name) for spot in spots}
    assert own >= {("py-spy", "smoothing.py"), ("cprofile", "smoothing.py"), ("line-profiler", "calibration.py")}
    assert {check["status"] for check in result["verification"]} == {"passed"}
    assert git(clone, "status", "--porcelain") == ""
    kept = git(clone, "diff", "--name-only", "main", result["trees"]["candidate"]["branch"]).split()
    assert sorted(Path(name).stem for name in kept) == ["calibration", "pairing", "smoothing"]


def test_the_command_of_the_example_is_not_the_users_to_set(clone: Path) -> None:
    done = perfflow("run", WORKFLOW, "--set", "command=python3 other.py", "--dry-run", cwd=clone)
    assert done.returncode == 2
    assert "--set command" in done.stderr
