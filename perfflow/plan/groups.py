"""Divide a plan into groups of steps; each group runs in one job on one machine.

Both sides of a benchmark and the steps that build, profile and check it stay together, so that figures from different
machines are never compared. Benchmarks that share no steps may run on different machines. ``place_of`` renders
``runs-on`` of a step for each cell: the machine to measure on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from perfflow.model.errors import UserError
from perfflow.model.targets import matches
from perfflow.plan.cells_of_one import scaling_of
from perfflow.plan.plan import EVERY, Plan, Planned, profiles_several
from perfflow.tools.adapter import Role
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import RunsOn
from perfflow.workflow.roles import names_its_own_benchmarks

_GOES_ALONG = (Role.WORK, Role.CANDIDATE, Role.COMPARE)
"""Roles whose steps run on the machine of the measuring steps."""


@dataclass(frozen=True)
class NodeRequirement:
    """Requirements for a machine: its ``labels``, its GPUs, or its name. ``minutes``: None if not set.

    ``exclusive``: no other job runs on it at the same time.
    """

    labels: tuple[str, ...] = ()
    gpus: int = 0
    gpu_type: str = ""
    exclusive: bool = True
    minutes: int | None = None
    node: str = ""

    @property
    def shown(self) -> str:
        """A short description of the place; '' for any machine."""
        gpus = f"{self.gpus} {self.gpu_type or 'GPU'}{'' if self.gpu_type or self.gpus == 1 else 's'}"
        return ", ".join([*self.labels, *([gpus] if self.gpus else []), *([f"node {self.node}"] if self.node else [])])


ANYWHERE = NodeRequirement()


def place_of(item: Planned, plan: Plan) -> NodeRequirement:
    """Return the place of a cell, from the step or the defaults of the workflow, else ANYWHERE.

    Raises ExpressionError: only ``params`` and ``matrix`` are known before the run.
    """
    asked = item.step.runs_on or (None if item.role in _GOES_ALONG else plan.workflow.defaults.runs_on)
    return _rendered(asked, {"params": plan.params, "matrix": item.cell}) if asked else ANYWHERE


def _rendered(asked: RunsOn, context: Mapping[str, Any]) -> NodeRequirement:
    texts = [asked.labels] if isinstance(asked.labels, str) else asked.labels
    return NodeRequirement(
        labels=tuple(text for text in (str(render(text, context)).strip() for text in texts) if text),
        gpus=_number(asked.gpus, context, "gpus") or 0,
        gpu_type=str(render(asked.gpu_type, context)).strip(),
        exclusive=asked.exclusive,
        minutes=_number(asked.minutes, context, "minutes"),
        node=str(render(asked.node, context)).strip(),
    )


def _number(value: int | str | None, context: Mapping[str, Any], key: str) -> int | None:
    found = render(value, context) if isinstance(value, str) else value
    if found is None or (isinstance(found, int) and not isinstance(found, bool) and found >= 0):
        return found
    try:
        return int(str(found))
    except ValueError:
        message = f"`runs-on`: `{key}` must be a whole number, not {found!r}"
        raise ExpressionError(message, hint="write a whole number of 0 or more") from None


def check_runs_on(draft: Draft, plan: Plan) -> None:
    """Report places that cannot be rendered before the run, and steps that cannot have a place."""
    for item in plan.steps:
        loc = (*draft.steps[item.step.id], "runs-on")
        if item.step.runs_on and item.role in _GOES_ALONG:
            if loc not in draft.wrong:
                hint = "set it in the steps that measure, or under `defaults`"
                message = f"step `{item.step.id}` does not measure, so it cannot have `runs-on`"
                draft.complain(loc, message, hint, key=True)
            continue
        is_of_step = item.step.runs_on is not None
        try:
            place_of(item, plan)
        except ExpressionError as error:
            where = loc if is_of_step else ("defaults", "runs-on")
            if not any(place[: len(where)] == where for place in draft.wrong):
                hint = error.hint or "`runs-on` can use only `params` and `matrix`"
                draft.complain(where, str(error), hint, find=error.near)


LEAST, MOST = 600.0, 3600.0
"""Shortest and longest group (s). A shorter one is dominated by job start and builds; a longer one risks too much."""
UNKNOWN = 120.0
"""Expected duration of an unknown step (s)."""
_ALONG = (Role.WORK, Role.MACHINE)
"""Roles of the steps that are part of each group: steps that build, and steps that measure the peaks of a machine."""
_WHOLE = (Role.CANDIDATE, Role.COMPARE)
"""Roles whose steps need all earlier measurements."""


@dataclass(frozen=True)
class Benchmarks:
    """The benchmarks of a suite to measure: those in ``named``, or if that is empty all except those in ``but``.

    With ``turns``, every ``turns``-th of the sorted names of all these, from the one with the index ``first`` on.
    """

    named: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    first: int = 0
    turns: int = 1

    def among(self, names: Iterable[str]) -> list[str]:
        """Return those of the names of a suite, sorted."""
        return sorted(name for name in names if (name in self.named if self.named else name not in self.but))[
            self.first :: self.turns
        ]


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of a run (``--shard 2/4``), by its ``number`` from 1 on."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shard_of(text: str) -> Shard:
    """Read ``2/4``. Raises UserError for a part that does not exist."""
    first, slash, last = text.partition("/")
    if not (slash and first.isascii() and last.isascii() and first.isdigit() and last.isdigit()) or len(text) > 9:
        raise UserError.of(
            f"--shard {text}: not a part of a run", "write the part and the number of parts: --shard 2/4"
        )
    shard = Shard(int(first), int(last))
    if not 1 <= shard.number <= shard.count:
        count = max(1, shard.count)
        raise UserError.of(f"--shard {text}: there is no such part", f"the parts are 1/{count} to {count}/{count}")
    return shard


@dataclass(frozen=True)
class Group:
    """Steps that one job runs on one machine, in the order of the plan; ``seconds`` is the expected duration.

    ``parts``: for suites that are divided among groups, the benchmarks of this group by step.
    """

    id: str
    steps: tuple[str, ...]
    place: NodeRequirement
    seconds: float
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)


@dataclass(frozen=True)
class Durations:
    """Expected durations in s: by step, and for benchmarks of suites by step and name."""

    steps: Mapping[str, float] = field(default_factory=dict)
    benchmarks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, step: str) -> float:
        """Return the expected duration of one step (s)."""
        return self.steps.get(step, UNKNOWN)


@dataclass(frozen=True)
class Lengths:
    """Limits of the length of groups (s), and the number of machines of a place that can work in parallel."""

    least: float = LEAST
    most: float = MOST
    machines: Callable[[NodeRequirement], int] = lambda _place: 1

    def number(self, whole: float, place: NodeRequirement) -> int:
        """Return the number of groups for ``whole`` seconds of work at a place."""
        return max(math.ceil(whole / self.most), min(self.machines(place), int(whole // self.least)), 1)


class ConflictError(Exception):
    """Steps of one group require different places; the message names them."""


def groups(
    plan: Plan, selected: Collection[str], known: Durations, lengths: Lengths, *, in_trees: bool = False
) -> list[Group]:
    """Divide the selected steps into groups, in the order of the plan. Raises ConflictError and ExpressionError.

    ``in_trees``: base and head are compared, so only benchmarks that regressed are profiled.
    """
    chosen = [item for item in plan.steps if item.id in selected]
    along = [item for item in chosen if item.role in _ALONG or (in_trees and _follows(item))]
    rest = [item for item in chosen if item not in along]
    once = [] if _is_whole(rest) else [item for item in rest if _is_of_no_benchmark(item)]
    shares: dict[NodeRequirement, list[_Share]] = defaultdict(list)
    for items in [rest] if _is_whole(rest) else _joined(plan, [item for item in rest if item not in once]):
        shares[place_of_all(plan, items)] += _shares(items, known, lengths.least)
    placed = [(place, part) for place, members in shares.items() for part in _cut(members, lengths, place)]
    for item in once:
        # A check of the whole program runs once, in the first group that has a suitable place.
        needed = place_of(item, plan)
        members = next((part for place, part in placed if needed in (ANYWHERE, place)), None)
        if members is None:
            placed.append((needed, members := []))
        members.append(_Share((item.id,), known.of(item.id)))
    if not placed and along:
        placed = [(ANYWHERE, [])]
    spent = sum(known.of(item.id) for item in along)
    order = {item.id: number for number, item in enumerate(chosen)}
    carried = [item.id for item in along]
    return _with_unknown(
        _group(f"g{number}", order, [_Share(tuple(carried), spent), *members], place)
        for number, (place, members) in enumerate(placed, 1)
    )


def sharded(plan: Plan, selected: Collection[str], shard: Shard, *, in_trees: bool) -> Group:
    """Return the part of the selected steps that a shard runs; all shards together run each benchmark once.

    What belongs together stays together, as in ``groups``. The benchmarks of a suite that can run each alone are
    divided by their names; everything else is divided by the order of the plan. Raises UserError for steps that try
    candidates, because they need all measurements.
    """
    chosen = [item for item in plan.steps if item.id in selected]
    if in_trees:
        # A gate does not run them.
        chosen = [item for item in chosen if item.role not in _WHOLE]
    elif _is_whole(chosen):
        text = "a workflow that tries candidates cannot be divided into shards: they need all measurements"
        raise UserError.of(text, "leave out --shard, or select the measuring steps with --stage or --only")
    along = [item for item in chosen if item.role in _ALONG or (in_trees and _follows(item))]
    once = [item for item in chosen if item not in along and _is_of_no_benchmark(item)]
    ids, parts = [item.id for item in along], {}
    joined = _joined(plan, [item for item in chosen if item not in along and item not in once])
    for number, items in enumerate([*joined, *([item] for item in once)]):
        # Each suite begins with another shard, so that many small suites are divided evenly, too.
        first = (shard.number - 1 - number) % shard.count
        suite = _suite_of(items)
        if suite:
            parts[suite.id] = Benchmarks(first=first, turns=shard.count)
        if suite or not first:
            ids += [item.id for item in items]
    chosen_ids = set(ids)
    return Group(str(shard), tuple(item.id for item in chosen if item.id in chosen_ids), ANYWHERE, 0.0, parts)


@dataclass(frozen=True)
class _Share:
    """Steps that stay together, or a part of them: one ``benchmark`` of the suite that the step ``suite`` runs."""

    steps: tuple[str, ...]
    seconds: float
    suite: str = ""
    benchmark: str = ""


def _group(name: str, order: Mapping[str, int], shares: Sequence[_Share], place: NodeRequirement) -> Group:
    wanted = {step for share in shares for step in share.steps}
    parts: dict[str, list[str]] = defaultdict(list)
    for share in shares:
        if share.suite:
            parts[share.suite].append(share.benchmark)
    named = {suite: Benchmarks(tuple(names)) for suite, names in parts.items()}
    steps = tuple(sorted(wanted, key=order.__getitem__))
    return Group(name, steps, place, sum(share.seconds for share in shares), named)


def _with_unknown(divided: Iterable[Group]) -> list[Group]:
    """Assign still unknown benchmarks of each divided suite to the last group that has a part of the suite."""
    shared = list(divided)
    having: dict[str, list[int]] = defaultdict(list)
    for number, group in enumerate(shared):
        for suite in group.parts:
            having[suite].append(number)
    for suite, numbers in having.items():
        elsewhere = tuple(name for number in numbers[:-1] for name in shared[number].parts[suite].named)
        last = shared[numbers[-1]]
        shared[numbers[-1]] = replace(last, parts={**last.parts, suite: Benchmarks((), elsewhere)})
    return shared


def _is_whole(items: Sequence[Planned]) -> bool:
    return any(item.role in _WHOLE for item in items)


def _follows(item: Planned) -> bool:
    """Return whether a step handles any benchmark measured before it, so that each group can run its part."""
    if item.role is Role.PROFILE:
        return any(letter in item.benchmark for letter in "*?")
    return profiles_several(item) and item.benchmark in ("*", EVERY)


def _is_of_no_benchmark(item: Planned) -> bool:
    return item.role is Role.CHECK and not item.benchmark and not item.needs and not item.watches


def _joined(plan: Plan, items: Sequence[Planned]) -> list[list[Planned]]:
    """Group steps that handle the same benchmark, or of which one needs the other."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(item.id for item in items)
    needed = [(item.id, other) for item in items for other in (*item.needs, item.watches)]
    graph.add_edges_from((one, other) for one, other in needed if other in graph)
    graph.add_edges_from(_about_the_same(plan, items))
    parts = {name: number for number, names in enumerate(nx.connected_components(graph)) for name in names}
    by_part: dict[int, list[Planned]] = defaultdict(list)
    for item in items:
        by_part[parts[item.id]].append(item)
    return list(by_part.values())


