"""``perfflow merge``."""

from __future__ import annotations

from pathlib import Path

import click

from perfflow.cli import ci
from perfflow.cli.console import print_verdict
from perfflow.cli.options import UNPROVEN
from perfflow.cli.output import tell
from perfflow.jobs.merge.merge import merge
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import REPORT
from perfflow.trees import repository


@click.command("merge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the run to this folder, which must be new or empty."
)
@click.option("--json", "as_json", is_flag=True, help="Print result.json to stdout and nothing else.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to use colour.")
@UNPROVEN
def command(runs: tuple[str, ...], out: Path | None, as_json: bool, color: str, unproven: str) -> int:
    """Give one verdict on the parts of a run that were measured with --shard.

    RUN is the folder or the id of a part. All parts must be there, each once, of the same base, head and workflow. The
    merged run is a run of its own, judged once over all parts; nothing is measured.

    Exit: that of `perfflow run` or `perfflow gate` for the whole; 2 if the parts do not fit together.
    """
    finished = merge(repository.project_here(), runs, out)
    status = print_verdict(finished.result, finished.folder / REPORT, as_json=as_json, color=color, unproven=unproven)
    tell("".join(f"note: {visible(note)}\n" for note in finished.notes))
    if ci.in_github():
        tell("".join(f"{line}\n" for line in ci.annotation_lines(finished.result)))
    return status
