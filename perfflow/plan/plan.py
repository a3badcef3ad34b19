"""Make a plan of a workflow: expand matrices and order the steps, and report errors.

- ``make`` makes the plan. ``unavailable`` reports keys that this version cannot run.
- ``cells`` expands the matrix of a step into cells, in the order of the file.
- ``parameter_values`` reads the values of the parameters of a workflow: defaults, and ``--set NAME=VALUE`` with the
  parameter's type.
- ``read_by`` finds the steps whose outputs a step uses, and ``users_of`` the steps that depend on a step.
- ``building_steps`` are the steps that build the trees to measure.
- ``confirmed_by`` and ``expected_of`` render the globs of benchmarks under ``confirms`` and ``expect`` for a cell.
- ``layouts_asked`` tells over how many code layouts a step is measured, by the workflow or else by default.
  ``draws_layouts`` tells whether any step may need several.
- ``stage_plan`` reads the optimize stage: the steps that build, measure, check and profile a tree, and the goal.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import networkx as nx

from perfflow.model.criteria import Criteria, read_share
from perfflow.model.errors import Problem
from perfflow.model.metrics import METRICS
from perfflow.model.similar import did_you_mean
from perfflow.model.targets import Target, matches
from perfflow.plan.follow_up_errors import is_in_doubt
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Role
from perfflow.verdict.acceptance import ACCEPT, Goal, goal_of
from perfflow.workflow import written_numbers
from perfflow.workflow.checks import each_step
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import Expression, pieces, render, split
from perfflow.workflow.layout_checks import OFF
from perfflow.workflow.load import Draft
from perfflow.workflow.model import MAX_CELLS, Matrix, Param, Scalar, Stage, Step, Workflow
from perfflow.workflow.roles import (
    AUTO,
    CANDIDATES_STAGE,
    has_machine_alone,
    names_its_own_benchmarks,
    role_of,
    stage_role,
    tool_of,
)

Cell = Mapping[str, Scalar]


MOST_CELLS = 8000
"""Most cells of all steps together; a step without a matrix is one cell."""
EVERY = "**"
"""Benchmarks of a step with ``uses: auto`` and without ``benchmark``."""


@dataclass(frozen=True)
class Planned:
    """One step, or one cell of its matrix.

    ``needs`` has the steps that it names, ``after`` the steps before it in the file. ``benchmark`` is the name of its
    benchmark, or '' if it has none. ``watches`` is the measuring step whose command, or whose suite, a profiler without
    a command runs. ``for_targets``: perfflow added the step, and it counts only benchmarks with targets on its figures.
    ``against`` is the cell with which this one is compared if one tree is measured: that of the first value of the
    matrix key of ``compare``; None for that cell itself, and without ``compare``.
    """

    id: str
    step: Step
    stage: str
    cell: Cell
    role: Role
    tool: Adapter | None
    alone: bool
    needs: tuple[str, ...]
    after: tuple[str, ...]
    benchmark: str = ""
    watches: str = ""
    for_targets: bool = False
    against: Cell | None = None

    @property
    def pattern(self) -> str:
        """The names of its benchmarks; ``*`` stands for the ids of a suite."""
        alone = self.step.benchmark is None and names_its_own_benchmarks(self.step)
        return "*" + suffix(self.cell) if alone else self.benchmark

    @property
    def in_one_tree(self) -> bool:
        """Whether it compares two commands, settings or variants in one tree, also in a gate."""
        return bool(self.step.candidate or self.step.variants)


@dataclass(frozen=True)
class Plan:
    """Steps in an order in which each step comes after the steps it needs."""

    workflow: Workflow
    params: Mapping[str, Any]
    criteria: Criteria
    steps: tuple[Planned, ...]
    by_id: Mapping[str, Planned] = field(default_factory=dict)

    def stage(self, name: str) -> Stage:
        """Return a stage; an empty one if the workflow lacks it, for steps that perfflow adds."""
        found = self.workflow.stages.get(name)
        return Stage() if found is None else found

    def cells_of(self, step_id: str) -> tuple[Planned, ...]:
        """Return all cells of one step of the file."""
        return tuple(self._cells.get(step_id, ()))

    @cached_property
    def _cells(self) -> Mapping[str, list[Planned]]:
        found: dict[str, list[Planned]] = {}
        for planned in self.steps:
            found.setdefault(planned.step.id, []).append(planned)
        return found


def make(draft: Draft, criteria: Criteria, params: Mapping[str, Any]) -> Plan:
    """Expand matrices, name benchmarks and order the steps; add problems to the draft."""
    planned = list(_expand(draft, params))
    commands: dict[str, list[Planned]] = {}
    for item in planned:
        if item.benchmark and has_command(item.step):
            commands.setdefault(item.benchmark, []).append(item)
    parts = {item.id: list(_with_sources(draft, item, commands, planned)) for item in planned}
    ids = {name: [item.id for item in of_step] for name, of_step in parts.items()}
    watched = [
        replace(item, needs=_parts_of(item.needs, ids), after=_parts_of(item.after, ids))
        for of_step in parts.values()
        for item in of_step
    ]
    added = list(_for_targets(criteria, watched))
    step_ids = {item.id: item.step.id for item in watched}
    # Problems of an added step are shown at the suite that it counts.
    draft.steps.update({item.step.id: draft.steps[step_ids[item.watches]] for item in added})
    following = {item.id: [item, *(other for other in added if other.watches == item.id)] for item in watched}
    ordered = _ordered(draft, [item for of_step in following.values() for item in of_step])
    return Plan(draft.workflow, params, criteria, tuple(ordered), {item.id: item for item in ordered})


def _for_targets(criteria: Criteria, planned: Sequence[Planned]) -> Iterator[Planned]:
    """Yield steps that count what targets need of a suite's benchmarks, where no step of the workflow does."""
    by_id = {item.id: item for item in planned}
    for source in planned:
        if source.role is not Role.MEASURE or source.tool is None or not source.tool.fixes_iterations:
            continue
        added: dict[str, Planned] = {}
        for target in criteria.targets:
            name = target.metric.name
            if (name in source.tool.metrics and not source.tool.counters) or not may_have(source, target.benchmark):
                continue
            others = (item for item in planned if item.tool and name in item.tool.metrics and item is not source)
            counter = None if any(_may_count(item, by_id, target) for item in others) else _counter(name)
            if counter and counter.name not in added:
                added[counter.name] = _added(source, counter, by_id)
        yield from added.values()


