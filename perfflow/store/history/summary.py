"""What the history stores of a run: its values, the durations of its steps, and suspicions.

- ``RunSummary`` has a value with its interval per benchmark, metric and state of the code.
- ``machine_differences`` compares the machines of two sets of samples by their recorded facts.
- ``StepTime`` has the duration of a step. ``of_kind`` reads those of the newest runs of a kind.
- ``StoredSuspicion`` is a suspicion about the newest points of a series, and its outcome. It is stored so that it is
  reported only once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from perfflow.machine.facts import IDENTITY
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.model.result import NodeResult, Result
from perfflow.model.tree_facts import TreeFacts, tree_of
from perfflow.store.history.connections import Connection

_OF_CODE = ("", "working tree", "revision", "folder")
"""Kinds of trees that are the code of a revision; accepted candidates and the sides of stored results are not."""


@dataclass(frozen=True)
class MeasuredState:
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
    states: tuple[MeasuredState, ...] = ()
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


def _states(result: Result) -> Iterator[MeasuredState]:
    trees = {side: tree_of(result.trees, side) for side in Side}
    for side, tree in trees.items():
        # Without a tree of its own, the candidate is another setting or command.
        if tree.kind in _OF_CODE and (tree.kind or side is Side.BASELINE):
            yield _state(side, tree)


def _state(side: Side, tree: TreeFacts) -> MeasuredState:
    return MeasuredState(side.value, tree.revision or "", tree.branch or "", bool(tree.dirty or tree.untracked))


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


_FOREIGN = {"cpu": "cpu", "cpus": "cores", "os": "system", "arch": "architecture", "kernel": "kernel_series"}
"""Facts in other tools' files and their names in perfflow, without clock rates (they vary) and versions."""
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}
_SHOWN = ("cpu", "cores", "memory_gib", "system", "architecture")


@dataclass(frozen=True)
class FactDifference:
    """A fact that differs, with both values as text."""

    fact: str
    first: str
    second: str


