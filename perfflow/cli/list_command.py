"""``perfflow list``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perfflow.cli.output import say


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the workflows that can be run by name, and the tools with their versions."""
    from perfflow import trees
    from perfflow.flow import inventory
    from perfflow.report.plain import visible

    here = Path.cwd()
    found = {"workflows": inventory.workflows(trees.root_of(here) or here), "tools": inventory.tools()}
    for text in inventory.warnings():
        click.echo(f"warning: {visible(text)}", err=True)
    if as_json:
        say(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for title, rows in (("Workflows", found["workflows"]), ("Tools", found["tools"])):
        say(f"{title}:")
        width = max((len(row["name"]) for row in rows), default=0) + 2
        for row in rows:
            library = f"(lib:{row['name']})  " if row["origin"] == f"lib:{row['name']}" else ""
            said = library + str(row.get("description") or row.get("note") or "")
            say(f"  {visible(row['name']):<{width}}{visible(said)}".rstrip())
