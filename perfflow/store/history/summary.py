"""The summary of a run for the history: a value with its interval per benchmark, metric and state of the code."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.model.result import Result
from perfflow.model.result_nodes import NodeResult
from perfflow.model.tree_facts import TreeFacts, tree_of
from perfflow.store.history.machines import identity_facts

_OF_CODE = ("", "working tree", "revision", "folder")
"""Kinds of trees that are the code of a revision; accepted candidates and the sides of stored results are not."""


@dataclass(frozen=True)
class State:
    """The code that one side of a run measured. ``revision`` and ``branch`` are '' if unknown.

    ``dirty``: it had uncommitted changes. ``committed`` is the time of the commit (RFC 3339), '' if unknown.
    """

    side: str
    revision: str = ""
    branch: str = ""
    dirty: bool = False
    committed: str = ""


@dataclass(frozen=True)
class Point:
    """One value of a side, in base units: the estimate, its 95% interval and the number of samples.

    ``low`` and ``high`` are None if there are too few samples for an interval. ``decision`` is the run's decision on
    the candidate, '' for a baseline.
    """

    side: str
    benchmark: str
    metric: str
    statistic: str
    unit: str
    better: str
    value: float
    low: float | None
    high: float | None
    n: int
    decision: str = ""


@dataclass(frozen=True)
class StepTime:
    """The duration of a step in s, without waiting for the machine, None if it did not finish; and its benchmarks."""

    id: str
    seconds: float | None
    benchmarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSummary:
    """One run, or one file of another tool. ``id`` is unique, so that adding it twice changes nothing.

    ``started`` is RFC 3339, '' if unknown. ``machine`` is the identity of the machine and ``facts`` its facts. Values
    of different identities are never compared. ``params`` are the workflow's parameters, which distinguish values of
    the same name. ``noise`` is the noise class, '' if unknown. ``steps`` predict the duration of a later run.
    ``in_trees``: base and head were compared. ``budget``: seconds for the whole command, None without a limit.
    """

    id: str
    tool: str
    version: str
    started: str
    machine: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    workflow: str = ""
    params: str = ""
    verdict: str = ""
    noise: str = ""
    states: tuple[State, ...] = ()
    points: tuple[Point, ...] = ()
    steps: tuple[StepTime, ...] = ()
    in_trees: bool = False
    budget: float | None = None


def summaries_of(result: Result) -> Iterator[RunSummary]:
    """Yield the summary of a perfflow run, or one per kind of machine if machines of several kinds measured it."""
    kinds: dict[str, list[NodeResult]] = {}
    for node in result.nodes:
        kinds.setdefault(node.identity, []).append(node)
    if not kinds:
        yield _summary_of(result)
    for identity, nodes in kinds.items():
        names = {node.name for node in nodes}
        rows = [row for row in result.benchmarks if row.node in names]
        summary = _summary_of(result.model_copy(update={"benchmarks": rows, "machine": nodes[0].machine}))
        yield summary if len(kinds) == 1 else replace(summary, id=f"{summary.id}/{identity}")


def _summary_of(result: Result) -> RunSummary:
    noise = result.machine.get("noise") or {}
    states = tuple(_states(result))
    return RunSummary(
        id=result.run.id,
        tool="perfflow",
        version=result.run.version,
        started=result.run.started,
        machine=str(result.machine.get("identity") or ""),
        facts=identity_facts(result.machine),
        workflow=result.run.workflow,
        params=params_text(result.run.params),
        verdict=result.verdict or "",
        noise=str(noise.get("class") or "") if isinstance(noise, Mapping) else "",
        states=states,
        points=tuple(_points(result, {state.side for state in states})),
        steps=tuple(_steps(result)),
        in_trees=result.run.command[1:2] == ["gate"],
        budget=result.run.budget,
    )


def _steps(result: Result) -> Iterator[StepTime]:
    measured: dict[str, set[str]] = defaultdict(set)
    for row in result.benchmarks:
        measured[row.step].add(row.name)
    seconds = {step.id: step.seconds for step in result.steps if step.status == "done"}
    for name in {**seconds, **measured}:
        yield StepTime(name, seconds.get(name), tuple(sorted(measured.get(name, ()))))


def params_text(params: Mapping[str, Any]) -> str:
    """Return the parameters of a workflow as they are stored in a series; '' without parameters."""
    return json.dumps(dict(params), sort_keys=True, default=str) if params else ""


def _states(result: Result) -> Iterator[State]:
    trees = {side: tree_of(result.trees, side) for side in Side}
    for side, tree in trees.items():
        # Without a tree of its own, the candidate is another setting or command.
        if tree.kind in _OF_CODE and (tree.kind or side is Side.BASELINE):
            yield _state(side, tree)


def _state(side: Side, tree: TreeFacts) -> State:
    return State(side.value, tree.revision or "", tree.branch or "", bool(tree.dirty or tree.untracked))


def _points(result: Result, sides: Collection[str]) -> Iterator[Point]:
    for row in result.benchmarks:
        for side, sample in ((Side.BASELINE, row.baseline), (Side.CANDIDATE, row.candidate)):
            if side.value not in sides or sample is None or sample.value is None:
                continue
            said = (row.decision or "") if side is Side.CANDIDATE else ""
            yield Point(
                *(side.value, row.name, row.metric, row.statistic, row.unit, row.better),
                *(sample.value, sample.low, sample.high, sample.n, said),
            )


def to_line(summary: RunSummary) -> str:
    """Return a summary as one line of JSON, to be sent later."""
    return json.dumps(to_json(summary), ensure_ascii=False, separators=(",", ":")) + "\n"


def from_line(line: str) -> RunSummary:
    """Read a line back. Raises ValueError, TypeError or LookupError if it is damaged."""
    return from_json(RunSummary, json.loads(line))
