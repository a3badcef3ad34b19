"""``perfflow history``: shows how fast each benchmark was, and when it changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from perfflow.cli.console import shown
from perfflow.cli.options import LOCK_TIMEOUT, TRUST, seconds, usable
from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.jobs.against.confirm import PairSettings, confirm
from perfflow.jobs.history import collect, overview, site, suspicion_report, trends
from perfflow.jobs.history.collect import Added
from perfflow.jobs.history.suspicion_report import LocatedChange, TrendSuspicion
from perfflow.jobs.history.trends import HistoryFilter
from perfflow.jobs.run.run import FinishedRun, RunRequest, run
from perfflow.model.errors import Exit, UserError
from perfflow.report.history_tables import suspicions
from perfflow.report.sanitize import visible
from perfflow.report.text_table import laid_out
from perfflow.session.session import now
from perfflow.trees import repository

_MEASURING_OPTIONS = ("settings", "budget", "trust", "lock_timeout")
"""Options of ``history changes`` for measuring revisions."""


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose benchmarks and runs."""
    for option in (
        click.option("--branch", default="", help="Only runs of this branch."),
        click.option(
            "--since", default="", metavar="WHEN", help="Only runs since then: 90d, 3w or 12h before now, or a date."
        ),
        click.option("--metric", default="", help="Only this metric."),
        click.option("--machine", default="", metavar="IDENTITY", help="Only runs on this machine."),
        click.option(
            "--rebase",
            default="",
            metavar="IDENTITY",
            help="Scale the values of this machine to --machine, by revisions that both machines measured.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--csv", "as_csv", is_flag=True, help="Print one row for each value, as CSV."),
    ):
        command = option(command)
    return command


