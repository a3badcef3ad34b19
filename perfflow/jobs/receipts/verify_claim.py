"""Measure the claim of a run again: that a patch, the candidate that it kept, gains so much.

- ``claim_of`` reads the claim from the folder of the run, which may come from another machine.
- ``prepared`` writes a workflow with the patch as its only candidate into the project, and finds the tree before it.
- ``judged`` compares what was measured here with what was claimed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from perfflow.jobs.receipts.verify import verify
from perfflow.jobs.run.run import RunRequest
from perfflow.model.errors import Exit, UserError
from perfflow.model.judging import Outcome
from perfflow.model.result import Bounds, Optimization, Result
from perfflow.report.template import TEMPLATES
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.store import result_file, run_folder
from perfflow.store.record import Record, record_of
from perfflow.tools import regular_files
from perfflow.tools.adapter import Role
from perfflow.trees import commits, patches
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import MESSAGE, at
from perfflow.workflow.roles import CANDIDATES_STAGE

_WORKFLOW, _PATCH, _JUDGE = "claimed.yaml", "change.patch", "judge.yaml"
_HIDDEN = "***"
_NOT_THE_PATCH = (Outcome.CANNOT_JUDGE, Outcome.UNDECIDED)


class ClaimOutcome(StrEnum):
    """Whether a claim holds here."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNPROVEN = "unproven"

    @property
    def exit(self) -> Exit:
        """The exit status of the command."""
        return {"reproduced": Exit.PASS, "not reproduced": Exit.FAIL, "unproven": Exit.UNPROVEN}[self]


@dataclass(frozen=True)
class Claim:
    """What a run claims of the candidate that it kept, and its files. ``accept``: the least gain, as a share."""

    folder: Path
    result: Result
    record: Record
    kept: Optimization
    accept: float
    revision: str

    def file(self, name: str) -> bytes:
        """Return a file of the run; b"" if there is none. Raises UserError if it cannot be read."""
        try:
            return regular_files.read(self.folder / name)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise UserError.of(f"{self.folder / name}: {error.strerror}", "copy the whole folder of the run") from error


@dataclass(frozen=True)
class JudgedClaim:
    """A claim beside what was measured here: gains as shares of the baseline, up is better."""

    outcome: ClaimOutcome
    reason: str
    claimed: Bounds
    measured: Bounds | None


def claim_of(folder: Path, root: Path) -> Claim:
    """Read the claim of a run. ``root``: the project in which it is measured again.

    Raises UserError if files do not match the receipt, if the run did not keep exactly one candidate, if it is not
    known from which commit it started, and if it was made by a version that did not store its workflow.
    """
    verified = verify(folder, root)
    broken = next((finding for finding in verified.findings if finding.breaks), None)
    if broken:
        text = f"{folder}: the run does not match its receipt: {broken.file}: {broken.detail}"
        raise UserError.of(
            text, "`perfflow receipt verify` lists all differences; get the run from its author", Exit.FAIL
        )
    result, record = result_file.read(folder / run_folder.RESULT), record_of(run_folder.events(folder))
    kept = [item for item in result.optimizations if item.decision == "accepted"]
    if len(kept) != 1 or kept[0].effect is None:
        text = f"{folder}: the run kept {len(kept)} candidates, so it makes no claim about a single one"
        raise UserError.of(text, "name a run that kept exactly one candidate, such as one with `--only CANDIDATE`")
    revision = (result.trees.get("baseline") or {}).get("revision")
    if not revision or not (folder / run_folder.WORKFLOW).is_file() or result.run.accept is None:
        what = run_folder.WORKFLOW if revision else "the commit that the candidate started from"
        raise UserError.of(f"{folder}: the run does not contain {what}", "run it again in a commit, with this perfflow")
    claim = Claim(folder, result, record, kept[0], result.run.accept, revision)
    told = kept[0].diff
    if told and _HIDDEN not in told and claim.file(kept[0].diff_file).decode(errors="replace") != told:
        # The events have the patch too, and no other program can change them during the run.
        text = f"{folder / kept[0].diff_file}: not the patch that the run judged"
        raise UserError.of(text, "get the run from its author; a program changed the file during the run", Exit.FAIL)
    return claim


def prepared(claim: Claim, root: Path, settings: Sequence[str], isolate: str | None) -> tuple[Opened, RunRequest]:
    """Write the workflow that measures the claim, and return it with the request to run it.

    settings: ``NAME=VALUE`` for parameters in place of the claim's. isolate: the sandbox, None for that of the claim's
    workflow, else strict. Raises UserError, with a remedy if the project lacks the commit that the claim started from.
    """
    repository = open_repository(root, with_submodules="auto")
    base = _base(claim, repository)
    opened = open_workflow(str(_written(claim, root, isolate)), _settings(claim, settings))
    stages = dict.fromkeys(item.stage for item in opened.plan.steps if item.role not in (Role.MEASURE, Role.PROFILE))
    about = {"kind": "revision", "revision": claim.revision, "branch": None, "dirty": base.commit != claim.revision}
    return opened, RunRequest(stages=tuple(stages), original=base, about_base=about)


def _base(claim: Claim, repository: Repository) -> CodeState:
    """Return the tree that the candidate started from. Raises UserError."""
    try:
        base = at(repository, claim.revision)
    except UserError as error:
        text = f"the claim starts from commit {claim.revision}, which {repository.root} does not have"
        raise UserError.of(text, f"git fetch origin {claim.revision}, or change to a clone of that project") from error
    changes = claim.file(run_folder.BASE)
    if changes:
        tree = patches.apply(repository, base.tree, changes, name=run_folder.BASE)
        base = CodeState(commits.write(repository, tree, [base.commit], MESSAGE), tree)
    if base.tree != claim.record.original:
        text = f"commit {claim.revision} with {run_folder.BASE} is not the tree that the candidate started from"
        raise UserError.of(text, "check out the same submodules as the claim's author; nothing else is known to differ")
    return base