def _about_the_same(plan: Plan, items: Sequence[Planned]) -> Iterator[tuple[str, str]]:
    """Yield pairs of steps that share a benchmark, as far as this is known before the run."""
    suites = [item for item in items if item.role is Role.MEASURE and names_its_own_benchmarks(item.step)]
    named = [item for item in items if item not in suites and item.benchmark]
    first: dict[str, str] = {}
    for item in [*named, *suites]:
        # With `scaling`, all sizes are one benchmark.
        size = scaling_of(item, plan.params)
        for name in filter(None, (item.benchmark if item in named else "", size.of if size else "")):
            yield item.id, first.setdefault(name, item.id)
    for item in named:
        about = [other.id for other in named if other is not item and matches(item.benchmark, other.benchmark)]
        # A benchmark that no step measures by this name may belong to any suite.
        yield from ((item.id, other) for other in about)
        if item.role is not Role.MEASURE and (not about or any(letter in item.benchmark for letter in "*?")):
            yield from ((item.id, suite.id) for suite in suites)


def place_of_all(plan: Plan, items: Sequence[Planned]) -> NodeRequirement:
    """Return the place of steps that belong together. Raises ConflictError if they require different places."""
    places = [(item.id, place_of(item, plan)) for item in items]
    places = [(step, place) for step, place in places if place != ANYWHERE]
    if not places:
        return ANYWHERE
    one, first = places[0]
    for other, place in places[1:]:
        if place != first:
            text = f"`{one}` and `{other}` handle the same benchmark, but run on {first.shown} and {place.shown}"
            raise ConflictError(f"{text}: set the same `runs-on` in both")
    return first


