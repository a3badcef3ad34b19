"""``perfflow history``: how fast each benchmark was, and when that changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfflow.cli.durations import LOCK_TIMEOUT
from perfflow.cli.trust import TRUST
from perfflow.model.errors import Exit, UserError

if TYPE_CHECKING:
    from perfflow.jobs.history.changing import LocatedChange
    from perfflow.jobs.history.suspecting import Suspicion
    from perfflow.jobs.history.trends import HistoryFilter


_OF_PAIRS = ("settings", "budget", "trust", "lock_timeout")
"""Options of ``history changes`` that say how revisions are measured."""


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose benchmarks and runs."""
    for option in (
        click.option("--branch", default="", help="Only runs of this branch."),
        click.option("--since", default="", metavar="DATE", help="Only runs since then, such as 2026-03-31."),
        click.option("--metric", default="", help="Only this metric."),
        click.option("--machine", default="", metavar="IDENTITY", help="Only runs on this machine."),
        click.option(
            "--rebase",
            default="",
            metavar="IDENTITY",
            help="Bring the values of this machine to the scale of --machine, by revisions that both measured.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--csv", "as_csv", is_flag=True, help="Print one row for each value, as CSV."),
    ):
        command = option(command)
    return command


@click.group("history", invoke_without_command=True)
@_filters
@click.option("--regressions", is_flag=True, help="Only last changes for the worse, the largest first.")
@click.option("--flaky", is_flag=True, help="Only benchmarks that differ by more than 5% from run to run.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Show how fast each benchmark was over time: its trend, its newest value and its last change.

    Every run of a workflow is added by itself. Values of different machines are never put into one series.

    Exit: 0 shown, 2 bad usage, 3 the store cannot be reached.
    """
    if context.invoked_subcommand is None:
        _index(**options)


def _index(*, regressions: bool, flaky: bool, as_json: bool, as_csv: bool, **filters: str) -> None:
    from perfflow.cli.output import say
    from perfflow.jobs.history import reading

    found = reading.index(_root(), _asked(**filters), _note)
    rows = [row for row in (reading.regressions(found) if regressions else found) if row.is_flaky or not flaky]
    if as_json:
        say(_json([reading.row_as_json(row) for row in rows]))
    elif as_csv:
        say(reading.csv_of(_root(), _asked(**filters), _note), end="")
    elif not found:
        say("no runs yet; `perfflow run WORKFLOW` adds one, and `perfflow history import FILE...` those of other tools")
    elif not rows:
        say(f"none of {len(found)} series is {'flaky' if flaky else 'worse than before'}")
    else:
        _show(reading.index_table(rows))


@command.command("show", short_help="Show the runs of a benchmark.")
@click.argument("benchmark")
@_filters
def show(benchmark: str, as_json: bool, as_csv: bool, **filters: str) -> None:
    """Show every run of BENCHMARK, the newest first: its value, interval, revision and what the run concluded.

    BENCHMARK is a name, or a part of one.

    Exit: 0 shown, 2 no such benchmark or bad usage, 3 the store cannot be reached.
    """
    from perfflow.cli.output import say
    from perfflow.jobs.history import reading

    asked = _asked(benchmark=benchmark, **filters)
    if as_csv:
        say(reading.csv_of(_root(), asked, _note), end="")
        return
    found = reading.chosen(_root(), asked, _note)
    if as_json:
        say(_json([reading.trend_as_json(trend) for trend in found]))
        return
    for number, trend in enumerate(found):
        if number:
            say("")
        say(reading.heading(trend, found))
        _show(reading.runs_table(trend))


@command.command("changes", short_help="Show when benchmarks changed.")
@_filters
@click.option("--suspicions", is_flag=True, help="Only what is suspected of the newest runs, and what became of it.")
@click.option(
    "--confirm",
    metavar="WORKFLOW",
    help="Measure both revisions of each open suspicion of this workflow in pairs, and keep what that shows.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="With --confirm: set a parameter.")
@click.option("--budget", metavar="TIME", help="With --confirm: longest time to measure in one run, such as 10m.")
@TRUST
@LOCK_TIMEOUT
def changes(as_json: bool, as_csv: bool, suspicions: bool, confirm: str | None, **options: Any) -> int:
    """Show every change in the histories: by how much, between which commits, and the command that finds the commit.

    A change is a suspicion; measuring the two revisions in pairs decides. Below the changes stands what is suspected of
    the newest runs alone, each with the command that measures it.

    Exit: 0 shown, 2 bad usage, 3 the store cannot be reached or a suspicion could not be measured, 130 interrupted.
    """
    from perfflow.cli.output import say
    from perfflow.jobs.history import changing, reading

    filters = {name: value for name, value in options.items() if name not in _OF_PAIRS}
    aside = [f"--{name}" for name in ("set", "budget", "trust") if options["settings" if name == "set" else name]]
    if aside and not confirm:
        text = f"{aside[0]} is about measuring, and nothing is to be measured"
        raise UserError.of(text, f"add --confirm WORKFLOW, or leave {aside[0]} out")
    if suspicions and as_csv:
        raise UserError.of("--suspicions has no CSV", "use --json")
    found: list[Suspicion] = []
    status = 0
    if confirm or suspicions or not (as_json or as_csv):
        found, status = _suspicions(_asked(**filters), confirm, {name: options[name] for name in _OF_PAIRS})
    if suspicions:
        _show_suspicions(found, as_json=as_json)
        return status
    changed = changing.all_changes(_root(), _asked(**filters), _note)
    if as_json:
        say(_json([item.as_json() for item in changed]))
    elif as_csv:
        say(reading.changes_csv(changed), end="")
    else:
        _show_changes(changed, found)
    return status


def _show_changes(changed: Sequence[LocatedChange], found: Sequence[Suspicion]) -> None:
    """The changes, and apart from them what is suspected of the newest runs. What ended before was told then."""
    from perfflow.cli.output import say
    from perfflow.jobs.history import reading

    others = [item for item in changed if not any(one.is_about(item.trend.series.id, item.change.at) for one in found)]
    if others:
        _show(reading.changes_table(others))
    else:
        say("no change: in each series all values may be of one level")
    told = [item for item in found if item.is_news or item.kept.state == "open"]
    if told:
        say("")
        _show_suspicions(told, as_json=False)


def _show_suspicions(found: Sequence[Suspicion], *, as_json: bool) -> None:
    from perfflow.cli.output import say
    from perfflow.report.history_tables import suspicions

    if as_json:
        say(_json([item.as_json() for item in found]))
    elif not found:
        say("no suspicion: the newest runs of each series are at the level before them")
    else:
        _show(suspicions([item.row() for item in found]))


def _suspicions(asked: HistoryFilter, workflow: str | None, options: Mapping[str, Any]) -> tuple[list[Suspicion], int]:
    """What is suspected, after those of ``workflow`` were measured in pairs, and the exit status of that."""
    from perfflow.cli.durations import seconds
    from perfflow.cli.progress import shown
    from perfflow.jobs.history import suspecting
    from perfflow.session.clock import now

    if workflow is None:
        return suspecting.suspicions(_root(), asked, _note, now()), 0
    from perfflow.cli.run_command import usable
    from perfflow.jobs.against.confirm import Pairs, confirm
    from perfflow.jobs.run.run import FinishedRun, RunRequest, run

    budget, settings = options["budget"], options["settings"]
    total = None if budget is None else seconds("--budget", budget)
    pairs = Pairs(workflow, seconds("--lock-timeout", options["lock_timeout"]), settings, total, budget or "")
    opened = usable(workflow, settings, to_run=True, trust=options["trust"])
    found = suspecting.suspicions(opened.root, asked, _note, now())

    def measure(request: RunRequest) -> FinishedRun:
        with shown(None, opened, list(request.command), budget=total) as told:
            return run(opened, request, told)

    done = confirm(opened, found, pairs, measure)
    suspecting.keep(opened.root, [item for item in done.suspicions if item.is_news], _note)
    if not done.measured:
        _note(f"nothing is open of {opened.plan.workflow.name} that this machine can measure in pairs")
    for run_id in done.failed:
        _note(f"{run_id} could not measure everything; `perfflow report {run_id}` says why")
    status = Exit.INTERRUPTED if done.interrupted else Exit.UNMEASURED if done.failed else Exit.PASS
    return list(done.suspicions), int(status)


@command.command("build", short_help="Write the history as static pages.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--branch", default="", help="Only runs of this branch.")
@click.option("--machine", default="", metavar="IDENTITY", help="Only runs on this machine.")
@click.option("--rebase", default="", metavar="IDENTITY", help="Bring the values of this machine to that of --machine.")
def build(folder: Path, branch: str, machine: str, rebase: str) -> None:
    """Write an index and a page for each benchmark into DIR, for any host of static files.

    Exit: 0 written, 2 DIR holds something else, 3 the store cannot be reached.
    """
    from perfflow.cli.output import say
    from perfflow.jobs.history import site
    from perfflow.jobs.history.trends import HistoryFilter

    number = site.build(_root(), folder, HistoryFilter(branch=branch, machine=machine, rebase=rebase), _note)
    say(f"{number} pages: {folder / 'index.html'}")


@command.command("add", short_help="Add results of perfflow, such as those of CI.")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
def add(results: tuple[str, ...]) -> None:
    """Add runs: a run's folder or its result.json, such as an artifact of CI. Adding one twice changes nothing.

    Exit: 0 the runs were added, 2 a file is not a result of perfflow. If the store cannot be reached, the runs are
    kept here and sent later (exit 0).
    """
    from perfflow.jobs.history import collect, importing

    _added(collect.add(_root(), importing.own(_root(), results), _note), len(results), "run")


@command.command("import", short_help="Add result files of other tools.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def import_(files: tuple[str, ...]) -> None:
    """Add result files of other tools, or folders of them; dates, machines and revisions are those in the files.

    Known are criterion's target/criterion, pytest-benchmark's .benchmarks, asv's results, hyperfine --export-json,
    Go benchmarks, Google Benchmark's JSON, pyperf, and data.js of github-action-benchmark.

    Exit: 0 added, 2 a file cannot be read, 3 the store cannot be reached.
    """
    from perfflow.jobs.history import collect, importing

    found = list(importing.summaries(_root(), list(files), _note))
    _added(collect.add(_root(), found, _note), len(found), "set")


@command.command("use", short_help="Keep the history in a database that several machines share.")
@click.argument("address", required=False, default="", metavar="[URL]")
def use(address: str) -> None:
    """Keep the history of this clone in PostgreSQL, such as postgresql://USER@HOST/DATABASE; without URL here again.

    PERFFLOW_HISTORY does the same for one command. Needs perfflow's extra `postgres`.

    Exit: 0 done, 2 bad address, 3 the database cannot be reached.
    """
    from perfflow.cli.output import say
    from perfflow.jobs.history import collect

    say(f"history: {collect.use(_root(), address).shown}")


def _added(new: int, given: int, what: str) -> None:
    from perfflow.cli.output import say

    known = f", {given - new} known already" if given > new else ""
    say(f"{new} {what}{'' if new == 1 else 's'} added{known}")


def _asked(*, since: str = "", **filters: str) -> HistoryFilter:
    from perfflow.jobs.history.trends import HistoryFilter, moment

    return HistoryFilter(since=moment(since) if since else None, **filters)


def _show(table: Any) -> None:
    import sys

    from perfflow.cli.output import say_page
    from perfflow.cli.style import style_of
    from perfflow.report.text_table import laid_out

    laid = laid_out(table, style_of(sys.stdout).width)
    say_page([laid.head, *(line for entry in laid.entries for line in entry)])


def _note(text: str) -> None:
    from perfflow.cli.output import tell
    from perfflow.report.sanitize import visible

    tell(f"note: {visible(text)}\n")


def _json(content: object) -> str:
    import json

    return json.dumps(content, ensure_ascii=False, indent=1)


def _root() -> Path:
    from perfflow.trees import project

    here = Path.cwd()
    return project.root_of(here) or here
