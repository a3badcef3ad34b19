"""``perfflow compare``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from perfflow.errors import Exit, UserError

if TYPE_CHECKING:
    from perfflow.history.stored import Stored

_MARK = "perfflow.compare.after-dashes"
_ASIDE = ("budget", "runs", "metric", "seed")
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
    help="How long to measure; a command of over 2 s is run 5 times all the same, with a note.",
)
@click.option("--runs", type=click.IntRange(1, 10**6), help="Take this many pairs, whatever they say.")
@click.option(
    "--metric", type=click.Choice(["auto", "time", "cpu", "uncontended"]), default="auto", help="What to judge by."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the coins that order the pairs.")
@click.option("--across-machines", is_flag=True, help="Compare stored results of different machines all the same.")
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
    across_machines: bool,
    out: Path | None,
    as_json: bool,
    allow_unproven: bool,
) -> int:
    """Compare two commands, perfflow compare -- 'OLD ARG' 'NEW ARG', or two stored results.

    Commands are run in pairs, as fresh processes, in the order of a coin, until the difference is settled.

    A stored result is a baseline, a run (its id, `latest` or its folder), a result.json, or what hyperfine, criterion,
    pyperf, asv, pytest-benchmark, go test -bench or Google Benchmark wrote. Not being pairs, they never gate. Words
    after `--` are commands; a program, such as ./old, is one in any case; ./NAME is a file where a baseline is called
    NAME.

    Exit: 0 not slower by more than 10%, 1 slower by more than 10%, 3 could not measure, 4 unproven. Of stored results:
    0, or 3 where a benchmark is gone or nothing is in common.
    """
    if len(sides) != 2:
        raise UserError.of(f"compare takes two commands or two stored results, not {len(sides)}", _USAGE)
    if not all(side.strip() for side in sides):
        raise UserError.of("one of the commands is empty", _USAGE)
    words = sides[0], sides[1]
    if not context.meta[_MARK] and _are_stored(words):
        given = [name for name in _ASIDE if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
        if given:
            raise UserError.of(f"--{given[0]} is about measuring, and stored results were measured", "leave it out")
        return _stored(words, out, across_machines=across_machines, as_json=as_json)
    if across_machines:
        raise UserError.of("--across-machines is about stored results, and these are commands", "leave it out")
    if not context.meta[_MARK]:
        _refuse_misspelt(words)
    return _commands(words, budget, runs, metric, seed, out, as_json=as_json, allow_unproven=allow_unproven)


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


def _stored(words: tuple[str, str], out: Path | None, *, across_machines: bool, as_json: bool) -> int:
    from perfflow.cli.verdict import print_verdict
    from perfflow.flow.compare_commands import new_folder
    from perfflow.flow.compare_stored import Asked, compare_stored
    from perfflow.rundir.folder import REPORT
    from perfflow.trees import project

    here = Path.cwd()
    root = project.root_of(here) or here
    first, second = (_find(root, word) for word in words)
    finished = compare_stored(first, second, Asked(out or new_folder(), across_machines))
    return print_verdict(finished.result, finished.folder / REPORT, as_json=as_json, color="auto", allow_unproven=False)


def _find(root: Path, word: str) -> Stored:
    from perfflow.history.finding import find

    try:
        return find(root, word)
    except UserError as error:
        # A file that is no JSON may have been meant as a command.
        problem = error.problems[0]
        if word.endswith(".json") or not Path(word).is_file():
            raise
        raise UserError.of(problem.message, f"{problem.hint}; commands go after a `--`") from error


def _commands(
    words: tuple[str, str],
    budget: str,
    runs: int | None,
    metric: str,
    seed: int | None,
    out: Path | None,
    *,
    as_json: bool,
    allow_unproven: bool,
) -> int:
    from perfflow.cli.console import SignsOfLife
    from perfflow.cli.output import say
    from perfflow.cli.style import style_of
    from perfflow.cli.verdict import EXITS
    from perfflow.flow.compare_commands import Question, compare_commands, new_folder
    from perfflow.flow.run_once import Request
    from perfflow.report import sentence
    from perfflow.report.plain import ascii_text
    from perfflow.result_file import to_text
    from perfflow.units import UnitError, duration

    for word in words:
        try:
            shlex.split(word)
        except ValueError as error:
            raise UserError.of(f"{word!r}: {error}", "close the quotation") from error
    try:
        duration(budget)
    except UnitError as error:
        raise UserError.of(f"--budget {budget}: {error}", "write 20s or 5m") from error
    question = Question(*words, budget, metric, runs)
    # The report takes a moment to write, and most only want the answer.
    request = Request(seed=seed, out=out or new_folder(), report=out is not None)
    finished = compare_commands(question, request, SignsOfLife(style_of(sys.stderr)))
    result = finished.result
    text = sentence.render(result) + f"  more: {shlex.join(['perfflow', 'report', str(finished.folder)])}\n"
    shown = text if style_of(sys.stdout).unicode else ascii_text(text)
    say(to_text(result) if as_json else shown, end="")
    if finished.interrupted:
        return int(Exit.INTERRUPTED)
    return int(Exit.PASS if result.verdict == "unproven" and allow_unproven else EXITS[result.verdict])
