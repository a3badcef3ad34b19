"""``perfflow doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.machine import noise, settings
from perfflow.machine.noise_findings import NoiseFinding
from perfflow.model.errors import UserError
from perfflow.report.sanitize import cells, padded, visible, wrapped


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--fix",
    "fixing",
    is_flag=True,
    help="Show the changes of settings that make the machine quieter, ask, and make them (needs root).",
)
@click.option("--yes", is_flag=True, help="With --fix: make the changes without asking, for scripts.")
@click.option("--restore", "restoring", is_flag=True, help="Restore the settings that --fix changed (needs root).")
def command(as_json: bool, fixing: bool, yes: bool, restoring: bool) -> int:
    """Check how noisy this machine is (quiet, busy or hostile), why, and how to make it quieter. Takes two seconds."""
    if fixing and restoring:
        raise click.UsageError("--fix and --restore exclude each other")
    if yes and not fixing:
        raise click.UsageError("--yes applies only to --fix")
    if restoring:
        for path, value in settings.restore():
            say(f"{path} = {value}")
        return 0
    if fixing:
        fix(settings.wanted(), yes=yes)
    findings = noise.examine()
    test = noise.self_test()
    if as_json:
        say(json.dumps(noise.as_json(findings, test), ensure_ascii=False, indent=1))
        return 0
    kind = noise.classify(findings, test)
    head = f"this machine is {kind}: {noise.in_words(test.spread, test.cpu_share)}"
    width = style_of(sys.stdout).width
    said = [line for item in findings for line in _lines(item, width)]
    say_page([*wrapped(head, width), *said, *wrapped(_ADVICE[kind.value], width)])
    return 0


def fix(changes: Sequence[tuple[Path, str, str]], *, yes: bool, state: Path | None = None) -> None:
    """Show the changes on stderr, ask unless ``yes``, and make them. Raises UserError if there is nobody to ask.

    changes: (file, value, wanted value). ``state``: the file that keeps the values for --restore.
    """
    if not changes:
        tell("no setting needs a change\n")
        return
    tell("changes of settings, which `perfflow doctor --restore` undoes:\n")
    tell("".join(f"  {path}: {before} -> {after}\n" for path, before, after in changes))
    if not yes:
        if not sys.stdin.isatty():
            raise UserError.of("nothing was changed: there is no terminal to ask on", "add --yes to change them")
        if not click.confirm("Make these changes?", err=True):
            tell("nothing was changed\n")
            return
    settings.fix(changes, state or settings.STATE)
    tell("changed\n")


_INDENT = " " * 6
_MARKS = {"ok": "+", "warn": "!", "bad": "x", "unknown": "?"}
_ADVICE = {
    "quiet": "perfflow detects small changes on this machine within seconds.",
    "busy": "Measuring needs more pairs here. Verdicts stay correct, but more of them are unproven.",
    "hostile": "Judge by CPU time or instructions on this machine, and give comparisons a larger budget.",
}


def _lines(item: NoiseFinding, width: int) -> list[str]:
    """Return the lines of a finding: mark, name and value, then the advice, on the same line if it fits."""
    fact = f"  {_MARKS[item.state.value]} {padded(visible(item.name), 24)} {padded(visible(item.value), 22)}"
    advice = visible(_advice(item))
    if cells(fact + advice) <= width:
        return [(fact + advice).rstrip()]
    return [*wrapped(fact.rstrip(), width, _INDENT), *(wrapped(_INDENT + advice, width, _INDENT) if advice else [])]


def _advice(item: NoiseFinding) -> str:
    if item.state.value == "ok":
        return ""
    return f"{item.why}; {item.remedy}" if item.remedy else item.why
