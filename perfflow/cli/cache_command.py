"""``perfflow cache``: what a CI service should keep between jobs, and how large it may become."""

from __future__ import annotations

from pathlib import Path

import click

from perfflow.cli.clean_command import tell_removed
from perfflow.cli.output import say
from perfflow.jobs.clean.clean import PruneRequest
from perfflow.jobs.clean.clean import prune as pruned
from perfflow.jobs.gate.base_and_head import ends
from perfflow.model.errors import UserError
from perfflow.model.units import Dimension, UnitError, parse_as
from perfflow.session.build_key import toolchain_key
from perfflow.store.run_folder import HISTORY, HOME
from perfflow.trees import repository
from perfflow.trees.repository import home_of, look_at

BASE = "origin/main"


@click.group("cache")
def command() -> None:
    """Keep the builds of base and head for the next gate: their folders, a key for CI, and their size."""


@command.command("path", short_help="Print the folders to keep between jobs, one in each line.")
@click.option("--trees", is_flag=True, help="Print only the folder with the trees and their builds.")
def path(trees: bool) -> int:
    """Print the folders to keep between jobs of CI, one in each line.

    The first one has the trees of this project with their builds, the others its baselines, its history and the noise
    of the machines that were calibrated. A folder may not exist yet.

    Exit: 0.
    """
    root = _root()
    kept = [] if trees else [root / HOME / name for name in ("baselines", HISTORY, "calibration")]
    say("\n".join(map(str, (home_of(root), *kept))))
    return 0


@command.command("key", short_help="Print the key of these folders for a cache of CI.")
@click.option(
    "--base", default=BASE, show_default=True, metavar="REV", help="The revision whose merge base with HEAD is built."
)
def key(base: str) -> int:
    """Print the key of these folders for a cache of CI: system, toolchains, and the commit of the base.

    A cache of the same key has the build of this base. One whose key begins the same, up to the last `-`, has builds of
    other commits, from which cargo, cmake, ninja and go build only what changed.

    Exit: 0, or 2 for an unknown revision.
    """
    _, commit = ends(look_at(_root()), base, None)
    say(f"perfflow-{toolchain_key()}-{commit[:16]}")
    return 0


@command.command("prune", short_help="Remove trees with their builds, the oldest first.")
@click.option(
    "--keep", default="5GB", show_default=True, metavar="SIZE", help="Bytes that may stay, such as 500MB or 5GB."
)
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    metavar="DAYS",
    help="Also remove what was not used for this many days.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be removed. Removes nothing.")
def prune(keep: str, days: float, dry_run: bool) -> int:
    """Remove trees with their builds, of all projects, until at most --keep is left: the oldest first.

    Trees of projects that no longer exist are removed at any age and size. Trees in use by a run are kept.

    Exit: 0 done, 3 something could not be removed.
    """
    hint = "write a size such as 500MB or 5GB"
    try:
        size = parse_as(keep, Dimension.BYTES).value
    except UnitError as error:
        raise UserError.of(f"--keep: {error}", hint) from error
    if size < 0:
        raise UserError.of(f"--keep {keep}: less than nothing cannot stay", hint)
    return tell_removed(pruned(PruneRequest(size, days, dry_run)), dry_run)


def _root() -> Path:
    return repository.project_here().resolve()
