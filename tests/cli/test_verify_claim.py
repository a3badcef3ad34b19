"""``perfflow verify-claim``: a claim from another clone is measured again, and judged by both intervals."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.receipts.verify_claim import Claim as StoredClaim
from perfflow.jobs.receipts.verify_claim import ClaimOutcome, judged
from perfflow.model.errors import UserError
from perfflow.model.judging import Outcome
from perfflow.model.result import Bounds, Optimization, Result
from perfflow.store.receipts import manifest
from perfflow.store.record import Record
from perfflow.store.run_folder import json_lines
from tests.cli.shell import perfflow, write
from tests.repositories import git

BASE = """\
stages:
  baseline:
    - id: cost
      run: sh cost.sh ${{ params.size }} ${{ params.key_token }}
      runs: 8
      parse: {regex: 'cost (?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
  verify:
    - {id: right, run: sh cost.sh 1 x}
"""
FLOW = """\
name: work
extends: base.yaml
report: {template: own.md.j2}
params: {size: {default: 4}, key_token: {default: none}}
stages:
  profile:
    - {id: look, run: 'true'}
  optimize:
    objective: cost cost
    steps:
      - {id: nothing, technique: algorithm, why: a comment, run: 'echo "# x" >> src/cost'}
      - {id: cheaper, technique: algorithm, why: cost less, run: 'sed -i s/100/50/ src/cost'}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``author``, a project with uncommitted changes and a run, and ``claim``, the folder of that run."""
    root = tmp_path_factory.mktemp("claims")
    author = root / "author"
    (author / "src").mkdir(parents=True)
    git(author, "init", "-q")
    (author / "src" / "cost").write_text("100\n")
    (author / "other").write_text("x\n")
    git(author, "add", "-A")
    git(author, "commit", "-qm", "one")
    write(author, BASE, "base.yaml")
    write(author, FLOW)
    (author / "own.md.j2").write_text("{{ section('verdict') }}\n")
    # Neither the workflow nor the benchmark is in the commit.
    (author / "cost.sh").write_text('echo cost $(($(head -n 1 src/cost) + $(cat "$COSTS" 2>/dev/null || echo 0)))\n')
    env = {"XDG_CACHE_HOME": str(root / "cache")}
    done = perfflow(
        "run", "flow.yaml", "--set=size=9", "--set=key_token=hidden-value", "--progress=off", cwd=author, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree((author / ".perfflow" / "runs" / "latest").resolve(), root / "claim")
    return root


@pytest.fixture
def clone(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another clone, at a later commit and with changes of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    git(made, "clone", "-q", str(made / "author"), str(tmp_path / "clone"))
    (tmp_path / "clone" / "src" / "cost").write_text("7\n")
    git(tmp_path / "clone", "commit", "-qam", "later")
    (tmp_path / "clone" / "other").write_text("mine\n")
    return tmp_path / "clone"


def verified(clone: Path, claim: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return perfflow("verify-claim", str(claim), "--isolate=auto", "--progress=off", *words, cwd=clone)


GIVEN = "--set=key_token=hidden-value"


def test_a_claim_is_reproduced_in_another_clone_whose_files_stay(made: Path, clone: Path) -> None:
    done = verified(clone, made / "claim" / "receipt.json", "--json", GIVEN)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["outcome"], told["candidate"], told["accept"]) == ("reproduced", "cheaper", 0.1)
    assert told["claimed"]["value"] == told["measured"]["value"] == 0.5
    result = json.loads((Path(told["folder"]) / "result.json").read_text())
    assert result["run"]["params"]["size"] == 9
    assert (
        result["trees"]["baseline"]["revision"] == told["revision"] == git(made / "author", "rev-parse", "HEAD").strip()
    )
    assert git(clone, "status", "--short") == " M other\n"
    assert (clone / "src" / "cost").read_text() == "7\n"


def test_a_smaller_gain_is_not_reproduced(made: Path, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone.parent / "costs").write_text("100\n")
    monkeypatch.setenv("COSTS", str(clone.parent / "costs"))
    # The costs of this machine are outside of the tree, where a sandbox would hide them.
    done = verified(clone, made / "claim", GIVEN, "--isolate=off")
    assert done.returncode == 1, done.stdout + done.stderr
    # 200 -> 150 is more than `accept`, and half of what was claimed.
    assert "not reproduced: it gains less than was claimed" in done.stdout
    assert "+25.0%" in done.stdout


def test_a_secret_of_the_claim_is_asked_for(made: Path, clone: Path) -> None:
    done = verified(clone, made / "claim")
    assert done.returncode == 2
    assert "--set key_token=VALUE" in done.stderr


def test_a_clone_without_the_commit_says_where_to_get_it(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    done = verified(tmp_path, made / "claim")
    assert done.returncode == 2
    assert "git fetch origin" in done.stderr


def test_a_changed_file_of_the_run_is_not_measured(made: Path, clone: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "claim", tmp_path / "forged")
    diff = tmp_path / "forged" / "steps" / "cheaper" / "change.diff"
    diff.write_text(diff.read_text().replace("+50", "+40"))
    done = verified(clone, tmp_path / "forged")
    assert done.returncode == 1
    assert "steps/cheaper/change.diff" in done.stderr


def test_a_patch_that_was_exchanged_before_the_receipt_was_written_is_not_measured(
    made: Path, clone: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(made / "claim", forged)
    diff = forged / "steps" / "cheaper" / "change.diff"
    diff.write_text(diff.read_text().replace("+50", "+40"))
    receipt = json.loads((forged / "receipt.json").read_text())
    receipt["files"]["steps/cheaper/change.diff"] = manifest.sha256(diff)
    receipt["seal"] = manifest.seal(receipt)
    (forged / "receipt.json").write_text("".join(json_lines(receipt.items())))
    assert perfflow("receipt", "verify", str(forged), cwd=clone).returncode == 0
    done = verified(clone, forged, GIVEN)
    assert done.returncode == 1
    assert "not the patch that the run judged" in done.stderr


def test_a_run_without_a_kept_candidate_makes_no_claim(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "stages:\n  baseline: [{id: nap, run: sleep 0.01, runs: 4}]\n")
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    done = perfflow("verify-claim", "latest", cwd=tmp_path)
    assert done.returncode == 2
    assert "kept 0 candidates" in done.stderr


def tried(low: float | None, high: float | None, decision: str = "accepted", **keys: Any) -> Optimization:
    effect = Bounds(value=0.3, low=low, high=high)
    about: dict[str, Any] = {"id": "x", "technique": "io", "why": "w", "reason": "why", "decision": decision}
    return Optimization(**about | {"effect": effect} | keys)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (tried(0.25, 0.35), "reproduced"),
        (tried(0.41, 0.60), "reproduced"),
        (tried(0.11, 0.19), "not reproduced"),
        (tried(0.01, 0.09, "rejected"), "not reproduced"),
        (tried(0.05, 0.25, "rejected"), "unproven"),
        (tried(None, None, "rejected"), "unproven"),
        (tried(0.25, 0.35, "rejected", outcome=Outcome.HARMFUL), "not reproduced"),
        (tried(0.25, 0.35, "rejected", outcome=Outcome.UNDECIDED), "unproven"),
        (tried(None, None, "rejected", effect=None, outcome=Outcome.INCORRECT), "not reproduced"),
        (tried(None, None, "rejected", effect=None, outcome=Outcome.CANNOT_JUDGE), "unproven"),
    ],
)
def test_the_outcome_follows_from_both_intervals(made: Path, found: Optimization, outcome: str) -> None:
    """The claim is 20% to 40%, and 10% are asked for."""
    result = Result.model_validate_json((made / "claim" / "result.json").read_text())
    claim = StoredClaim(made, result, Record(), tried(0.2, 0.4), 0.1, "")
    assert judged(claim, result.model_copy(update={"optimizations": [found]})).outcome == ClaimOutcome(outcome)


def test_a_candidate_that_was_not_tried_is_not_measured(made: Path) -> None:
    result = Result.model_validate_json((made / "claim" / "result.json").read_text())
    claim = StoredClaim(made, result, Record(), tried(0.2, 0.4), 0.1, "")
    with pytest.raises(UserError, match="could not be measured: why"):
        judged(claim, result.model_copy(update={"optimizations": [tried(None, None, "skipped", effect=None)]}))


def test_a_comment_for_maintainers_says_what_is_known(made: Path) -> None:
    done = perfflow("export", "--format=claim", "--claimed=3x", cwd=made / "author")
    assert "`cheaper`: claimed 3x; measured 2.00x" in done.stdout
    assert "1 file touched, 0 of 1 files outside of src/" in done.stdout
    assert "isolation: none" in done.stdout
    there = perfflow("export", str(made / "claim"), "--format=claim", cwd=made)
    assert "1 file touched, none outside of src/" in there.stdout
    refused = perfflow("export", "--claimed=3x", cwd=made / "author")
    assert (refused.returncode, "--format claim" in refused.stderr) == (2, True)
