"""``perfflow calibrate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from perfflow.cli.console import shown, shown_path
from perfflow.cli.options import LOCK_TIMEOUT, SEED, THE_WORKFLOW, TRUST, placed, seconds
from perfflow.cli.output import say, tell
from perfflow.cli.style import style_of
from perfflow.jobs.calibrate.calibrate import CalibrateRequest, Calibration, calibrate
from perfflow.jobs.cluster.placed_run import Placement, placed_command
from perfflow.model.errors import Exit, UserError
from perfflow.report.bisect_page import render
from perfflow.report.sanitize import ascii_text, visible, wrapped
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.store import calibrations
from perfflow.store.calibrations import CalibrationEntry


@click.command("calibrate")
@THE_WORKFLOW
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--only", multiple=True, metavar="STEP", help="Calibrate only this step; may be repeated.")
@click.option("--trials", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Comparisons per step.")
@click.option("--budget", default="5m", metavar="TIME", show_default=True, help="Longest time to measure in total.")
@click.option("--executor", metavar="NAME", help="Where to measure: an executor of executors.yaml, or `local`.")
@SEED
@LOCK_TIMEOUT
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    workflow: str,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    trials: int,
    budget: str,
    executor: str | None,
    seed: int | None,
    lock_timeout: float,
    trust: bool,
    as_json: bool,
) -> int:
    """Measure how small a change this machine can detect: compare each step of WORKFLOW with itself.

    The result is stored in .perfflow/calibration, with a report.html. Later runs on this machine show how small a
    change they can detect.

    Exit: 0 calibrated, 2 bad usage or workflow, 3 could not measure, 130 interrupted (finished steps are stored).
    """
    total = seconds(f"--budget {budget}", budget, "write 20s or 5m")
    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=True, trust=trust)
    for problem in opened.problems:
        tell(f"{problem.render()}\n")
    if placement := placed(executor, None, settings, detach=False):
        asked = [workflow, *(f"--set={setting}" for setting in settings), *(f"--only={step}" for step in only)]
        asked += [f"--trials={trials}", f"--budget={budget}", *([f"--seed={seed}"] if seed is not None else [])]
        return _placed(opened, placement, asked, only, as_json=as_json)
    words = ["perfflow", "run", workflow, *(f"--set={setting}" for setting in settings)]
    with shown("plain", opened, words) as told:
        found = calibrate(opened, CalibrateRequest(only, trials, total, seed, lock_timeout), told)
    say(_json(found) if as_json else _text(found), end="")
    if found.interrupted:
        return int(Exit.INTERRUPTED)
    return int(Exit.PASS if found.entries and not found.failed else Exit.UNMEASURED)


def _placed(opened: Opened, placement: Placement, words: Sequence[str], only: Sequence[str], *, as_json: bool) -> int:
    """Calibrate another machine, and store the result in this project."""
    argv = ["calibrate", *words, "--json", "--trust"]
    result = placed_command(opened, placement, argv, only, {}, lambda text: tell(f"{text}\n"))
    try:
        data = json.loads(result.printed)
        entries = calibrations.from_json(data["entries"])
    except (ValueError, LookupError) as error:
        log = result.run.with_name("log")
        raise UserError.of(f"{result.node} was not calibrated", f"its log: {log}", Exit.UNMEASURED) from error
    if entries:
        data["file"] = str(calibrations.store(opened.root, data["identity"], entries, whole=not only))
    result.discard()
    if as_json:
        say(json.dumps(data, ensure_ascii=False, indent=1))
    else:
        print_findings(entries, as_json=False)
        say(f"{result.node} is stored as {data['identity']}")
    return result.status


def _json(calibration: Calibration) -> str:
    data = {
        "schema": calibrations.SCHEMA,
        "workflow": calibration.workflow,
        "identity": calibration.identity,
        "seed": calibration.seed,
        "noise": calibration.noise or None,
        "interrupted": calibration.interrupted,
        "failed": [{"step": step, "reason": reason} for step, reason in calibration.failed],
        "skipped": [{"step": step, "reason": reason} for step, reason in calibration.skipped],
        "file": str(calibration.path),
        "report": str(calibration.page) if calibration.page else None,
        "entries": calibrations.to_json(calibration.entries),
    }
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def print_findings(entries: Sequence[CalibrationEntry], *, as_json: bool) -> None:
    """Print the calibration of this machine as a table, or as the JSON of the stored file."""
    if as_json:
        data = {"schema": calibrations.SCHEMA, "entries": calibrations.to_json(entries)}
        say(json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n", end="")
        return
    style = style_of(sys.stdout)
    say(render([entry.finding for entry in entries], width=style.width, unicode=style.unicode), end="")


def _text(found: Calibration) -> str:
    style = style_of(sys.stdout)
    table = render([entry.finding for entry in found.entries], width=style.width, unicode=style.unicode)
    return "\n".join(filter(None, (table, *_notes(found, style.width, unicode=style.unicode)))) + "\n"


def _notes(found: Calibration, width: int, *, unicode: bool) -> list[str]:
    lines = [f"{word} {step}: {reason}" for word, step, reason in _not_calibrated(found)]
    if found.noise:
        lines.append(f"the machine was {found.noise}; seed {found.seed}")
    if found.entries:
        lines.append(f"kept: {shown_path(found.path)}")
    if found.page:
        lines.append(f"report: {shown_path(found.page)}")
    shown = [visible(line) if unicode else ascii_text(visible(line)) for line in lines]
    return [part for line in shown for part in wrapped(line, width, "  ")]


def _not_calibrated(found: Calibration) -> list[tuple[str, str, str]]:
    failed = [("failed", step, reason) for step, reason in found.failed]
    return [*failed, *(("not calibrated", step, reason) for step, reason in found.skipped)]
