"""``perfflow list``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.execute.prepare import Inspection
from perfflow.jobs.catalog import descriptions
from perfflow.model.errors import UserError
from perfflow.model.similar import TOOLS
from perfflow.report.sanitize import visible
from perfflow.report.tables import described
from perfflow.trees import repository


@click.command("list")
@click.argument("word", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(word: str, as_json: bool) -> None:
    """List the workflows that can be run by name, and the tools with their versions.

    With WORD, only those whose name or description contains it, and the tool that runs a library of this name.

    Tools such as memray have no program of their own, so nothing is shown beside them: only a step that uses one finds
    out whether its Python package is installed. `not asked: lies in the project` marks an installed program in a folder
    of the project, such as .venv. perfflow does not start such a program to read its version.
    """
    here = Path.cwd()
    inspection = Inspection(repository.project_around(here))
    found = {
        "workflows": descriptions.listed_workflows(repository.project_here()),
        "tools": descriptions.listed_tools(inspection),
    }
    if word:
        found = {kind: [row for row in rows if _is_about(row, word)] for kind, rows in found.items()}
        if not any(found.values()):
            raise UserError.of(f"no workflow and no tool is about {word!r}", "`perfflow list` shows all")
    for text in descriptions.listed_warnings():
        tell(f"warning: {visible(text)}\n")
    if as_json:
        say(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for title, rows in (("Workflows", found["workflows"]), ("Tools", found["tools"])):
        if not rows:
            continue
        said = [(row["name"], _said(row)) for row in rows]
        say_page([f"{title}:", *described(said, style_of(sys.stdout).width)])


def _is_about(row: Mapping[str, Any], word: str) -> bool:
    return word.lower() in f"{row['name']} {_said(row)}".lower() or TOOLS.get(word.lower()) == row["name"]


def _said(row: Mapping[str, Any]) -> str:
    library = f"(lib:{row['name']})  " if row["origin"] == f"lib:{row['name']}" else ""
    return library + str(row.get("description") or row.get("note") or "")
