"""``perfflow validate``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

import click

from perfflow.cli.output import say, tell
from perfflow.library import search_path
from perfflow.model.errors import Exit, Problem, Severity, UserError, in_file_order
from perfflow.plan.plan import MISSING
from perfflow.report.sanitize import visible
from perfflow.session.compared_trees import problems_of
from perfflow.session.open_workflow import open_workflow
from perfflow.trees import repository

SCHEMA = "perfflow.validation/1"


@dataclass(frozen=True)
class ValidatedFile:
    """The problems of one workflow file. ``name`` is as given; ``steps`` is None if the file could not be planned."""

    name: str
    steps: int | None
    problems: tuple[Problem, ...]
    exit: Exit = Exit.PASS

    @property
    def errors(self) -> int:
        """Number of problems that prevent a run."""
        return sum(problem.severity is Severity.ERROR for problem in self.problems)


@click.command("validate")
@click.argument("workflows", nargs=-1)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    help="Output format: text, json (one object for programs) or github (annotations for a GitHub job).",
)
def command(workflows: tuple[str, ...], settings: tuple[str, ...], layout: str) -> int:
    """Check workflow files and report every mistake. Executes nothing.

    WORKFLOWS are files, or names as for `perfflow run` (default: all files in workflows/ of the project).
    """
    own = repository.project_here() / search_path.FOLDER
    names = workflows or tuple(str(path) for path in search_path.workflows(own.parent) if path.parent == own)
    if not names:
        raise UserError.of("no workflow to check", "name a file, or put workflows into ./workflows")
    found = []
    for name in names:
        found.append(_checked(name, settings))
        if layout != "json":
            _LAYOUTS[layout](found[-1])
    if layout == "json":
        _print_json(found)
    return max(item.exit for item in found)


def _checked(name: str, settings: tuple[str, ...]) -> ValidatedFile:
    try:
        opened = open_workflow(name, settings)
    except UserError as error:
        return ValidatedFile(name, None, error.problems, error.exit)
    # These problems are not mistakes in the file: something is missing on this machine or in other trees.
    others = (*opened.unavailable, *(() if opened.draft.errors else problems_of(opened)))
    later = tuple(replace(problem, severity=Severity.WARNING) for problem in others)
    own = (
        replace(problem, severity=Severity.WARNING) if problem.rule == MISSING else problem
        for problem in opened.problems
    )
    checked = ValidatedFile(name, len(opened.plan.steps), in_file_order((*own, *later)))
    return replace(checked, exit=Exit.USAGE) if checked.errors else checked


def _print_text(checked: ValidatedFile) -> None:
    for problem in checked.problems:
        tell(f"{problem.render()}\n")
    if checked.steps is None:
        return
    name, errors, count = visible(checked.name), checked.errors, len(checked.problems)
    if errors:
        tell(f"{name}: {errors} error{'s' if errors > 1 else ''}\n")
        return
    warnings = f", {count} warning{'s' if count > 1 else ''}" if count else ""
    say(f"{name}: ok, {checked.steps} step{'' if checked.steps == 1 else 's'}{warnings}")


def _print_annotations(checked: ValidatedFile) -> None:
    """Print one GitHub workflow command per problem, to standard output, where the runner reads them."""
    for problem in checked.problems:
        place = problem.place
        at = {"file": place.file, "line": place.line, "col": place.column} if place else {"file": checked.name}
        title = {"title": problem.rule} if problem.rule else {}
        told = ",".join(f"{key}={_escaped(str(value), '%:,')}" for key, value in (at | title).items())
        text = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
        say(f"::{problem.severity} {told}::{_escaped(text, '%')}")


def _escaped(text: str, special: str) -> str:
    """Return text with ``special`` and unprintable characters as ``%XX``, since GitHub's runner parses them."""
    return "".join(
        char if char.isprintable() and char not in special else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in text.encode("utf-8", "replace").decode()
    )


def _print_json(found: Iterable[ValidatedFile]) -> None:
    files = [
        {
            "file": item.name,
            "valid": item.exit is Exit.PASS,
            "steps": item.steps,
            "problems": [_problem_json(problem) for problem in item.problems],
        }
        for item in found
    ]
    say(json.dumps({"schema": SCHEMA, "files": files}, indent=2))


def _problem_json(problem: Problem) -> dict[str, object]:
    place = problem.place
    return {
        "severity": str(problem.severity),
        "message": problem.message,
        "hint": problem.hint,
        "rule": problem.rule,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


_LAYOUTS = {"text": _print_text, "github": _print_annotations}
