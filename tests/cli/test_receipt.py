"""``perfflow receipt verify`` finds any changed byte, and a verdict that does not follow from the samples."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from perfflow.store.receipts import manifest
from perfflow.store.run_folder import json_lines
from tests.cli.shell import perfflow, write


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
