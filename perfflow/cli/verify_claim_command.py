"""``perfflow verify-claim``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from perfflow.cli.console import shown, shown_path
from perfflow.cli.options import LOCK_TIMEOUT, SEED, limit
from perfflow.cli.output import say
from perfflow.jobs.receipts.verify_claim import Claim, JudgedClaim, as_json, claim_of, judged, prepared
from perfflow.jobs.run.run import FinishedRun, run
from perfflow.model.errors import Exit, UserError
from perfflow.model.result import Bounds
from perfflow.model.units import format_change
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import RECEIPT, REPORT, find
from perfflow.trees import repository


@click.command("verify-claim")
@click.argument("receipt")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter to another value.")
@click.option(
    "--isolate",
    type=click.Choice(["strict", "auto", "off"]),
    help="The sandbox of the patch (default: that of the claim's workflow, else strict).",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=limit,
    help="Longest time of the whole command, builds and checks included, such as 10m.",
)
@SEED
@LOCK_TIMEOUT
@click.option("--progress", type=click.Choice(["live", "plain", "off"]), help="Progress on stderr.")
@click.option("--json", "json_asked", is_flag=True, help="Print JSON.")
def command(
    receipt: str,
    settings: tuple[str, ...],
    isolate: str | None,
    budget: float | None,
    seed: int | None,
    lock_timeout: float,
    progress: str | None,
    json_asked: bool,
) -> int:
    """Measure again on this machine what a run claims of the candidate that it kept.

    RECEIPT is the receipt.json of the run, its folder, or its id. The folder may come from another machine. The current
    folder is a clone of the project that has the commit from which the candidate started. Its files are not changed,
    but commands of the claim's workflow are run.

    Exit: 0 reproduced, 1 not reproduced or a file does not match the receipt, 2 bad usage, 3 could not measure,
    4 unproven, 130 interrupted.
    """
    here = Path.cwd()
    root = repository.root_of(here)
    if root is None:
        raise UserError.of(f"{here} is not in a git repository", "change to a clone of the project of the claim")
    found = find(root, receipt)
    claim = claim_of(found.parent if found.name == RECEIPT else found, root)
    opened, request = prepared(claim, root, settings, isolate)
    opened.require_usable(to_run=True)
    request = replace(request, budget=budget, seed=seed, lock_timeout=lock_timeout)
    with shown(progress, opened, ("perfflow", "verify-claim", receipt)) as told:
        finished = run(opened, request, told)
    if finished.interrupted:
        return int(Exit.INTERRUPTED)
    verdict = judged(claim, finished.result)
    if json_asked:
        say(json.dumps(as_json(claim, verdict, finished.folder), ensure_ascii=False, indent=1))
    else:
        say("\n".join(map(visible, _lines(claim, verdict, finished))))
    return int(verdict.outcome.exit)


def _lines(claim: Claim, verdict: JudgedClaim, finished: FinishedRun) -> list[str]:
    machine, there = (result.machine.get("identity") for result in (finished.result, claim.result))
    return [
        f"{verdict.outcome}: {verdict.reason}",
        f"  claimed   {_gain(verdict.claimed)}  {claim.kept.benchmark} {claim.kept.metric}, run {claim.result.run.id}",
        f"  measured  {_gain(verdict.measured)}  on {'the same' if machine == there else 'another'} machine",
        f"report: {shown_path(finished.folder / REPORT)}",
    ]


def _gain(bounds: Bounds | None) -> str:
    if bounds is None or bounds.value is None:
        return "nothing"
    ends = ", ".join("?" if end is None else format_change(end) for end in (bounds.low, bounds.high))
    return f"{format_change(bounds.value)} [{ends}]"
