"""Options that several commands share."""

from __future__ import annotations

import click

from perfflow.model.errors import UserError
from perfflow.model.units import UnitError, duration

NO_LIMIT = "off"
"""The value of ``--budget`` for no limit."""

LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    default="30m",
    show_default=True,
    metavar="TIME",
    help="Longest time to wait while other runs measure on this machine.",
)
"""The option of every command that measures. Waiting time is not part of any measurement."""

UNPROVEN = click.option(
    "--unproven",
    type=click.Choice(["fail", "pass"]),
    default="fail",
    show_default=True,
    help="Whether an unproven result fails (exit 4) or passes (exit 0).",
)
"""The option of every command that judges."""


SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Seed of the random order of the pairs."
)
"""The option of every command that measures pairs."""

BENCHMARKS = click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="GLOB",
    help="Measure and judge only the benchmarks of this name or glob; may be repeated.",
)
"""The option of every command that measures a workflow."""


def seconds(option: str, text: str, hint: str = "write 90s, 10m or 1h 30m") -> float:
    """Return the value of an option in seconds. Raises UserError for a text that is not a duration."""
    try:
        return duration(text)
    except UnitError as error:
        raise UserError.of(f"{option}: {error}", hint) from error


def limit(option: str, text: str | None) -> float | None:
    """Return the value of an option in seconds; None for no limit. Raises UserError as ``seconds``."""
    return None if text in (None, NO_LIMIT) else seconds(option, str(text), f"write 90s, 10m, 1h 30m or {NO_LIMIT}")
