"""Profiles for https://www.speedscope.app: the sampled form of its file format, one profile per thread.

Format: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json

from perfflow.model.stacks import StackProfile
from perfflow.model.version import VERSION
from perfflow.report.stack_files import named

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}
"""Names of the units that speedscope knows; it shows all others as counts."""


def to_bytes(profile: StackProfile) -> bytes:
    """Return the content of the file; equal profiles give equal bytes."""
    places: dict[str, int] = {}
    threads: list[dict[str, object]] = []
    sums: list[int] = []
    for thread, stacks in named.stacks(profile):
        samples = [[places.setdefault(name, len(places)) for name in stack] for stack in stacks]
        sums.append(sum(stacks.values()))
        threads.append(
            {
                "type": "sampled",
                "name": thread or profile.unit,
                "unit": _UNITS.get(profile.unit, "none"),
                "startValue": 0,
                "endValue": sums[-1],
                "samples": samples,
                "weights": list(stacks.values()),
            }
        )
    content = {
        "$schema": _SCHEMA,
        "exporter": f"perfflow {VERSION}",
        "name": named.title(profile),
        "activeProfileIndex": sums.index(max(sums)),
        "shared": {"frames": [{"name": name} for name in places]},
        "profiles": threads,
    }
    return (json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
