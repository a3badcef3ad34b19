"""``perfflow make``."""

from __future__ import annotations

import os.path
from pathlib import Path

import click

from perfflow.cli.output import say
from perfflow.library import search_path
from perfflow.library.makefile import fragment
from perfflow.session.session import of_project
from perfflow.trees import repository


@click.command("make")
@click.argument("workflows", nargs=-1)
def command(workflows: tuple[str, ...]) -> None:
    """Print a Makefile fragment that runs the project's WORKFLOWS (default: all in ./workflows).

    Run `perfflow make > perf.mk` and add `include perf.mk` to the Makefile. Then use `make perf` or `make perf-NAME`.
    """
    here = Path.cwd().resolve()
    root = (repository.root_of(here) or here).resolve()
    folder = None if workflows else Path(search_path.FOLDER)
    say(fragment(of_project(root, workflows), up=Path(os.path.relpath(root, here)), folder=folder), end="")
