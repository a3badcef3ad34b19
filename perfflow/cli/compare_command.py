"""``perfflow compare``, and ``perfflow gate --base-results``, which compares measured head with stored results.

``compare`` measures two commands in pairs, or compares two stored results. The comparison of ``gate`` is unpaired.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from perfflow.cli import ci
from perfflow.cli.console import SignsOfLife, exit_of, print_verdict, shown
from perfflow.cli.options import LOCK_TIMEOUT, SEED, UNPROVEN, seconds, usable
from perfflow.cli.output import say, tell
from perfflow.cli.plan_command import print_plan
from perfflow.cli.run_command import RunOptions, after, require_fitting
from perfflow.cli.style import style_of
from perfflow.jobs.against.stored_base import StoredBase, compare_head, measured_steps, require_usable
from perfflow.jobs.compare.compare_stored import (
    CompareOptions,
    Question,
    as_run,
    compare_stored,
    new_folder,
    proven_regressions,
    require_commands,
)
from perfflow.jobs.run.run import FinishedRun, RunRequest, run
from perfflow.model.errors import Exit, UserError
from perfflow.model.secrets import masked, secrets_in
from perfflow.report import terminal
from perfflow.report.sanitize import ascii_text, visible
from perfflow.session.open_workflow import Opened, select
from perfflow.store import run_folder
from perfflow.store.history.find_stored import find, names_stored, not_found, passed_over
from perfflow.store.history.stored import Stored
from perfflow.store.result_file import to_text
from perfflow.store.run_folder import REPORT
from perfflow.trees import repository
from perfflow.workflow.shell_text import needs_shell
from perfflow.workflow.step_checks import stream_mistake

_MARK = "perfflow.compare.after-dashes"
_MEASURING_OPTIONS = ("budget", "runs", "metric", "seed", "stdout", "allow_left_running", "lock_timeout")
"""Options about measuring, which do not apply to stored results."""
_USAGE = "perfflow compare -- 'old arg' 'new arg', or perfflow compare OLD-RESULT NEW-RESULT"


class _CompareCommand(click.Command):
    """Stores whether there was a ``--``, which click removes. Words after it are commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store whether there was a ``--``, then parse the arguments."""
        ctx.meta[_MARK] = "--" in args
        return super().parse_args(ctx, args)


@click.command("compare", cls=_CompareCommand)
@click.argument("sides", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--budget",
    metavar="TIME",
    help="Longest time of the whole comparison (default: 20s, but slow commands still run 5 times each).",
)
@click.option("--runs", type=click.IntRange(1, 10**6), help="Measure exactly this many pairs.")
@click.option(
    "--metric",
    type=click.Choice(["auto", "time", "cpu", "uncontended"]),
    default="auto",
    help="The metric that decides the verdict.",
)
@SEED
@click.option(
    "--stdout",
    default="discard",
    show_default=True,
    metavar="discard|pipe|FILE",
    help="Where the output of both commands goes: /dev/null, a pipe that is read, or a file.",
)
@click.option(
    "--allow-left-running", metavar="WHY", help="Allow the commands to leave processes running. WHY is the reason."
)
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Choose one of several result sets in a file, such as commit=1a2b3c.",
)
@LOCK_TIMEOUT
@click.option("--across-machines", is_flag=True, help="Allow stored results from different machines.")
@click.option(
    "--fail-on",
    type=click.Choice(["regressed"]),
    help="With stored results: exit 1 if the whole interval of a regression is beyond the action threshold.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the run to this folder, which must be new or empty."
)
@click.option("--json", "as_json", is_flag=True, help="Print result.json to stdout and nothing else.")
@UNPROVEN
@click.pass_context
def command(
    context: click.Context,
    sides: tuple[str, ...],
    budget: str | None,
    runs: int | None,
    metric: str,
    seed: int | None,
    stdout: str,
    allow_left_running: str | None,
    where: tuple[str, ...],
    lock_timeout: float,
    across_machines: bool,
    fail_on: str | None,
    out: Path | None,
    as_json: bool,
    unproven: str,
) -> int:
    """Compare two commands (perfflow compare -- 'OLD ARG' 'NEW ARG') or two stored results.

    Words after `--` are commands. perfflow runs them as fresh processes, in pairs, in random order, until the
    difference is settled or the budget is spent.

    Without `--`, each word names a stored result: a baseline, a run (its id, `latest` or its folder), a result.json, or
    a result file of hyperfine, criterion, pyperf, asv, pytest-benchmark, go test -bench or Google Benchmark. They were
    not measured in pairs, so they get no verdict. A program such as ./old counts as a command. Write ./NAME for a file
    if a baseline has the same name.

    Exit of commands: 0 not slower by more than 10%, 1 slower by more than 10%, 3 could not measure, 4 unproven. Exit of
    stored results: 0, or 3 if a benchmark is gone or they have nothing in common; with --fail-on regressed, 1 if the
    whole interval of a regression is beyond the action threshold.
    """
    if len(sides) != 2:
        hint = _quoted(sides) if context.meta[_MARK] else ""
        raise UserError.of(f"compare takes two commands or two stored results, not {len(sides)}", hint or _USAGE)
    if not all(side.strip() for side in sides):
        raise UserError.of("one of the commands is empty", _USAGE)
    words = sides[0], sides[1]
    if not context.meta[_MARK] and _are_stored(words):
        given = [
            name for name in _MEASURING_OPTIONS if context.get_parameter_source(name) is not ParameterSource.DEFAULT
        ]
        if given:
            name = given[0].replace("_", "-")
            raise UserError.of(f"--{name} applies only to commands, and these are stored results", "leave it out")
        return _stored(words, out, where, across_machines=across_machines, as_json=as_json, fail_on=fail_on)
    for option, value in (("--across-machines", across_machines), ("--fail-on", fail_on), ("--where", where)):
        if value:
            raise UserError.of(f"{option} applies only to stored results, and these are commands", "leave it out")
    if context.meta[_MARK]:
        _require_quoted(words)
    else:
        _refuse_misspelt(words)

    question = Question(*words, budget, metric, runs, stdout, allow_left_running)
    opened, request = _request(question, seed, lock_timeout, out)
    finished = run(opened, request, SignsOfLife(style_of(sys.stderr)))
    say(_answer(finished, as_json=as_json), end="")
    return _exit_of(finished, unproven=unproven)


def _are_stored(words: tuple[str, str]) -> bool:
    """Return whether both words are stored results. Raises UserError if only one is, and names the other."""
    root = repository.project_here()
    stored = [names_stored(root, word) for word in words]
    if any(stored) and not all(stored):
        error = not_found(root, words[stored.index(False)])
        hint = f"{error.problems[0].hint}; commands go after a `--`"
        raise UserError.of(error.problems[0].message, hint)
    return all(stored)


def _require_quoted(words: tuple[str, str]) -> None:
    """Raise UserError if the second word is no program: the words of one command were meant, as in `sleep 0.01`."""
    second = words[1]
    if any(len(word.split()) != 1 or needs_shell(word) for word in words) or not shutil.which(words[0]):
        return
    misspelt = "/" in second and not Path(second).exists()
    if not shutil.which(second) and not misspelt:
        text = f"{second!r} is not a program: compare takes two commands, each in quotation marks"
        raise UserError.of(text, f"{_quoted(words)}, or check the name of the program")


def _quoted(words: Sequence[str]) -> str:
    """Return how to write the words of one command, or of two whose programs have the same name; '' for one word."""
    half = len(words) // 2
    if len(words) < 2:
        return ""
    if len(words) % 2 == 0 and half > 1 and words[0] == words[half]:
        sides = [shlex.join(words[:half]), shlex.join(words[half:])]
    else:
        sides = [shlex.join(words), "NEW COMMAND"]
    return f"write perfflow compare -- {' '.join(map(shlex.quote, sides))}"


def _refuse_misspelt(words: tuple[str, str]) -> None:
    """Raise UserError for two bare names unless both are programs: they were meant as stored results."""
    if any("/" in word or len(word.split()) != 1 for word in words):
        return
    missing = [word for word in words if shutil.which(word) is None]
    if missing:
        problem = not_found(repository.project_here(), missing[0]).problems[0]
        text = f"{problem.message}, and not a program on PATH"
        raise UserError.of(text, f"{problem.hint}; commands go after a `--`")


def _stored(
    words: tuple[str, str],
    out: Path | None,
    where: tuple[str, ...],
    *,
    across_machines: bool,
    as_json: bool,
    fail_on: str | None,
) -> int:
    root = repository.project_here()
    chosen = _facts(where)
    first, second = (_find(root, word, chosen) for word in words)
    finished = compare_stored(first, second, CompareOptions(out or new_folder(), across_machines))
    report = finished.folder / REPORT
    status = print_verdict(finished.result, report, as_json=as_json, color="auto", unproven="fail")
    failures = proven_regressions(finished.result) if fail_on else []
    for text in [] if as_json else failures:
        say(visible(text))
    return int(Exit.FAIL) if failures else status


def _facts(where: tuple[str, ...]) -> dict[str, str]:
    """Return the facts given with ``--where``. Raises UserError for a fact without a key or a value."""
    pairs = [text.partition("=") for text in where]
    for key, _, value in pairs:
        if not key or not value:
            raise UserError.of(f"--where {key or value} is not KEY=VALUE", "write --where commit=1a2b3c")
    return {key: value for key, _, value in pairs}


def _find(root: Path, word: str, where: dict[str, str]) -> Stored:
    try:
        source = find(root, word, where)
    except UserError as error:
        # A file that is not JSON may have been meant as a command.
        problem = error.problems[0]
        if word.endswith(".json") or not Path(word).is_file():
            raise
        raise UserError.of(problem.message, f"{problem.hint}; commands go after a `--`") from error
    if other := passed_over(root, word, source.label):
        tell(f"note: {visible(other)}\n")
    return source


def _request(question: Question, seed: int | None, patience: float, out: Path | None) -> tuple[Opened, RunRequest]:
    """Return the workflow and the request of a comparison. Raises UserError for unusable commands or options."""
    require_commands(question.old, question.new)
    wrong = stream_mistake(question.stdout)
    if wrong:
        raise UserError.of(f"--stdout {question.stdout!r}: {wrong[0]}", wrong[1])
    if question.budget is not None:
        seconds("--budget", question.budget, "write 20s or 5m")
    # Writing the report takes time, and most users only want the answer.
    request = RunRequest(seed=seed, lock_timeout=patience, out=out or new_folder(), report=out is not None)
    return as_run(question, request)


def _answer(finished: FinishedRun, *, as_json: bool) -> str:
    """Return the text to print: the change in words, or the whole result as JSON."""
    if as_json:
        return to_text(finished.result)
    folder, style = str(finished.folder), style_of(sys.stdout)
    text = terminal.render_summary(finished.result, folder, width=style.width)
    text += f"\n  more: {shlex.join(['perfflow', 'report', folder])}\n"
    return text if style.unicode else ascii_text(text)


def _exit_of(finished: FinishedRun, *, unproven: str) -> int:
    return int(Exit.INTERRUPTED if finished.interrupted else exit_of(finished.result, unproven=unproven))


_FIRST = (Exit.FAIL, Exit.UNMEASURED, Exit.UNPROVEN)
"""Exit statuses by priority: the first that occurs is returned."""


def gate(options: RunOptions, base_results: str) -> int:
    """Measure head, compare it with the stored results, print the comparison and return the exit status."""
    if options.head:
        text = "--base-results measures the working tree, so --head does not apply"
        raise UserError.of(text, f"git checkout {options.head}, or --base compares two revisions in pairs")
    opened = usable(options.workflow, options.settings, to_run=not options.dry_run, trust=options.trust)
    across = ["--across-machines"] if options.across_machines else []
    words = options.words("gate", f"--base-results={base_results}", *across)
    # The command line is stored in the result, with secrets masked.
    typed = list(masked(words, secrets_in(os.environ, opened.plan.params)))
    base = StoredBase(_stored_base(opened, base_results), typed, options.out, options.across_machines)
    require_usable(opened, base)
    steps = measured_steps(opened, select(opened.plan, **options.to_select))
    request = _head_request(opened, steps, options)
    if options.dry_run:
        return print_plan(opened, frozenset(steps), budget=request.budget)
    with shown(options.progress, opened, words, color=options.color, budget=request.budget) as told:
        head = run(opened, request, told)
    return _concluded(opened, head, base, options)


def _stored_base(opened: Opened, name: str) -> Any:
    found = find(opened.root, name)
    if other := passed_over(opened.root, name, found.label):
        tell(f"note: {visible(other)}\n")
    return found


def _head_request(opened: Opened, steps: list[str], options: RunOptions) -> RunRequest:
    require_fitting(options)
    return RunRequest(
        only=steps,
        benchmarks=options.benchmarks,
        jobs=options.jobs,
        keep_going=True,
        resume=run_folder.find(opened.root, options.interrupted_run) if options.interrupted_run else None,
        seed=options.seed,
        lock_timeout=options.lock_timeout,
        budget=options.budget,
    )


def _concluded(opened: Opened, head: FinishedRun, base: Any, options: RunOptions) -> int:
    """Compare head, if it was measured. Print the comparison, and the verdict of head itself if it does not pass."""
    tell("".join(f"note: {visible(note)}\n" for note in head.notes))
    status_of_head = exit_of(head.result, unproven=options.unproven)
    if head.interrupted or not head.result.benchmarks:
        print_verdict(head.result, head.folder / REPORT, **options.to_judge)
        return after(head, None, list(base.command), annotate=options.progress != "off", apply=False) or status_of_head
    compared = compare_head(opened, head, base)
    if status_of_head and not options.as_json:
        print_verdict(head.result, head.folder / REPORT, **options.to_judge)
        say("")
    status = print_verdict(compared.result, compared.folder / REPORT, **options.to_judge)
    failures = proven_regressions(compared.result) if options.fail_on else []
    for text in () if options.as_json else failures:
        say(visible(text))
    if ci.in_github() and options.progress != "off":
        lines = [*(ci.annotation_lines(head.result) if status_of_head else ()), *ci.annotation_lines(compared.result)]
        tell("".join(f"{line}\n" for line in lines))
    statuses = [Exit(status), status_of_head, Exit.FAIL if failures else Exit.PASS]
    return int(next((one for one in _FIRST if one in statuses), Exit.PASS))


OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--base-results"],
        metavar="NAME",
        help="Measure only head and compare it, unpaired, with a baseline, a run or a result file. Changes affect the "
        "exit status only with --fail-on.",
    ),
    click.Option(["--across-machines"], is_flag=True, help="With --base-results: allow results from another machine."),
    click.Option(
        ["--fail-on"],
        type=click.Choice(["regressed"]),
        help="With --base-results: exit 1 if the whole interval of a regression is beyond the action threshold.",
    ),
]
"""Options of `perfflow gate` for stored results."""
