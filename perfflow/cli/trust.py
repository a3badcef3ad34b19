"""The option ``--trust`` of commands that run workflows, which may use items from other repositories."""

from __future__ import annotations

import click

TRUST = click.option(
    "--trust", is_flag=True, help="Also run commands of pinned workflows that were never shown on this machine."
)
