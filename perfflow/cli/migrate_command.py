"""``perfflow migrate``."""

from __future__ import annotations

import click

from perfflow.errors import Exit, UserError


@click.command("migrate")
@click.argument("workflows", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-n", "--check", is_flag=True, help="Print the changes as a diff, write nothing, exit 1 if there are any."
)
def command(workflows: tuple[str, ...], check: bool) -> int:
    """Rewrite deprecated keys of workflow FILES in today's words. Comments and everything else stay as they are.

    Exit: 0 done or nothing to do, 1 with --check if a file would change, 2 if a file has other mistakes.
    """
    return max(_migrate(name, check=check) for name in workflows)


def _migrate(name: str, *, check: bool) -> int:
    from perfflow.cli.output import say, tell
    from perfflow.flow.migrating import migrated, write
    from perfflow.report.plain import visible

    try:
        found = migrated(name)
        if found.after != found.before and not check:
            write(found)
    except UserError as error:
        tell(f"{error}\n")
        return int(error.exit)
    shown = visible(found.shown)
    if found.after == found.before:
        say(f"{shown}: nothing to change")
        return int(Exit.PASS)
    if check:
        say("\n".join("\t".join(map(visible, line.split("\t"))) for line in found.diff().splitlines()))
        return int(Exit.FAIL)
    say(f"{shown}: rewritten")
    for text in found.said:
        say(f"  {visible(text)}")
    return int(Exit.PASS)
