"""Hand-made records of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfflow.model.criteria import Accepted, Criteria, OwnThresholds, Thresholds
from perfflow.model.metrics import METRICS, Metric
from perfflow.model.result import Benchmark, Result
from perfflow.model.targets import parse_target
from perfflow.store.record import SCHEMA, Record, record_of
from perfflow.verdict.judge import judge

Event = dict[str, Any]
Given = Mapping[str, Any]
Floats = Sequence[float]

REVISIONS: Given = {
    "baseline": {"kind": "revision", "revision": "b" * 40, "name": "main"},
    "candidate": {"kind": "revision", "revision": "c" * 40, "name": "HEAD", "dirty": False},
}
"""The sides of a gate, for ``trees`` of a record."""

MACHINE: dict[str, Any] = {"cpu": "Processor", "cores": 2, "memory_gib": 16, "system": "Linux", "kernel_series": "6.1"}
MACHINE |= {"python": "3.11.2", "virtual": False, "load": [0.1, 0.2, 0.3], "identity": "0123456789abcdef"}
FOLDER = {"baseline": {"kind": "folder", "revision": None, "dirty": None}, "candidate": None}


def planned(name: str, **keys: Any) -> dict[str, Any]:
    known = {"id": name, "stage": "baseline", "tool": "command", "role": "measure", "benchmark": name}
    return known | {"metric": None, "expect": [], "allowed": False, "selected": True} | keys


def opening(steps: Sequence[Given], criteria: Criteria, trees: Given | None = None, **run: Any) -> Event:
    info: dict[str, Any] = {"id": "run-1", "workflow": "flow", "component": "Component", "seed": 1, "file": "flow.yaml"}
    info |= {"started": "2026-01-02T03:04:05.000Z", "params": {}, "version": "0.1.0"}
    known = {"event": "run", "schema": SCHEMA, "run": info | run, "machine": MACHINE, "trees": trees or FOLDER}
    return known | {"criteria": criteria.to_json(), "steps": list(steps)}


def ended(name: str, status: str = "done", reason: str = "", **keys: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"event": "step", "id": name, "status": status, "reason": reason, "seconds": 1.0}
    return known | {"argv": ["./prog", name], "exit_code": 0, "warnings": [], "log": ""} | keys


def reading(metric: str, value: float, **keys: Any) -> dict[str, Any]:
    return {"metric": metric, "value": value, **keys}


def pairs(step: str, baseline: Floats, candidate: Floats | None, metric: str = "time", **keys: Any) -> list[Event]:
    """Return one sample event per pair, or per run of the baseline alone."""
    found = []
    for number, value in enumerate(baseline):
        event: dict[str, Any] = {"event": "sample", "step": step, "pair": number, "first": "baseline"}
        event["baseline"] = [reading(metric, value, **keys)]
        if candidate is not None:
            event["candidate"] = [reading(metric, candidate[number], **keys)]
        found.append(event)
    return found


def beside(events: list[Event], metric: str, before: float | None, after: float | None, **keys: Any) -> list[Event]:
    """Add to each pair a reading of one more metric; the side for which None is given has none."""
    for event in events:
        for side, value in (("baseline", before), ("candidate", after)):
            if value is not None:
                event[side].append(reading(metric, value, **keys))
    return events


def scaled(factor: float, count: int = 20) -> list[float]:
    """Return values that differ by up to 0.2%, times a factor."""
    return [factor * (1 + 0.001 * (number % 3)) for number in range(count)]


END = {"event": "end", "time": "2026-01-02T03:04:15.000Z"}


def record(
    *events: Given,
    steps: Sequence[Given] = (planned("b"),),
    criteria: Criteria | None = None,
    end: Given | None = END,
    **run: Any,
) -> Record:
    every: list[Given] = [opening(steps, criteria or Criteria(), **run), *events, *([end] if end else [])]
    return record_of(every)


def criteria(
    targets: Mapping[str, Given] | None = None,
    *,
    metrics: Iterable[Metric] = (),
    accepted: Iterable[Accepted] = (),
    peaks: Mapping[str, float] | None = None,
    per_glob: Mapping[str, Mapping[str, float]] | None = None,
    **thresholds: float,
) -> Criteria:
    added = {metric.name: metric for metric in metrics}
    known = {**METRICS, **added}
    every = [(name, *item) for name, wanted in (targets or {}).items() for item in wanted.items()]
    read = [parse_target(name, key, requirement, known) for name, key, requirement in every]
    own = {glob: OwnThresholds(shares) for glob, shares in (per_glob or {}).items()}
    return Criteria(tuple(read), Thresholds(**thresholds), own, tuple(accepted), added, peaks or {})


def judged(
    *events: Given,
    wanted: Criteria | None = None,
    steps: Sequence[Given] = (planned("b"),),
    **keys: Any,
) -> Result:
    known = wanted or Criteria()
    return judge(record(*events, steps=steps, criteria=known, **keys), known)


def row(result: Result, metric: str = "time", name: str = "b") -> Benchmark:
    return next(item for item in result.benchmarks if (item.name, item.metric) == (name, metric))
