"""``perfflow schema``."""

from __future__ import annotations

import click

from perfflow.cli.output import say
from perfflow.workflow.shape import schema_text


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of workflow files, for editors."""
    say(schema_text(), end="")
