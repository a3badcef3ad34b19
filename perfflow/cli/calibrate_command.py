"""``perfflow calibrate``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from perfflow.cli.durations import LOCK_TIMEOUT, seconds
from perfflow.cli.output import say
from perfflow.errors import Exit

if TYPE_CHECKING:
    from perfflow.flow.calibrating import Calibration


@click.command("calibrate")
@click.argument("workflow")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--only", multiple=True, metavar="STEP", help="Calibrate only this step; may be repeated.")
@click.option("--trials", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Comparisons of a step.")
@click.option("--budget", default="5m", show_default=True, help="How long to measure in all.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the coins that order the pairs.")
@LOCK_TIMEOUT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    workflow: str,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    trials: int,
    budget: str,
    seed: int | None,
    lock_timeout: str,
    as_json: bool,
) -> int:
    """Find out which changes can be told on this machine: each step of WORKFLOW is compared with itself.

    What is found is kept in .perfflow/calibration, and later runs on this machine say what to expect.

    Exit: 0 calibrated, 2 bad usage or workflow, 3 could not measure, 130 interrupted (what was found is kept).
    """
    from perfflow.cli.progress import shown
    from perfflow.flow.calibrating import Asked, calibrate
    from perfflow.flow.opening import open_workflow

    total = seconds(f"--budget {budget}", budget, "write 20s or 5m")
    patience = seconds("--lock-timeout", lock_timeout)
    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=True)
    for problem in opened.problems:
        click.echo(problem.render(), err=True)
    words = ["perfflow", "run", workflow, *(f"--set={setting}" for setting in settings)]
    with shown("plain", opened, words) as told:
        found = calibrate(opened, Asked(only, trials, total, seed, patience), told)
    say(_json(found) if as_json else _text(found), end="")
    if found.interrupted:
        return int(Exit.INTERRUPTED)
    return int(Exit.PASS if found.entries and not found.failed else Exit.UNMEASURED)


def _json(found: Calibration) -> str:
    from perfflow.rundir.calibration import SCHEMA, to_json

    data = {
        "schema": SCHEMA,
        "workflow": found.workflow,
        "identity": found.identity,
        "seed": found.seed,
        "noise": found.noise or None,
        "interrupted": found.interrupted,
        "failed": [{"step": step, "reason": reason} for step, reason in found.failed],
        "skipped": [{"step": step, "reason": reason} for step, reason in found.skipped],
        "file": str(found.path),
        "entries": to_json(found.entries),
    }
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _text(found: Calibration) -> str:
    from perfflow.cli.style import style_of
    from perfflow.report.calibration_page import render

    style = style_of(sys.stdout)
    table = render([entry.finding for entry in found.entries], width=style.width, unicode=style.unicode)
    return "\n".join(filter(None, (table, *_notes(found, style.width, unicode=style.unicode)))) + "\n"


def _notes(found: Calibration, width: int, *, unicode: bool) -> list[str]:
    from perfflow.cli.verdict import shown_path
    from perfflow.report.plain import ascii_text, visible, wrapped

    lines = [f"{word} {step}: {reason}" for word, step, reason in _not_calibrated(found)]
    if found.noise:
        lines.append(f"the machine was {found.noise}; seed {found.seed}")
    if found.entries:
        lines.append(f"kept: {shown_path(found.path)}")
    shown = [visible(line) if unicode else ascii_text(visible(line)) for line in lines]
    return [part for line in shown for part in wrapped(line, width, "  ")]


def _not_calibrated(found: Calibration) -> list[tuple[str, str, str]]:
    failed = [("failed", step, reason) for step, reason in found.failed]
    return [*failed, *(("not calibrated", step, reason) for step, reason in found.skipped)]
