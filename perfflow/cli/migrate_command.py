"""``perfflow migrate``."""

from __future__ import annotations

import click


@click.command("migrate")
@click.argument("workflows", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-n", "--check", is_flag=True, help="Print the changes as a diff, write nothing, and exit 1 if there are any."
)
def command(workflows: tuple[str, ...], check: bool) -> int:
    """Replace deprecated keys in workflow FILES with current ones. Comments and all other text are not changed.

    Exit: 0 done or nothing to do, 1 with --check if a file would change, 2 if a file has other mistakes.
    """
    from perfflow.cli.rewrite import rewrite
    from perfflow.jobs.start.migrate_workflow import migrated

    return max(rewrite(name, migrated, check=check) for name in workflows)