def identity_facts(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a machine, by perfflow's names, whatever tool wrote them."""
    if "identity" in machine:
        return {name: machine[name] for name in IDENTITY if machine.get(name) is not None}
    found = {ours: machine[theirs] for theirs, ours in _FOREIGN.items() if theirs in machine}
    if "kernel_series" in found:
        found["kernel_series"] = ".".join(str(found["kernel_series"]).split(".")[:2])
    return found


def machine_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[FactDifference]:
    """Return the facts known of both machines that differ; none if they are the same or too little is known."""
    facts = identity_facts(first), identity_facts(second)
    found = [
        FactDifference(name, _text(facts[0][name]), _text(facts[1][name]))
        for name in IDENTITY
        if name in facts[0] and name in facts[1] and _comparable(facts[0][name]) != _comparable(facts[1][name])
    ]
    if not found and certain_facts(first, second) and first["identity"] != second["identity"]:
        return [FactDifference("identity", _text(first["identity"]), _text(second["identity"]))]
    return found


def certain_facts(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether both have enough facts to conclude that they are the same machine."""
    return "identity" in first and "identity" in second


def shown(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts by which a reader recognizes a machine."""
    facts = identity_facts(machine)
    return {name: _text(facts[name]) for name in _SHOWN if name in facts}


def described_machine(machine: Mapping[str, Any]) -> str:
    """Return these facts in one line; '' if none is known."""
    units = {"cores": "{} cores", "memory_gib": "{} GiB"}
    return ", ".join(units.get(name, "{}").format(value) for name, value in shown(machine).items())


def _comparable(value: Any) -> str:
    text = " ".join(_text(value).split()).casefold()
    return _SAME.get(text, text)


def _text(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class RunKind:
    """The properties that two runs must share for one to predict the duration of the other.

    ``in_trees``: base and head are compared. ``budget``: seconds for the whole command, None without a limit.
    ``any_budget``: the budget may differ, which changes how long measuring steps take.
    """

    workflow: str
    params: Mapping[str, Any]
    machine: str
    in_trees: bool = False
    budget: float | None = None
    any_budget: bool = False


def keep_step_times(connection: Connection, run: int, steps: Sequence[StepTime]) -> None:
    """Store the steps of a run."""
    values = [
        {"run": run, "id": item.id, "seconds": item.seconds, "benchmarks": json.dumps(item.benchmarks)}
        for item in steps
    ]
    if values:
        connection.many(
            "INSERT INTO step (run, id, seconds, benchmarks) VALUES (:run, :id, :seconds, :benchmarks)", values
        )


def of_kind(connection: Connection, kind: RunKind, newest: int) -> dict[str, list[StepTime]]:
    """Return the steps of the newest runs of a kind that have any, by the name of the run, the newest first."""
    values = {
        "workflow": kind.workflow,
        "params": params_text(kind.params),
        "machine": kind.machine,
        "in_trees": int(kind.in_trees),
        # -1 stands for no budget, because SQL comparisons with NULL are never true.
        "budget": -1.0 if kind.budget is None else kind.budget,
        "any": int(kind.any_budget),
        "newest": newest,
    }
    runs = connection.rows(
        "SELECT run.id, run.name FROM run JOIN machine ON machine.id = run.machine WHERE run.workflow = :workflow "
        "AND run.params = :params AND machine.identity = :machine AND run.in_trees = :in_trees "
        "AND (:any = 1 OR COALESCE(run.budget, -1) = :budget) AND EXISTS (SELECT 1 FROM step WHERE step.run = run.id) "
        "ORDER BY run.name DESC LIMIT :newest",
        values,
    )
    return {str(name): _of_run(connection, int(run)) for run, name in runs}


def _of_run(connection: Connection, run: int) -> list[StepTime]:
    rows = connection.rows("SELECT id, seconds, benchmarks FROM step WHERE run = :run", {"run": run})
    return [StepTime(name, seconds, tuple(json.loads(benchmarks))) for name, seconds, benchmarks in rows]


OPEN, CONFIRMED, WITHDRAWN = "open", "confirmed", "withdrawn"


@dataclass(frozen=True)
class StoredSuspicion:
    """A suspicion, identified by the runs of its points, which do not change when other points are added.

    ``first`` is the run of the first point of the new level, ``since`` that of the first point of the old level. Each
    has its revision as well, because a run may have measured two. ``before``, ``size`` and ``z`` are as in
    ``stats.change_points``. ``told`` is when it was first reported (RFC 3339). ``state`` is open, confirmed or
    withdrawn, and ``why`` is the reason. ``run`` is the run that measured both revisions in pairs, '' without one.
    """

    series: int
    first: str
    first_revision: str
    since: str
    since_revision: str
    before: float
    size: float
    z: float
    told: str
    state: str = OPEN
    why: str = ""
    run: str = ""


_NAMES = tuple(about.name for about in fields(StoredSuspicion))
_COLUMNS = ", ".join(_NAMES)


def suspicion_of_series(connection: Connection, series: int) -> list[StoredSuspicion]:
    """Return all suspicions of a series, in the order in which they were reported."""
    query = f"SELECT {_COLUMNS} FROM suspicion WHERE series = :series ORDER BY told, first"  # noqa: S608 (constants)
    return [StoredSuspicion(*row) for row in connection.rows(query, {"series": series})]


def keep_suspicions(connection: Connection, suspicions: Sequence[StoredSuspicion]) -> None:
    """Store new suspicions, and update the state of known ones."""
    values: list[dict[str, Any]] = [{name: getattr(item, name) for name in _NAMES} for item in suspicions]
    if not values:
        return
    places = ", ".join(f":{name}" for name in _NAMES)
    text = (
        f"INSERT INTO suspicion ({_COLUMNS}) VALUES ({places}) "  # noqa: S608 (constants)
        "ON CONFLICT (series, first, first_revision) DO UPDATE SET state = excluded.state, why = excluded.why, "
        "run = excluded.run"
    )
    with connection.writing():
        connection.many(text, values)
