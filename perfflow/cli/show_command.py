"""``perfflow show``."""

from __future__ import annotations

import json

import click

from perfflow.cli.output import say, say_page


@click.command("show")
@click.argument("name")
@click.option("--tool", is_flag=True, help="NAME is a tool, where a workflow has the name, too.")
@click.option("--raw", is_flag=True, help="Print the file itself.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str, tool: bool, raw: bool, as_json: bool) -> None:
    """Show what the workflow or tool NAME (or file) is and needs. Executes nothing of it."""
    import sys

    from perfflow.cli.style import style_of
    from perfflow.flow import showing
    from perfflow.report import show_page

    kind = showing.kind_of_name(name, tool=tool)
    if raw:
        say(_text(name, kind), end="")
        return
    facts = showing.workflow(name) if kind == showing.WORKFLOW else showing.tool(name)
    page = show_page.workflow if kind == showing.WORKFLOW else show_page.tool
    if as_json:
        say(json.dumps(facts, ensure_ascii=False, indent=1))
    else:
        say_page(page(facts, style_of(sys.stdout).width))


def _text(name: str, kind: str) -> str:
    """The file as it stands. Raises UserError for a tool that is no file, or one that cannot be read."""
    from perfflow.errors import UserError
    from perfflow.flow import showing
    from perfflow.library import shelf
    from perfflow.workflow.tool_files import is_tool_file
    from perfflow.workflow.yaml_text import read_file

    if kind == showing.TOOL and not is_tool_file(name):
        raise UserError.of(f"the tool {name!r} is no YAML file", "leave out --raw")
    path = showing.path_of(name)
    document = read_file(path, shelf.readable(path))
    return "\n".join(document.lines[document.file])
