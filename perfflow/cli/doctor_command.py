"""``perfflow doctor``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perfflow.cli.output import say

if TYPE_CHECKING:
    from perfflow.machine.findings import Finding


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--fix", "fixing", is_flag=True, help="Set what makes the machine quieter (root).")
@click.option("--restore", "restoring", is_flag=True, help="Put back what --fix changed (root).")
def command(as_json: bool, fixing: bool, restoring: bool) -> int:
    """Say how noisy this machine is: quiet, busy or hostile, why, and what would help. Takes two seconds."""
    from perfflow.machine import noise, tuning

    if fixing and restoring:
        raise click.UsageError("--fix and --restore together")
    if restoring:
        for path, value in tuning.restore():
            say(f"{path} = {value}")
        return 0
    if fixing:
        for path, before, after in tuning.fix():
            click.echo(f"{path}: {before} -> {after}", err=as_json)
    findings = noise.examine()
    test = noise.self_test()
    if as_json:
        say(json.dumps(noise.as_json(findings, test), ensure_ascii=False, indent=1))
        return 0
    kind = noise.classify(findings, test)
    say(
        f"this machine is {kind}: identical work spreads by {test.spread:.2f}x (p95/p50), "
        f"{test.cpu_share:.0%} of it on a core"
    )
    for item in findings:
        say(f"  {_MARKS[item.state.value]} {item.name:<24} {item.value:<22}{_advice(item)}".rstrip())
    say(_ADVICE[kind.value])
    return 0


_MARKS = {"ok": "+", "warn": "!", "bad": "x", "unknown": "?"}
_ADVICE = {
    "quiet": "Small changes can be told here within seconds.",
    "busy": "Measuring takes more pairs here; verdicts stay right, more of them are unproven.",
    "hostile": "Judge by CPU time or instructions here, and give comparisons a larger budget.",
}


def _advice(item: Finding) -> str:
    if item.state.value == "ok":
        return ""
    return f"{item.why}; {item.remedy}" if item.remedy else item.why
