"""What a run is judged by: targets, thresholds, accepted regressions, and the metrics a workflow adds.

Kept in result.json, so that an old run can be judged again without measuring.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from typing import Any

from perfflow.model.later import dataclass
from perfflow.model.metrics import MEMORY, METRICS, Better, Metric
from perfflow.model.rules import CURRENT, FIRST, RULES, Rules
from perfflow.model.targets import Target, matches, parse_target
from perfflow.model.units import Dimension, UnitError, parse_as


@dataclass(frozen=True)
class Thresholds:
    """Relative changes: over ``concern`` warns, over ``action`` fails, under ``floor`` is never called a change."""

    concern: float = 0.05
    action: float = 0.10
    floor: float = 0.02


THRESHOLD_KEYS = ("concern", "action", "floor")
MEMORY_KEYS = ("concern", "action")


@dataclass(frozen=True)
class MemoryThresholds:
    """Relative changes of memory: over ``concern`` warns, over ``action`` fails a gate."""

    concern: float = 0.05
    action: float = 0.10


@dataclass(frozen=True)
class Accepted:
    """A regression up to ``change`` of the benchmarks a glob matches, justified until a date (YYYY-MM-DD).

    ``metric`` is '' where the workflow names none: the one that decides about the benchmark is meant. ``spent``: the
    base has this entry, and so what it allows.
    """

    benchmark: str
    change: float
    why: str
    until: str
    metric: str = ""
    spent: bool = False

    def in_force(self, today: str) -> bool:
        """Whether it lets anything pass on a day (YYYY-MM-DD)."""
        return not self.spent and today <= self.until


@dataclass(frozen=True)
class Route:
    """Where a run goes if a condition over its facts holds."""

    condition: str
    to: str
    why: str = ""


@dataclass(frozen=True)
class Criteria:
    """Everything the verdict rests on besides the samples."""

    targets: tuple[Target, ...] = ()
    thresholds: Thresholds = Thresholds()
    per_glob: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    accepted: tuple[Accepted, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    """Of the workflow; they decide nothing, but go with what does."""
    rules: Rules = CURRENT
    memory: MemoryThresholds | None = MemoryThresholds()
    """None where the workflow says `off`."""

    def metric(self, name: str) -> Metric:
        """The metric called ``name``; an unknown one is a plain number that is only shown."""
        return self.metrics.get(name) or METRICS.get(name) or Metric(name, Dimension.COUNT, Better.NONE)

    @property
    def judges_memory(self) -> bool:
        """Whether memory is judged although no target and no guard names it."""
        return self.rules.memory and self.memory is not None

    def thresholds_of(self, benchmark: str, metric: str = "") -> Thresholds:
        """The thresholds of a benchmark; of several globs the one with the most literal letters wins, key by key.

        A metric of memory has its own concern and action, whatever the benchmark is.
        """
        found: dict[str, float] = {}
        globs = [glob for glob in self.per_glob if matches(glob, benchmark)]
        for glob in sorted(globs, key=lambda text: (len(text.replace("*", "").replace("?", "")), text)):
            found |= self.per_glob[glob]
        if self.memory and self.rules.memory and metric in MEMORY:
            found |= {key: getattr(self.memory, key) for key in MEMORY_KEYS}
        return replace(self.thresholds, **found)

    def to_json(self) -> dict[str, Any]:
        """Plain data for result.json."""
        return {
            "rules": self.rules.name,
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
            "thresholds": {key: getattr(self.thresholds, key) for key in THRESHOLD_KEYS} | dict(self.per_glob),
            "memory": self.memory and {key: getattr(self.memory, key) for key in MEMORY_KEYS},
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


def _bounds(target: Target) -> Any:
    """What the requirement was read from: its text, or the mapping of a ``{min, max}`` one."""
    text = target.requirement.text
    if text.startswith(("min ", "max ")):
        return dict(part.split(" ", 1) for part in text.split(", "))
    return text


def criteria_from_json(data: Mapping[str, Any]) -> Criteria:
    """Read what ``to_json`` wrote. Raises UnitError, LookupError, TypeError or ValueError when it is damaged."""
    metrics = {
        name: Metric(name, Dimension[item["dimension"]], Better(item["better"]), bool(item["exact"]))
        for name, item in data["metrics"].items()
    }
    targets = [
        parse_target(item["benchmark"], f"{item['metric']} {item['statistic']}", item["bounds"], metrics)
        for item in data["targets"]
    ]
    thresholds = data["thresholds"].items()
    plain = {key: _share(value) for key, value in thresholds if key in THRESHOLD_KEYS}
    globs = {
        glob: {key: _share(value) for key, value in own.items() if key in THRESHOLD_KEYS}
        for glob, own in thresholds
        if glob not in THRESHOLD_KEYS
    }
    accepted = tuple(Accepted(**item) for item in data["accepted"])
    # Earlier versions kept no routes.
    routes = tuple(Route(str(item["if"]), str(item["to"]), str(item["why"])) for item in data.get("routes", []))
    rules = RULES[data.get("rules", FIRST.name)]
    memory = data.get("memory", {})
    return Criteria(
        targets=tuple(targets),
        thresholds=Thresholds(**plain),
        per_glob=globs,
        accepted=accepted,
        metrics=metrics,
        peaks=data["peaks"],
        routes=routes,
        rules=rules,
        memory=None if memory is None else MemoryThresholds(**{key: _share(value) for key, value in memory.items()}),
    )


def _share(value: Any) -> float:
    share = float(value)
    if not math.isfinite(share):
        raise ValueError(f"a threshold of {share}")
    return share


@dataclass(frozen=True)
class OrderProblem:
    """Thresholds in the wrong order: the key that is to blame, what is wrong, and the remedy."""

    key: str
    message: str
    hint: str


def order_problem(thresholds: Thresholds, given: Collection[str]) -> OrderProblem | None:
    """A concern above the action would never be seen; None where it is not, or nobody said so."""
    if thresholds.concern <= thresholds.action:
        return None
    if "concern" in given:
        message = f"`concern` ({thresholds.concern:.3g}) is above `action` ({thresholds.action:.3g})"
        return OrderProblem("concern", message, "concern: 5%, action: 10%")
    if "action" in given:
        message = f"`action` ({thresholds.action:.3g}) is below `concern` ({thresholds.concern:.3g})"
        return OrderProblem("action", message, "set `concern`, too, to no more than that")
    return None


def read_threshold(key: str, text: str) -> float:
    """Read the share of a threshold; only the floor may be zero. Raises UnitError."""
    share = read_share(text)
    if share == 0 and key != "floor":
        hint = f"write a share such as `{key}: 0.5%`; `floor: 0%` calls every proven change a change"
        raise UnitError(f"a `{key}` of {text} can never be proven to hold, not even of identical programs", hint)
    return share


def read_share(text: str) -> float:
    """Read a share such as ``5%`` or ``0.05``, between 0 and 1000%. Raises UnitError."""
    share = parse_as(text, Dimension.RATIO).value
    if not 0 <= share <= 10:
        raise UnitError(f"{text!r} is out of range", "write a share such as 5%")
    if share >= 1 and "%" not in text:
        raise UnitError(f"{text!r} is {share:.0%}", f"write {text}%")
    return share
