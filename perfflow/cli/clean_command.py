"""``perfflow clean``: removes old runs, comparisons and trees."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("clean")
@click.argument("kinds", nargs=-1, type=click.Choice(["runs", "comparisons", "trees"]), metavar="[KIND]...")
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
@click.option("--everywhere", is_flag=True, help="Also remove trees of other projects.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be removed. Removes nothing.")
def command(kinds: tuple[str, ...], days: float, keep: int, everywhere: bool, dry_run: bool) -> int:
    """Remove old runs of this project, old comparisons, and cached trees with their builds.

    KIND is `runs`, `comparisons` or `trees` (default: all three). A patch that an agent submitted is removed with the
    last run that judged it. Trees of projects that no longer exist are removed at any age. Baselines, calibrations and
    files in use by a run are kept.

    Exit: 0 done, 3 something could not be removed.
    """
    from perfflow.cli.output import say
    from perfflow.jobs.clean.clean import IN_USE, KINDS, CleanRequest, clean
    from perfflow.model.units import Dimension, format_quantity
    from perfflow.report.sanitize import visible
    from perfflow.trees import project

    here = Path.cwd()
    request = CleanRequest(kinds or KINDS, days, keep, everywhere, dry_run)
    total, left = 0, False
    for item in clean(project.root_of(here) or here, request):
        size = format_quantity(float(item.size), Dimension.BYTES)
        if item.kept:
            left = left or item.kept != IN_USE
            say(f"kept     {size:>10}  {visible(item.what)}: {visible(item.kept)}")
            continue
        total += item.size
        say(f"{'would go' if dry_run else 'removed '} {size:>10}  {visible(item.what)}  {visible(str(item.path))}")
    freed = format_quantity(float(total), Dimension.BYTES)
    say(f"{freed} would be freed" if dry_run else f"{freed} freed" if total else "nothing to remove")
    return 3 if left else 0
