"""Options that are durations."""

from __future__ import annotations

import click

LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    default="30m",
    show_default=True,
    metavar="TIME",
    help="Longest time to wait while other runs measure on this machine.",
)
"""The option of every command that measures; the time that it waits is not in what is measured."""


def seconds(option: str, text: str, hint: str = "write 90s, 10m or 1h 30m") -> float:
    """The seconds that an option asks for. Raises UserError."""
    from perfflow.model.errors import UserError
    from perfflow.model.units import UnitError, duration

    try:
        return duration(text)
    except UnitError as error:
        raise UserError.of(f"{option}: {error}", hint) from error
