"""``perfflow mcp``."""

from __future__ import annotations

import sys

import click

from perfflow.cli.options import seconds
from perfflow.model.errors import Exit, UserError
from perfflow.trees import repository

_PACKAGE = "mcp>=2"


@click.command("mcp")
@click.option(
    "--allow-run",
    is_flag=True,
    help="Also run workflows of the project, judge patches with them, and bisect. This runs the code of patches.",
)
@click.option("--allow-commands", is_flag=True, help="Also run any command of the client. Includes --allow-run.")
@click.option(
    "--budget", default="10m", show_default=True, metavar="TIME", help="Longest time of one call, builds included."
)
def command(allow_run: bool, allow_commands: bool, budget: str) -> int:
    """Serve an agent over standard input and output with the Model Context Protocol.

    The server works on the project around the current folder. Without options it is read-only: it lists, plans and
    validates workflows, and shows stored runs.

    Exit: 0 the client closed the connection, 3 the package `mcp` is missing, 130 interrupted.
    """
    longest = seconds("--budget", budget)
    root = repository.project_here().resolve()
    try:
        from perfflow.cli.mcp_server.limits import SessionLimits
        from perfflow.cli.mcp_server.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio", "mcp_types"):
            raise
        text = "`perfflow mcp` needs the Python package `mcp`, version 2 or later, which is not installed here"
        hint = f"{sys.executable} -m pip install '{_PACKAGE}' (the extra `mcp` has it)"
        raise UserError.of(text, hint, Exit.UNMEASURED) from error
    serve(SessionLimits(root, longest, may_run=allow_run or allow_commands, may_command=allow_commands))
    return int(Exit.PASS)
