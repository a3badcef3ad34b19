"""``perfflow gate``: ``perfflow run`` on base and head."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource

from perfflow.cli import compare_command, run_command
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
            ["--again"],
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
        show_default=True,
        metavar="TIME",
        help="Longest time of the whole command, builds and checks included. Processes are ended when it is over. "
        "Undecided benchmarks stay unproven, and those without a turn are not measured (exit 3). off: no limit.",
    )
    found: list[click.Parameter] = []
    for option in run_command.command.params:
        if option.name != "apply":
            found += bases if option.name == "base" else [budget if option.name == "budget" else option]
    return found


def _gate(
    *, base_results: str | None, across_machines: bool, fail_on: str | None, again: str | None, **options: object
) -> int:
    if again is not None:
        if options["resume"]:
            raise UserError.of("--again and --resume exclude each other", "leave out one of them")
        options |= {"resume": again, "again": True}
    given = click.get_current_context().get_parameter_source("base")
    bases = {"--base": given is not ParameterSource.DEFAULT, "--against": options["against"]}
    named = [name for name, is_given in {**bases, "--base-results": base_results is not None}.items() if is_given]
    if len(named) > 1:
        raise UserError.of(f"{' and '.join(named)} exclude each other: each names a base", "leave out all but one")
    if options["self_test"]:
        options["base"] = options["head"] = _head_of_self_test(named, options)
    if base_results is not None:
        _require_one_tree({"overlay": options["overlay"], "shard": options["shard"], "again": again})
        return compare_command.gate(compare_command.StoredBaseOptions(base_results, across_machines, fail_on), options)
    for name, is_given in (("--across-machines", across_machines), ("--fail-on", fail_on)):
        if is_given:
            text = f"{name} applies only to stored results: head and base are measured in pairs here"
            raise UserError.of(text, "leave it out, or name a baseline with --base-results")
    by_default = click.get_current_context().get_parameter_source("budget") is ParameterSource.DEFAULT
    if by_default and (options["executor"] or options["detach"]):
        # Jobs wait in a queue for as long as other people's work takes.
        options["budget"] = None
    if options["resume"] and given is ParameterSource.DEFAULT:
        # A resumed run keeps its own base.
        options["base"] = ""
    # click declares the callback as optional.
    status: int = run_command.command.callback(apply=False, **options)  # type: ignore[misc]
    return status


def _head_of_self_test(named: list[str], options: Mapping[str, object]) -> object:
    """Return the revision that a self-test compares with itself. Raises UserError for options that do not fit."""
    others = [*named, *(f"--{name}" for name in ("overlay", "resume", "shard") if options[name])]
    if others:
        text = f"--self-test compares head with itself, so {' and '.join(others)} does not apply"
        raise UserError.of(text, "leave it out")
    return options["head"] or "HEAD"


def _require_one_tree(options: Mapping[str, object]) -> None:
    """Raise UserError for an option that a gate against stored results, which measures only head, does not have."""
    for name, value in options.items():
        if value:
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
