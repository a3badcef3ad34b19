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

MACHINE = {
    "cpu": "Processor",
    "cores": 2,
    "memory_gib": 16,
    "system": "Linux",
    "kernel_series": "6.1",
    "python": "3.11.2",
    "virtual": False,
    "load": [0.1, 0.2, 0.3],
    "identity": "0123456789abcdef",
}


def planned(name: str, **keys: Any) -> dict[str, Any]:
    known = {"id": name, "stage": "baseline", "tool": "command", "role": "measure", "benchmark": name}
    return known | {"metric": None, "expect": [], "allowed": False, "selected": True} | keys


def opening(steps: Sequence[Mapping[str, Any]], criteria: Criteria, **run: Any) -> dict[str, Any]:
    info: dict[str, Any] = {
        "id": "run-1",
        "workflow": "flow",
        "component": "Component",
        "started": "2026-01-02T03:04:05.000Z",
    }
    info |= {"seed": 1, "file": "flow.yaml", "params": {}, "version": "0.1.0"}
    return {
        "event": "run",
        "schema": SCHEMA,
        "run": info | run,
        "machine": MACHINE,
        "trees": {"baseline": {"kind": "folder", "revision": None, "dirty": None}, "candidate": None},
        "criteria": criteria.to_json(),
        "steps": list(steps),
    }


def ended(name: str, status: str = "done", reason: str = "", **keys: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"event": "step", "id": name, "status": status, "reason": reason, "seconds": 1.0}
    return known | {"argv": ["./prog", name], "exit_code": 0, "warnings": [], "log": ""} | keys


def reading(metric: str, value: float, **keys: Any) -> dict[str, Any]:
    return {"metric": metric, "value": value, **keys}


def pairs(
    step: str, baseline: Sequence[float], candidate: Sequence[float] | None, metric: str = "time", **keys: Any
) -> list[dict[str, Any]]:
    """Return one sample event per pair, or per run of the baseline alone."""
    found = []
    for number, value in enumerate(baseline):
        event: dict[str, Any] = {"event": "sample", "step": step, "pair": number, "first": "baseline"}
        event["baseline"] = [reading(metric, value, **keys)]
        if candidate is not None:
            event["candidate"] = [reading(metric, candidate[number], **keys)]
        found.append(event)
    return found


END = {"event": "end", "time": "2026-01-02T03:04:15.000Z"}


def record(
    *events: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]] = (planned("b"),),
    criteria: Criteria | None = None,
    end: Mapping[str, Any] | None = END,
    **run: Any,
) -> Record:
    every: list[Mapping[str, Any]] = [opening(steps, criteria or Criteria(), **run), *events, *([end] if end else [])]
    return record_of(every)


def criteria(
    targets: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    metrics: Iterable[Metric] = (),
    accepted: Iterable[Accepted] = (),
    peaks: Mapping[str, float] | None = None,
    per_glob: Mapping[str, Mapping[str, float]] | None = None,
    **thresholds: float,
) -> Criteria:
    added = {metric.name: metric for metric in metrics}
    read = [
        parse_target(name, key, requirement, {**METRICS, **added})
        for name, wanted in (targets or {}).items()
        for key, requirement in wanted.items()
    ]
    own = {glob: OwnThresholds(shares) for glob, shares in (per_glob or {}).items()}
    return Criteria(tuple(read), Thresholds(**thresholds), own, tuple(accepted), added, peaks or {})


def judged(
    *events: Mapping[str, Any],
    wanted: Criteria | None = None,
    steps: Sequence[Mapping[str, Any]] = (planned("b"),),
    **keys: Any,
) -> Result:
    known = wanted or Criteria()
    return judge(record(*events, steps=steps, criteria=known, **keys), known)


def row(result: Result, metric: str = "time", name: str = "b") -> Benchmark:
    return next(item for item in result.benchmarks if (item.name, item.metric) == (name, metric))
