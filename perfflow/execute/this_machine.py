"""Whether this machine is a place that a workflow asks for by ``runs-on``."""

from __future__ import annotations

import os
import platform

from perfflow.execute import gpus
from perfflow.plan.runs_on import Place

LABELS = "PERFFLOW_LABELS"
"""Variable with the labels that whoever keeps the machine gives it, separated by spaces or commas."""


def labels() -> tuple[str, ...]:
    """The machine's labels: those that it was given, its system and its architecture."""
    given = os.environ.get(LABELS, "").replace(",", " ").split()
    return tuple(dict.fromkeys([*given, platform.system().lower(), platform.machine()]))


def why_elsewhere(place: Place, env_path: str) -> str:
    """Why what asks for a place is not measured here; '' where this machine is such a place."""
    own, reasons = labels(), []
    absent = [label for label in place.labels if label not in own]
    if absent:
        named = ", ".join(map(repr, absent))
        reasons.append(f"it runs on machines with the label {named}, and this one has {', '.join(own)}")
    if place.node and place.node not in (platform.node(), platform.node().partition(".")[0]):
        reasons.append(f"it runs on {place.node}, and this is {platform.node()}")
    if place.gpus and (seen := gpus.visible(env_path)).count < place.gpus:
        found = f"it needs {place.gpus} GPU{'s' if place.gpus > 1 else ''}, {seen.count or 'none'} found"
        reasons.append(f"{found}: {seen.why}" if seen.why else found)
    return "; ".join(reasons)
