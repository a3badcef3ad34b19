"""Options whose values are durations."""

from __future__ import annotations

import click

LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    default="30m",
    show_default=True,
    metavar="TIME",
    help="Longest time to wait while other runs measure on this machine.",
)
"""The option of every command that measures. Waiting time is not part of any measurement."""


def seconds(option: str, text: str, hint: str = "write 90s, 10m or 1h 30m") -> float:
    """Return the value of an option in seconds. Raises UserError for a text that is not a duration."""
    from perfflow.model.errors import UserError
    from perfflow.model.units import UnitError, duration

    try:
        return duration(text)
    except UnitError as error:
        raise UserError.of(f"{option}: {error}", hint) from error
