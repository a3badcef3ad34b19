"""Steps that profile: one run of each side under the profiler."""

from __future__ import annotations

from typing import Any

from perfflow.flow.evidence import Evidence, flatness
from perfflow.flow.figures import per_operation
from perfflow.flow.measuring import named
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.prepare import operations
from perfflow.run.schedule import StepRun
from perfflow.rundir.record import reading_to_json


def profile(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """One run under the profiler for each side; what it is evidence of is on both sides of the change."""
    counts = operations(shop.scene, planned)
    readings: dict[str, list[dict[str, Any]]] = {}
    evidence = Evidence(shop, planned)
    for side in shop.sides_of(planned):
        found = []
        for count in counts or (None,):
            # Profiles and hotspots are those of the last run, the one with more operations.
            prepared, invoked = shop.invoke(planned, side, run, count)
            found.append(named(planned, invoked.parsed.readings))
        figures = per_operation(found, counts)
        readings[side.value] = [reading_to_json(item) for item in figures]
        evidence.add(prepared, invoked.parsed)
        said = (*invoked.parsed.warnings, *flatness(invoked.parsed))
        run.warnings += [f"{side.value}: {text}" for text in said]
    run.exit_code = 0
    run.details |= {"readings": readings} | evidence.details()
