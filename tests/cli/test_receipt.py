"""``perfflow receipt verify`` finds any changed byte, and a verdict that does not follow from the samples.

A run finds what a program that it measures writes into its events and into perfflow's own files.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.store.receipts import manifest
from perfflow.store.receipts.manifest import PACKAGE, changed_files, hash_of, own_files
from perfflow.store.run_folder import json_lines
from tests.cli.running import result_of
from tests.cli.shell import ROOT, perfflow, write
from tests.docs.console import blocks
from tests.long import rest_long
from tests.repositories import git


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run."""
    write(
        tmp_path,
        "stages:\n  setup: [run: echo said >&2]\n"
        "  baseline: [{id: nap, uses: command, runs: 4, with: {command: sleep 0.01}}]\n",
    )
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    return (tmp_path / ".perfflow" / "runs" / "latest").resolve()


def test_any_changed_byte_of_any_file_is_found(run: Path, tmp_path: Path) -> None:
    chance = random.Random(20261120)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    assert {"events.jsonl", "receipt.json", "result.json", "report.md", "stderr"} <= {path.name for path in files}
    for path in files:
        whole = path.read_bytes()
        for place in {0, len(whole) - 1, chance.randrange(len(whole))}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            done = perfflow("receipt", "verify", cwd=tmp_path)
            assert done.returncode == 1, (path.name, place, done.stdout)
            assert path.name in done.stdout + done.stderr
            assert "Traceback" not in done.stderr
        path.write_bytes(whole)
    assert perfflow("receipt", "verify", cwd=tmp_path).returncode == 0


