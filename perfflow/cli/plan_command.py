"""``perfflow plan`` and ``perfflow run --dry-run``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from perfflow.cli.output import say, say_page
from perfflow.errors import Exit

if TYPE_CHECKING:
    from perfflow.flow.opening import Opened


@click.command("plan")
@click.argument("workflow")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--stage", "stages", multiple=True, metavar="STAGE", help="Only this stage; may be repeated.")
@click.option("--only", multiple=True, metavar="STEP", help="Only this step; may be repeated.")
@click.option("--from", "start", metavar="STEP", help="This step and all after it.")
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot", "json"]), default="text", show_default=True
)
def command(
    workflow: str,
    settings: tuple[str, ...],
    stages: tuple[str, ...],
    only: tuple[str, ...],
    start: str | None,
    form: str,
) -> int:
    """Show the steps of WORKFLOW in order: lanes, commands, what is missing. Executes nothing of it."""
    from perfflow.flow.opening import open_workflow

    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=False)
    return print_plan(opened, stages, only, start, form)


def print_plan(
    opened: Opened,
    stages: Sequence[str],
    only: Sequence[str],
    start: str | None,
    form: str = "text",
    *,
    in_trees: bool = False,
) -> int:
    """Print the selected steps of a plan; ``in_trees``: of one that compares two trees, which are built."""
    import sys

    from perfflow.cli.style import style_of
    from perfflow.flow.opening import select
    from perfflow.flow.preview import preview
    from perfflow.report import plan_page

    selected = select(opened.plan, stages, only, start)
    if in_trees:
        from perfflow.flow.tree_work import with_builds

        selected = with_builds(opened, selected)
    steps = preview(opened, selected)
    if form == "json":
        say(json.dumps({"workflow": opened.plan.workflow.name, "steps": steps}, ensure_ascii=False, indent=1))
    elif form == "text":
        say_page(plan_page.lines(steps, style_of(sys.stdout).width))
    else:
        say({"mermaid": plan_page.mermaid, "dot": plan_page.dot}[form](steps))
    for problem in (*opened.problems, *opened.unavailable):
        click.echo(problem.render(), err=True)
    return int(Exit.PASS)
