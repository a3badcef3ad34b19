"""``perfflow mcp``."""

from __future__ import annotations

from pathlib import Path

import click

from perfflow.cli.durations import seconds
from perfflow.model.errors import Exit, UserError

_PACKAGE = "mcp>=2"


@click.command("mcp")
@click.option(
    "--allow-run",
    is_flag=True,
    help="Also run workflows of the project, judge patches by them, and bisect. A patch is code: it is run.",
)
@click.option("--allow-commands", is_flag=True, help="Also run commands that the client chooses; includes --allow-run.")
@click.option(
    "--budget", default="10m", show_default=True, metavar="TIME", help="Longest time that one call may measure."
)
def command(allow_run: bool, allow_commands: bool, budget: str) -> int:
    """Serve an agent over standard input and output, by the Model Context Protocol.

    It serves the project around the current folder. Without an option it only reads: it lists, plans and validates
    workflows, and shows stored runs.

    Exit: 0 when the client closes the connection, 3 where the package `mcp` is missing, 130 interrupted.
    """
    import sys

    from perfflow.trees import project

    longest = seconds("--budget", budget)
    here = Path.cwd()
    root = (project.root_of(here) or here).resolve()
    try:
        from perfflow.cli.mcp_server.limits import Limits
        from perfflow.cli.mcp_server.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio", "mcp_types"):
            raise
        text = "`perfflow mcp` needs the Python package `mcp`, version 2 or later, which is not installed here"
        hint = f"{sys.executable} -m pip install '{_PACKAGE}' (the extra `mcp` has it)"
        raise UserError.of(text, hint, Exit.UNMEASURED) from error
    serve(Limits(root, longest, may_run=allow_run or allow_commands, may_command=allow_commands))
    return int(Exit.PASS)
