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
    from perfflow.flow.inventory import tools, workflows

    here = Path.cwd()
    found = {"workflows": workflows(trees.root_of(here) or here), "tools": tools()}
    if as_json:
        say(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for title, rows in (("Workflows", found["workflows"]), ("Tools", found["tools"])):
        say(f"{title}:")
        for row in rows:
            say(f"  {row['name']:<20} {row.get('description') or row.get('note') or ''}".rstrip())
