"""Shell completion of workflows, runs, and the steps, stages and parameters of the workflow on the line.

The name or the placeholder of an argument selects its completion, so commands need no declarations. An invalid file
gives no completions; the command itself reports the mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import click
from click.shell_completion import CompletionItem

from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.plan.plan import Plan
from perfflow.session.open_workflow import open_workflow
from perfflow.store.run_folder import HOME, RESULT
from perfflow.tools import registry
from perfflow.trees import repository

Complete = Callable[[click.Context, str], list[CompletionItem]]
"""Returns the completions for the words so far and the beginning of the next word."""


def complete(command: click.Command) -> click.Command:
    """Add completion to the parameters of a command and return it."""
    for item in [command, *(command.commands.values() if isinstance(command, click.Group) else ())]:
        for param in item.params:
            words = _WORDS.get(str(param.metavar)) or _WORDS.get(str(param.name))
            if words is not None:
                vars(param)["shell_complete"] = _completing(words)
    return command


def _completing(words: Callable[[click.Context], Iterator[str]]) -> Complete:
    def found(context: click.Context, incomplete: str) -> list[CompletionItem]:
        if "/" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        items = [
            CompletionItem(word) for word in dict.fromkeys(_quietly(words, context)) if word.startswith(incomplete)
        ]
        # If no name fits, complete a path.
        return items or [CompletionItem(incomplete, type="file")]

    return found


def _quietly(words: Callable[[click.Context], Iterator[str]], context: click.Context) -> list[str]:
    try:
        return list(words(context))
    except (UserError, OSError):
        return []


def _workflows(_context: click.Context) -> Iterator[str]:
    for path in search_path.workflows(repository.project_here()):
        yield f"{search_path.LIB}{path.stem}" if path.is_relative_to(search_path.SHIPPED) else path.stem


def _files(_context: click.Context) -> Iterator[str]:
    yield from (os.path.relpath(path) for path in search_path.project_workflows(repository.project_here()))


def _runs(_context: click.Context) -> Iterator[str]:
    runs = sorted(
        (path.parent.name for path in (repository.project_here() / HOME / "runs").glob(f"*/{RESULT}")), reverse=True
    )
    yield from sorted(runs, key=lambda name: name != "latest")


def _names(context: click.Context) -> Iterator[str]:
    yield from _workflows(context)
    yield from registry.known()


def _plan(context: click.Context) -> Plan | None:
    """Return the plan of the workflow on the line, or None if there is none."""
    # If the last option still lacks its value, click has parsed no arguments.
    unread = (word for word in context.args if not word.startswith("-"))
    name = context.params.get("workflow") or next(unread, None)
    return open_workflow(str(name)).plan if name else None


def _steps(context: click.Context) -> Iterator[str]:
    plan = _plan(context)
    yield from (item.id for item in plan.steps) if plan else ()


def _stages(context: click.Context) -> Iterator[str]:
    plan = _plan(context)
    yield from (item.stage for item in plan.steps) if plan else ()


def _parameters(context: click.Context) -> Iterator[str]:
    plan = _plan(context)
    yield from (f"{name}=" for name in plan.params) if plan else ()


_WORDS: dict[str, Callable[[click.Context], Iterator[str]]] = {
    "workflow": _workflows,
    "workflows": _workflows,
    "FILE...": _files,
    "run": _runs,
    "RUN...": _runs,
    "[RUN|FILE]": _runs,
    "name": _names,
    "STEP": _steps,
    "STAGE": _stages,
    "NAME=VALUE": _parameters,
}
"""Completions by placeholder, or else by name."""
