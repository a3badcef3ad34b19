"""Cost of each function on both sides, from one or more profiler calls per side, as plain data for a step's event.

``counted`` profilers give the same counts every time. For ``sampled`` and ``timed`` ones, each function's share of its
side is stored with its variance, which covers the sampling noise and the differences between calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfflow.execute.prepare import Ready
from perfflow.model.readings import Cost, Parsed, Side
from perfflow.model.targets import matches
from perfflow.session.attribution.function_owner import owner
from perfflow.session.evidence import sources_of
from perfflow.session.session import RunSession
from perfflow.session.source_files import SourceFiles
from perfflow.store.run_facts import BenchmarkCosts, FunctionCost, SideCost
from perfflow.tools.adapter import Adapter, ProfilingMethod

KEPT = 200
"""Number of functions whose costs are stored, the largest first. The totals include the others."""

_Place = tuple[str, str]


@dataclass
class _Counts:
    """Costs of the functions of one side in one metric, call by call."""

    calls: list[dict[_Place, float]] = field(default_factory=list)
    lines: dict[_Place, int] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(sum(call.values()) for call in self.calls)

    def of(self, place: _Place) -> float:
        return sum(call.get(place, 0.0) for call in self.calls)

    def share(self, place: _Place, kind: str) -> tuple[float, float | None]:
        """Return the share of a function and its variance, None if there are too few calls to estimate it."""
        total, count = self.total, self.of(place)
        share = count / total if total else 0.0
        spread = _jackknife([(call.get(place, 0.0), sum(call.values())) for call in self.calls])
        if kind != "sampled":
            return share, spread
        # A function without samples may have been missed, so assume one sample.
        likely = min(max(share, 1 / total), 1 - 1 / total) if total > 1 else 0.5
        return share, max(likely * (1 - likely) / max(total, 1), spread or 0.0)


def _jackknife(calls: Sequence[tuple[float, float]]) -> float | None:
    """Return the jackknife variance of a ratio of sums over the calls. Source: Efron 1982, chapter 2."""
    if len(calls) < 3:
        return None
    count, total = sum(part for part, _ in calls), sum(whole for _, whole in calls)
    left = [(count - part) / (total - whole) if total > whole else 0.0 for part, whole in calls]
    mean = sum(left) / len(left)
    return (len(left) - 1) / len(left) * sum((value - mean) ** 2 for value in left)


class FunctionCosts:
    """Collects the function costs that one profiler reports for one benchmark."""

    def __init__(
        self, session: RunSession, benchmark: str, tool: Adapter | None, ops: int | None = None, note: str = ""
    ) -> None:
        """``ops``: operations of one call; ``note``: why a better profiler was not used, '' if this is the best."""
        self._session, self._benchmark, self.ops, self._note = session, benchmark, ops, note
        self._tool = tool.name if tool else "run"
        self._kind = _kind(tool)
        self._found: dict[str, dict[Side, _Counts]] = {}
        self._sources: dict[Side, SourceFiles] = {}

    def add(self, prepared: Ready, parsed: Parsed) -> None:
        """Add the costs that one call on one side found."""
        sources = self._sources.setdefault(prepared.side, sources_of(self._session, prepared))
        by_metric: dict[str, list[Cost]] = {}
        for cost in parsed.costs:
            by_metric.setdefault(cost.metric, []).append(cost)
        for metric, costs in by_metric.items():
            counts = self._found.setdefault(metric, {side: _Counts() for side in Side})[prepared.side]
            call: dict[_Place, float] = {}
            for cost in costs:
                place = (cost.function, sources.from_root(cost.file))
                call[place] = call.get(place, 0.0) + cost.count
                counts.lines.setdefault(place, cost.line)
            counts.calls.append(call)

    def samples(self, side: Side) -> float:
        """Return the total count of a side so far, of the metric with the largest total."""
        return max((found[side].total for found in self._found.values()), default=0.0)

    def both_sides(self) -> tuple[BenchmarkCosts, ...]:
        """Return the costs in each metric that both sides have."""
        both = {metric: found for metric, found in self._found.items() if all(found[side].calls for side in Side)}
        return tuple(self._entry(metric, found) for metric, found in both.items())

    def _entry(self, metric: str, found: Mapping[Side, _Counts]) -> BenchmarkCosts:
        return BenchmarkCosts(
            benchmark=self._benchmark,
            metric=metric,
            tool=self._tool,
            kind=self._kind,
            ops=self.ops,
            note=self._note,
            calls={side: len(found[side].calls) for side in Side},
            totals={side: found[side].total for side in Side},
            functions=tuple(self._functions(found)),
        )

    def _functions(self, found: Mapping[Side, _Counts]) -> Iterator[FunctionCost]:
        pairs = _paired(found)

        def size(pair: tuple[_Place | None, _Place | None]) -> float:
            return max(found[side].share(place, "")[0] for side, place in zip(Side, pair, strict=True) if place)

        root = self._session.tree_context_of(Side.CANDIDATE).root
        for pair in sorted(pairs, key=lambda pair: (-size(pair), str(pair)))[:KEPT]:
            name, file = shown = pair[1] or pair[0] or ("", "")
            line = found[Side.CANDIDATE if pair[1] else Side.BASELINE].lines[shown]
            sides = []
            for side, place in zip(Side, pair, strict=True):
                count = found[side].of(place) if place else 0.0
                sides.append(SideCost(count, *found[side].share(place or shown, self._kind)))
            region = region_of(name, self._session.context.plan.workflow.regions)
            yield FunctionCost(name, file, line, owner(root, name, file), region, *sides)


def region_of(function: str, regions: Mapping[str, str]) -> str:
    """Return the region that names the function, else the first one whose glob matches it, else ''.

    The function is known with and without its parameters. Unlike in names of benchmarks, ``*`` also matches ``/``.
    """
    names = (function, function.partition("(")[0])
    exact = next((region for region, glob in regions.items() if glob in names), "")
    globs = {region: glob.replace("*", "**") for region, glob in regions.items()}
    return exact or next((region for region, glob in globs.items() if any(matches(glob, name) for name in names)), "")


def _kind(tool: Adapter | None) -> str:
    if tool and tool.deterministic:
        return "counted"
    return "sampled" if tool and tool.profiler and tool.profiler.method is ProfilingMethod.SAMPLES else "timed"


def _paired(found: Mapping[Side, _Counts]) -> list[tuple[_Place | None, _Place | None]]:
    """Pair the functions of both sides by name and file, or by name alone if a function moved to another file."""
    before, after = ({place for call in found[side].calls for place in call} for side in Side)
    pairs: list[tuple[_Place | None, _Place | None]] = [(place, place) for place in before & after]
    gone, new = before - after, after - before
    for place in sorted(new):
        moved = [other for other in gone if other[0] == place[0]]
        alone = len(moved) == 1 and sum(other[0] == place[0] for other in new) == 1
        pairs.append((moved[0] if alone else None, place))
        gone -= set(moved if alone else ())
    return [*pairs, *((place, None) for place in gone)]
