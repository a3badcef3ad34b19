"""``perfflow fmt``."""

from __future__ import annotations

import click

from perfflow.cli.rewrite import rewrite
from perfflow.jobs.start.format_workflow import laid_out


@click.command("fmt")
@click.argument("workflows", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-n", "--check", is_flag=True, help="Print the changes as a diff, write nothing, and exit 1 if there are any."
)
def command(workflows: tuple[str, ...], check: bool) -> int:
    """Format workflow FILES: indentation, and line breaks in maps and lists in brackets that are longer than a line.

    Values, quotes, order and comments are not changed.

    Exit: 0 done or nothing to do, 1 with --check if a file would change, 2 if a file is not YAML.
    """
    return max(rewrite(name, laid_out, check=check) for name in workflows)
