"""``perfflow export``."""

from __future__ import annotations

import re
from pathlib import Path

import click

FORMATS = ("summary", "comment", "check-run", "junit", "metrics", "codequality", "evidence")


def _anchor(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", value):
        raise click.BadParameter("write lower-case letters, digits and single hyphens, such as hops")
    return value


@click.command("export")
@click.argument("run", default="latest")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files, which may exist; else .perfflow/export/RUN.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(FORMATS),
    help="What to write. May be repeated; all of them unless told otherwise.",
)
@click.option(
    "--previous",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The text of the comment so far: its log of runs is carried on.",
)
@click.option(
    "--anchor", default="hops", show_default=True, callback=_anchor, metavar="NAME", help="Name of that log's anchors."
)
@click.option(
    "--unproven",
    type=click.Choice(["ask", "pass", "fail"]),
    default="ask",
    show_default=True,
    help="What an unproven verdict is to the check run (ask: action_required) and in junit.xml (ask, pass: skipped).",
)
def command(
    run: str, out: Path | None, formats: tuple[str, ...], previous: Path | None, anchor: str, unproven: str
) -> None:
    """Write files for CI services from RUN's result.json; nothing is measured, judged or sent, and no token is used.

    They are a job summary, a pull-request comment, a check run, JUnit, OpenMetrics, code quality, evidence lines.
    RUN is a folder, an id, `latest`, or a result.json alone.

    Exit: 0 the files are written, whatever the verdict is; 2 bad usage, 3 they cannot be written.
    """
    from perfflow.cli.output import say
    from perfflow.cli.verdict import shown_path
    from perfflow.flow.exporting import default_folder, export, read_previous, read_result
    from perfflow.report.payloads.files import Wishes
    from perfflow.report.plain import visible
    from perfflow.rundir.folder import find
    from perfflow.trees import project

    here = Path.cwd()
    root = project.root_of(here) or here
    result = read_result(find(root, run))
    wishes = Wishes(unproven, read_previous(previous) if previous else "", anchor)
    for path in export(result, formats, out or default_folder(root, result), wishes):
        say(visible(shown_path(path)))
