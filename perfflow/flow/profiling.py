"""Steps that profile: one run of each side under the profiler."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.flow.figures import per_operation
from perfflow.flow.measuring import named
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.prepare import operations
from perfflow.run.schedule import StepRun
from perfflow.rundir.record import hotspot_to_json, reading_to_json
from perfflow.samples.readings import Hotspot


def profile(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """One run under the profiler for each side; what it is evidence of is on both sides of the change."""
    counts = operations(shop.scene, planned)
    readings: dict[str, list[dict[str, Any]]] = {}
    profiles: list[dict[str, Any]] = []
    hotspots: list[dict[str, Any]] = []
    for side in shop.sides_of(planned):
        found = []
        for count in counts or (None,):
            # Profiles and hotspots are those of the last run, the one with more operations.
            prepared, invoked = shop.invoke(planned, side, run, count)
            found.append(named(planned, invoked.parsed.readings))
        figures = per_operation(found, counts)
        readings[side.value] = [reading_to_json(item) for item in figures]
        folder = shop.folder.step(planned.id) / side.value
        for profile in invoked.parsed.profiles:
            path = folder / profile.path
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            shown = str(path.relative_to(shop.folder.path))
            profiles.append({"tree": side.value, "path": shown, "kind": profile.kind, "sha256": sha256})
        hotspots += [hotspot_to_json(_relative(spot, prepared.cwd), side) for spot in invoked.parsed.hotspots]
        run.warnings += [f"{side.value}: {text}" for text in invoked.parsed.warnings]
    run.exit_code = 0
    run.details |= {"readings": readings, "profiles": profiles, "hotspots": hotspots}


def _relative(spot: Hotspot, cwd: Path) -> Hotspot:
    """Source files of the tree are named relative to it: reports travel, home folders should not."""
    try:
        return replace(spot, file=str(Path(spot.file).relative_to(cwd))) if spot.file else spot
    except ValueError:
        return spot