def _counter(metric: str) -> Adapter | None:
    """Return the tool that counts a metric of one iteration exactly; None if there is none."""
    known = METRICS.get(metric)
    if known is None or not known.total:
        return None
    return next((tool for tool in registry.profilers(metric) if tool.counts and metric in tool.metrics), None)


def _may_count(item: Planned, by_id: Mapping[str, Planned], target: Target) -> bool:
    source = counted_source(by_id, item)
    if source and stands_for_suite(item.benchmark, source):
        return True
    return matches(target.benchmark, item.benchmark) or matches(item.benchmark, target.benchmark)


def _added(source: Planned, counter: Adapter, taken: Collection[str]) -> Planned:
    name = f"{source.step.id}-{counter.name}"
    while name + suffix(source.cell) in taken:
        name += "-2"
    return replace(
        source,
        id=name + suffix(source.cell),
        step=Step(id=name, uses=counter.name).model_copy(update={"if_": source.step.if_}),
        tool=counter,
        alone=True,
        needs=(source.id,),
        after=(),
        benchmark=EVERY,
        watches=source.id,
        for_targets=True,
    )


def _parts_of(names: Sequence[str], ids: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(part for name in names for part in ids.get(name, [name]))


def _expand(draft: Draft, params: Mapping[str, Any]) -> Iterator[Planned]:
    cells: dict[str, list[Cell]] = {}
    left = MOST_CELLS
    for _, step, loc in each_step(draft):
        cells[step.id] = _cells(draft, step, loc, params)
        left -= len(cells[step.id])
        if left < 0:
            hint = "remove values, or split it into several workflows"
            message = f"the matrices of all steps have more than {MOST_CELLS:,} cells"
            draft.complain((*loc, "matrix"), message, hint, key=True)
            cells[step.id], left = [{}], MOST_CELLS
    before: tuple[str, ...] = ()
    for stage, step, _ in each_step(draft):
        ids = [step.id + suffix(cell) for cell in cells[step.id]]
        for cell, cell_id in zip(cells[step.id], ids, strict=True):
            yield Planned(
                id=cell_id,
                step=step,
                stage=stage,
                cell=cell,
                role=role_of(step, stage, draft.workflow),
                tool=tool_of(step),
                alone=has_machine_alone(step, stage, draft.workflow),
                needs=tuple(_needed(draft, step, cells)),
                after=() if step.needs is not None else before,
                benchmark=_benchmark(draft, stage, step, cell, params),
                against=first_of(step.axis, cell, cells[step.id]),
            )
        # A step with `needs` may start early, so the next step waits for it and for all steps before it.
        before = (*before, *ids) if step.needs is not None or not ids else tuple(ids)


def _cells(draft: Draft, step: Step, loc: Loc, params: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a step; duplicate cells, and a matrix without cells, are errors."""
    place = (*loc, "matrix")
    try:
        expanded = cells(step.matrix and rendered_cell(step.matrix, params))
    except ExpressionError as error:
        if not draft.wrong_keys(place):
            hint = error.hint or "a matrix can use only `params`"
            draft.complain(place, str(error), hint, find=error.near, key=not error.near)
        return [{}]
    if not expanded and not draft.wrong_keys(place):
        draft.complain(
            place, "the matrix has no cells", "remove items from `exclude`, which matches all cells", key=True
        )
    named = {suffix(cell): cell for cell in expanded}
    if len(named) < len(expanded) and not draft.wrong_keys(place):
        draft.complain(place, "the matrix has a duplicate cell", "check `include`", key=True)
    return list(named.values())


def _needed(draft: Draft, step: Step, cells: Mapping[str, list[Cell]]) -> Iterator[str]:
    """Convert ``needs`` to ids of cells: a plain id means all cells of the step, ``id[k=v]`` one cell."""
    for need in [step.needs] if isinstance(step.needs, str) else step.needs or []:
        name, bracket, _ = need.partition("[")
        ids = [name + suffix(cell) for cell in cells.get(name, [])]
        if bracket and ids and need not in ids:
            loc = (*draft.steps[step.id], "needs")
            hint = f"cells: {', '.join(ids[:8])}"
            draft.complain(loc, f"unknown cell `{need}` of `{name}` under `needs`", hint, find=need)
            continue
        yield from [need] if bracket else ids


def _benchmark(draft: Draft, stage: str, step: Step, cell: Cell, params: Mapping[str, Any]) -> str:
    """Return the benchmark name of a cell, '' for none; keys of the cell that it does not use are appended."""
    role = role_of(step, stage, draft.workflow)
    if role in (Role.CANDIDATE, Role.COMPARE) or (role in (Role.WORK, Role.CHECK) and not step.benchmark):
        return ""
    if step.benchmark is None and step.uses == AUTO:
        return EVERY
    if step.benchmark is None:
        return step.id + suffix(cell)
    loc = (*draft.steps[step.id], "benchmark")
    try:
        return cell_name(step.benchmark, cell, params)
    except ExpressionError as error:
        if loc not in draft.wrong and not draft.wrong_keys((*draft.steps[step.id], "matrix")):
            draft.complain(loc, str(error), "`benchmark` can use only `params` and `matrix`", find=error.near)
        return step.id


def cell_name(text: str, cell: Cell, params: Mapping[str, Any], unsaid: str = "") -> str:
    """Render ``benchmark`` of a step for a cell; keys that it does not use, except ``unsaid``, are appended.

    Raises ExpressionError.
    """
    parts = [part for part in split(text) if isinstance(part, Expression)]
    used = {path[1] for part in parts for path in part.names() if path[0] == "matrix"}
    name = str(render(text, {"params": params, "matrix": cell}))
    return name + suffix({key: value for key, value in cell.items() if key not in {*used, unsaid}})


def has_command(step: Step) -> bool:
    """Return whether a step has a command."""
    return step.run is not None or step.argv is not None or step.with_.get("command") is not None


def profiles_several(planned: Planned) -> bool:
    """Return whether the benchmarks that a step profiles are known only when it runs."""
    if planned.step.uses == AUTO:
        return True
    tool = planned.tool
    if tool is None or not tool.takes_command or planned.watches:
        return False
    return not has_command(planned.step) and not tool.is_attached(planned.step.with_)


def attaches(planned: Planned) -> bool:
    """Return whether a profiler attaches to a running process, on which the command that it watches puts load."""
    return "pid" in planned.step.with_


def counted_source(by_id: Mapping[str, Planned], item: Planned) -> Planned | None:
    """Return the step of the suite whose benchmarks a step counts one by one; None if it does not count a suite."""
    source = by_id.get(item.watches)
    counts = item.tool is not None and item.tool.counts
    return source if counts and source and source.tool and source.tool.fixes_iterations else None


def chosen_of(name: str, source: Planned, benchmarks: Collection[str]) -> Collection[str]:
    """Return the benchmarks of a step that a name stands for: the one so called, else those of the suite or glob."""
    if name in benchmarks:
        return (name,)
    return benchmarks if stands_for_suite(name, source) else [each for each in benchmarks if matches(name, each)]


def stands_for_suite(name: str, source: Planned) -> bool:
    """Return whether a name stands for all benchmarks of a suite: ``*``, the step's id, or its only bench target."""
    suite = source.tool is not None and source.tool.is_suite
    if not suite and not names_its_own_benchmarks(source.step) and source.step.variants is None:
        return False
    targets = source.step.with_.get("bench")
    only = targets[0] if isinstance(targets, list) and len(targets) == 1 else targets
    return name in ("*", EVERY, source.benchmark, source.id, source.step.id, only)


def _with_sources(
    draft: Draft, item: Planned, commands: Mapping[str, list[Planned]], planned: Sequence[Planned]
) -> Iterator[Planned]:
    """Yield the step with the step whose command it runs; a step that counts several suites once for each."""
    suites = _suites_to_count(item, commands, planned)
    for source in suites:
        item_id = item.id if len(suites) == 1 else f"{item.id}[{source.id}]"
        yield replace(item, id=item_id, watches=source.id)
    if not suites:
        yield _with_source(draft, item, commands, planned)


def _suites_to_count(item: Planned, commands: Mapping[str, list[Planned]], planned: Sequence[Planned]) -> list[Planned]:
    """Return the suites with benchmarks that a counting step without a command may name."""
    if item.tool is None or not (item.tool.counts and item.step.benchmark) or has_command(item.step):
        return []
    if item.tool.is_attached(item.step.with_) or item.step.with_.get("report"):
        return []
    if any(not (other.tool and other.tool.fixes_iterations) for other in commands.get(item.benchmark, ())):
        return []
    suites = [other for other in planned if other.role is Role.MEASURE and other.tool and other.tool.fixes_iterations]
    meant = [other for other in suites if stands_for_suite(item.benchmark, other)]
    return meant or [other for other in suites if may_have(other, item.benchmark)]


def may_have(item: Planned, glob: str) -> bool:
    """Return whether a glob may match a benchmark of a step; the ids of a suite are known only when it runs."""
    if names_its_own_benchmarks(item.step) or matches(glob, item.benchmark):
        return True
    return "*" in item.benchmark and (matches(item.benchmark, glob) or may_both_match(item.benchmark, glob))


def may_both_match(glob: str, other: str) -> bool:
    """Return whether two globs could match the same name, judged by the text before their first wildcards."""
    if not all(any(letter in text for letter in "*?") for text in (glob, other)):
        return False
    first, second = (text.replace("?", "*").partition("*")[0] for text in (glob, other))
    return first.startswith(second) or second.startswith(first)


def _with_source(
    draft: Draft, item: Planned, commands: Mapping[str, list[Planned]], planned: Sequence[Planned]
) -> Planned:
    """Find the measuring step whose command a profiling or checking tool without a command runs."""
    if item.tool is None or "command" not in item.tool.options.model_fields or has_command(item.step):
        return item
    loc = draft.steps[item.step.id]
    if item.tool.is_attached(item.step.with_) and not item.step.benchmark:
        return item
    if not item.step.benchmark:
        if not draft.wrong_keys(loc) & {"", "uses", "with", "benchmark", "run", "argv"}:
            hint = "add `with: {command: ...}`, or `benchmark:`"
            hint += ", or `duration:`, the length of the recording" if attaches(item) else ""
            hint += ", or `file:`, a source file" if "file" in item.tool.options.model_fields else ""
            draft.complain(loc, f"step `{item.step.id}` has no command", hint)
        return item
    sources = [other for other in commands.get(item.benchmark, ()) if other.id != item.id]
    sources = sources or _loads_of(item, planned)
    measuring = [other for other in sources if other.role is Role.MEASURE] or sources
    if measuring:
        return replace(item, watches=measuring[0].id)
    if item.tool.is_attached(item.step.with_):
        return item
    if _is_of_commands(draft, item, commands) or _is_of_a_suite(draft, item, planned):
        return item
    if not is_in_doubt(draft, item.benchmark):
        known = sorted(name for name, steps in commands.items() if any(step.role is Role.MEASURE for step in steps))
        hint = did_you_mean(item.benchmark, known, "benchmarks") if known else "add `with: {command: ...}`"
        message = f"no step measures `{item.benchmark}` with a command that this step could run"
        draft.complain((*loc, "benchmark"), message, hint)
    return item


def _loads_of(item: Planned, planned: Sequence[Planned]) -> list[Planned]:
    """Return the steps that send requests to the process which a profiler attaches to, by a tool with no command."""
    steps = (other for other in planned if attaches(item) and other.benchmark == item.benchmark and other.tool)
    return [other for other in steps if other.tool and not (other.tool.is_suite or other.tool.takes_command)]


def _is_of_commands(draft: Draft, item: Planned, commands: Collection[str]) -> bool:
    """Return whether a glob matches commands that a profiler runs one by one; for a measuring tool it is an error."""
    meant = sorted(name for name in commands if matches(item.benchmark, name))
    if meant and item.tool and item.role is Role.MEASURE:
        message = f"`{item.tool.name}` measures one command, but `{item.benchmark}` stands for several"
        draft.complain((*draft.steps[item.step.id], "benchmark"), message, f"write one of {', '.join(meant[:8])}")
    return bool(meant)


def _is_of_a_suite(draft: Draft, item: Planned, planned: Sequence[Planned]) -> bool:
    """Return whether a suite may have the benchmark; a tool that counts cannot count it, which is an error."""
    # A profiler of several benchmarks learns their names and commands when they are measured.
    suites = [
        other.id
        for other in planned
        if other.role is Role.MEASURE and other.tool and other.tool.is_suite and may_have(other, item.benchmark)
    ]
    if suites and item.tool and item.tool.counts and item.role is Role.MEASURE:
        loc = (*draft.steps[item.step.id], "benchmark")
        message = f"the suite of `{suites[0]}` cannot run a benchmark a known number of times, so"
        hint = "count a program that repeats it: `with: {command: ...}` and `ops: [1000, 11000]`"
        draft.complain(loc, f"{message} `{item.tool.name}` cannot count one iteration", hint)
    return bool(suites)


def _ordered(draft: Draft, planned: list[Planned]) -> list[Planned]:
    """Sort the steps so that each comes after the steps it needs, otherwise in the order of the file."""
    index = {item.id: number for number, item in enumerate(planned)}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(index)
    for item in planned:
        graph.add_edges_from(
            (before, item.id) for before in (*item.needs, *item.after, *_watched(item)) if before in index
        )
    if not nx.is_directed_acyclic_graph(graph):
        for names in nx.strongly_connected_components(graph):
            part = graph.subgraph(names)
            if part.size():
                _complain_of_circle(draft, [planned[index[edge[0]]] for edge in nx.find_cycle(part)])
        return planned
    order = nx.lexicographical_topological_sort(graph, key=lambda name: index[name])
    return [planned[index[name]] for name in order]


def _complain_of_circle(draft: Draft, circle: list[Planned]) -> None:
    """Report a cycle of steps, given so that each step comes before the next and the last before the first."""
    order = {name: number for number, name in enumerate(draft.steps)}
    last = len(circle)
    named = [number for number in range(last) if circle[number - 1].id in circle[number].needs]
    first = min(named or range(last), key=lambda number: order[circle[number].step.id])
    path = [circle[(first - number) % last] for number in range(last + 1)]
    text = " -> ".join(item.id for item in path)
    hint = "remove one of these from `needs`"
    unnamed = next((number for number in range(last) if path[number + 1].id not in path[number].needs), None)
    if unnamed is not None:
        later, earlier = path[unnamed].id, path[unnamed + 1].id
        hint = f"`{later}` has no `needs`, so it runs after `{earlier}`; `needs: []` lets it start at once"
        if path[unnamed].watches == earlier:
            hint = f"`{later}` runs the command of `{earlier}`, so it must run after it"
    loc: Loc = (*draft.steps[path[0].step.id], "needs")
    find = path[1].step.id if path[0].step.needs else ""
    draft.complain(loc, f"circular dependency: {text}", hint, find=find)


def _watched(item: Planned) -> tuple[str, ...]:
    return (item.watches,) if item.watches else ()


def unavailable(draft: Draft) -> list[Problem]:
    """Return an error for each key that the format allows but this version cannot run, so that none is ignored."""
    problems = []
    candidates = CANDIDATES_STAGE in draft.workflow.stages
    for stage, step, loc in each_step(draft):
        if step.background and candidates and stage != "setup":
            message = f"with candidates, a service in the stage `{stage}` is not available in this version of perfflow"
            hint = "move it to the `setup` stage, where all trees share one service"
            problems.append(Problem(message, hint, draft.document.place((*loc, "background"), key=True)))
        keys = [
            f"candidate.{key}" for key in ("ref", "patch", "matrix") if step.candidate and getattr(step.candidate, key)
        ]
        for key in keys:
            place = draft.document.place((*loc, *key.split(".")), key=True)
            problems.append(Problem(f"`{key}` is not available in this version of perfflow", "", place))
    return list(dict.fromkeys(problems))


def cells(matrix: Matrix | None) -> list[Cell]:
    """Return all combinations without ``exclude`` and with ``include``; without a matrix, one empty cell.

    As in GitHub Actions, an include extends every original cell whose values it does not change, or else becomes a new
    cell. At most MAX_CELLS combinations are created; larger matrices are reported elsewhere.
    """
    if matrix is None:
        return [{}]
    keys = list(matrix.axes)
    combinations = itertools.islice(itertools.product(*matrix.axes.values()), MAX_CELLS)
    grid = [dict(zip(keys, combination, strict=True)) for combination in combinations if keys]
    grid = [cell for cell in grid if not any(_agrees(cell, out) for out in matrix.exclude)]
    alone: list[Cell] = []
    for extra in matrix.include:
        axes = {key: value for key, value in extra.items() if key in keys}
        extended = [cell for cell in grid if _agrees(cell, axes)]
        for cell in extended:
            cell.update(extra)
        if not extended:
            alone.append(dict(extra))
    return [*grid, *alone]


def rendered_cell(matrix: Matrix, params: Mapping[str, Any]) -> Matrix:
    """Return the matrix with its expressions rendered; the items of a list replace its expression.

    Raises ExpressionError if a value is not a scalar, or if there are no cells or too many.
    """
    if not any(isinstance(value, str) and OPEN in value for value in _values(matrix)):
        return matrix
    context = {"params": params}
    axes = {key: list(_items(key, values, context)) for key, values in matrix.axes.items()}
    for key, values in axes.items():
        if not values:
            raise ExpressionError(f"matrix key `{key}` has no values", hint="give the parameter at least one value")
    if (count := math.prod(len(values) for values in axes.values())) > MAX_CELLS:
        raise ExpressionError(f"the matrix has {count} cells, more than {MAX_CELLS}", hint="remove values")
    cells = {
        name: [{key: _one(key, value, context) for key, value in cell.items()} for cell in given]
        for name, given in (("include", matrix.include), ("exclude", matrix.exclude))
    }
    return Matrix.model_validate({**axes, **cells})


def _values(matrix: Matrix) -> Iterator[Scalar]:
    for values in (*matrix.axes.values(), *(cell.values() for cell in (*matrix.include, *matrix.exclude))):
        yield from values


def _items(key: str, values: list[Scalar], context: Mapping[str, Any]) -> Iterator[Scalar]:
    for value in values:
        found = render(value, context) if isinstance(value, str) else value
        for item in found if isinstance(found, list) else [found]:
            yield _scalar(key, value, item)


def _one(key: str, value: Scalar, context: Mapping[str, Any]) -> Scalar:
    return _scalar(key, value, render(value, context) if isinstance(value, str) else value)


def _scalar(key: str, text: Scalar, value: object) -> Scalar:
    if isinstance(value, str | int | float | bool):
        return value
    hint = "use a string, a number, a boolean, or a parameter of the type list"
    message = f"matrix key `{key}`: a value of type {type(value).__name__} is not allowed"
    raise ExpressionError(message, str(text), hint)


def _agrees(cell: Cell, other: Cell) -> bool:
    # True equals 1 in Python, but not in a workflow.
    return all(key in cell and cell_text(cell[key]) == cell_text(value) for key, value in other.items())


def suffix(cell: Cell) -> str:
    """Return ``[k=v,l=w]``, or '' for an empty cell."""
    return f"[{','.join(f'{key}={cell_text(value)}' for key, value in cell.items())}]" if cell else ""


def first_of(key: str, cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """Return the first cell that differs from ``cell`` only in ``key``; None if it is this one, or without a key."""
    bare = _without(key, cell)
    first = next((other for other in cells if key in other and _without(key, other) == bare), cell)
    return None if not key or first == cell else first


def _without(key: str, cell: Cell) -> Cell:
    return {name: value for name, value in cell.items() if name != key}


def cell_text(value: Scalar) -> str:
    """Return a value as the names of cells show it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shared_cells(cell: Cell, other: Cell) -> bool:
    """Return whether two cells have equal values for the keys that both have."""
    return all(other[key] == value for key, value in cell.items() if key in other)


MISSING = "missing-parameter"
"""Rule of the problem that a required parameter has no value: fatal for a run, but no error in the file."""
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PREFIXED = r"0x[0-9a-fA-F]{1,200}|0o[0-7]{1,300}"
"""Whole numbers with a prefix, as in YAML."""


def parameter_values(params: Mapping[str, Param], settings: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the value of each parameter, and the problems of ``settings`` (strings of the form NAME=VALUE).

    A parameter without a value gets a placeholder, so that its absence is reported only once.
    """
    given, problems = _given(params, settings)
    result: dict[str, Any] = {}
    for name, param in params.items():
        result[name] = param.default if param.default is not None else _placeholder(name, param)
        if name not in given:
            if param.default is None:
                problems.append(
                    Problem(f"parameter {name!r} has no value", f"set it with --set {name}=VALUE", rule=MISSING)
                )
            continue
        try:
            result[name] = _read(param, given[name])
        except ValueError as error:
            problems.append(Problem(f"--set {name}={given[name]}: {error}"))
    return result, problems


def _given(params: Mapping[str, Param], settings: Sequence[str]) -> tuple[dict[str, str], list[Problem]]:
    """Return the last setting of each parameter, and problems for invalid settings and unknown parameters."""
    given: dict[str, str] = {}
    problems: list[Problem] = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            problems.append(Problem(f"--set {setting} is not of the form NAME=VALUE", "write --set NAME=VALUE"))
        elif name not in params:
            hint = did_you_mean(name, params, "parameters")
            problems.append(Problem(f"--set {setting}: the workflow has no parameter {name!r}", hint))
        else:
            given[name] = text
    return given, problems


def _placeholder(name: str, param: Param) -> str | list[str]:
    text = f"<params.{name}>"
    return [text] if param.kind == "list" else text


def _read(param: Param, text: str) -> Any:
    """Convert a setting to the type of the parameter. Raises ValueError with a message for the user."""
    kind = param.kind
    value = _read_list(param, text) if kind == "list" else _read_scalar(kind, text)
    if param.enum is not None and value not in param.enum:
        raise ValueError(f"not one of {', '.join(str(item) for item in param.enum)}")
    return value


def _read_list(param: Param, text: str) -> list[Any]:
    """Return the comma-separated items, with the type of the first item of the default."""
    first = param.default[0] if isinstance(param.default, list) and param.default else ""
    return [_read_scalar(written_numbers.type_of(first), item.strip()) for item in text.split(",") if item.strip()]


def _read_scalar(kind: str, text: str) -> Any:
    match kind:
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise ValueError("not true or false")
            return _BOOLEANS[text.lower()]
        case "integer":
            if not re.fullmatch(rf"[+-]?[0-9]{{1,300}}|{_PREFIXED}", text):
                raise ValueError("not a whole number")
            return written_numbers.whole(text)
        case "number":
            if re.fullmatch(_PREFIXED, text):
                return written_numbers.whole(text)
            if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
                raise ValueError("not a number")
            return written_numbers.real(text)
        case _:
            return text


def read_by(plan: Plan, item: Planned) -> Iterator[str]:
    """Yield the ids of the steps whose outputs a step uses."""
    used = {name for text in _expressions(item.step) for name in text.names() if name[0] == "steps" and len(name) > 1}
    for _, name, *_ in used:
        yield from (name,) if name in plan.by_id else (cell.id for cell in plan.cells_of(name))


def users_of(plan: Plan, name: str) -> frozenset[str]:
    """Return the ids of the steps that depend on a step directly or indirectly, without the step itself."""
    direct = {
        item.id: {*item.needs, *read_by(plan, item), *((item.watches,) if item.watches else ())} for item in plan.steps
    }
    found = {name}
    while more := {item for item, used in direct.items() if used & found} - found:
        found |= more
    return frozenset(found - {name})


def _expressions(step: Step) -> Iterator[Expression]:
    condition = step.if_
    if isinstance(condition, str) and "steps" in condition:
        yield Expression(condition)
    for text in _texts(step.model_dump(by_alias=True, exclude_unset=True, exclude={"if_", "id"})):
        if "${{" in text:
            yield from (part for part in pieces(text) if isinstance(part, Expression))


def _texts(value: Any) -> Iterator[str]:
    """Yield every string inside nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def building_steps(plan: Plan) -> tuple[str, ...]:
    """Return the ids of the steps that run in every measured tree.

    These are the steps of the stages between setup and the first measuring stage, and the work steps of that stage.
    """
    names = list(plan.workflow.stages)
    kinds = {name: stage_role(plan.workflow, name) for name in names}
    measuring = [name for kind in (Role.MEASURE, Role.CANDIDATE) for name in names if kinds[name] is kind]
    before = set(names[: names.index(measuring[0])] if measuring else []) - {"setup"}
    return tuple(
        item.id
        for item in plan.steps
        if item.stage in before or (kinds[item.stage] is Role.MEASURE and item.role is Role.WORK)
    )


def confirmed_by(item: Planned, params: Mapping[str, Any]) -> list[str]:
    """Return the globs that a cell confirms. Raises ExpressionError."""
    said = [item.step.confirms] if isinstance(item.step.confirms, str) else item.step.confirms or []
    return _rendered(item, said, params)


def expected_of(item: Planned, params: Mapping[str, Any]) -> list[str]:
    """Return the globs of the benchmarks that must appear. Raises ExpressionError."""
    return _rendered(item, item.step.expect, params)


def _rendered(item: Planned, globs: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    context = {"params": params, "matrix": item.cell}
    return [str(render(text, context)) if OPEN in text else text for text in globs]


def layouts_asked(planned: Planned, *, in_trees: bool) -> int | str:
    """Return the number of layouts of each side, ``auto`` or ``off``.

    ``in_trees``: two builds are compared. Tools with deterministic figures use no layouts, which do not affect them.
    """
    if planned.role is not Role.MEASURE or (planned.tool and planned.tool.deterministic):
        return OFF
    given = planned.step.layouts
    return given if given is not None else AUTO if in_trees else OFF


def uses_pair_seed(plan: Plan, planned: Planned) -> bool:
    """Return whether a step uses ``pair.seed``, so that its command or environment differs from pair to pair."""
    stage = plan.stage(planned.stage)
    environments = (plan.workflow.env, plan.workflow.defaults.env, stage.env)
    return any("pair.seed" in str(part) for part in (planned.step.model_dump(), *environments))


def draws_layouts(plan: Plan, *, in_trees: bool) -> bool:
    """Return whether a step of the plan may need fresh layouts; if so, builds must be recorded."""
    return any(layouts_asked(item, in_trees=in_trees) != OFF for item in plan.steps)


ATTEMPTS = 3
"""Default number of attempts of a proposer."""
DIMINISHING = 0.02
"""Default effect below which the stage stops, as a share."""


@dataclass(frozen=True)
class StagePlan:
    """Ids of the steps that run on each tree, by purpose, and the limits of the stage."""

    own: Stage
    candidates: tuple[Planned, ...]
    building: tuple[str, ...]
    measuring: tuple[str, ...]
    checking: tuple[str, ...]
    profiling: tuple[str, ...]
    later: frozenset[str]
    """Stages after this one, which run on the kept candidates."""
    goal: Goal
    diminishing: float
    attempts: int
    isolate: str
    """Whether candidates run in a sandbox: strict, auto or off."""


def _checking_steps(plan: Plan, later: frozenset[str]) -> tuple[str, ...]:
    """Return the ids of the checks that every candidate must pass, and of the work steps they need.

    Other work after the stage (a package, an upload) is done once, on the kept candidates.
    """
    correctness = {name for name in plan.workflow.stages if stage_role(plan.workflow, name) is Role.CHECK}
    stages = {*later, *correctness}
    able = [item for item in plan.steps if item.stage in stages and item.step.candidates]
    # A work step in a correctness stage is there for the checks.
    new_ids = {
        item.id for item in able if item.role is Role.CHECK or (item.role is Role.WORK and item.stage in correctness)
    }
    work = {item.id for item in able if item.role is Role.WORK}
    needed_ids: set[str] = set()
    while new_ids:
        needed_ids |= new_ids
        needed = {name for each in new_ids for name in (*plan.by_id[each].needs, *read_by(plan, plan.by_id[each]))}
        new_ids = (needed & work) - needed_ids
    return tuple(item.id for item in plan.steps if item.id in needed_ids)


def stage_plan(plan: Plan) -> StagePlan | None:
    """Return the optimize stage of a plan, or None if the workflow has no candidates."""
    candidates = tuple(item for item in plan.steps if item.role is Role.CANDIDATE)
    if not candidates:
        return None
    stage, names = plan.stage(CANDIDATES_STAGE), list(plan.workflow.stages)
    later = frozenset(names[names.index(CANDIDATES_STAGE) + 1 :])
    earlier = [item for item in plan.steps if item.stage not in later]
    accept = read_share(stage.accept) if stage.accept else ACCEPT
    return StagePlan(
        stage,
        candidates,
        building=building_steps(plan),
        # A step with `candidate` or `variants` compares its own two sides.
        measuring=tuple(
            item.id
            for item in earlier
            if item.role is Role.MEASURE and item.step.candidate is None and item.step.variants is None
        ),
        checking=_checking_steps(plan, later),
        profiling=tuple(item.id for item in earlier if item.role is Role.PROFILE),
        later=later,
        goal=goal_of(plan.criteria, stage.objective, stage.guard, accept),
        diminishing=read_share(stage.diminishing) if stage.diminishing else DIMINISHING,
        isolate=stage.isolate or ("strict" if any(item.step.propose for item in candidates) else "off"),
        attempts=stage.attempts or ATTEMPTS,
    )
