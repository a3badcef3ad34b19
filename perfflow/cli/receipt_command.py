"""``perfflow receipt``: checks whether the files of a run were changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from perfflow.cli.output import say
from perfflow.jobs.receipts.verify import Verified
from perfflow.jobs.receipts.verify import verify as verified
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.sanitize import visible
from perfflow.store.history.find_stored import open_source
from perfflow.store.run_folder import find
from perfflow.trees import repository


@click.group("receipt")
def command() -> None:
    """Work with receipts: the versions, environment, trees, command lines and file hashes of a run."""


@command.command("verify", short_help="Check whether a run was changed after it ended.")
@click.argument("run", default="latest")
@click.option(
    "--against",
    metavar="BASELINE|RUN",
    help="Also compare the machine and versions with those of a baseline, run or result.json.",
)
@click.option(
    "--sha256", "expected", metavar="HEX", help="The expected hash of the receipt itself, if you stored it elsewhere."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(run: str, against: str | None, expected: str | None, as_json: bool) -> int:
    """Compare RUN (default: the latest) with its receipt.

    perfflow hashes every file and judges the samples again. A receipt is not a signature: anyone who can write to the
    folder of the run can replace it. To detect that, store the printed hash of the receipt elsewhere.

    Exit: 0 nothing was changed; 1 something was changed, or the run of --against is of another machine; 2 there is no
    receipt.
    """
    root = repository.project_here()
    checked = verified(find(root, run), root, _other(root, against) if against else None)
    forged = expected is not None and expected.strip().lower() != checked.sha256
    other = any(item.decisive for item in checked.environment)
    if as_json:
        say(json.dumps(_as_json(checked, forged=forged), ensure_ascii=False, indent=1))
    else:
        say("\n".join(_lines(checked, forged=forged)))
    return 0 if checked.holds and not forged and not other else 1


def _other(root: Path, word: str) -> Result:
    found, _ = open_source(root, word)
    if not isinstance(found, Result):
        raise UserError.of(f"--against {word} is a file of another tool", "name a run, or a baseline saved from one")
    return found


def _lines(found: Verified, *, forged: bool) -> list[str]:
    holds = found.holds and not forged
    lines = [f"{found.run}: {'verified' if holds else 'NOT VERIFIED'}, {found.files} files, verdict {found.verdict}"]
    if forged:
        lines.append("  changed: receipt.json: its sha256 is not the expected one")
    lines += [f"  {item.kind}: {visible(item.file)}: {visible(item.detail)}" for item in found.findings]
    lines += [f"  input data: {visible(item.file)}: {item.detail}" for item in found.data]
    for item in found.environment:
        what = "another machine" if item.decisive else "differs"
        lines.append(f"  {what}: {visible(item.fact)}: {visible(item.before)} -> {visible(item.now)}")
    return [*lines, f"receipt: sha256 {found.sha256}"]


def _as_json(found: Verified, *, forged: bool) -> dict[str, Any]:
    return {
        "run": found.run,
        "verified": found.holds and not forged,
        "verdict": found.verdict,
        "sha256": found.sha256,
        "files": found.files,
        "findings": [asdict(item) for item in found.findings],
        "data": [asdict(item) for item in found.data],
        "environment": [asdict(item) for item in found.environment],
    }
