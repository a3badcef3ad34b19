"""``perfflow show``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from perfflow.cli.output import say, say_page
from perfflow.cli.style import style_of
from perfflow.jobs.catalog import descriptions
from perfflow.jobs.catalog.descriptions import merged
from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.report import plan_text
from perfflow.workflow import load
from perfflow.workflow.declared_tool import is_tool_file
from perfflow.workflow.yaml_text import read_file

_FOR_AGENTS = Path(__file__).parents[1] / "library" / "for-agents.md"


@click.command("show")
@click.argument("name", required=False)
@click.option("--tool", is_flag=True, help="NAME is the name of a tool, even if a workflow has the same name.")
@click.option("--raw", is_flag=True, help="Print the workflow or tool file.")
@click.option(
    "--resolved", is_flag=True, help="Print the workflow with `extends` resolved, and the source of each value."
)
@click.option("--for-agents", is_flag=True, help="Print a guide for agents that write workflows. Takes no NAME.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, tool: bool, raw: bool, resolved: bool, for_agents: bool, as_json: bool) -> None:
    """Explain the workflow, tool or file NAME: its purpose, keys and requirements. Executes nothing."""
    if for_agents:
        if name:
            raise UserError.of("--for-agents takes no NAME", f"leave out {name}")
        say(_FOR_AGENTS.read_text(encoding="utf-8"), end="")
        return
    if name is None:
        raise UserError.of("no workflow or tool is named", "`perfflow list` lists their names")
    kind = descriptions.kind_of_name(name, tool=tool)
    if raw:
        say(_text(name, kind), end="")
        return
    if resolved:
        _print_resolved(name, as_json=as_json)
        return
    facts = descriptions.workflow(name) if kind == descriptions.WORKFLOW else descriptions.tool(name)
    page = plan_text.show_workflow if kind == descriptions.WORKFLOW else plan_text.show_tool
    if as_json:
        say(json.dumps(facts, ensure_ascii=False, indent=1))
    else:
        say_page(page(facts, style_of(sys.stdout).width))


def _print_resolved(name: str, *, as_json: bool) -> None:
    """Print the whole workflow as YAML or JSON. Raises UserError with its mistakes."""
    document, data, shown = merged(name)
    if as_json:
        found = {"workflow": data, "origins": load.origins(document, shown)}
        say(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        say("\n".join(load.resolved_lines(document, shown)))


def _text(name: str, kind: str) -> str:
    """Return the text of the file. Raises UserError for a tool without a file, or a file that cannot be read."""
    if kind == descriptions.TOOL and not is_tool_file(name):
        raise UserError.of(f"the tool {name!r} is not a YAML file", "leave out --raw")
    path = descriptions.path_of(name)
    document = read_file(path, search_path.readable(path))
    return "\n".join(document.lines[document.file])
