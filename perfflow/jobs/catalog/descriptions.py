"""Describe what can be run, and what a run would do, without running it.

In order: the steps of a run, one by one (``preview``); a workflow or a tool (``workflow``, ``tool``); the workflows
that can be run by name, and the tools with their availability (``listed_workflows``, ``listed_tools``); what a
candidate of the optimize stage would change (``changes``); what this machine lacks for a run, as far as known before it
(``lacking``); and how long a run takes, from the durations of its steps in earlier runs, else from their limits
(``expected_durations``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perfflow.execute import prepare
from perfflow.execute.context import TreeContext, looking, variables_of
from perfflow.execute.context import search_path as program_path
from perfflow.execute.prepare import (
    Inspection,
    PreparationError,
    first_count,
    missing_program,
    ready,
    rendered,
    sides_of,
    why_elsewhere,
)
from perfflow.library import search_path
from perfflow.library.pinned import Library, is_elsewhere
from perfflow.machine.facts import facts
from perfflow.model.errors import Problem, Severity, StepError, UserError
from perfflow.model.secrets import masked
from perfflow.model.similar import TOOLS, nearest, tool_meant
from perfflow.model.units import UnitError, duration
from perfflow.plan.coverage import requires_of
from perfflow.plan.groups import place_of
from perfflow.plan.plan import ATTEMPTS, MISSING, Plan, Planned, profiles_several
from perfflow.report.expected import ExpectedTime, StoredNoise, Total, total_of
from perfflow.report.expected import gate_plan as plan_lines
from perfflow.sampling.stop_rule import BUDGET
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.session.reading_limit import within_time
from perfflow.store.history import durations
from perfflow.store.history.database import History
from perfflow.store.history.durations import RunKind, StepDuration
from perfflow.store.history.spread import spreads
from perfflow.store.history.stored import open_for_reading
from perfflow.tools import registry
from perfflow.tools.adapter import OPTIONAL_ROLES, Adapter, Role
from perfflow.trees import repository
from perfflow.workflow import declared_tool
from perfflow.workflow.document import Document
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import condition, render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Param
from perfflow.workflow.roles import names_its_own_benchmarks
from perfflow.workflow.yaml_text import Readable, read_file

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
    opened: Opened, selected: Collection[str], expected: Mapping[str, ExpectedTime | None] | None = None
) -> list[dict[str, Any]]:
    """Return one dictionary for each selected step: id, stage, tool, order, commands of each side, what is missing.

    A step with ``prepare`` has its commands by side. With ``expected``, also the expected time. ``outcome`` is one
    of ``RUNS``, ``LEFT_OUT``, ``SKIPPED``, ``FAILS`` and ``STOPS``. A candidate also has a ``technique`` and its
    ``changes``.
    """
    git = repository.describe_project(opened.root, inspecting=True)
    context = TreeContext(opened.plan, opened.root, "<run>", 0, Path("<run>"), git=git, dry=True, inherited=looking())
    inspection = prepare.Inspection(repository.project_around(context.root))
    steps, length = [], 0
    with within_time(f"rendering the commands of {opened.path}", _SHARE):
        for planned in opened.plan.steps:
            if planned.id in selected:
                steps.append(_step(context, planned, opened.draft, inspection))
                commands = (*steps[-1]["argv"].values(), *steps[-1].get("prepare", {}).values())
                length += sum(len(word) for words in commands for word in words)
            if length > LONGEST:
                text = f"the commands of {opened.path} have more than {LONGEST:,} characters in all"
                raise UserError.of(text, "show fewer steps with --only STEP")
    if expected is not None:
        known = {name: planned.to_json() | {"text": planned.text()} for name, planned in expected.items() if planned}
        steps = [step | {"expected": known.get(step["id"])} for step in steps]
    return [masked(step, context.secrets) for step in steps]


def _step(context: TreeContext, planned: Planned, draft: Draft, inspection: prepare.Inspection) -> dict[str, Any]:
    # If an earlier step sets PATH, the program's location is known only after that step has run.
    path = program_path(replace(context, dry=False), planned)
    required = prepare.lacking(requires_of(planned, context.plan.params), path, inspection) if path is not None else []
    elsewhere = why_elsewhere(place_of(planned, context.plan), path) if path is not None else ""
    required += [elsewhere] if elsewhere else []
    lacks = required or [text for text in (missing_program(planned, path) if path is not None else "",) if text]
    return {
        "id": planned.id,
        "stage": planned.stage,
        "tool": planned.step.tool_name,
        "role": planned.role.value,
        "benchmark": planned.benchmark,
        "needs": sorted({*planned.needs, *planned.after, *([planned.watches] if planned.watches else [])}),
        "alone": planned.alone,
        "background": _ready_when(planned),
        "condition": str(planned.step.if_ or ""),
        **_commands(context, planned),
        "missing": "; ".join(lacks),
        "lacks": lacks,
        "outcome": _outcome(context, planned, bool(lacks), required=bool(required)),
        **(_candidate(context, planned, draft) if planned.role is Role.CANDIDATE else {}),
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


def _commands(context: TreeContext, planned: Planned) -> dict[str, dict[str, list[str]]]:
    """Return the ``argv`` of each side, and the texts of its ``prepare`` if there are any."""
    if not _has_argv(planned):
        return {"argv": {}}
    argv: dict[str, list[str]] = {}
    first: dict[str, list[str]] = {}
    for side in sides_of(context, planned):
        try:
            prepared = ready(context, planned, side, Path("<folder>"), first_count(context, planned))
            argv[side.value] = list(prepared.shown)
            first[side.value] = [_written(invocation.argv) for invocation in prepared.first]
        except StepError as error:
            argv[side.value] = [f"<{error}>"]
    return {"argv": argv} | ({"prepare": first} if any(first.values()) else {})


def _written(argv: tuple[str, ...]) -> str:
    """Return the text of a shell, or the words of another program."""
    return argv[-1] if prepare.is_bash(argv) else shlex.join(argv)


WORKFLOW, TOOL = "workflow", "tool"


def kind_of_name(name: str, *, tool: bool) -> str:
    """Return whether a name is a workflow's or a tool's. Raises UserError if it is neither or both."""
    known = registry.known()
    root = repository.project_here()
    if is_elsewhere(name):
        return TOOL if _says_tool(path_of(name)) else WORKFLOW
    if tool or (declared_tool.is_tool_file(name) and _says_tool(Path(name))):
        return TOOL
    named = {path.stem for path in search_path.workflows(root)}
    if name in known and name in named:
        raise UserError.of(f"{name!r} is a workflow and a tool", f"use --tool, or name the file: workflows/{name}.yaml")
    if name in known:
        return TOOL
    if (
        name in named
        or name.startswith(search_path.LIB)
        or Path(name).suffix in search_path.WORKFLOW_SUFFIXES
        or Path(name).is_file()
    ):
        return WORKFLOW
    near = TOOLS.get(name.lower()) or nearest(name, [*sorted(named), *known])
    hint = f"did you mean {near!r}?" if near else "`perfflow list` shows all names"
    raise UserError.of(f"no workflow and no tool called {name!r}", hint)


def _says_tool(path: Path) -> bool:
    """Return whether a file defines a tool, by a line of its text, since the file may contain errors."""
    try:
        text = search_path.readable(path).bytes_of(path).decode()
    except (OSError, ValueError, UserError):
        return False
    return any(line.startswith("perfflow-tool:") for line in text.splitlines())


def path_of(name: str) -> Path:
    """Return the file of a workflow or a tool. Raises UserError if there is none."""
    return Library(repository.project_here()).find(name)


def workflow(name: str) -> dict[str, Any]:
    """Return a workflow after ``extends``, as data. Raises UserError for its errors, but not for missing parameters."""
    opened = open_workflow(name)
    problems = [_lenient(problem) for problem in opened.problems]
    errors = tuple(problem for problem in problems if problem.severity is Severity.ERROR)
    if errors:
        raise UserError(errors)
    flow = opened.plan.workflow
    return {
        "kind": WORKFLOW,
        "name": flow.name,
        "origin": opened.origin,
        "path": str(opened.path),
        "extends": flow.extends,
        "description": flow.description,
        "params": [_param(key, param) for key, param in flow.params.items()],
        "targets": {
            benchmark: {key: _requirement(text) for key, text in required.items()}
            for benchmark, required in flow.targets.items()
        },
        "steps": preview(opened, frozenset(item.id for item in opened.plan.steps)),
        "tools": list(_tools(opened)),
    }


def merged(name: str) -> tuple[Document, dict[str, Any], Callable[[str], str]]:
    """Return a workflow after ``extends``: its nodes, its data, and a function that returns the name of a file.

    Raises UserError for its errors, but not for missing parameters.
    """
    opened = open_workflow(name)
    errors = [item for item in opened.problems if item.severity is Severity.ERROR and item.rule != MISSING]
    if errors:
        raise UserError(tuple(errors))
    data = opened.draft.document.data()
    data.pop("extends", None)
    return opened.draft.document, data, opened.library.named


def _lenient(problem: Problem) -> Problem:
    return replace(problem, severity=Severity.WARNING) if problem.rule == MISSING else problem


def _param(name: str, param: Param) -> dict[str, Any]:
    return {
        "name": name,
        "type": param.kind,
        "required": param.default is None,
        "default": param.default,
        "enum": param.enum,
        "help": param.help,
    }


def _requirement(text: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in text.items()) if isinstance(text, dict) else str(text)


def _tools(opened: Opened) -> Iterator[dict[str, Any]]:
    """Yield each tool once, in the order of the steps, with the availability of its program."""
    used = {item.step.tool_name: item.tool for item in opened.plan.steps if item.tool}
    for name, adapter in used.items():
        yield {"name": name, **_program(adapter, opened.root)}


def _program(adapter: Adapter, place: Path) -> dict[str, Any]:
    """Return the program of a tool. Its version is only queried if it is not from the project around ``place``."""
    seen = prepare.facts_of(adapter, prepare.Inspection(repository.project_around(place)))
    return {
        "program": adapter.program.name,
        "available": seen.available,
        "version": seen.version or None,
        "remark": seen.remark,
        "install": adapter.program.install,
    }


def tool(name: str) -> dict[str, Any]:
    """Return a tool's role, keys, metrics and program, as data. Raises UserError if it cannot be used."""
    adapter, origin, about = _adapter(name)
    return {
        "kind": TOOL,
        "name": adapter.name,
        "origin": origin,
        "description": about,
        "role": adapter.role.value,
        "deterministic": adapter.deterministic,
        "metrics": sorted(adapter.metrics),
        **_program(adapter, Path.cwd()),
        "step": ["stdout"] if adapter.passes_stdout else [],
        "with": list(_options(adapter.options)),
    }


