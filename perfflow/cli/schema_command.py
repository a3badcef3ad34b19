"""``perfflow schema``."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of workflow files, for editors."""
    from perfflow.workflow.schema import schema_text

    click.echo(schema_text(), nl=False)
