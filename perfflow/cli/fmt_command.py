"""``perfflow fmt``: rewrite workflow files for `fmt` and `migrate`, or print a diff with ``--check``."""

from __future__ import annotations

from collections.abc import Callable

import click

from perfflow.cli.output import say, tell
from perfflow.jobs.start.format_workflow import laid_out
from perfflow.jobs.start.rewritten_file import Rewritten, write
from perfflow.model.errors import Exit, UserError
from perfflow.report.sanitize import visible


def rewrite(name: str, how: Callable[[str], Rewritten], *, check: bool) -> int:
    """Rewrite one file and print what changed. Returns the exit status: 1 with ``check`` if it would change."""
    try:
        formatted = how(name)
        if formatted.after != formatted.before and not check:
            write(formatted)
    except UserError as error:
        tell(f"{error}\n")
        return int(error.exit)
    shown = visible(formatted.shown)
    if formatted.after == formatted.before:
        say(f"{shown}: nothing to change")
        return int(Exit.PASS)
    if check:
        say("\n".join("\t".join(map(visible, line.split("\t"))) for line in formatted.diff().splitlines()))
        return int(Exit.FAIL)
    say(f"{shown}: rewritten")
    for text in formatted.said:
        say(f"  {visible(text)}")
    return int(Exit.PASS)


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