def _adapter(name: str) -> tuple[Adapter, str, str]:
    """Return an adapter, its origin, and one sentence about it."""
    if declared_tool.is_tool_file(name):
        path = path_of(name) if is_elsewhere(name) else Path(name)
        declared, problems = declared_tool.load_tools(path, search_path.readable(path))
        if declared is None:
            raise UserError(problems)
        return declared.adapter, name, declared.source.description
    adapter = registry.find(name)
    if adapter is None:
        reason = registry.trouble(name)
        if reason:
            raise UserError.of(f"the tool {name!r} cannot be used: {reason}", "repair or uninstall that distribution")
        near = tool_meant(name, registry.known())
        hint = f"did you mean {near!r}?" if near else f"tools: {', '.join(registry.known())}"
        raise UserError.of(f"no tool called {name!r}", hint)
    return adapter, registry.origin(name), registry.about(adapter)


def _options(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the keys of ``with`` from the model's JSON Schema."""
    schema = model.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type(field),
            "required": name in schema.get("required", []),
            "default": field.get("default"),
            "help": field.get("description", ""),
        }


_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list"}


def _type(field: dict[str, Any]) -> str:
    """Return a type in words, such as ``text or list``, with bounds or choices if there are any."""
    if "enum" in field:
        return f"one of {', '.join(map(str, field['enum']))}"
    members = [item for item in field.get("anyOf", [field]) if item.get("type") != "null"]
    words = " or ".join(_TYPES.get(_first_type(item), "value") for item in members)
    bounds = [f"{sign} {field[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in field]
    return f"{words} {', '.join(bounds)}".strip()


def _first_type(field: dict[str, Any]) -> str:
    """Return the type in a JSON Schema; of a text that may be written as a number, ``string``."""
    kind = field.get("type")
    return str(kind[0] if isinstance(kind, list) else kind)


def listed_workflows(root: Path) -> list[dict[str, Any]]:
    """Return name, path, description and origin of each workflow. An unreadable file has its error as description."""
    return [
        {"name": path.stem, "path": str(path), "description": _description(path), "origin": search_path.origin(path)}
        for path in search_path.workflows(root)
    ] + [
        {"name": name, "path": str(path), "description": _description(path), "origin": name}
        for name, path in search_path.workflows_of_packages()
    ]


def _description(path: Path) -> str:
    try:
        data = read_file(path, search_path.readable(path)).data()
    except UserError as error:
        return f"(cannot be read: {error.problems[0].message})"
    return str(data.get("description", ""))


def listed_tools(inspection: Inspection) -> list[dict[str, Any]]:
    """Return name, availability, version, origin and a note for each tool. Imports adapters of other distributions."""
    return [_tool(name, inspection) for name in registry.known()]


def _tool(name: str, inspection: Inspection) -> dict[str, Any]:
    origin, tool = registry.origin(name), registry.find(name)
    seen = prepare.facts_of(tool, inspection) if tool else prepare.ProgramFacts(available=False)
    is_builtin = origin == registry.OWN
    if tool is None:
        words = ["cannot be used"]
    elif seen.available:
        words = [*((tool.program.name, seen.version) if is_builtin else ()), f"({seen.remark})" if seen.remark else ""]
    else:
        words = [f"missing: {tool.program.install}"]
    note = " ".join(filter(None, (*words, "" if is_builtin else f"(from {origin})")))
    return {
        "name": name,
        "available": seen.available,
        "version": seen.version or None,
        "origin": origin,
        "note": note,
    }


def listed_warnings() -> list[str]:
    """Return warnings about adapters of installed distributions that have a taken name or cannot be used."""
    taken = [f"ignored: {item.name} of {item.distribution}: perfflow has that tool" for item in registry.shadowed()]
    broken = [(name, registry.trouble(name)) for name in registry.known()]
    return taken + [f"the tool {name!r} cannot be used: {why}" for name, why in broken if why]


_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def changes(context: TreeContext, planned: Planned, draft: Draft) -> Iterator[str]:
    """Yield a line for each change; patches are relative to the file of ``draft``."""
    step = planned.step
    if step.patch:
        name = _rendered(context, planned, step.patch)
        yield f"patch {name}: {_size_of(draft.path.parent / name, draft.readable)}"
    if step.ref:
        yield f"ref {_rendered(context, planned, step.ref)}: its changes since its merge base with HEAD"
    if step.propose:
        attempts = context.plan.stage(planned.stage).attempts or ATTEMPTS
        yield f"propose: {step.propose.strip()} ({attempts} {'attempts' if attempts > 1 else 'attempt'} at most)"
    for key, values in (("env", step.env), ("params", step.params or {})):
        if values:
            yield f"{key}: " + ", ".join(
                f"{name}={_rendered(context, planned, value)}" for name, value in values.items()
            )


def _rendered(context: TreeContext, planned: Planned, value: Any) -> str:
    """Return a value rendered for this cell; as written if it depends on steps that have not run."""
    try:
        return as_text(render(value, variables_of(context, planned)))
    except ExpressionError:
        return str(value)


def _size_of(path: Path, readable: Readable) -> str:
    """Return ``5 lines in work.c``: the number of removed and added lines in the hunks."""
    try:
        lines = readable.bytes_of(path).decode(errors="replace").splitlines()
    except UserError as error:
        return f"cannot be read ({error.problems[0].message})"
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    files, changed, old, new = [], 0, 0, 0
    for line in lines:
        if old > 0 or new > 0:
            # Inside a hunk, a line may look like a file header.
            old, new, changed = old - (line[:1] != "+"), new - (line[:1] != "-"), changed + (line[:1] in ("+", "-"))
        elif hunk := _HUNK.match(line):
            old, new = (int(count or 1) for count in hunk.groups())
        elif line.startswith("diff --git "):
            files.append(line.rpartition(" b/")[2])
        elif line.startswith("+++ ") and not any(other.startswith("diff --git ") for other in lines):
            files.append(line[4:].partition("\t")[0].removeprefix("b/"))
    return f"{changed} {'line' if changed == 1 else 'lines'} in {', '.join(files) or 'no file'}"


_FINDING_OUT = ((Role.MEASURE, Role.MACHINE), (Role.PROFILE,))


def lacking(opened: Opened, selected: Collection[str]) -> str:
    """Return what this machine lacks, if a run would therefore measure nothing; '' if it can run, as far as known."""
    rows = [row for row in preview(opened, selected) if row["outcome"] != LEFT_OUT]
    for row in rows:
        if row["outcome"] == STOPS:
            return str(row["lacks"][0])
    for roles in _FINDING_OUT:
        asked = [row for row in rows if row["role"] in roles]
        if asked:
            return str(asked[0]["lacks"][0]) if all(row["outcome"] == SKIPPED for row in asked) else ""
    return ""


def expected_durations(
    opened: Opened,
    selected: Collection[str],
    *,
    in_trees: bool = False,
    budget: float | None = None,
    ask_server: bool = False,
) -> dict[str, ExpectedTime | None]:
    """Return the expected time of each selected step; None if nothing is known. Starts nothing.

    in_trees: the run compares base and head. budget: seconds for the whole command.
    ask_server: also read a history that is on a server.
    """
    plan = opened.plan
    kind = RunKind(plan.workflow.name, dict(plan.params), str(facts()["identity"]), in_trees, budget)
    steps = [item for item in plan.steps if item.id in selected and not item.step.background]
    with open_for_reading(opened.root, server=ask_server) as history:
        seen = durations.step_durations(opened.root, kind, history)
        names = {item.id: _names(item, seen) for item in steps}
        noises = _noise(opened, kind, names, history) if history else {}
    by_step = {item.id: _of(plan, item, seen.get(item.id, StepDuration())) for item in steps}
    for name, noise in noises.items():
        known = by_step[name]
        by_step[name] = replace(known, noise=noise) if known else None
    return by_step


def _names(item: Planned, seen: Mapping[str, StepDuration]) -> tuple[str, ...]:
    """Return the benchmarks that a step measures, from its last run or its name."""
    if item.role is not Role.MEASURE:
        return ()
    return seen[item.id].names if item.id in seen else (item.benchmark,)


def _noise(
    opened: Opened, kind: RunKind, names: Mapping[str, tuple[str, ...]], history: History
) -> dict[str, StoredNoise]:
    """Return the noise of each measuring step's samples in the history."""
    every = {name for each in names.values() for name in each}
    known = spreads(history, kind.workflow, kind.params, kind.machine, every)
    by_step: dict[str, StoredNoise] = {}
    for step, of_step in names.items():
        rows = [(known[name], opened.plan.criteria.thresholds_of(name).concern) for name in of_step if name in known]
        if rows:
            spread, change = max(rows, key=lambda row: row[0].noise / row[1])
            by_step[step] = StoredNoise(spread.noise, spread.pairs(change), change)
    return by_step


def in_all(plan: Plan, steps: dict[str, ExpectedTime | None], budget: float | None = None) -> Total:
    """Return the expected time of all these steps together."""
    measuring = frozenset(item.id for item in plan.steps if item.role is Role.MEASURE and item.id in steps)
    return total_of(steps, measuring, budget)


def gate_plan(opened: Opened, selected: Collection[str], budget: float | None) -> list[str]:
    """Return a few lines with the expected time of a gate. Starts nothing."""
    steps = expected_durations(opened, selected, in_trees=True, budget=budget)
    kinds = {"builds": Role.WORK, "measuring": Role.MEASURE, "checks": Role.CHECK}
    own = {item.id: item.role for item in opened.plan.steps}
    by_kind = {
        kind: {name: found for name, found in steps.items() if own[name] is role} for kind, role in kinds.items()
    }
    return list(plan_lines(by_kind, budget))


def _of(plan: Plan, item: Planned, seen: StepDuration) -> ExpectedTime | None:
    if seen.seconds is not None:
        other_budget = seen.other_budget and item.role is Role.MEASURE
        return ExpectedTime(seen.seconds, seen.runs, seen.benchmarks or None, other_budget=other_budget)
    if item.role is Role.MEASURE:
        return _limit_of_measuring(plan, item, seen)
    if item.role in (Role.WORK, Role.CHECK):
        seconds = _duration(plan, item, item.step.timeout or plan.stage(item.stage).timeout)
        return ExpectedTime(seconds * ((item.step.retries or 0) + 1)) if seconds else None
    return None


def _limit_of_measuring(plan: Plan, item: Planned, seen: StepDuration) -> ExpectedTime | None:
    """Return the step's budget for each benchmark. A number of runs or a deterministic tool has no time limit."""
    if item.step.runs is not None or (item.tool and item.tool.deterministic):
        return None
    each = _duration(plan, item, item.step.budget) if item.step.budget else BUDGET
    if each is None:
        return None
    found, number = ExpectedTime(None, each=each), _benchmarks(item, seen)
    return found.of(number) if number else found


def _benchmarks(item: Planned, seen: StepDuration) -> int:
    """Return how many benchmarks a step has; 0 if only running the step can tell."""
    if seen.benchmarks:
        return seen.benchmarks
    if item.step.variants is None and not names_its_own_benchmarks(item.step):
        return 1
    named = [name for name in item.step.expect or [] if "${{" not in name]
    # A glob matches any number of benchmarks.
    return len(set(named)) if named and not any(letter in name for name in named for letter in "*?") else 0


def _duration(plan: Plan, item: Planned, text: object) -> float | None:
    """Return a duration of the workflow in seconds; None if there is none, or if it is only known in a run."""
    try:
        return duration(str(rendered(text, {"params": plan.params, "matrix": item.cell}))) if text else None
    except (PreparationError, UnitError):
        return None
