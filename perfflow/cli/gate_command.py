"""``perfflow gate``: ``perfflow run`` on base and head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from perfflow.cli import compare_command, run_command
from perfflow.cli.options import limit
from perfflow.cli.run_command import RunOptions, perform
from perfflow.model.errors import UserError

BASE = "origin/main"
BUDGET = "10m"


def _options() -> list[click.Parameter]:
    """Return the options of `perfflow run`, with a default for --base and the other kinds of base."""
    bases = [
        click.Option(["--base"], default=BASE, show_default=True, metavar="REV", help="The revision to compare with."),
        click.Option(
            ["--against"],
            metavar="best-Nd",
            help="Use as base the best revision of the last N days in the history of this machine.",
        ),
        click.Option(
            ["--overlay"],
            multiple=True,
            metavar="PATH",
            help="Use head's files under this path on both sides, such as benchmarks that base lacks; may be repeated.",
        ),
        click.Option(
            ["--again", "ended_run"],
            is_flag=False,
            flag_value="latest",
            metavar="[RUN]",
            help="Measure further what is undecided in a gate that ended (default: the latest), and judge it again.",
        ),
        click.Option(
            ["--fresh"],
            is_flag=True,
            help="Build base and head from nothing, also if earlier runs have built them.",
        ),
        click.Option(
            ["--self-test"],
            is_flag=True,
            help="Compare head, as committed, with itself slowed by 20%: exit 0 if every slowdown is found, else 1.",
        ),
        *compare_command.OPTIONS,
    ]
    budget = click.Option(
        ["--budget"],
        default=BUDGET,
        callback=limit,
        show_default=True,
        metavar="TIME",
        help="Longest time of the whole command, builds and checks included. Processes are ended when it is over. "
        "Undecided benchmarks stay unproven, and those without a turn are not measured (exit 3). off: no limit.",
    )
    options: list[click.Parameter] = []
    for option in run_command.command.params:
        if option.name != "apply":
            options += bases if option.name == "base" else [budget if option.name == "budget" else option]
    return options


def _gate(**given: Any) -> int:
    options = RunOptions(apply=False, **given)
    if options.ended_run is not None and options.interrupted_run:
        raise UserError.of("--again and --resume exclude each other", "leave out one of them")
    source = click.get_current_context().get_parameter_source
    has_base = source("base") is not ParameterSource.DEFAULT
    bases = {"--base": has_base, "--against": options.against, "--base-results": options.base_results is not None}
    named = [name for name, is_given in bases.items() if is_given]
    if len(named) > 1:
        raise UserError.of(f"{' and '.join(named)} exclude each other: each names a base", "leave out all but one")
    if options.self_test:
        head = _head_of_self_test(named, options)
        options = replace(options, base=head, head=head)
    if options.base_results is not None:
        _require_one_tree(options)
        return compare_command.gate(options, options.base_results)
    for name, is_given in (("--across-machines", options.across_machines), ("--fail-on", options.fail_on)):
        if is_given:
            text = f"{name} applies only to stored results: head and base are measured in pairs here"
            raise UserError.of(text, "leave it out, or name a baseline with --base-results")
    if source("budget") is ParameterSource.DEFAULT and (options.executor or options.detach):
        # Jobs wait in a queue for as long as other people's work takes.
        options = replace(options, budget=None)
    if options.resumed and not has_base:
        # A resumed run keeps its own base.
        options = replace(options, base="")
    return perform(options)


def _head_of_self_test(named: list[str], options: RunOptions) -> str:
    """Return the revision that a self-test compares with itself. Raises UserError for options that do not fit."""
    unfit = {"--overlay": options.overlay, "--resume": options.resumed, "--shard": options.shard}
    others = [*named, *(name for name, is_given in unfit.items() if is_given)]
    if others:
        text = f"--self-test compares head with itself, so {' and '.join(others)} does not apply"
        raise UserError.of(text, "leave it out")
    return options.head or "HEAD"


def _require_one_tree(options: RunOptions) -> None:
    """Raise UserError for an option that a gate against stored results, which measures only head, does not have."""
    for name, is_given in (("overlay", options.overlay), ("shard", options.shard), ("again", options.ended_run)):
        if is_given:
            text = f"--{name} does not apply to stored results: only head is measured here, as a whole"
            raise UserError.of(text, f"leave out --{name}, or compare with --base")


command = click.Command(
    "gate",
    params=_options(),
    callback=_gate,
    help="""Compare head with base, and fail if head is slower by more than the action threshold.

    Head is the working tree, or the revision --head. Base is the merge base of head and --base. perfflow builds each in
    its own tree and measures both in pairs, with the steps of WORKFLOW. --against takes the base from the history, to
    reveal slow drifts. --base-results compares with stored results, unpaired, and does not judge changes.

    Exit: 0 pass, 1 fail, 2 bad usage or workflow, 3 could not measure, 4 unproven, 130 interrupted.""",
)
