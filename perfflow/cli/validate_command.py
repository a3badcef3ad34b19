"""``perfflow validate``."""

from __future__ import annotations

import click

from perfflow.errors import Exit, Severity, UserError, in_file_order


@click.command("validate")
@click.argument("workflows", nargs=-1)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
def command(workflows: tuple[str, ...], settings: tuple[str, ...]) -> int:
    """Check WORKFLOWS (default: all in ./workflows). Executes nothing of them."""
    from pathlib import Path

    from perfflow.library import shelf
    from perfflow.trees import project

    here = Path.cwd()
    own = (project.root_of(here) or here) / shelf.FOLDER
    names = workflows or tuple(str(path) for path in shelf.workflows(own.parent) if path.parent == own)
    if not names:
        raise UserError.of("no workflow to check", "name a file, or keep workflows in ./workflows")
    statuses = [_validate(name, settings) for name in names]
    return max(statuses)


def _validate(name: str, settings: tuple[str, ...]) -> int:
    from dataclasses import replace

    from perfflow.flow.compared_trees import problems_of
    from perfflow.flow.opening import open_workflow
    from perfflow.plan.parameters import MISSING
    from perfflow.report.plain import visible

    try:
        opened = open_workflow(name, settings)
    except UserError as error:
        click.echo(str(error), err=True)
        return int(error.exit)
    # The file itself is right where only other trees lack something.
    others = (*opened.unavailable, *(() if opened.draft.errors else problems_of(opened)))
    later = tuple(replace(problem, severity=Severity.WARNING) for problem in others)
    own = (
        replace(problem, severity=Severity.WARNING) if problem.rule == MISSING else problem
        for problem in opened.problems
    )
    problems = in_file_order((*own, *later))
    for problem in problems:
        click.echo(problem.render(), err=True)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    if errors:
        click.echo(f"{visible(name)}: {errors} error{'s' if errors > 1 else ''}", err=True)
        return int(Exit.USAGE)
    warnings = f", {len(problems)} warning{'s' if len(problems) > 1 else ''}" if problems else ""
    steps = len(opened.plan.steps)
    click.echo(f"{visible(name)}: ok, {steps} step{'' if steps == 1 else 's'}{warnings}")
    return int(Exit.PASS)
