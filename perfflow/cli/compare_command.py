"""``perfflow compare``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from perfflow.cli.durations import LOCK_TIMEOUT, seconds
from perfflow.errors import Exit, UserError

if TYPE_CHECKING:
    from perfflow.flow.compare_commands import Question
    from perfflow.flow.run_once import Request
    from perfflow.history.stored import Stored

_MARK = "perfflow.compare.after-dashes"
_ASIDE = ("budget", "runs", "metric", "seed", "stdout", "allow_left_running", "lock_timeout")
"""Options about measuring, which stored results have behind them."""
_USAGE = "perfflow compare -- 'old arg' 'new arg', or perfflow compare OLD-RESULT NEW-RESULT"


class _CompareCommand(click.Command):
    """Remembers whether there was a ``--``, which click takes away: after it, words are commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the dashes before they are gone."""
        ctx.meta[_MARK] = "--" in args
        return super().parse_args(ctx, args)


@click.command("compare", cls=_CompareCommand)
@click.argument("sides", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--budget",
    default="20s",
    show_default=True,
    help="How long to measure; a command of over 2 s, or over a 24th of it, runs 5 times at least.",
)
@click.option("--runs", type=click.IntRange(1, 10**6), help="Take this many pairs, whatever they say.")
@click.option(
    "--metric", type=click.Choice(["auto", "time", "cpu", "uncontended"]), default="auto", help="What to judge by."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the coins that order the pairs.")
@click.option(
    "--stdout",
    default="discard",
    show_default=True,
    metavar="discard|pipe|FILE",
    help="Where the output of both goes: to /dev/null, to a reader, or to a file.",
)
@click.option(
    "--allow-left-running", metavar="WHY", help="Why they may leave processes running, which is an error otherwise."
)
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of several sets in one file the one with this fact, such as commit=1a2b3c.",
)
@LOCK_TIMEOUT
@click.option("--across-machines", is_flag=True, help="Compare stored results of different machines all the same.")
@click.option("--fail-on", type=click.Choice(["regressed"]), help="Exit 1 where stored results prove a regression.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run; must be new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json alone.")
@click.option("--allow-unproven", is_flag=True, help="Exit 0 where the verdict is unproven.")
@click.pass_context
def command(
    context: click.Context,
    sides: tuple[str, ...],
    budget: str,
    runs: int | None,
    metric: str,
    seed: int | None,
    stdout: str,
    allow_left_running: str | None,
    where: tuple[str, ...],
    lock_timeout: str,
    across_machines: bool,
    fail_on: str | None,
    out: Path | None,
    as_json: bool,
    allow_unproven: bool,
) -> int:
    """Compare two commands, perfflow compare -- 'OLD ARG' 'NEW ARG', or two stored results.

    Commands are run in pairs, as fresh processes, in the order of a coin, until the difference is settled.

    A stored result is a baseline, a run (its id, `latest` or its folder), a result.json, or what hyperfine, criterion,
    pyperf, asv, pytest-benchmark, go test -bench or Google Benchmark wrote. They are not pairs, so they have no
    verdict. Words after `--` are commands; a program, such as ./old, is one in any case; ./NAME is a file where a
    baseline is called NAME.

    Exit: 0 not slower by more than 10%, 1 slower by more than 10%, 3 could not measure, 4 unproven. Of stored results:
    0, or 3 where a benchmark is gone or nothing is in common; with --fail-on regressed 1 where the whole interval of a
    change is beyond the action threshold.
    """
    if len(sides) != 2:
        raise UserError.of(f"compare takes two commands or two stored results, not {len(sides)}", _USAGE)
    if not all(side.strip() for side in sides):
        raise UserError.of("one of the commands is empty", _USAGE)
    words = sides[0], sides[1]
    if not context.meta[_MARK] and _are_stored(words):
        given = [name for name in _ASIDE if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
        if given:
            name = given[0].replace("_", "-")
            raise UserError.of(f"--{name} is about measuring, and stored results were measured", "leave it out")
        return _stored(words, out, where, across_machines=across_machines, as_json=as_json, fail_on=fail_on)
    for option, is_given in (
        ("--across-machines", across_machines),
        ("--fail-on", bool(fail_on)),
        ("--where", bool(where)),
    ):
        if is_given:
            raise UserError.of(f"{option} is about stored results, and these are commands", "leave it out")
    if not context.meta[_MARK]:
        _refuse_misspelt(words)
    from perfflow.flow.compare_commands import Question, new_folder
    from perfflow.flow.run_once import Request

    question = Question(*words, budget, metric, runs, stdout, allow_left_running)
    # The report takes a moment to write, and most only want the answer.
    patience = seconds("--lock-timeout", lock_timeout)
    request = Request(seed=seed, lock_timeout=patience, out=out or new_folder(), report=out is not None)
    return _commands(question, request, as_json=as_json, allow_unproven=allow_unproven)


def _are_stored(words: tuple[str, str]) -> bool:
    """Whether both words are stored results. Raises UserError where just one is, naming the other."""
    from perfflow.history.finding import names_stored, not_found
    from perfflow.trees import project

    here = Path.cwd()
    root = project.root_of(here) or here
    stored = [names_stored(root, word) for word in words]
    if any(stored) and not all(stored):
        error = not_found(root, words[stored.index(False)])
        hint = f"{error.problems[0].hint}; commands go after a `--`"
        raise UserError.of(error.problems[0].message, hint)
    return all(stored)


def _refuse_misspelt(words: tuple[str, str]) -> None:
    """Raise UserError for two bare names that are not both programs: they were meant as stored results."""
    if any("/" in word or len(word.split()) != 1 for word in words):
        return
    missing = [word for word in words if shutil.which(word) is None]
    if missing:
        from perfflow.history.finding import not_found
        from perfflow.trees import project

        here = Path.cwd()
        problem = not_found(project.root_of(here) or here, missing[0]).problems[0]
        text = f"{problem.message}, and no program on PATH"
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
    from perfflow.cli.output import say
    from perfflow.cli.verdict import print_verdict
    from perfflow.flow.compare_commands import new_folder
    from perfflow.flow.compare_stored import Asked, compare_stored, proven_regressions
    from perfflow.report.plain import visible
    from perfflow.rundir.folder import REPORT
    from perfflow.trees import project

    here = Path.cwd()
    root = project.root_of(here) or here
    chosen = _facts(where)
    first, second = (_find(root, word, chosen) for word in words)
    finished = compare_stored(first, second, Asked(out or new_folder(), across_machines))
    report = finished.folder / REPORT
    status = print_verdict(finished.result, report, as_json=as_json, color="auto", allow_unproven=False)
    failures = proven_regressions(finished.result) if fail_on else []
    for text in [] if as_json else failures:
        say(visible(text))
    return int(Exit.FAIL) if failures else status


def _facts(where: tuple[str, ...]) -> dict[str, str]:
    """The facts after ``--where``. Raises UserError for one without a key or a value."""
    pairs = [text.partition("=") for text in where]
    for key, _, value in pairs:
        if not key or not value:
            raise UserError.of(f"--where {key or value}: not KEY=VALUE", "write --where commit=1a2b3c")
    return {key: value for key, _, value in pairs}


def _find(root: Path, word: str, where: dict[str, str]) -> Stored:
    from perfflow.cli.output import tell
    from perfflow.history.finding import find, passed_over
    from perfflow.report.plain import visible

    try:
        found = find(root, word, where)
    except UserError as error:
        # A file that is no JSON may have been meant as a command.
        problem = error.problems[0]
        if word.endswith(".json") or not Path(word).is_file():
            raise
        raise UserError.of(problem.message, f"{problem.hint}; commands go after a `--`") from error
    if other := passed_over(root, word, found.label):
        tell(f"note: {visible(other)}\n")
    return found


def _commands(question: Question, request: Request, *, as_json: bool, allow_unproven: bool) -> int:
    from perfflow.cli.console import SignsOfLife
    from perfflow.cli.output import say
    from perfflow.cli.style import style_of
    from perfflow.cli.verdict import exit_of
    from perfflow.flow.compare_commands import compare_commands
    from perfflow.report import sentence
    from perfflow.report.plain import ascii_text
    from perfflow.result_file import to_text
    from perfflow.workflow.step_checks import stream_mistake

    for word in (question.old, question.new):
        try:
            shlex.split(word)
        except ValueError as error:
            raise UserError.of(f"{word!r}: {error}", "close the quotation") from error
    wrong = stream_mistake(question.stdout)
    if wrong:
        raise UserError.of(f"--stdout {question.stdout!r}: {wrong[0]}", wrong[1])
    seconds(f"--budget {question.budget}", question.budget, "write 20s or 5m")
    finished = compare_commands(question, request, SignsOfLife(style_of(sys.stderr)))
    result = finished.result
    folder = str(finished.folder)
    text = sentence.render(result, folder) + f"  more: {shlex.join(['perfflow', 'report', folder])}\n"
    shown = text if style_of(sys.stdout).unicode else ascii_text(text)
    say(to_text(result) if as_json else shown, end="")
    if finished.interrupted:
        return int(Exit.INTERRUPTED)
    return int(exit_of(result, allow_unproven=allow_unproven))
