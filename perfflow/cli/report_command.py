"""``perfflow report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from perfflow.cli.bisect_command import print_bisection
from perfflow.cli.calibrate_command import print_findings
from perfflow.cli.console import exit_of, print_verdict, shown_path
from perfflow.cli.options import UNPROVEN
from perfflow.cli.output import say, tell
from perfflow.jobs.bisect.bisect import show_again
from perfflow.jobs.calibrate.calibrate import known_of_this_machine, write_page
from perfflow.jobs.rejudge.rejudge import Rejudged, rejudge
from perfflow.model.errors import Exit, UserError
from perfflow.report.markdown import render_own
from perfflow.report.template import help_text
from perfflow.store import calibrations
from perfflow.store.result_file import is_bisection
from perfflow.store.run_folder import PAGE, find
from perfflow.trees import repository


def _template_help(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        say(help_text())
        context.exit()


@click.command("report")
@click.argument("run", default="latest")
@click.option(
    "--thresholds",
    multiple=True,
    metavar="SPEC",
    help="Judge by other thresholds: concern=3%,action=5%,floor=1%, 'GLOB:action=5%', or a file with `thresholds:`. "
    "Other thresholds stay as they were. May be repeated. The files of the run are not changed.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write result.json, report.md and report.html to this new folder."
)
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write report.md by a Jinja2 template of your own, and print it.",
)
@click.option(
    "--template-help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_template_help,
    help="Print what a template may use, and exit.",
)
@click.option("--html", "html", is_flag=True, help="Print only the path of report.html.")
@click.option("--open", "opened", is_flag=True, help="Open report.html in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json to stdout and nothing else.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to use colour.")
@UNPROVEN
def command(
    run: str,
    thresholds: tuple[str, ...],
    out: Path | None,
    template: Path | None,
    html: bool,
    opened: bool,
    as_json: bool,
    color: str,
    unproven: str,
) -> int:
    """Judge RUN again from its stored samples, without measuring.

    RUN is a folder, an id, `latest`, or a single result.json. For the folder of a run, perfflow writes report.md and
    report.html again. With --thresholds, and for a result.json without its events, it only prints the report, or writes
    it to --out. With --template, report.md is that of the template, which is printed. For a bisection it writes the
    page again; with --out or --thresholds it judges good against bad. If RUN is `calibration`, it shows the results of
    `perfflow calibrate` on this machine.

    Exit: that of `perfflow run` for the new verdict; for a bisection, that of `perfflow bisect`.
    """
    root = repository.project_here()
    if run == "calibration" and not Path(run).exists():
        return _calibration(root, only_path=html, opened=opened, as_json=as_json)
    place = find(root, run)
    if not thresholds and out is None and is_bisection(place):
        return _bisection(place, as_json=as_json, unproven=unproven)
    again = rejudge(place, thresholds, out, template)
    if again.note:
        tell(f"note: {again.note}\n")
    if template:
        say(render_own(again.result, template))
        return int(exit_of(again.result, unproven=unproven))
    if html or opened:
        return _page(again, opened=opened, unproven=unproven)
    how: Any = {"as_json": as_json, "color": color, "unproven": unproven}
    return print_verdict(again.result, again.report, asked=True, **how)


def _page(again: Rejudged, *, opened: bool, unproven: str) -> int:
    """Print the path of the page of a run, and open it if ``opened``."""
    if again.report is None:
        raise UserError.of("no report.html was written", "name a new folder for it with --out DIR")
    _show(again.report.with_name(PAGE), opened=opened)
    return int(exit_of(again.result, unproven=unproven))


def _show(page: Path, *, opened: bool) -> None:
    """Print the path of a page, and open it if ``opened``."""
    say(shown_path(page))
    if opened and not webbrowser.open(page.resolve().as_uri()):
        tell("note: no browser was found; open the file yourself, or set BROWSER to a browser\n")


def _calibration(root: Path, *, only_path: bool, opened: bool, as_json: bool) -> int:
    identity, entries = known_of_this_machine(root)
    written = write_page(root, identity)
    if only_path or opened:
        if written is None:
            raise UserError.of(f"cannot write {calibrations.page_of(root)}", "make the folder writable")
        _show(written, opened=opened)
    else:
        print_findings(entries, as_json=as_json)
    return int(Exit.PASS)


def _bisection(place: Path, *, as_json: bool, unproven: str) -> int:
    return print_bisection(show_again(place), as_json=as_json, unproven=unproven)