def _settings(claim: Claim, given: Sequence[str]) -> list[str]:
    """Return the claim's parameters as settings, then those that were given. Raises UserError for a missing secret."""
    own = {item.partition("=")[0] for item in given}
    hidden = [name for name, value in claim.result.run.params.items() if _HIDDEN in str(value) and name not in own]
    if hidden:
        text = f"the parameter {hidden[0]!r} of the claim is a secret, which its files do not contain"
        raise UserError.of(text, f"set it with --set {hidden[0]}=VALUE")
    stored = (f"{name}={_setting(value)}" for name, value in claim.result.run.params.items() if name not in own)
    return [*stored, *given]


def _setting(value: object) -> str:
    """Return the value of a parameter as `--set` takes it."""
    if isinstance(value, list):
        return ",".join(map(_setting, value))
    return value if isinstance(value, str) else json.dumps(value)


def _written(claim: Claim, root: Path, isolate: str | None) -> Path:
    """Write the claim's workflow, its patch, and a workflow that has it as the only candidate; return the last."""
    kept, candidates = claim.kept, [item for item in claim.record.planned.items() if item[1].role == "candidate"]
    step: dict[str, Any] = {"id": "claimed", "technique": kept.technique, "why": kept.why or kept.id}
    step |= {"env": dict(kept.env)} if kept.env else {}
    step |= {"params": dict(kept.params)} if kept.params else {}
    step |= {"patch": _PATCH} if kept.diff_file else {}
    if kept.technique == "compute":
        step["allow"] = {"compute-first": "one patch is judged on its own"}
    others = dict.fromkeys(name.partition("[")[0] for name, _ in candidates)
    stage: dict[str, Any] = {"steps": [*({name: None} for name in others), step]}
    # A template of the claim's own is not needed to measure it.
    report = {"template": TEMPLATES[0]}
    text = {"perfflow": 1, "extends": _WORKFLOW, "report": report, "stages": {CANDIDATES_STAGE: stage}}
    folder = run_folder.home(root) / run_folder.PATCHES / f"claim-{run_folder.file_name(claim.result.run.id)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        run_folder.write_bytes(folder / _WORKFLOW, [claim.file(run_folder.WORKFLOW)])
        own = open_workflow(str(folder / _WORKFLOW)).draft.workflow.stages.get(CANDIDATES_STAGE)
        # The author of a claim may trust the patch; who verifies it does not know either.
        stage["isolate"] = isolate or (own and own.isolate) or "strict"
        run_folder.write_bytes(folder / _PATCH, [claim.file(kept.diff_file)] if kept.diff_file else [])
        run_folder.write_text(folder / _JUDGE, json.dumps(text, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise UserError.of(f"cannot write {error.filename}: {error.strerror}", "make the folder writable") from error
    return folder / _JUDGE


def judged(claim: Claim, result: Result) -> JudgedClaim:
    """Compare a claim with the result of measuring it again. Raises UserError if nothing could be measured."""
    claimed = claim.kept.effect or Bounds(value=None, low=None, high=None)
    tried = result.optimizations[0] if result.optimizations else None
    if tried is None or tried.decision == "skipped" or result.run.interrupted:
        why = tried.reason if tried and tried.reason else "; ".join(result.reason_texts)
        raise UserError.of(f"the claim could not be measured: {why}", "see the report of the run", Exit.UNMEASURED)
    outcome, reason = _outcome(claimed, tried, claim.accept)
    return JudgedClaim(outcome, reason, claimed, tried.effect)


def _outcome(claimed: Bounds, tried: Optimization, accept: float) -> tuple[ClaimOutcome, str]:
    if tried.effect is None:
        undecided = tried.outcome in _NOT_THE_PATCH
        return (ClaimOutcome.UNPROVEN if undecided else ClaimOutcome.NOT_REPRODUCED), tried.reason
    low, high = _ends(tried.effect)
    if high < accept:
        return ClaimOutcome.NOT_REPRODUCED, f"it gains less than the {accept:.0%} that the workflow asks for"
    if high < _ends(claimed)[0]:
        return (
            ClaimOutcome.NOT_REPRODUCED,
            "it gains less than was claimed: its whole interval is below the claimed one",
        )
    if tried.decision == "rejected" and low > accept and tried.outcome not in _NOT_THE_PATCH:
        return ClaimOutcome.NOT_REPRODUCED, tried.reason
    if tried.decision == "accepted" and low > accept:
        return ClaimOutcome.REPRODUCED, f"its gain is proven to exceed the {accept:.0%} that the workflow asks for"
    return ClaimOutcome.UNPROVEN, tried.reason


def _ends(bounds: Bounds) -> tuple[float, float]:
    """Return the ends of an interval; those that are not known are infinite."""
    low, high = bounds.low, bounds.high
    return -math.inf if low is None else low, math.inf if high is None else high


def as_json(claim: Claim, found: JudgedClaim, folder: Path) -> Mapping[str, Any]:
    """Return what `perfflow verify-claim --json` prints. ``folder``: the run that measured the claim again."""
    return {
        "outcome": found.outcome,
        "reason": found.reason,
        "claim": claim.result.run.id,
        "candidate": claim.kept.id,
        "revision": claim.revision,
        "benchmark": claim.kept.benchmark,
        "metric": claim.kept.metric,
        "accept": claim.accept,
        "claimed": found.claimed.model_dump(),
        "measured": found.measured and found.measured.model_dump(),
        "folder": str(folder),
    }
