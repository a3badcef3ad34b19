"""Hand-made comparisons and judged rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from perfflow.model.metrics import METRICS
from perfflow.model.result import Benchmark, Bounds, GatesBy
from perfflow.stats.paired_test import Interval
from perfflow.verdict.comparison import ComparedMetric, SideSummary

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return what must not be None."""
    assert value is not None
    return value


def side(*samples: float) -> SideSummary:
    return SideSummary(sorted(samples)[len(samples) // 2], None, None, len(samples), samples)


def moved(metric: str, /, *change: float, **keys: Any) -> ComparedMetric:
    """Return a metric of benchmark ``b`` that changed by this estimate and interval, seen in 20 pairs."""
    one, of_metric = side(1.0), METRICS[metric]
    confidence = None if of_metric.exact else 0.99
    made = ComparedMetric("b", of_metric, "p50", "s", "t", one, one, Interval(*change), 20, confidence)
    return replace(made, **keys)


def shown_row(decision: str, level: str | None, /, *change: float, **keys: Any) -> Benchmark:
    """Return a judged row of benchmark ``b``, whose time changed by this value and interval."""
    value, low, high = change
    known: dict[str, Any] = {"name": "b", "step": "s", "tool": "t", "metric": "time", "statistic": "p50", "unit": "s"}
    known |= {"better": "lower", "confidence": 0.99, "baseline": None, "candidate": None, "speedup": None}
    known |= {"change": Bounds(value=value, low=low, high=high), "decision": decision, "level": level, "gating": True}
    known |= {"pairs": 20, "more": None, "warnings": [], "gates_by": GatesBy.REQUESTED}
    return Benchmark.model_validate(known | keys)
