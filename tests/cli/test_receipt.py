"""``perfflow receipt verify`` on real runs: finds changes, and receipts contain no secrets."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from perfflow.store.receipts import manifest
from perfflow.store.run_folder import json_lines
from tests.cli.shell import perfflow, write

FLOW = """\
params: {api_token: none}
data: [input.txt]
env: {DEPLOY_PASSWORD: public-password}
stages:
  setup:
    - run: echo ${{ params.api_token }} ${{ env.CI_TOKEN }} >&2
    - {argv: ["true", "${{ env.CI_TOKEN }}", "${{ params.api_token }}", "${{ env.DEPLOY_PASSWORD }}"]}
    - {run: "echo leak ${{ env.CI_TOKEN }} >&2; exit 3", continue-on-error: true}
  baseline:
    - {id: nap, uses: command, runs: 4, with: {command: "sleep 0.01"}}
"""
SECRETS = ("parameter-secret", "environment-secret")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run."""
    folder = tmp_path_factory.mktemp("project")
    write(folder, FLOW)
    (folder / "input.txt").write_text("input\n")
    env = {**os.environ, "CI_TOKEN": "environment-secret", "PLAIN": "a-plain-variable-of-the-environment"}
    done = perfflow("run", "flow.yaml", "--set", "api_token=parameter-secret", cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


def run_of(project: Path) -> Path:
    return (project / ".perfflow" / "runs" / "latest").resolve()


def verified(project: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    done = perfflow("receipt", "verify", "--json", *arguments, cwd=project)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def found(told: dict[str, object]) -> set[tuple[str, str]]:
    findings = told["findings"]
    assert isinstance(findings, list)
    return {(item["kind"], item["file"]) for item in findings}


def test_an_untouched_run_is_verified_also_after_it_was_reported_again(project: Path) -> None:
    before = verified(project)
    assert (before[0], before[1]["verified"], before[1]["findings"]) == (0, True, [])
    assert perfflow("report", cwd=project).returncode == 0
    assert verified(project) == before


def test_any_changed_byte_of_any_file_is_found(project: Path) -> None:
    chance = random.Random(20261120)
    run = run_of(project)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    assert {"events.jsonl", "receipt.json", "result.json", "report.md", "stderr"} <= {path.name for path in files}
    for path in files:
        whole = path.read_bytes()
        for place in {0, len(whole) - 1, chance.randrange(len(whole))}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            done = perfflow("receipt", "verify", cwd=project)
            assert done.returncode == 1, (path.name, place, done.stdout)
            assert path.name in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        path.write_bytes(whole)
    assert verified(project)[0] == 0


def test_a_missing_file_is_found_and_one_that_was_added_is_only_named(project: Path) -> None:
    run = run_of(project)
    (run / "notes.txt").write_text("mine")
    assert (verified(project)[0], found(verified(project)[1])) == (0, {("added", "notes.txt")})
    (run / "report.md").unlink()
    status, told = verified(project)
    assert status == 1
    assert ("missing", "report.md") in found(told)


def test_a_verdict_that_its_samples_do_not_give_is_found_although_all_hashes_fit(project: Path) -> None:
    run = run_of(project)
    text = (run / "result.json").read_text()
    forged = text.replace('"verdict": "pass"', '"verdict": "unproven"')
    assert forged != text
    (run / "result.json").write_text(forged)
    receipt = json.loads((run / "receipt.json").read_text())
    receipt["verdict"] = "unproven"
    receipt["files"]["result.json"] = hashlib.sha256(forged.encode()).hexdigest()
    receipt["seal"] = manifest.seal(receipt)
    (run / "receipt.json").write_text("".join(json_lines(receipt.items())))
    status, told = verified(project)
    assert status == 1
    assert found(told) == {("verdict", "result.json")}


def test_a_receipt_that_was_made_anew_is_told_by_its_own_hash(project: Path) -> None:
    digest = str(verified(project)[1]["sha256"])
    assert perfflow("receipt", "verify", "--sha256", digest, cwd=project).returncode == 0
    other = digest.replace(digest[0], "0" if digest[0] != "0" else "1")
    assert perfflow("receipt", "verify", "--sha256", other, cwd=project).returncode == 1


def test_changed_input_data_is_named(project: Path) -> None:
    (project / "input.txt").write_text("another\n")
    done = perfflow("receipt", "verify", cwd=project)
    assert done.returncode == 0
    assert "input data: input.txt: the input file has changed since the run" in done.stdout


def test_the_environment_of_a_baseline_is_compared(project: Path) -> None:
    assert perfflow("baseline", "save", "main", cwd=project).returncode == 0
    assert (verified(project, "--against", "main")[0], verified(project, "--against", "main")[1]["environment"]) == (
        0,
        [],
    )
    stored = project / ".perfflow" / "baselines" / "main" / "baseline.json"
    data = json.loads(stored.read_text())
    data["result"]["machine"] |= {"cpu": "another processor", "python": "2.7"}
    stored.write_text(json.dumps(data))
    done = perfflow("receipt", "verify", "--against", "main", cwd=project)
    assert done.returncode == 1
    assert "another machine: cpu: another processor -> " in done.stdout
    assert "differs: python: 2.7 -> " in done.stdout


def test_no_file_that_perfflow_writes_has_a_secret_or_the_environment(measured: Path) -> None:
    own = [path for path in run_of(measured).rglob("*") if path.is_file()]
    assert {"receipt.json", "events.jsonl", "result.json", "report.md", "stderr"} <= {path.name for path in own}
    for path in own:
        text = path.read_text()
        assert not [secret for secret in SECRETS if secret in text], path.name
        assert "a-plain-variable-of-the-environment" not in text
    assert '"true", "***", "***", "public-password"' in (run_of(measured) / "receipt.json").read_text()


def test_a_run_without_a_receipt_says_so(project: Path) -> None:
    (run_of(project) / "receipt.json").unlink()
    done = perfflow("receipt", "verify", cwd=project)
    assert done.returncode == 2
    assert "has no receipt.json" in done.stderr
