"""``perfflow plan`` and ``perfflow run --dry-run``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import click

from perfflow.cli.options import BENCHMARKS, THE_WORKFLOW, seconds
from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.jobs.catalog import descriptions
from perfflow.jobs.catalog.descriptions import LEFT_OUT, SKIPPED, preview
from perfflow.jobs.catalog.detectable import detectable
from perfflow.jobs.run.run import with_builds
from perfflow.model.criteria import read_share
from perfflow.model.errors import Exit, Severity, UserError
from perfflow.model.units import UnitError
from perfflow.plan.coverage import ONE_SIDED
from perfflow.report import detectable as page
from perfflow.report import plan_text
from perfflow.session.compared_trees import problems_of
from perfflow.session.open_workflow import Opened, open_workflow, select


@click.command("plan")
@THE_WORKFLOW
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--stage", "stages", multiple=True, metavar="STAGE", help="Show only this stage; may be repeated.")
@click.option("--only", multiple=True, metavar="STEP", help="Show only this step; may be repeated.")
@click.option("--from", "start", metavar="STEP", help="Show this step and all after it.")
@BENCHMARKS
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--detect",
    metavar="PERCENT",
    help="Show instead how long a change of this size, such as 5%, takes to prove for each benchmark on this machine.",
)
@click.option(
    "--budget",
    default="10m",
    show_default=True,
    metavar="TIME",
    help="With --detect: time for all.",
)
def command(
    workflow: str,
    settings: tuple[str, ...],
    stages: tuple[str, ...],
    only: tuple[str, ...],
    start: str | None,
    benchmarks: tuple[str, ...],
    form: str,
    detect: str | None,
    budget: str,
) -> int:
    """Show the steps of WORKFLOW in order, with their commands and what is missing. Executes nothing."""
    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=False)
    selected = select(opened.plan, stages, only, start, benchmarks)
    if detect is not None:
        return _print_detectable(opened, selected, _share(detect), seconds("--budget", budget), workflow, form)
    return print_plan(opened, selected, form)


def _share(text: str) -> float:
    """Return a percentage as a share. Raises UserError."""
    try:
        found = read_share(text)
    except UnitError as error:
        raise UserError.of(f"--detect {text}: {error}", "write 5%") from error
    if not 0 < found < 10:
        raise UserError.of(f"--detect {text}: not the size of a change", "write 5%")
    return found


def _print_detectable(
    opened: Opened, selected: frozenset[str], change: float, budget: float, workflow: str, form: str
) -> int:
    """Print which changes of each benchmark this machine can show in which time."""
    if form not in ("text", "json"):
        raise UserError.of(f"--detect has no --format {form}", "use text or json")
    rows = detectable(opened, selected, change, budget)
    if form == "json":
        say(json.dumps(page.to_json(rows, change, budget), ensure_ascii=False, indent=1))
    else:
        say_page(page.lines(rows, change, budget, workflow, style_of(sys.stdout).width))
    return int(Exit.PASS)


def print_plan(
    opened: Opened,
    selected: frozenset[str],
    form: str = "text",
    *,
    in_trees: bool = False,
    budget: float | None = None,
) -> int:
    """Print the selected steps of a plan and return the exit status.

    ``in_trees``: two trees are built and compared. ``budget``: seconds for the whole command, None without a limit.
    """
    if in_trees:
        selected = with_builds(opened, selected)
    expected = descriptions.expected_durations(opened, selected, in_trees=in_trees, budget=budget)
    steps = preview(opened, selected, expected)
    idle = {step["id"] for step in steps if step["outcome"] in (LEFT_OUT, SKIPPED)}
    counted = {name: item for name, item in expected.items() if name not in idle}
    time = descriptions.in_all(opened.plan, counted, budget)
    if form == "json":
        data = {"workflow": opened.plan.workflow.name, "steps": steps, "expected": time.to_json()}
        say(json.dumps(data, ensure_ascii=False, indent=1))
    elif form == "text":
        say_page(plan_text.plan_lines(steps, style_of(sys.stdout).width, time.text()))
    else:
        say({"mermaid": plan_text.plan_mermaid, "dot": plan_text.plan_dot}[form](steps))
    lacking = problems_of(opened)
    if not in_trees:  # only `perfflow gate` would fail
        lacking = tuple(replace(problem, severity=Severity.WARNING) for problem in lacking)
    problems = (problem for problem in opened.problems if not (in_trees and problem.rule == ONE_SIDED))
    for problem in (*problems, *opened.unavailable, *lacking):
        tell(f"{problem.render()}\n")
    return int(Exit.USAGE if any(problem.severity is Severity.ERROR for problem in lacking) else Exit.PASS)
