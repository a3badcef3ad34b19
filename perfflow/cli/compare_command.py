"""``perfflow compare``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from perfflow.errors import Exit, UserError


@click.command("compare", context_settings={"ignore_unknown_options": True})
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
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run; must be new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json alone.")
@click.option("--allow-unproven", is_flag=True, help="Exit 0 where the verdict is unproven.")
def command(
    sides: tuple[str, ...],
    budget: str,
    runs: int | None,
    metric: str,
    seed: int | None,
    out: Path | None,
    as_json: bool,
    allow_unproven: bool,
) -> int:
    """Compare two commands: perfflow compare -- 'OLD ARG' 'NEW ARG'.

    Both are run in pairs, as fresh processes, in the order of a coin, until the difference is settled.

    Exit: 0 not slower by more than 10%, 1 slower by more than 10%, 3 could not measure, 4 unproven.
    """
    from perfflow.cli.console import Silence, style_of
    from perfflow.cli.output import say
    from perfflow.cli.verdict import EXITS
    from perfflow.flow.compare_commands import Question, compare_commands, new_folder
    from perfflow.flow.run_once import Request
    from perfflow.report import sentence
    from perfflow.report.terminal import ascii_text
    from perfflow.result import to_text
    from perfflow.units import UnitError, duration

    if len(sides) != 2:
        raise UserError.of(f"compare takes two commands, not {len(sides)}", "perfflow compare -- 'old arg' 'new arg'")
    if not all(side.strip() for side in sides):
        raise UserError.of("one of the commands is empty", "perfflow compare -- 'old arg' 'new arg'")
    for side in sides:
        if Path(side).is_dir() or side.endswith(".json"):
            hint = "this version compares commands: perfflow compare -- 'old arg' 'new arg'"
            raise UserError.of(f"{side} is no command, and stored results cannot be compared yet", hint)
        try:
            shlex.split(side)
        except ValueError as error:
            raise UserError.of(f"{side!r}: {error}", "close the quotation") from error
    try:
        duration(budget)
    except UnitError as error:
        raise UserError.of(f"--budget {budget}: {error}", "write 20s or 5m") from error
    question = Question(sides[0], sides[1], budget, metric, runs)
    finished = compare_commands(question, Request(seed=seed, out=out or new_folder()), Silence())
    result = finished.result
    text = sentence.render(result) + f"  all of it: {finished.folder}\n"
    shown = text if style_of(sys.stdout).unicode else ascii_text(text)
    say(to_text(result) if as_json else shown, end="")
    if finished.interrupted:
        return int(Exit.INTERRUPTED)
    return int(Exit.PASS if result.verdict == "unproven" and allow_unproven else EXITS[result.verdict])
