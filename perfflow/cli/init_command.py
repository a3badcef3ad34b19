"""``perfflow init``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from perfflow.cli.output import say
from perfflow.jobs.start.write_starter import write
from perfflow.library.detect_project import ProjectKind
from perfflow.library.starter_for import start
from perfflow.report.sanitize import visible
from perfflow.trees import repository


@click.command("init")
@click.option("--command", "measured", default="", metavar="COMMAND", help="The command to measure.")
@click.option("--name", default="", help="Name of the workflow (default: the name of the project).")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in ProjectKind]),
    help="Kind of project (default: detected from the files).",
)
def command(measured: str, name: str, kind: str | None) -> None:
    """Write a first workflow for this project into workflows/. Overwrites nothing and runs nothing."""
    here = Path.cwd().resolve()
    root = repository.root_of(here) or here
    begun = start(here, root, kind=ProjectKind(kind) if kind else None, command=measured, name=name)
    path = write(begun, root)
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    say(f"wrote {visible(str(shown))}, for {visible(begun.about)}")
    if begun.note:
        say(f"note: {visible(begun.note)}")
    if begun.unignored:
        say(f"note: it builds into {visible(begun.unignored)}/, which git does not ignore: add it to .gitignore")
    for other in begun.others:
        say(f"also here: {visible(str(other))}; perfflow init --kind {other.kind} --name {begun.name}-{other.kind}")
    say("next:")
    for verb in ("plan", "run"):
        say(f"  perfflow {verb} {shlex.quote(begun.name)}")
