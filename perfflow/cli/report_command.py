"""``perfflow report``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("run", default="latest")
@click.option("--json", "as_json", is_flag=True, help="Print result.json alone.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour.")
@click.option("--allow-unproven", is_flag=True, help="Exit 0 where the verdict is unproven.")
def command(run: str, as_json: bool, color: str, allow_unproven: bool) -> int:
    """Judge RUN (a folder, an id or `latest`) again from its stored samples, and write its report."""
    from perfflow import trees
    from perfflow.cli.verdict import print_verdict
    from perfflow.flow.run_once import judge_again
    from perfflow.rundir.folder import find

    here = Path.cwd()
    folder = find(trees.root_of(here) or here, run)
    result = judge_again(folder)
    return print_verdict(result, folder, as_json=as_json, color=color, allow_unproven=allow_unproven)
