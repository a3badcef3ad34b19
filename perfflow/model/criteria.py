"""Criteria of a run: targets, thresholds, accepted regressions, and the metrics that a workflow adds.

They are stored in result.json, so that an old run can be rejudged without measuring.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from perfflow.model.metrics import MEMORY, METRICS, Better, Metric
from perfflow.model.targets import Target, is_named, matches, parse_target, specificity
from perfflow.model.units import Dimension, UnitError, parse_as


@dataclass(frozen=True)
class Thresholds:
    """Relative changes: above ``concern`` warns, above ``action`` fails, below ``floor`` never counts as a change."""

    concern: float = 0.05
    action: float = 0.10
    floor: float = 0.02


THRESHOLD_KEYS = ("concern", "action", "floor")
MEMORY_KEYS = ("concern", "action")


@dataclass(frozen=True)
class MemoryThresholds:
    """Relative changes of memory: above ``concern`` warns, above ``action`` fails a gate."""

    concern: float = 0.05
    action: float = 0.10


@dataclass(frozen=True)
class OwnThresholds:
    """Thresholds of the benchmarks that a glob matches. What it does not set is as for all other benchmarks.

    ``shares`` has the keys concern, action and floor; ``memory`` concern and action, or is None if it is `off`.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] | None = field(default_factory=dict)


@dataclass(frozen=True)
class Accepted:
    """A regression up to ``change`` of the benchmarks that a glob matches, accepted until a date (YYYY-MM-DD).

    ``metric`` is '' if the workflow names none, which means the metric that decides about the benchmark. ``spent``: the
    base has this entry too, so it already includes the regression.
    """

    benchmark: str
    change: float
    why: str
    until: str
    metric: str = ""
    spent: bool = False

    def in_force(self, today: str) -> bool:
        """Return whether the entry is valid on a day (YYYY-MM-DD)."""
        return not self.spent and today <= self.until


@dataclass(frozen=True)
class Route:
    """A destination of the run if a condition on its facts holds."""

    condition: str
    to: str
    why: str = ""


