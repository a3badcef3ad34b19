"""Summaries of runs as a history stores them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfflow.store.history.summary import MeasuredState, Point, RunSummary


def summary(number: int, value: float = 1.0, benchmarks: int = 2, **changed: Any) -> RunSummary:
    made = RunSummary(
        id=f"run-{number}",
        tool="perfflow",
        version="1",
        started=f"2026-01-{1 + number % 28:02}T00:00:{number // 28:02}Z",
        machine="m1",
        facts={"cpu": "x", "cores": 2},
        workflow="flow",
        states=(MeasuredState("baseline", f"{number:040x}", "main"),),
        points=tuple(
            Point("baseline", f"b{each}", "time", "p50", "s", "lower", value + each, value * 0.9, None, 5)
            for each in range(benchmarks)
        ),
    )
    return replace(made, **changed)
