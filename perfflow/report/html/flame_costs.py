"""The profiles of one benchmark by one tool as costs of one operation, or as shares if that cost is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from perfflow.model.stacks import Stack, StackProfile
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.html.flame_tree import Costs, stacks_of
from perfflow.verdict.attribution import Changes, OwnCosts, Trend, function_changes

SHARE = "share"
"""The unit of costs if the cost of an operation is not known."""
BEFORE, AFTER = 0, 1
_DIMENSIONS = {"ns": (Dimension.TIME, 1e-9), "bytes": (Dimension.BYTES, 1.0)}


@dataclass(frozen=True)
class Function:
    """A function with its own costs and shares, before and after, and its trend."""

    name: str
    costs: Costs
    shares: Costs
    trend: Trend

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.costs[AFTER] - self.costs[BEFORE]

    @property
    def relative(self) -> float:
        """The difference as a share of the cost before; infinite if that is 0."""
        return self.difference / self.costs[BEFORE] if self.costs[BEFORE] else float("inf")


@dataclass(frozen=True)
class ProfileCosts:
    """Profiles of one step, benchmark and tool. ``sides``: before and after, of which one may be empty.

    ``stacks`` are the costs of both sides in ``unit``, which is the unit of an operation's cost or `SHARE`. ``counted``
    is the unit of the profile's counts.
    """

    step: str
    benchmark: str
    tool: str
    counted: str
    unit: str
    sides: tuple[Sequence[StackProfile], Sequence[StackProfile]]
    stacks: tuple[Mapping[Stack, float], Mapping[Stack, float]]
    functions: Sequence[Function]
    changes: Changes | None
    """The changes of functions; None if only one side was profiled."""
    is_threaded: bool

    @property
    def is_call_pairs(self) -> bool:
        """Whether only direct callers are known."""
        return any(profile.is_call_pairs for side in self.sides for profile in side)

    def text(self, cost: float) -> str:
        """Return a cost as text."""
        if self.unit == SHARE:
            return f"{cost:.1%}"
        dimension, base = _DIMENSIONS.get(self.unit, (Dimension.COUNT, 1.0))
        return format_quantity(cost * base, dimension)


def costs_of(profiles: Iterable[StackProfile]) -> Iterator[ProfileCosts]:
    """Join the profiles of each step, benchmark, tool and unit, in order; profiles without samples are ignored."""
    joined: dict[tuple[str, ...], tuple[list[StackProfile], list[StackProfile]]] = {}
    for profile in profiles:
        key = (profile.step, profile.benchmark, profile.tool, profile.unit, profile.cost_unit)
        if any(count for stacks in profile.threads.values() for count in stacks.values()):
            joined.setdefault(key, ([], []))[BEFORE if profile.side == "baseline" else AFTER].append(profile)
    for (step, benchmark, tool, counted, _), sides in joined.items():
        both = [profile for side in sides for profile in side]
        unit = _unit(both)
        is_threaded = max(len(profile.threads) for profile in both) > 1
        given = [[(stacks_of(profile, is_threaded), profile) for profile in side] for side in sides]
        before, after = ([_own(stacks, profile, unit) for stacks, profile in side] for side in given)
        changes = function_changes(before, after) if before and after else None
        yield ProfileCosts(
            step,
            benchmark,
            tool,
            counted,
            unit,
            sides,
            (_mean(given[BEFORE], unit), _mean(given[AFTER], unit)),
            _functions(before, after, changes),
            changes,
            is_threaded,
        )


def _unit(profiles: Sequence[StackProfile]) -> str:
    units = {profile.cost_unit for profile in profiles}
    is_known = all(profile.per_operation for profile in profiles)
    return units.pop() if is_known and len(units) == 1 else SHARE


def _scale(profile: StackProfile, whole: int, unit: str) -> float:
    """Return the cost of one count."""
    return (1.0 if unit == SHARE else profile.per_operation or 0.0) / whole


def _mean(side: Sequence[tuple[Counter[Stack], StackProfile]], unit: str) -> dict[Stack, float]:
    costs: dict[Stack, float] = {}
    for stacks, profile in side:
        scale = _scale(profile, stacks.total(), unit) / len(side)
        for stack, count in stacks.items():
            costs[stack] = costs.get(stack, 0.0) + count * scale
    return costs


def _own(stacks: Counter[Stack], profile: StackProfile, unit: str) -> OwnCosts:
    own: Counter[str] = Counter()
    for stack, count in stacks.items():
        own[stack[-1] if stack else "?"] += count
    return OwnCosts(own, _scale(profile, stacks.total(), unit), _sample(profile, stacks.values()))


def _sample(profile: StackProfile, counts: Iterable[int]) -> float:
    """Return the count of one sample, 0 if the tool counts exactly.

    For weighted samples it is the median, since most stacks were seen in few samples.
    """
    if profile.unit == "samples":
        return 1.0
    if profile.unit in ("bytes", "allocations") or profile.is_call_pairs:
        # A profiler of calls measures times and takes no samples. At 1 ns a sample, counting adds no noise.
        return 1.0 if profile.unit == "ns" else 0.0
    return float(median_low(count for count in counts if count))


def _functions(before: Sequence[OwnCosts], after: Sequence[OwnCosts], changes: Changes | None) -> list[Function]:
    """Return all functions, sorted by their larger share of the two sides."""
    found = changes.trends if changes else {}
    costs = tuple(_mean_costs(side) for side in (before, after))
    wholes = tuple(sum(side.values()) or 1.0 for side in costs)
    rows = []
    for name in {**costs[BEFORE], **costs[AFTER]}:
        old, new = (side.get(name, 0.0) for side in costs)
        shares = (old / wholes[BEFORE], new / wholes[AFTER])
        rows.append(Function(name, (old, new), shares, found.get(name, Trend.SAME)))
    return sorted(rows, key=lambda row: (-max(row.shares), row.name))


def _mean_costs(side: Sequence[OwnCosts]) -> dict[str, float]:
    names = {name for profile in side for name in profile.counts}
    return {name: sum(each.counts.get(name, 0) * each.scale for each in side) / len(side) for name in sorted(names)}
