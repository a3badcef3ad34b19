"""``perfflow bisect``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from perfflow.cli.ci import in_github, without_commands
from perfflow.cli.console import shown, shown_path
from perfflow.cli.options import LOCK_TIMEOUT, SEED, THE_WORKFLOW, TRUST, UNPROVEN, limit, placed
from perfflow.cli.output import say, tell
from perfflow.cli.style import style_of
from perfflow.jobs.bisect.bisect import BisectRequest, FinishedBisection, bisect, show_again
from perfflow.jobs.cluster.agent import HERE
from perfflow.jobs.cluster.placed_run import Placement, keep_as_run, placed_command
from perfflow.model.errors import Exit, UserError
from perfflow.report import bisect_page
from perfflow.report.bisect_page import tried_text
from perfflow.report.sanitize import ascii_text
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.store.result_file import FILE
from perfflow.store.run_folder import REPORT, find
from perfflow.trees.repository import open_repository
from perfflow.verdict.bisection import JudgedRevision


@click.command("bisect")
@THE_WORKFLOW
@click.option("--good", required=True, metavar="REV", help="A revision without the regression.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV", help="A revision with the regression.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--only", multiple=True, metavar="STEP", help="Measure only this step; may be repeated.")
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="GLOB",
    help="Measure only the benchmarks of this name or glob; may be repeated. The largest regression is looked for.",
)
@click.option("--metric", default="", help="The metric that regressed (default: the one that decides a verdict).")
@click.option(
    "--budget",
    metavar="TIME",
    callback=limit,
    help="Longest time of the whole command, builds included, such as 10m.",
)
@click.option("--first-parent", is_flag=True, help="Treat a merge as one change.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the run to this folder, which must be new or empty."
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="latest",
    metavar="[RUN]",
    help="Resume an interrupted bisection (default: the latest run).",
)
@click.option("--executor", metavar="NAME", help="Where to measure: an executor of executors.yaml, or `local`.")
@SEED
@LOCK_TIMEOUT
@TRUST
@click.option("--progress", type=click.Choice(["plain", "off"]), default="plain", help="Progress on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print bisect.json to stdout and nothing else.")
@UNPROVEN
def command(
    workflow: str,
    good: str,
    bad: str,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    benchmarks: tuple[str, ...],
    metric: str,
    budget: float | None,
    first_parent: bool,
    out: Path | None,
    resume: str | None,
    executor: str | None,
    seed: int | None,
    lock_timeout: float,
    trust: bool,
    progress: str,
    as_json: bool,
    unproven: str,
) -> int:
    """Find the commit that introduced a regression.

    perfflow builds revisions between --good and --bad and measures them in pairs with good until the commit is found.
    It does not change the project's own tree, index and refs.

    Exit: 0 the commit was found, 2 bad usage or workflow, 3 could not measure, 4 no regression is proven, or several
    commits are left, 130 interrupted.
    """
    if resume and (out or seed is not None):
        raise UserError.of("--resume continues in the folder of the run, with its seed", "leave out --out and --seed")
    words = ["perfflow", "bisect", workflow, *(f"--set={setting}" for setting in settings)]
    words += [f"--good={good}", f"--bad={bad}", *(f"--only={step}" for step in only)]
    words += [*(f"--benchmark={glob}" for glob in benchmarks), *([f"--metric={metric}"] if metric else [])]
    words += ["--first-parent"] if first_parent else []
    opened = open_workflow(workflow, settings)
    opened.require_usable(to_run=True, trust=trust)
    for problem in opened.problems:
        tell(f"{problem.render()}\n")
    folder = find(opened.root, resume) if resume else None
    if placement := placed(executor, None, settings, detach=False):
        if out or resume:
            raise UserError.of("a bisection on another machine always starts a new run", "leave out --out and --resume")
        more = [f"--budget={budget}s"] if budget else []
        more += [f"--seed={seed}"] if seed is not None else []
        # Names of revisions are unknown there, so they are passed as commits.
        how = {"as_json": as_json, "unproven": unproven}
        return _placed(opened, placement, [*words[1:], *more], only, (good, bad), **how)
    asked = BisectRequest(
        good, bad, only, benchmarks, metric, budget, first_parent, out, folder, seed, lock_timeout, words
    )
    # Without ``typed``: commits that do not build are skipped, so a command to repeat the step here would mislead.
    with shown(progress, opened, ()) as told:
        finished = bisect(opened, asked, told, _print_nothing if progress == "off" else _print_trial)
    return print_bisection(finished, words, as_json=as_json, unproven=unproven)


def _placed(
    opened: Opened, placement: Placement, words: list[str], only: Sequence[str], ends: tuple[str, str], **how: Any
) -> int:
    """Bisect on another machine, and store the result as a run of this project."""
    repository = open_repository(opened.root)
    commits = dict(zip(("good", "bad"), map(repository.revision, ends), strict=True))
    words = [word for word in words if not word.startswith(("--good=", "--bad="))]
    words += [*(f"--{name}={commit}" for name, commit in commits.items()), f"--out={HERE}", "--trust"]
    result = placed_command(opened, placement, words, only, commits, lambda text: tell(f"{text}\n"))
    kept = keep_as_run(opened.root, result.run)
    result.discard()
    return print_bisection(show_again(kept), **how)


_EXITS = {
    "found": Exit.PASS,
    "narrowed": Exit.UNPROVEN,
    "same": Exit.UNPROVEN,
    "unproven": Exit.UNPROVEN,
    "not measured": Exit.UNMEASURED,
    "interrupted": Exit.INTERRUPTED,
}


def print_bisection(finished: FinishedBisection, words: Sequence[str] = (), *, as_json: bool, unproven: str) -> int:
    """Print the result of a bisection to stdout and return its exit status.

    ``words``: the command to resume it with; without it, no such command is printed.
    """
    bisection = finished.found
    if as_json:
        say((finished.folder / FILE).read_text(encoding="utf-8"), end="")
    else:
        style = style_of(sys.stdout)
        text = bisect_page.text(bisection, shown_path(finished.folder / REPORT), style.width)
        text = without_commands(text) if in_github() else text
        say(text if style.unicode else ascii_text(text), end="")
    if bisection.outcome.value == "interrupted" and bisection.regression and words:
        tell(f"interrupted; to resume: {shlex.join([*words, f'--resume={shown_path(finished.folder)}'])}\n")
    status = _EXITS[bisection.outcome.value]
    return int(Exit.PASS if status is Exit.UNPROVEN and unproven == "pass" else status)


def _print_trial(item: JudgedRevision) -> None:
    """Print the result of one revision to stderr."""
    line = f"= {tried_text(item)}\n"
    tell(without_commands(line) if in_github() else line)


def _print_nothing(_: JudgedRevision) -> None:
    """Print nothing."""
