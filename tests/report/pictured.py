"""Results with rare pictures: a growth, the heap over the run, code layouts."""

from __future__ import annotations

import random
from typing import Any

from perfflow.model.result import Result
from tests.verdict.records import criteria, ended, judged, planned, reading

SIZES = (100.0, 1000.0, 10_000.0, 100_000.0)


def growing(name: str = "decode") -> Result:
    """Return a time that grew linearly with its size and now grows quadratically."""
    steps, events = [], []
    for size in SIZES:
        step = f"{name}[n={size:g}]"
        steps.append(planned(step, scaling={"key": name or "n", "size": size, "cell": step, "of": name}))
        for number in range(14):
            spread = 1 + 0.001 * (number % 11 - 5)
            event: dict[str, Any] = {"event": "sample", "step": step, "pair": number, "first": "baseline"}
            event["baseline"] = [reading("time", 1e-6 * size * spread)]
            event["candidate"] = [reading("time", 1e-8 * size * size * spread)]
            events.append(event)
        events.append(ended(step))
    return judged(*events, steps=steps)


def followed(name: str = "decode") -> Result:
    """Return the heap of both sides of a program, with a target on its peak."""
    steps = [planned("heap", role="profile", stage="profile", tool="massif", benchmark=name)]
    curves = [
        {"axis": "instructions", "at": [0.0, 1e6, 2e6, 3e6], "held": [0.0, 1e6, 3e6, 5e5], "tree": "baseline"},
        {"axis": "instructions", "at": [0.0, 1e6, 1.5e6], "held": [0.0, 9e5, 1e5], "tree": "candidate"},
    ]
    readings = {side: [reading("heap_peak", peak)] for side, peak in (("baseline", 3e6), ("candidate", 9e5))}
    wanted = criteria({name or "none": {"heap_peak": "<2MB"}})
    return judged(ended("heap", memory=curves, readings=readings), steps=steps, wanted=wanted)


def over_layouts(name: str = "decode") -> Result:
    """Return a candidate that is 12% slower as built, but unchanged over 20 layouts of each side."""
    chance = random.Random(7)
    events = []
    for number in range(40):
        layout = max(0, number - 19)
        event: dict[str, Any] = {"event": "sample", "step": name, "pair": number, "first": "baseline"}
        event |= {"design": "layouts", "layout": layout} if layout else {"design": "looks"}
        for side, factor in (("baseline", 1.0), ("candidate", 1.0 if layout else 1.12)):
            between = chance.gauss(1, 0.02) if layout else 1.0
            event[side] = [reading("cpu", 0.01 * factor * between * chance.gauss(1, 0.003))]
        events.append(event)
    return judged(*events, ended(name), steps=[planned(name)])