def test_a_verdict_that_its_samples_do_not_give_is_found_although_all_hashes_fit(run: Path, tmp_path: Path) -> None:
    text = (run / "result.json").read_text()
    forged = text.replace('"verdict": "pass"', '"verdict": "unproven"')
    assert forged != text
    (run / "result.json").write_text(forged)
    receipt = json.loads((run / "receipt.json").read_text())
    receipt["verdict"] = "unproven"
    receipt["files"]["result.json"] = hashlib.sha256(forged.encode()).hexdigest()
    receipt["seal"] = manifest.seal(receipt)
    (run / "receipt.json").write_text("".join(json_lines(receipt.items())))
    done = perfflow("receipt", "verify", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert [(item["kind"], item["file"]) for item in json.loads(done.stdout)["findings"]] == [
        ("verdict", "result.json")
    ]


FLOW = """\
name: work
stages:
  baseline:
    - id: cost
      run: sh cost.sh
      runs: 8
      parse: {regex: 'cost (?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
  profile:
    - {id: look, run: 'true'}
  optimize:
    objective: cost cost
    steps:
      - {id: cheaper, technique: algorithm, why: cost less, patch: cheaper.diff}
  verify:
    - {id: right, run: sh cost.sh}
    - {id: after, compare: baseline}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose candidate lowers the cost, and then runs ``forge.py``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    write(root, FLOW)
    (root / "cost.sh").write_text("echo cost 100\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    (root / "cost.sh").write_text(f"echo cost 50\n{sys.executable} {tmp_path}/forge.py\n")
    (root / "cheaper.diff").write_text(git(root, "diff"))
    git(root, "checkout", "-q", "cost.sh")
    return root


FORGE = """
import glob, pathlib
[path] = pathlib.Path({run!r}).glob("20*/events.jsonl")
content = path.read_bytes()
with path.open("r+b") as stream:
    stream.write({change})
"""
CHANGES = {
    # The samples of the candidate are halved in place.
    "a sample": "content.replace(b'\"value\":50.0', b'\"value\":25.0')",
    "an event": 'content + b\'{"event":"end","time":"2026-01-01T00:00:00Z"}\\n\'',
}


@pytest.mark.parametrize("what", rest_long(CHANGES))
def test_a_measured_program_that_forges_events_gets_no_pass_and_no_branch(project: Path, what: str) -> None:
    forge = FORGE.format(run=str(project / ".perfflow" / "runs"), change=CHANGES[what])
    (project.parent / "forge.py").write_text(forge)
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project)
    assert done.returncode == 3, done.stdout + done.stderr
    result = result_of(project / ".perfflow" / "runs" / "latest")
    assert result["verdict"] == "error"
    assert result["reasons"][0]["kind"] == "altered"
    assert result["reasons"][0]["values"]["what"] == "events"
    (tried,) = result["optimizations"]
    assert (tried["decision"], tried["outcome"], tried["code"]) == ("rejected", "forbidden", "run-changed")
    assert git(project, "for-each-ref", "refs/heads/perfflow") == ""
    checked = perfflow("receipt", "verify", "--json", cwd=project)
    assert checked.returncode == 1
    (found,) = json.loads(checked.stdout)["findings"]
    assert (found["kind"], found["file"]) == ("changed", "events.jsonl")
    again = perfflow("report", "latest", "--json", cwd=project)
    assert json.loads(again.stdout)["verdict"] == "error"


def test_samples_that_a_measured_program_made_unreadable_are_an_error_with_a_remedy(project: Path) -> None:
    forge = FORGE.format(run=str(project / ".perfflow" / "runs"), change="b'{' * 9")
    (project.parent / "forge.py").write_text(forge)
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project)
    assert done.returncode == 3
    assert "events.jsonl:1" in done.stderr
    assert "isolate: strict" in done.stderr


@pytest.mark.parametrize("file", rest_long(["execute/child.py", "execute/planted.py"]))
def test_a_candidate_that_rewrites_perfflow_is_an_error_that_names_the_file(
    project: Path, tmp_path: Path, file: str
) -> None:
    copy = tmp_path / "site" / "perfflow"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (project.parent / "forge.py").write_text(f"open({str(copy / file)!r}, 'a').write('# mine\\n')\n")
    env = {"PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=project, env=env, fresh=True)
    assert done.returncode == 3, done.stdout + done.stderr
    result = result_of(project / ".perfflow" / "runs" / "latest")
    assert result["reasons"][0]["values"] == {"what": "perfflow", "where": [file]}
    assert result["optimizations"][0]["decision"] == "rejected"


def test_the_receipt_of_a_run_with_candidates_has_the_hash_of_perfflow(project: Path) -> None:
    (project.parent / "forge.py").write_text("")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=project).returncode == 0
    receipt = json.loads((project / ".perfflow" / "runs" / "latest" / "receipt.json").read_text())
    assert receipt["own_files"] == hash_of(own_files())
    assert perfflow("receipt", "verify", cwd=project).returncode == 0


def test_the_lines_of_python_that_the_page_shows_check_a_chain(run: Path) -> None:
    [script] = [text for text in blocks(ROOT / "docs" / "how-to" / "agents.md", "python") if "chain" in text]
    argv = [sys.executable, "-c", script]
    assert subprocess.run(argv, cwd=run, capture_output=True, text=True, check=True).stdout == "True\n"
    events = run / "events.jsonl"
    content = events.read_bytes()
    # The last line is missing: the chain holds, but is not that of the receipt.
    events.write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])
    assert subprocess.run(argv, cwd=run, capture_output=True, text=True, check=True).stdout == "False\n"
    events.write_bytes(content.replace(b'"sample"', b'"sampel"', 1))
    assert "AssertionError" in subprocess.run(argv, cwd=run, capture_output=True, text=True, check=False).stderr


def test_the_same_files_have_the_same_hash_and_modules_compiled_since_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("a.py", "b.py", "__pycache__/a.cpython-311.pyc", "__pycache__/b.cpython-311.pyc"):
        (tmp_path / name).write_text(name)
    os.utime(tmp_path / "__pycache__" / "b.cpython-311.pyc", (0, 0))
    before = own_files(tmp_path)
    assert changed_files(before, tmp_path) == []
    (tmp_path / "__pycache__" / "b.cpython-311.pyc").write_text("compiled again, since it was older than its source")
    (tmp_path / "__pycache__" / "c.cpython-311.pyc").write_text("compiled")
    assert changed_files(before, tmp_path) == []
    assert hash_of(own_files(tmp_path)) == hash_of(before)
    (tmp_path / "__pycache__" / "a.cpython-311.pyc").write_text("forged")
    (tmp_path / "b.py").unlink()
    assert changed_files(before, tmp_path) == ["__pycache__/a.cpython-311.pyc", "b.py"]
    assert hash_of(own_files(tmp_path)) != hash_of(before)
