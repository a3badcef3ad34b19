"""Check whether this machine satisfies a workflow's ``runs-on``."""

from __future__ import annotations

import platform

from perfflow.execute import gpus
from perfflow.execute.programs import given_labels
from perfflow.plan.runs_on import Place


def labels() -> tuple[str, ...]:
    """Return the machine's labels: those in PERFFLOW_LABELS, its system and its architecture."""
    return tuple(dict.fromkeys([*given_labels(), platform.system().lower(), platform.machine()]))


def why_elsewhere(place: Place, env_path: str) -> str:
    """Return why this machine does not satisfy ``place``, '' if it does."""
    own, reasons = labels(), []
    absent = [label for label in place.labels if label not in own]
    if absent:
        named = ", ".join(map(repr, absent))
        reasons.append(f"it needs a machine with the label {named}; this machine has {', '.join(own)}")
    if place.node and place.node not in (platform.node(), platform.node().partition(".")[0]):
        reasons.append(f"it runs on {place.node}; this machine is {platform.node()}")
    if place.gpus and (seen := gpus.visible(env_path)).count < place.gpus:
        found = f"it needs {place.gpus} GPU{'s' if place.gpus > 1 else ''}, {seen.count or 'none'} found"
        reasons.append(f"{found}: {seen.why}" if seen.why else found)
    return "; ".join(reasons)
