"""``perfflow schema``."""

from __future__ import annotations

import click

from perfflow.cli.output import say


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of workflow files, for editors."""
    from perfflow.workflow.schema import schema_text

    say(schema_text(), end="")
