"""``perfflow clean``: removes old runs and comparisons."""

from __future__ import annotations

from collections.abc import Iterable

import click

from perfflow.cli.output import say
from perfflow.jobs.clean.clean import IN_USE, KINDS, CleanRequest, Removed, clean
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.sanitize import visible
from perfflow.trees import repository


@click.command("clean")
@click.argument("kinds", nargs=-1, type=click.Choice(["runs", "comparisons"]), metavar="[KIND]...")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    metavar="DAYS",
    help="Remove only what was not used for this many days.",
)
@click.option(
    "--keep",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Keep this many of the newest runs.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be removed. Removes nothing.")
def command(kinds: tuple[str, ...], days: float, keep: int, dry_run: bool) -> int:
    """Remove old runs of this project and old comparisons. `perfflow cache prune` removes trees and builds.

    KIND is `runs` or `comparisons` (default: both). A patch that an agent submitted is removed with the last run that
    judged it. Baselines, calibrations and files in use by a run are kept.

    Exit: 0 done, 3 something could not be removed.
    """
    return tell_removed(clean(repository.project_here(), CleanRequest(kinds or KINDS, days, keep, dry_run)), dry_run)


def tell_removed(removed: Iterable[Removed], dry: bool) -> int:
    """Print each folder as it is removed, and the bytes freed; return the exit status."""
    total, left = 0, False
    for entry in removed:
        size = format_quantity(float(entry.size), Dimension.BYTES)
        if entry.kept:
            left = left or entry.kept != IN_USE
            say(f"kept     {size:>10}  {visible(entry.what)}: {visible(entry.kept)}")
            continue
        total += entry.size
        say(f"{'would go' if dry else 'removed '} {size:>10}  {visible(entry.what)}  {visible(str(entry.path))}")
    freed = format_quantity(float(total), Dimension.BYTES)
    say(f"{freed} would be freed" if dry else f"{freed} freed" if total else "nothing to remove")
    return 3 if left else 0
