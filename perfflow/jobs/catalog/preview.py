"""Describe what a run would do, step by step, without doing it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.execute import prepare
from perfflow.execute.context import TreeContext, looking, search_path
from perfflow.execute.prepare import first_count, missing_program, ready, sides_of, why_elsewhere
from perfflow.jobs.catalog.descriptions import changes
from perfflow.model.errors import StepError, UserError
from perfflow.model.secrets import masked
from perfflow.plan.coverage import requires_of
from perfflow.plan.groups import place_of
from perfflow.plan.plan import Planned, profiles_several
from perfflow.report.expected import Expected
from perfflow.session.open_workflow import Opened
from perfflow.session.reading_limit import within_time
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.trees import repository
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import condition
from perfflow.workflow.load import Draft

_SHARE = 0.5
"""The share of the time limit for reading a workflow that rendering all commands may take."""
LONGEST = 8_000_000
"""The most characters of all commands together."""
RUNS, LEFT_OUT, SKIPPED, FAILS, STOPS = "runs", "left out", "skipped", "fails", "nothing is run"
"""Outcomes of a step.

LEFT_OUT: its ``if`` is false. SKIPPED: a requirement in ``requires`` is missing. FAILS: its program is missing, and the
step may fail. STOPS: its program is missing, so no step of the workflow starts.
"""


def preview(
    opened: Opened, selected: Collection[str], expected: Mapping[str, Expected | None] | None = None
) -> list[dict[str, Any]]:
    """Return one dictionary for each selected step: id, stage, tool, order, commands of each side, what is missing.

    A step with ``prepare`` has its commands by side. With ``expected``, also the expected time. ``outcome`` is one
    of ``RUNS``, ``LEFT_OUT``, ``SKIPPED``, ``FAILS`` and ``STOPS``. A candidate also has a ``technique`` and its
    ``changes``.
    """
    git = repository.describe_project(opened.root, inspecting=True)
    context = TreeContext(opened.plan, opened.root, "<run>", 0, Path("<run>"), git=git, dry=True, inherited=looking())
    inspection = prepare.Inspection(repository.project_around(context.root))
    found, length = [], 0
    with within_time(f"rendering the commands of {opened.path}", _SHARE):
        for item in opened.plan.steps:
            if item.id in selected:
                found.append(_step(context, item, opened.draft, inspection))
                commands = (*found[-1]["argv"].values(), *found[-1].get("prepare", {}).values())
                length += sum(len(word) for words in commands for word in words)
            if length > LONGEST:
                text = f"the commands of {opened.path} have more than {LONGEST:,} characters in all"
                raise UserError.of(text, "show fewer steps with --only STEP")
    if expected is not None:
        known = {name: item.to_json() | {"text": item.text()} for name, item in expected.items() if item}
        found = [step | {"expected": known.get(step["id"])} for step in found]
    return [masked(step, context.secrets) for step in found]


def _step(context: TreeContext, item: Planned, draft: Draft, inspection: prepare.Inspection) -> dict[str, Any]:
    # If an earlier step sets PATH, the program's location is known only after that step has run.
    path = search_path(replace(context, dry=False), item)
    required = prepare.lacking(requires_of(item, context.plan.params), path, inspection) if path is not None else []
    elsewhere = why_elsewhere(place_of(item, context.plan), path) if path is not None else ""
    required += [elsewhere] if elsewhere else []
    lacks = required or [text for text in (missing_program(item, path) if path is not None else "",) if text]
    return {
        "id": item.id,
        "stage": item.stage,
        "tool": item.step.tool_name,
        "role": item.role.value,
        "benchmark": item.benchmark,
        "needs": sorted({*item.needs, *item.after, *([item.watches] if item.watches else [])}),
        "alone": item.alone,
        "background": _ready_when(item),
        "condition": str(item.step.if_ or ""),
        **_commands(context, item),
        "missing": "; ".join(lacks),
        "lacks": lacks,
        "outcome": _outcome(context, item, bool(lacks), required=bool(required)),
        **(_candidate(context, item, draft) if item.role is Role.CANDIDATE else {}),
    }


def _outcome(context: TreeContext, item: Planned, lacking: bool, *, required: bool) -> str:
    """Return the outcome of a step on this machine, as far as it is known before the run."""
    if not _is_asked_for(context, item):
        return LEFT_OUT
    if not lacking:
        return RUNS
    if required or item.role in OPTIONAL_ROLES:
        return SKIPPED
    return FAILS if item.step.continue_on_error else STOPS


def _is_asked_for(context: TreeContext, item: Planned) -> bool:
    """Return whether the step's ``if`` holds if nothing fails. If it depends on outputs, assume that it holds."""
    text = item.step.if_ if item.step.if_ is not None else context.plan.stage(item.stage).if_
    if text is None or isinstance(text, bool):
        return text is not False
    known = {"params": context.plan.params, "matrix": item.cell}
    said = {"success": lambda: True, "failure": lambda: False, "always": lambda: True}
    try:
        return condition(text, {**known, **said})
    except ExpressionError:
        return True


def _ready_when(item: Planned) -> str | None:
    """Return the readiness condition of a service as written; None for other steps."""
    if not item.step.background:
        return None
    given = item.step.ready.model_dump(exclude_none=True) if item.step.ready else {}
    return ", ".join(f"{key} {value}" for key, value in given.items())


def _has_argv(item: Planned) -> bool:
    """Return whether the step is a command. A candidate may be a patch or settings; a comparison repeats steps."""
    # The command of a profiling step that chooses its tool, or profiles several benchmarks, is known after measuring.
    if item.role is Role.PROFILE and profiles_several(item):
        return False
    return bool(item.step.uses or item.step.run or item.step.argv)


def _candidate(context: TreeContext, item: Planned, draft: Draft) -> dict[str, Any]:
    changed = list(changes(context, item, draft))
    return {"technique": item.step.technique, "hotspot": item.step.hotspot, "changes": changed}


def _commands(context: TreeContext, item: Planned) -> dict[str, dict[str, list[str]]]:
    """Return the ``argv`` of each side, and the texts of its ``prepare`` if there are any."""
    if not _has_argv(item):
        return {"argv": {}}
    argv: dict[str, list[str]] = {}
    first: dict[str, list[str]] = {}
    for side in sides_of(context, item):
        try:
            prepared = ready(context, item, side, Path("<folder>"), first_count(context, item))
            argv[side.value] = list(prepared.shown)
            first[side.value] = [invocation.argv[-1] for invocation in prepared.first]
        except StepError as error:
            argv[side.value] = [f"<{error}>"]
    return {"argv": argv} | ({"prepare": first} if any(first.values()) else {})
