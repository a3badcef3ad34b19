"""``perfflow init``."""

from __future__ import annotations

import click

from perfflow.cli.output import say


@click.command("init")
@click.option("--command", "measured", default="", metavar="COMMAND", help="The command to measure.")
@click.option("--name", default="", help="Name of the workflow; default: the project's.")
@click.option(
    "--kind",
    type=click.Choice(["command", "cargo", "pytest-benchmark", "google-benchmark"]),
    help="Kind of project; default: told by the files here.",
)
def command(measured: str, name: str, kind: str | None) -> None:
    """Write a first workflow for the project here, into workflows/ of its tree. Overwrites nothing, runs nothing."""
    import shlex
    from pathlib import Path

    from perfflow.flow.beginning import write
    from perfflow.library.starting import Kind, start
    from perfflow.report.plain import visible
    from perfflow.trees import project

    here = Path.cwd().resolve()
    root = project.root_of(here) or here
    begun = start(here, root, kind=Kind(kind) if kind else None, command=measured, name=name)
    path = write(begun, root)
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    say(f"wrote {visible(str(shown))}, for {visible(begun.about)}")
    say("next:")
    for verb in ("plan", "run"):
        say(f"  perfflow {verb} {shlex.quote(begun.name)}")
