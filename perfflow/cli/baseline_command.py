"""``perfflow baseline``: results kept under a name, to compare with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perfflow.history.stored import Stored


@click.group("baseline")
def command() -> None:
    """Keep results under a name, to compare with: perfflow compare NAME latest.

    They are kept in .perfflow/baselines of the project.
    """


@command.command("save", short_help="Keep a run, or another tool's result file, under a name.")
@click.argument("name")
@click.argument("source", default="latest", metavar="[RUN|FILE]")
@click.option("--force", is_flag=True, help="Replace a baseline of that name; keep a run that ended in error, too.")
def save(name: str, source: str, force: bool) -> None:
    """Keep a run (default: the latest), a result.json or another tool's result file under NAME."""
    from perfflow.cli.output import say, tell
    from perfflow.cli.verdict import shown_path
    from perfflow.history import baselines
    from perfflow.history.finding import open_source, passed_over
    from perfflow.history.stored import ending_of
    from perfflow.report.plain import visible

    found, label = open_source(_root(), source)
    path = baselines.save(_root(), name, found, label, force=force)
    if other := passed_over(_root(), source, label):
        tell(f"note: {visible(other)}\n")
    if ended := ending_of(found):
        tell(f"note: {visible(ended)}\n")
    say(f"baseline {name}: {shown_path(path)}")


@command.command("list", short_help="List the baselines.")
@click.option("--json", "as_json", is_flag=True, help='Print {"baselines": [...]}.')
def list_(as_json: bool) -> None:
    """List the baselines: when they were measured, of what, on which machine, at which revision."""
    import json
    import sys

    from perfflow.cli.output import say, say_page
    from perfflow.cli.style import style_of
    from perfflow.history import baselines
    from perfflow.report.columns import fitting
    from perfflow.report.plain import wrapped

    rows = [_entry(name) for name in baselines.names(_root())]
    if as_json:
        say(json.dumps({"baselines": rows}, ensure_ascii=False, indent=1))
    elif not rows:
        text = "no baselines yet; `perfflow baseline save NAME` keeps the latest run as one"
        say_page(wrapped(text, style_of(sys.stdout).width))
    else:
        say_page(fitting(_HEAD, [_cells(row) for row in rows], style_of(sys.stdout).width))


@command.command("show", short_help="Show the figures of one.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with every value.")
def show(name: str, as_json: bool) -> None:
    """Show the benchmarks of one baseline: each value with its 95% interval, and of how many samples."""
    import json
    import sys

    from perfflow.cli.output import say, say_page
    from perfflow.cli.style import style_of
    from perfflow.history import baselines
    from perfflow.history.stored import stored_of
    from perfflow.report.columns import described, narrowed
    from perfflow.report.plain import visible, wrapped

    stored = stored_of(baselines.load(_root(), name), name)
    if as_json:
        values = [
            {"benchmark": key[0], "metric": key[1], "values": [item.value for item in readings]}
            for key, readings in stored.series.items()
        ]
        say(json.dumps({**_known(stored), "samples": values, "warnings": list(stored.warnings)}, indent=1))
        return
    width = style_of(sys.stdout).width
    notes = [line for text in stored.warnings for line in wrapped(f"note: {visible(text)}", width, "  ")]
    say_page([*described(_facts(stored), width, ""), "", *narrowed(_figures(stored), width), *notes])


@command.command("rm", short_help="Remove some.")
@click.argument("names", nargs=-1, required=True)
def remove(names: tuple[str, ...]) -> None:
    """Remove baselines; where one of the names is none, nothing is removed."""
    from perfflow.history import baselines

    baselines.remove(_root(), names)


def _root() -> Path:
    from perfflow.trees import project

    here = Path.cwd()
    return project.root_of(here) or here


def _entry(name: str) -> dict[str, Any]:
    """One line of the list as data; of a damaged baseline its name and what is wrong."""
    from perfflow.errors import UserError
    from perfflow.history import baselines
    from perfflow.history.stored import stored_of

    try:
        return _known(stored_of(baselines.load(_root(), name), name)) | {"problem": None}
    except UserError as error:
        empty = dict.fromkeys(("measured", "tool", "version", "workflow", "revision", "machine", "this_machine"))
        return {"name": name, **empty, "benchmarks": 0, "problem": error.problems[0].message}


def _known(stored: Stored) -> dict[str, Any]:
    from perfflow.history import machines
    from perfflow.machine.facts import facts

    here = facts()
    sure = machines.certain(stored.machine, here)
    same = None if not sure and not machines.differences(stored.machine, here) else False
    return {
        "name": stored.label,
        "measured": stored.started or None,
        "tool": stored.tool,
        "version": stored.version or None,
        "workflow": stored.workflow or None,
        "revision": stored.revision or None,
        "machine": machines.described(stored.machine) or None,
        "this_machine": True if sure and stored.machine["identity"] == here["identity"] else same,
        "benchmarks": len(stored.benchmarks),
    }


_HEAD = ["name", "measured", "of", "benchmarks", "revision", "machine", "from here"]
_FROM_HERE = {True: "yes", False: "no", None: "unknown"}


def _cells(row: dict[str, Any]) -> list[str]:
    if row["problem"]:
        return [row["name"], "damaged", row["problem"], "", "", "", ""]
    return [
        row["name"],
        (row["measured"] or "unknown")[:16].replace("T", " "),
        row["workflow"] or row["tool"],
        str(row["benchmarks"]),
        (row["revision"] or "")[:12],
        row["machine"] or "",
        _FROM_HERE[row["this_machine"]],
    ]


def _facts(stored: Stored) -> list[tuple[str, str]]:
    known = _known(stored)
    version = f" {stored.version}" if stored.version else ""
    lines = {
        "baseline": stored.label,
        "of": f"{stored.workflow}, {stored.tool}{version}" if stored.workflow else f"{stored.tool}{version}",
        "measured": stored.started,
        "revision": f"{stored.revision}{' with uncommitted changes' if stored.dirty else ''}"
        if stored.revision
        else "",
        "machine": known["machine"] or "",
        "from here": _FROM_HERE[known["this_machine"]],
    }
    return [(name, text) for name, text in lines.items() if text]


def _figures(stored: Stored) -> list[list[str]]:
    from perfflow.compare import summarise
    from perfflow.report.rows import value_with_interval
    from perfflow.result_samples import Sample
    from perfflow.rundir.record import reading_to_json
    from perfflow.samples.criteria import Criteria
    from perfflow.samples.metrics import default_statistic

    criteria = stored.criteria or Criteria()
    rows = []
    for (name, metric), readings in stored.series.items():
        kind = criteria.metric(metric)
        found = summarise(readings, kind, default_statistic(kind), rules=criteria.rules)
        if found:
            told = [reading_to_json(item) for item in readings]
            sample = Sample(value=found.value, low=found.low, high=found.high, n=found.n, samples=[], readings=told)
            text = value_with_interval(sample, kind.dimension).removesuffix(f" (n={found.n})")
            rows.append([name, metric, text, f"n={found.n}"])
    return rows