@dataclass(frozen=True)
class Criteria:
    """All inputs of the verdict except the samples."""

    targets: tuple[Target, ...] = ()
    thresholds: Thresholds = Thresholds()
    per_glob: Mapping[str, OwnThresholds] = field(default_factory=dict)
    accepted: tuple[Accepted, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    """Routes of the workflow. They do not affect the verdict, but are stored with the criteria."""
    memory: MemoryThresholds | None = MemoryThresholds()
    """None if the workflow sets `off`."""
    ignore: tuple[str, ...] = ()
    """Globs of benchmarks that never decide."""
    exact: frozenset[str] = frozenset()
    """Globs that are spelled like the name of a benchmark, and so stand for this one only. Not stored."""

    def metric(self, name: str) -> Metric:
        """Return the metric called ``name``; an unknown one is a plain number that is only shown."""
        return self.metrics.get(name) or METRICS.get(name) or Metric(name, Dimension.COUNT, Better.NONE)

    def knowing(self, names: Iterable[str]) -> Criteria:
        """Return the criteria for benchmarks with these names, which globs that are spelled like one then stand for."""
        globs = {*self.per_glob, *self.ignore, *(item.benchmark for item in self.accepted)}
        exact = frozenset(glob for glob in globs.intersection(names) if "*" in glob or "?" in glob)
        return self if exact == self.exact else replace(self, exact=exact)

    def matches(self, glob: str, benchmark: str) -> bool:
        """Return whether a glob of these criteria stands for a benchmark."""
        return matches(glob, benchmark) and (glob not in self.exact or is_named(glob, benchmark))

    def ignores(self, benchmark: str) -> bool:
        """Return whether a benchmark never decides."""
        return any(self.matches(glob, benchmark) for glob in self.ignore)

    def memory_of(self, benchmark: str) -> MemoryThresholds | None:
        """Return the thresholds of a benchmark's memory; None if it is judged only where a target or guard names it."""
        found = self.memory
        for own in self._own_of(benchmark):
            if own.memory is None:
                found = None
            elif own.memory:
                found = replace(found or MemoryThresholds(), **own.memory)
        return found

    def thresholds_of(self, benchmark: str, metric: str = "") -> Thresholds:
        """Return the thresholds of a benchmark; a memory metric has its own concern and action."""
        found: dict[str, float] = {}
        for own in self._own_of(benchmark):
            found |= own.shares
        memory = self.memory_of(benchmark) if metric in MEMORY else None
        if memory:
            found |= {key: getattr(memory, key) for key in MEMORY_KEYS}
        return replace(self.thresholds, **found)

    def _own_of(self, benchmark: str) -> list[OwnThresholds]:
        """Return what the matching globs set, in the order in which each overrides those before it."""
        globs = [glob for glob in self.per_glob if self.matches(glob, benchmark)]
        return [self.per_glob[glob] for glob in sorted(globs, key=lambda glob: specificity(glob, benchmark))]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for result.json."""
        return {
            "targets": [
                {
                    "benchmark": target.benchmark,
                    "metric": target.metric.name,
                    "statistic": target.statistic,
                    "requirement": target.requirement.text,
                    "bounds": _bounds(target),
                }
                for target in self.targets
            ],
            "thresholds": {
                **{key: getattr(self.thresholds, key) for key in THRESHOLD_KEYS},
                "memory": self.memory and {key: getattr(self.memory, key) for key in MEMORY_KEYS},
                "for": {glob: _own_as_json(own) for glob, own in self.per_glob.items()},
            },
            "ignore": list(self.ignore),
            "accepted": [
                {about.name: getattr(item, about.name) for about in fields(Accepted)} for item in self.accepted
            ],
            "metrics": {
                name: {"dimension": metric.dimension.name, "better": metric.better.value, "exact": metric.exact}
                for name, metric in self.metrics.items()
            },
            "peaks": dict(self.peaks),
            "routes": [{"if": item.condition, "to": item.to, "why": item.why} for item in self.routes],
        }


def _own_as_json(own: OwnThresholds) -> dict[str, Any]:
    memory: dict[str, Any] = {} if own.memory == {} else {"memory": own.memory and dict(own.memory)}
    return {**own.shares, **memory}


def _bounds(target: Target) -> Any:
    """Return the source of the requirement: its text, or a ``{min, max}`` mapping."""
    text = target.requirement.text
    if text.startswith(("min ", "max ")):
        return dict(part.split(" ", 1) for part in text.split(", "))
    return text


def criteria_from_json(data: Mapping[str, Any]) -> Criteria:
    """Read the data of ``to_json``. Raises UnitError, LookupError, TypeError or ValueError if they are damaged."""
    metrics = {
        name: Metric(name, Dimension[item["dimension"]], Better(item["better"]), bool(item["exact"]))
        for name, item in data["metrics"].items()
    }
    targets = [
        parse_target(item["benchmark"], f"{item['metric']} {item['statistic']}", item["bounds"], metrics)
        for item in data["targets"]
    ]
    thresholds = data["thresholds"]
    memory = _shares(thresholds["memory"], MEMORY_KEYS)
    accepted = tuple(Accepted(**item) for item in data["accepted"])
    routes = tuple(Route(str(item["if"]), str(item["to"]), str(item["why"])) for item in data["routes"])
    return Criteria(
        targets=tuple(targets),
        thresholds=Thresholds(**(_shares(thresholds, THRESHOLD_KEYS) or {})),
        per_glob={
            glob: OwnThresholds(_shares(own, THRESHOLD_KEYS) or {}, _shares(own.get("memory", {}), MEMORY_KEYS))
            for glob, own in thresholds["for"].items()
        },
        accepted=accepted,
        metrics=metrics,
        peaks=data["peaks"],
        routes=routes,
        memory=None if memory is None else MemoryThresholds(**memory),
        ignore=tuple(map(str, data["ignore"])),
    )


def _shares(data: Mapping[str, Any] | None, keys: Collection[str]) -> dict[str, float] | None:
    return None if data is None else {key: _share(value) for key, value in data.items() if key in keys}


def _share(value: Any) -> float:
    share = float(value)
    if not math.isfinite(share) or share < 0:
        raise ValueError(f"a threshold of {share}")
    return share


@dataclass(frozen=True)
class OrderProblem:
    """Thresholds in the wrong order: the key to change, the message, and the hint."""

    key: str
    message: str
    hint: str


def order_problem(thresholds: Thresholds, given: Collection[str]) -> OrderProblem | None:
    """Return a problem if ``concern`` is above ``action``, so that it never applies; None if neither was ``given``."""
    if thresholds.concern <= thresholds.action:
        return None
    if "concern" in given:
        message = f"`concern` ({thresholds.concern:.3g}) is above `action` ({thresholds.action:.3g})"
        return OrderProblem("concern", message, "concern: 5%, action: 10%")
    if "action" in given:
        message = f"`action` ({thresholds.action:.3g}) is below `concern` ({thresholds.concern:.3g})"
        return OrderProblem("action", message, "also set `concern` to at most this value")
    return None


def read_threshold(key: str, text: str) -> float:
    """Read the share of a threshold; only the floor may be zero. Raises UnitError."""
    share = read_share(text)
    if share == 0 and key != "floor":
        hint = f"write a share such as `{key}: 0.5%`; with `floor: 0%` every proven change counts"
        raise UnitError(f"a `{key}` of {text} can never be proven to hold, even for identical programs", hint)
    return share


def read_share(text: str) -> float:
    """Read a share such as ``5%`` or ``0.05``, between 0 and 1000%. Raises UnitError."""
    share = parse_as(text, Dimension.RATIO).value
    if not 0 <= share <= 10:
        raise UnitError(f"{text!r} is out of range", "write a share such as 5%")
    if share >= 1 and "%" not in text:
        raise UnitError(f"{text!r} is {share:.0%}", f"write {text}%")
    return share
