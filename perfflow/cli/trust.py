"""The option of commands that run a workflow whose parts may come from other repositories."""

from __future__ import annotations

import click

TRUST = click.option(
    "--trust", is_flag=True, help="Also run commands of pinned workflows that were never shown on this machine."
)