@click.group("history", invoke_without_command=True)
@_filters
@click.option("--regressions", is_flag=True, help="Only benchmarks that last changed for the worse, largest first.")
@click.option("--flaky", is_flag=True, help="Only benchmarks that vary by more than 5% from run to run.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Show how fast each benchmark was over time: its trend, its newest value and its last change.

    Every run of a workflow is added automatically. A series never mixes values from different machines.

    Exit: 0 shown, 2 bad usage, 3 the store cannot be reached.
    """
    if context.invoked_subcommand is None:
        _index(**options)


def _index(*, regressions: bool, flaky: bool, as_json: bool, as_csv: bool, **filters: str) -> None:
    found = overview.index(repository.project_here(), _asked(**filters), _note)
    rows = [row for row in (overview.regressions(found) if regressions else found) if row.is_flaky or not flaky]
    if as_json:
        say(_json([overview.row_as_json(row) for row in rows]))
    elif as_csv:
        narrowed = rows if regressions or flaky else None
        say(overview.csv_of(repository.project_here(), _asked(**filters), _note, narrowed), end="")
    elif not found:
        say(
            "no runs yet; `perfflow run WORKFLOW` adds one, `perfflow history import FILE...` adds those of other tools"
        )
    elif not rows:
        say(f"none of {len(found)} series is {'flaky' if flaky else 'worse than before'}")
    else:
        _show(overview.index_table(rows))


@command.command("show", short_help="Show the runs of a benchmark.")
@click.argument("benchmark")
@_filters
def show(benchmark: str, as_json: bool, as_csv: bool, **filters: str) -> None:
    """Show every run of BENCHMARK, the newest first: its value, interval, revision and decision.

    BENCHMARK is a name or part of a name.

    Exit: 0 shown, 2 no such benchmark or bad usage, 3 the store cannot be reached.
    """
    asked = _asked(benchmark=benchmark, **filters)
    if as_csv:
        say(overview.csv_of(repository.project_here(), asked, _note), end="")
        return
    found = overview.chosen(repository.project_here(), asked, _note)
    if as_json:
        say(_json([overview.trend_as_json(trend) for trend in found]))
        return
    for number, trend in enumerate(found):
        if number:
            say("")
        say(overview.heading(trend, found))
        _show(overview.runs_table(trend))


@command.command("changes", short_help="Show when benchmarks changed.")
@_filters
@click.option("--suspicions", is_flag=True, help="Only suspicions about the newest runs, and their outcome.")
@click.option(
    "--confirm",
    metavar="WORKFLOW",
    help="Measure both revisions of each open suspicion of this workflow in pairs, and store the outcome.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="With --confirm: set a parameter.")
@click.option("--budget", metavar="TIME", help="With --confirm: longest time to measure in one run, such as 10m.")
@TRUST
@LOCK_TIMEOUT
def changes(as_json: bool, as_csv: bool, suspicions: bool, confirm: str | None, **options: Any) -> int:
    """Show every change in the history: its size, the commits around it, and the command that finds the commit.

    A change in the history is not proven: measure the two revisions in pairs to decide. Changes that only the newest
    runs show are listed below the others, as suspicions, each with the command that measures it.

    Exit: 0 shown, 2 bad usage, 3 the store cannot be reached or a suspicion could not be measured, 130 interrupted.
    """
    filters = {name: value for name, value in options.items() if name not in _MEASURING_OPTIONS}
    aside = [f"--{name}" for name in ("set", "budget", "trust") if options["settings" if name == "set" else name]]
    if aside and not confirm:
        text = f"{aside[0]} is about measuring, and nothing is measured without --confirm"
        raise UserError.of(text, f"add --confirm WORKFLOW, or leave {aside[0]} out")
    if suspicions and as_csv:
        raise UserError.of("--suspicions cannot be printed as CSV", "use --json")
    found: list[TrendSuspicion] = []
    status = 0
    if confirm or suspicions or not (as_json or as_csv):
        found, status = _suspicions(_asked(**filters), confirm, {name: options[name] for name in _MEASURING_OPTIONS})
    if suspicions:
        _show_suspicions(found, as_json=as_json)
        return status
    changed = suspicion_report.all_changes(repository.project_here(), _asked(**filters), _note)
    if as_json:
        say(_json([item.as_json() for item in changed]))
    elif as_csv:
        say(overview.changes_csv(changed), end="")
    else:
        _show_changes(changed, found)
    return status


def _show_changes(changed: Sequence[LocatedChange], found: Sequence[TrendSuspicion]) -> None:
    """Print the changes, then the open and the new suspicions about the newest runs."""
    others = [item for item in changed if not any(one.is_about(item.trend.series.id, item.change.at) for one in found)]
    if others:
        _show(overview.changes_table(others))
    else:
        say("no change: the values of each series are consistent with a single level")
    told = [item for item in found if item.is_news or item.kept.state == "open"]
    if told:
        say("")
        _show_suspicions(told, as_json=False)


def _show_suspicions(found: Sequence[TrendSuspicion], *, as_json: bool) -> None:
    if as_json:
        say(_json([item.as_json() for item in found]))
    elif not found:
        say("no suspicion: the newest runs of each series are at the same level as the runs before them")
    else:
        _show(suspicions([item.row() for item in found]))


def _suspicions(
    asked: HistoryFilter, workflow: str | None, options: Mapping[str, Any]
) -> tuple[list[TrendSuspicion], int]:
    """Return the suspicions and an exit status. If ``workflow`` is given, first measure its open ones in pairs."""
    if workflow is None:
        return suspicion_report.suspicions(repository.project_here(), asked, _note, now()), 0

    budget, settings = options["budget"], options["settings"]
    total = None if budget is None else seconds("--budget", budget)
    pairs = PairSettings(workflow, options["lock_timeout"], settings, total, budget or "")
    opened = usable(workflow, settings, to_run=True, trust=options["trust"])
    found = suspicion_report.suspicions(opened.root, asked, _note, now())

    def measure(request: RunRequest) -> FinishedRun:
        with shown(None, opened, list(request.command), budget=total) as told:
            return run(opened, request, told)

    done = confirm(opened, found, pairs, measure)
    suspicion_report.keep(opened.root, [item for item in done.suspicions if item.is_news], _note)
    if not done.measured:
        _note(f"{opened.plan.workflow.name} has no open suspicion that this machine can measure in pairs")
    for run_id in done.failed:
        _note(f"{run_id} could not measure everything; `perfflow report {run_id}` shows the reasons")
    status = Exit.INTERRUPTED if done.interrupted else Exit.UNMEASURED if done.failed else Exit.PASS
    return list(done.suspicions), int(status)


@command.command("build", short_help="Write the history as static pages.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--branch", default="", help="Only runs of this branch.")
@click.option("--machine", default="", metavar="IDENTITY", help="Only runs on this machine.")
@click.option("--rebase", default="", metavar="IDENTITY", help="Scale the values of this machine to --machine.")
def build(folder: Path, branch: str, machine: str, rebase: str) -> None:
    """Write an index and a page for each benchmark into DIR. Any static file host can serve them.

    Exit: 0 written, 2 DIR contains other files, 3 the store cannot be reached.
    """
    number = site.build(
        repository.project_here(), folder, HistoryFilter(branch=branch, machine=machine, rebase=rebase), _note
    )
    say(f"{number} pages: {folder / 'index.html'}")


@command.command("add", short_help="Add results of perfflow, such as those of CI.")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
def add(results: tuple[str, ...]) -> None:
    """Add runs: a run's folder or its result.json, such as a CI artifact. Adding a run twice changes nothing.

    Exit: 0 the runs were added, 2 a file is not a perfflow result. If the store cannot be reached, the runs are kept
    here and sent later (exit 0).
    """
    _added(
        collect.add(repository.project_here(), collect.own_files(repository.project_here(), results), _note),
        len(results),
        "run",
    )


@command.command("import", short_help="Add result files of other tools.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def import_(files: tuple[str, ...]) -> None:
    """Add result files of other tools, or folders of them. Dates, machines and revisions are read from the files.

    Supported are criterion's target/criterion, pytest-benchmark's .benchmarks, asv's results, hyperfine --export-json,
    Go benchmarks, Google Benchmark's JSON, pyperf, and data.js of github-action-benchmark.

    Exit: 0 added, 2 a file cannot be read, 3 the store cannot be reached.
    """
    found = list(collect.imported_summaries(repository.project_here(), list(files), _note))
    _added(collect.add(repository.project_here(), found, _note), len(found), "set")


@command.command("use", short_help="Keep the history in a database that several machines share.")
@click.argument("address", required=False, default="", metavar="[URL]")
def use(address: str) -> None:
    """Keep the history of this clone in PostgreSQL, such as postgresql://USER@HOST/DATABASE. Without URL: keep it here.

    PERFFLOW_HISTORY does the same for one command. PostgreSQL needs perfflow's extra `postgres`.

    Exit: 0 done, 2 bad address, 3 the database cannot be reached.
    """
    say(f"history: {collect.use(repository.project_here(), address).shown}")


def _added(added: Added, given: int, what: str) -> None:
    if added.waiting:
        say(
            f"{added.waiting} {what} waits to be sent"
            if added.waiting == 1
            else f"{added.waiting} {what}s wait to be sent"
        )
        return
    known = f", {given - added.new} already known" if given > added.new else ""
    say(f"{added.new} {what}{'' if added.new == 1 else 's'} added{known}")


def _asked(*, since: str = "", **filters: str) -> HistoryFilter:
    return trends.HistoryFilter(since=trends.since(since, trends.moment(now())) if since else None, **filters)


def _show(table: Any) -> None:
    laid = laid_out(table, style_of(sys.stdout).width)
    say_page([laid.head, *(line for entry in laid.entries for line in entry)])


def _note(text: str) -> None:
    tell(f"note: {visible(text)}\n")


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1)
