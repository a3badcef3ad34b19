"""``perfflow gate``: ``perfflow run`` on base and head."""

from __future__ import annotations

import click
from click.core import ParameterSource

from perfflow.cli import run_command

BASE = "origin/main"
_LEFT_OUT = ("apply", "left_out")


def _options() -> list[click.Parameter]:
    """Those of `perfflow run`, with a base unless told otherwise."""
    base = click.Option(
        ["--base"], default=BASE, show_default=True, metavar="REV", help="The revision to compare with."
    )
    return [
        base if option.name == "base" else option
        for option in run_command.command.params
        if option.name not in _LEFT_OUT
    ]


def _gate(**options: object) -> int:
    given = click.get_current_context().get_parameter_source("base")
    if options["resume"] and given is ParameterSource.DEFAULT:
        # The base of the run that is resumed, whichever that was.
        options["base"] = ""
    # click types the callback as one that may be missing.
    status: int = run_command.command.callback(apply=False, left_out=None, **options)  # type: ignore[misc]
    return status


command = click.Command(
    "gate",
    params=_options(),
    callback=_gate,
    help="""Compare head with base, and fail if head is slower by more than the action threshold.

    Head is the working tree, or --head. Base is the commit where its history parted from --base. perfflow builds each
    in a tree of its own and measures both in pairs, as WORKFLOW says.

    Exit: 0 pass, 1 fail, 2 bad usage or workflow, 3 could not measure, 4 unproven, 130 interrupted.""",
)