def _shares(items: Sequence[Planned], known: Durations, least: float) -> list[_Share]:
    """Return the shares to distribute: the steps as a whole, or each benchmark of a long suite with its profilers."""
    steps, seconds = tuple(item.id for item in items), sum(known.of(item.id) for item in items)
    suite = _suite_of(items)
    if suite and seconds >= 2 * least:
        names = known.benchmarks.get(suite.id, {})
        whole = sum(names.values()) or 1.0
        if len(names) > 1:
            return [_Share(steps, seconds * own / whole, suite.id, name) for name, own in names.items()]
    return [_Share(steps, seconds)]


def _suite_of(items: Sequence[Planned]) -> Planned | None:
    """Return the step whose benchmarks can be divided among groups with these steps, None if there is none."""
    measuring = [item for item in items if item.role is Role.MEASURE]
    others = [item for item in items if item.role not in (Role.MEASURE, Role.PROFILE)]
    return measuring[0] if len(measuring) == 1 and not others and _can_be_shared_out(measuring[0]) else None


def _can_be_shared_out(item: Planned) -> bool:
    """Return whether the benchmarks of a step can be measured separately: each runs alone, and none needs another."""
    step = item.step
    if step.variants or step.scaling or step.axis or step.runs is not None:
        return False
    several = names_its_own_benchmarks(step) or "*" in item.benchmark
    return item.tool is not None and item.tool.can_list and several


def _cut(shares: Sequence[_Share], lengths: Lengths, place: NodeRequirement) -> list[list[_Share]]:
    """Divide shares into groups of about equal duration, in their order."""
    whole = sum(share.seconds for share in shares)
    number = min(lengths.number(whole, place), len(shares))
    cut: list[list[_Share]] = []
    passed = 0.0
    for left, share in zip(range(len(shares), 0, -1), shares, strict=True):
        # Leave at least one share for each remaining group.
        if not cut or passed >= whole * len(cut) / number or left <= number - len(cut):
            cut.append([])
        cut[-1].append(share)
        passed += share.seconds
    return cut
