"""``perfflow run`` of the bundled example, and how a plan learns from a run how long it takes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import RUN, result_of
from tests.cli.shell import ROOT, perfflow, write

TOP_LEVEL = {
    *("schema", "run", "verdict", "gate", "evidence", "machine", "trees", "steps", "benchmarks", "targets"),
    *("profiles", "hotspots", "optimizations", "verification", "recommendations", "confirmations", "routes"),
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled example, run once in a copy of the clone."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "cli", folder / "examples" / "cli", ignore=shutil.ignore_patterns("build"))
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    # On a busy machine py-spy may attach only when the program of a quarter of a second is nearly done.
    flow = folder / "workflows" / "cli-command.yaml"
    longer = "with: {rate: 500, command: python3 examples/cli/python/summarize.py --lines=60000}"
    flow.write_text(flow.read_text().replace("with: {rate: 500}", longer))
    done = perfflow("run", "cli-command", "--json", "--seed", "7", cwd=folder, measured=True)
    (folder / "stdout.json").write_text(done.stdout)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def result(example: Path) -> dict[str, Any]:
    return result_of(example / RUN)


def test_json_has_every_key_of_the_contract_and_is_the_file(example: Path, result: dict[str, Any]) -> None:
    assert set(result) >= TOP_LEVEL
    assert (example / "stdout.json").read_text() == (example / RUN / "result.json").read_text()


def test_the_planted_gains_are_found(result: dict[str, Any]) -> None:
    times = ("time", "cpu", "uncontended")
    rows = {row["name"]: row for row in result["benchmarks"] if row["metric"] in times and row["gating"]}
    for name in ("wordfreq", "wordfreq/hyperfine", "summarize"):
        row = rows[name]
        assert row["decision"] == "improved"
        assert -0.6 < row["change"]["value"] < -0.2
        assert row["pairs"] == len(row["baseline"]["samples"]) >= 10


def test_the_profilers_name_the_planted_hotspots(result: dict[str, Any]) -> None:
    found = {(spot["source"], spot["location"]) for spot in result["hotspots"] if spot["tree"] == "baseline"}
    assert found >= {
        ("perf", "find_in_list"),
        ("py-spy", "remember_in_list"),
        ("cprofile", "remember_in_list"),
        ("massif", "allocate"),
    }


def test_every_target_is_judged_and_every_check_passed(result: dict[str, Any]) -> None:
    assert [target["status"] for target in result["targets"]] == ["met"] * 5
    checks = {check["id"]: check["status"] for check in result["verification"]}
    assert checks == {"same-counts": "passed", "same-summary": "passed"}


def test_profiles_are_files_with_their_hashes(example: Path, result: dict[str, Any]) -> None:
    assert {profile["step"] for profile in result["profiles"]} == {"cpu", "heap", "sampled", "calls"}
    for profile in result["profiles"]:
        content = (example / RUN / profile["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == profile["sha256"]


def test_judging_the_samples_or_the_result_again_gives_the_same_bytes(example: Path, tmp_path: Path) -> None:
    before = {name: (example / RUN / name).read_bytes() for name in ("result.json", "report.md")}
    outputs = [perfflow("report", cwd=example).stdout for _ in range(2)]
    assert outputs[0] == outputs[1] != ""
    assert {name: (example / RUN / name).read_bytes() for name in before} == before
    alone = Path(shutil.copy(example / RUN / "result.json", tmp_path / "artifact.json"))
    assert perfflow("report", str(alone), "--json", cwd=tmp_path).stdout == alone.read_text()
    assert list(tmp_path.iterdir()) == [alone]


def test_a_missing_hyperfine_exits_3_with_the_install_command(example: Path, tmp_path: Path) -> None:
    """Every program but hyperfine stays on PATH."""
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tmp_path / program.name
            if program.name != "hyperfine" and not link.is_symlink():
                link.symlink_to(program)
    done = perfflow("run", "cli-command", cwd=example, path=str(tmp_path))
    assert done.returncode == 3
    assert "apt-get install hyperfine" in done.stdout + done.stderr
    assert done.stdout.startswith("✗ ERROR")


def test_a_plan_says_how_long_it_takes_by_earlier_runs(tmp_path: Path) -> None:
    nap = "{id: nap, uses: command, budget: 4s, with: {command: sleep 0.1}}"
    off = "{id: off, run: 'true', if: 'false'}"
    write(tmp_path, f"stages: {{build: [{{id: make, run: 'true'}}], baseline: [{nap}], profile: [{off}]}}")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path).returncode == 0
    took = {step["id"]: step["seconds"] for step in result_of(tmp_path / RUN)["steps"]}
    data = json.loads(perfflow("plan", "flow.yaml", "--format", "json", cwd=tmp_path).stdout)
    known = {step["id"]: step["expected"] for step in data["steps"]}
    assert (known["nap"]["seconds"], known["nap"]["from"], known["nap"]["runs"]) == (took["nap"], "runs", 1)
    assert known["off"] is None
    assert data["expected"]["seconds"] == pytest.approx(took["make"] + took["nap"])
    assert (data["expected"]["limit"], data["expected"]["unknown"]) == (False, [])
    dry = perfflow("run", "-n", "flow.yaml", "--budget", "2s", cwd=tmp_path).stdout
    assert ", from the last run with another budget" in dry
    assert dry.endswith(", from the last run\n")
