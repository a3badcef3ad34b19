"""``perfflow gate --base-results``: measures head and compares it with stored results, unpaired."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click

from perfflow.cli import ci, run_command
from perfflow.cli.options import limit, seconds
from perfflow.cli.output import say, tell
from perfflow.cli.plan_command import print_plan
from perfflow.cli.progress import shown
from perfflow.cli.verdict import exit_of, print_verdict
from perfflow.jobs.against.stored_base import StoredBase, compare_head, measured_steps, require_usable
from perfflow.jobs.compare.compare_stored import proven_regressions
from perfflow.jobs.run.run import FinishedRun, RunRequest, run
from perfflow.model.errors import Exit, UserError
from perfflow.model.secrets import masked, secrets_in
from perfflow.report.sanitize import visible
from perfflow.session.open_workflow import Opened, select
from perfflow.store.history.find_stored import find, passed_over
from perfflow.store.run_folder import REPORT

_FIRST = (Exit.FAIL, Exit.UNMEASURED, Exit.UNPROVEN)
"""Exit statuses by priority: the first that occurs is returned."""


@dataclass(frozen=True)
class StoredBaseOptions:
    """Options of a gate against stored results that `perfflow run` does not have."""

    base_results: str
    across_machines: bool
    fail_on: str | None


def gate(asked: StoredBaseOptions, options: dict[str, Any]) -> int:
    """Measure head, compare it with the stored results, print the comparison and return the exit status."""
    if options["head"]:
        text = "--base-results measures the working tree, so --head does not apply"
        raise UserError.of(text, f"git checkout {options['head']}, or --base compares two revisions in pairs")
    workflow, settings = options["workflow"], options["settings"]
    opened = run_command.usable(workflow, settings, to_run=not options["dry_run"], trust=options["trust"])
    words = ["perfflow", "gate", workflow, *(f"--set={setting}" for setting in settings)]
    words += [f"--benchmark={glob}" for glob in options["benchmarks"]]
    words += [f"--base-results={asked.base_results}", *(["--across-machines"] if asked.across_machines else [])]
    # The command line is stored in the result, with secrets masked.
    typed = list(masked(words, secrets_in(os.environ, opened.plan.params)))
    base = StoredBase(_stored(opened, asked.base_results), typed, options["out"], asked.across_machines)
    require_usable(opened, base)
    chosen = options["stages"], options["only"], options["start"], options["benchmarks"]
    steps = measured_steps(opened, select(opened.plan, *chosen))
    request = _request(opened, steps, options)
    if options["dry_run"]:
        return print_plan(opened, frozenset(steps), budget=request.budget)
    with shown(options["progress"], opened, words, color=options["color"], budget=request.budget) as told:
        head = run(opened, request, told)
    return _concluded(opened, head, base, asked, options)


def _stored(opened: Opened, name: str) -> Any:
    found = find(opened.root, name)
    if other := passed_over(opened.root, name, found.label):
        tell(f"note: {visible(other)}\n")
    return found


def _request(opened: Opened, steps: list[str], options: dict[str, Any]) -> RunRequest:
    from perfflow.store.run_folder import find

    run_command.require_fitting(
        alone=bool(options["out"]) or options["seed"] is not None, resume=bool(options["resume"])
    )
    return RunRequest(
        only=steps,
        benchmarks=options["benchmarks"],
        jobs=options["jobs"],
        keep_going=True,
        resume=find(opened.root, options["resume"]) if options["resume"] else None,
        seed=options["seed"],
        lock_timeout=seconds("--lock-timeout", options["lock_timeout"]),
        budget=limit("--budget", options["budget"]),
    )


def _concluded(opened: Opened, head: FinishedRun, base: Any, asked: StoredBaseOptions, options: dict[str, Any]) -> int:
    """Compare head, if it was measured. Print the comparison, and the verdict of head itself if it does not pass."""
    how = {"as_json": options["as_json"], "color": options["color"], "unproven": options["unproven"]}
    tell("".join(f"note: {visible(note)}\n" for note in head.notes))
    own = exit_of(head.result, unproven=options["unproven"])
    if head.interrupted or not head.result.benchmarks:
        print_verdict(head.result, head.folder / REPORT, **how)
        return (
            run_command.after(head, None, list(base.command), annotate=options["progress"] != "off", apply=False) or own
        )
    found = compare_head(opened, head, base)
    if own and not options["as_json"]:
        print_verdict(head.result, head.folder / REPORT, **how)
        say("")
    status = print_verdict(found.result, found.folder / REPORT, **how)
    failures = proven_regressions(found.result) if asked.fail_on else []
    for text in () if options["as_json"] else failures:
        say(visible(text))
    if ci.in_github() and options["progress"] != "off":
        lines = [*(ci.annotation_lines(head.result) if own else ()), *ci.annotation_lines(found.result)]
        tell("".join(f"{line}\n" for line in lines))
    statuses = [Exit(status), own, Exit.FAIL if failures else Exit.PASS]
    return int(next((one for one in _FIRST if one in statuses), Exit.PASS))


OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--base-results"],
        metavar="NAME",
        help="Measure only head and compare it, unpaired, with a baseline, a run or a result file. Changes affect the "
        "exit status only with --fail-on.",
    ),
    click.Option(["--across-machines"], is_flag=True, help="With --base-results: allow results from another machine."),
    click.Option(
        ["--fail-on"],
        type=click.Choice(["regressed"]),
        help="With --base-results: exit 1 if the whole interval of a regression is beyond the action threshold.",
    ),
]
"""Options of `perfflow gate` for stored results."""
