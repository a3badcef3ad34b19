"""``perfflow report``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("run", default="latest")
@click.option(
    "--thresholds",
    multiple=True,
    metavar="SPEC",
    help="Judge by other thresholds: concern=3%,action=5%,floor=1%, 'GLOB:action=5%', or a file with `thresholds:`. "
    "What is not named stays as it was. May be repeated; the run's own files are left alone.",
)
@click.option(
    "--rules",
    type=click.Choice(["own", "current"]),
    default="own",
    show_default=True,
    help="Judge by the rules the run was judged by, or by those of this version of perfflow.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write result.json and report.md to this new folder.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json alone.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour.")
@click.option("--allow-unproven", is_flag=True, help="Exit 0 where the verdict is unproven.")
def command(
    run: str,
    thresholds: tuple[str, ...],
    rules: str,
    out: Path | None,
    as_json: bool,
    color: str,
    allow_unproven: bool,
) -> int:
    """Judge RUN again from its stored samples; nothing is measured.

    RUN is a folder, an id, `latest`, or a result.json alone. The report of a run's folder is written anew; of a
    result.json without its events, and by other thresholds, it is printed, and written where --out says. Of a
    bisection the page is written anew; with --out or --thresholds good is judged against bad.

    Exit: as `perfflow run`, by the verdict that comes out; of a bisection as `perfflow bisect`.
    """
    from perfflow.cli.verdict import print_verdict
    from perfflow.flow.judging_again import judge_stored
    from perfflow.rundir.bisection import is_bisection
    from perfflow.rundir.folder import find
    from perfflow.samples.rules import CURRENT
    from perfflow.trees import project

    here = Path.cwd()
    place = find(project.root_of(here) or here, run)
    if not thresholds and out is None and is_bisection(place):
        return _bisection(place, as_json=as_json)
    again = judge_stored(place, thresholds, out, CURRENT.name if rules == "current" else "")
    if again.note:
        click.echo(f"note: {again.note}", err=True)
    return print_verdict(again.result, again.report, as_json=as_json, color=color, allow_unproven=allow_unproven)


def _bisection(place: Path, *, as_json: bool) -> int:
    from perfflow.cli.bisect_command import print_bisection
    from perfflow.flow.bisect.showing_again import show_again
    from perfflow.report import bisect_page

    return print_bisection(show_again(place, bisect_page.markdown), as_json=as_json)
