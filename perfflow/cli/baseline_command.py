"""``perfflow baseline``: keeps results under a name, to compare with."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from perfflow.cli.console import shown_path
from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.machine.facts import facts
from perfflow.model.criteria import Criteria
from perfflow.model.errors import UserError
from perfflow.model.metrics import default_statistic, in_words
from perfflow.model.result import Sample
from perfflow.report.rows import FigureLine, value_with_interval
from perfflow.report.sanitize import visible, wrapped
from perfflow.report.table import Column, Table, TextKind, mark, name, table, value, words
from perfflow.report.tables import described, figures
from perfflow.report.text_table import laid_out
from perfflow.store.history import baselines, summary
from perfflow.store.history.find_stored import open_source, passed_over
from perfflow.store.history.stored import Source, Stored, branch_of, ending_of, stored_of
from perfflow.store.record import reading_to_json
from perfflow.trees import repository
from perfflow.verdict.comparison import summarise

_OWN = " "
"""Value of --branch without a name. No branch has this name."""
_DETACHED = "HEAD"


@click.group("baseline")
def command() -> None:
    """Keep results under a name and compare with them: perfflow compare NAME latest.

    Baselines are stored in .perfflow/baselines of the project.
    """


@command.command("save", short_help="Keep a run, or another tool's result file, under a name.")
@click.argument("name")
@click.argument("source", default="latest", metavar="[RUN|FILE]")
@click.option("--force", is_flag=True, help="Replace a baseline of this name, and accept a run that ended in error.")
@click.option(
    "--branch",
    is_flag=False,
    flag_value=_OWN,
    metavar="[BRANCH]",
    help="Make it the baseline of this branch (default: the measured branch), instead of the previous one.",
)
def save(name: str, source: str, force: bool, branch: str | None) -> None:
    """Keep a run or a result file under NAME, to compare with it.

    RUN is a folder, an id or `latest` (the default). FILE is a result.json or a result file of another tool. If the run
    compared two sides, its candidate is the baseline.

    With --branch, NAME can be saved again for the same branch without --force, and the name of the branch can be used
    instead of NAME.
    """
    found, label = open_source(repository.project_here(), source)
    kept_for = "" if branch is None else _branch(found, branch)
    path = baselines.save(repository.project_here(), name, found, label, force=force, branch=kept_for)
    if other := passed_over(repository.project_here(), source, label):
        tell(f"note: {visible(other)}\n")
    if ended := ending_of(found):
        tell(f"note: {visible(ended)}\n")
    say(f"baseline {name}{f' of {visible(kept_for)}' if kept_for else ''}: {shown_path(path)}")


@command.command("list", short_help="List the baselines.")
@click.option("--json", "as_json", is_flag=True, help='Print {"baselines": [...]}.')
def list_(as_json: bool) -> None:
    """List the baselines with their workflow or tool, date, machine and revision."""
    rows = [_entry(name) for name in baselines.names(repository.project_here())]
    if as_json:
        say(json.dumps({"baselines": rows}, ensure_ascii=False, indent=1))
    elif not rows:
        text = "no baselines yet; `perfflow baseline save NAME` keeps the latest run as one"
        say_page(wrapped(text, style_of(sys.stdout).width))
    else:
        laid = laid_out(_table(rows), style_of(sys.stdout).width)
        say_page([laid.head, *(line for entry in laid.entries for line in entry)])


@command.command("show", short_help="Show the figures of a baseline.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with every value.")
def show(name: str, as_json: bool) -> None:
    """Show the benchmarks of a baseline: each value with its 95% interval and number of samples."""
    stored = stored_of(baselines.load(repository.project_here(), name), name)
    if as_json:
        values = [
            {"benchmark": key[0], "metric": key[1], "values": [item.value for item in readings]}
            for key, readings in stored.series.items()
        ]
        say(json.dumps({**_known(stored), "samples": values, "warnings": list(stored.warnings)}, indent=1))
        return
    width = style_of(sys.stdout).width
    notes = [line for text in stored.warnings for line in wrapped(f"note: {visible(text)}", width, "  ")]
    laid = laid_out(_figures(stored), width)
    say_page([*described(_facts(stored), width), "", laid.head, *(line for (line,) in laid.entries), *notes])


@command.command("rm", short_help="Remove baselines.")
@click.argument("names", nargs=-1, required=True)
def remove(names: tuple[str, ...]) -> None:
    """Remove baselines. If one of the names does not exist, nothing is removed."""
    baselines.remove(repository.project_here(), names)


def _branch(source: Source, asked: str) -> str:
    """Return the given branch, else the branch that a run measured, else the branch that is checked out.

    Raises UserError if there is none.
    """
    if asked != _OWN:
        if not asked.isprintable() or asked.split() != [asked]:
            raise UserError.of(f"--branch {asked!r} is not a branch", "write --branch=NAME")
        return asked
    found = branch_of(source) or str(
        repository.describe_project(repository.project_here(), inspecting=True).get("branch") or ""
    )
    if found in ("", _DETACHED):
        raise UserError.of("the branch of the baseline is unknown: no branch is checked out", "name it: --branch=main")
    return found


def _entry(name: str) -> dict[str, Any]:
    """Return one row of the list. For a damaged baseline only its name and the problem are set."""
    try:
        known = _known(stored_of(baselines.load(repository.project_here(), name), name)) | {"problem": None}
    except UserError as error:
        empty = dict.fromkeys(("measured", "tool", "version", "workflow", "revision", "machine", "this_machine"))
        known = {"name": name, **empty, "benchmarks": 0, "problem": error.problems[0].message}
    return known | {"branch": baselines.branch_of(repository.project_here(), name) or None}


def _known(stored: Stored) -> dict[str, Any]:
    here = facts()
    sure = summary.certain_facts(stored.machine, here)
    same = None if not sure and not summary.machine_differences(stored.machine, here) else False
    return {
        "name": stored.label,
        "measured": stored.started or None,
        "tool": stored.tool,
        "version": stored.version or None,
        "workflow": stored.workflow or None,
        "revision": stored.revision or None,
        "machine": summary.described_machine(stored.machine) or None,
        "this_machine": True if sure and stored.machine["identity"] == here["identity"] else same,
        "benchmarks": len(stored.benchmarks),
    }


_FROM_HERE = {True: "yes", False: "no", None: "unknown"}


def _table(rows: list[dict[str, Any]]) -> Table:
    columns = [
        name("name"),
        Column("branch", TextKind.NAME, rank=2),
        mark("measured"),
        Column("of", TextKind.NAME),
        value("benchmarks", rank=4),
        Column("revision", TextKind.NAME, rank=3),
        Column("machine", TextKind.NAME, rank=5),
        mark("from here", rank=3),
        words("problem"),
    ]
    return table(columns, map(_cells, rows))


def _cells(row: dict[str, Any]) -> list[str]:
    if row["problem"]:
        return [row["name"], row["branch"] or "", "damaged", "", "", "", "", "", row["problem"]]
    return [
        row["name"],
        row["branch"] or "",
        (row["measured"] or "unknown")[:16].replace("T", " "),
        row["workflow"] or row["tool"],
        str(row["benchmarks"]),
        (row["revision"] or "")[:12],
        row["machine"] or "",
        _FROM_HERE[row["this_machine"]],
        "",
    ]


def _facts(stored: Stored) -> list[tuple[str, str]]:
    known = _known(stored)
    version = f" {stored.version}" if stored.version else ""
    lines = {
        "baseline": stored.label,
        "branch": baselines.branch_of(repository.project_here(), stored.label),
        "of": f"{stored.workflow}, {stored.tool}{version}" if stored.workflow else f"{stored.tool}{version}",
        "measured": stored.started,
        "revision": f"{stored.revision}{' with uncommitted changes' if stored.dirty else ''}"
        if stored.revision
        else "",
        "machine": known["machine"] or "",
        "from here": _FROM_HERE[known["this_machine"]],
    }
    return [(name, text) for name, text in lines.items() if text]


def _figures(stored: Stored) -> Table:
    criteria = stored.criteria or Criteria()
    rows = []
    for (benchmark, metric), readings in stored.series.items():
        kind = criteria.metric(metric)
        found = summarise(readings, kind, default_statistic(kind))
        if found:
            told = [reading_to_json(item) for item in readings]
            sample = Sample(value=found.value, low=found.low, high=found.high, n=found.n, samples=[], readings=told)
            text = value_with_interval(sample, kind.dimension).removesuffix(f" (n={found.n})")
            rows.append(FigureLine(benchmark, in_words(metric), text, "", "", str(found.n), first=False))
    return figures(rows)
