"""Read how often a profiler counted a place (calls, hits, blocks, opens) from the cause that its adapter writes."""

from __future__ import annotations

import re

_COUNTED = re.compile(
    r"measured: (?:"
    r"(?P<first>[\d,]{1,15}) (?:calls?|hits?)\b"
    r"|(?:opened|run) (?:(?P<times>[\d,]{1,15}) times|(?P<once>once))"
    r"|.* B in (?P<blocks>[\d,]{1,15}) blocks? at)"
)


def read_count(cause: str) -> int:
    """Return the count in a cause such as ``measured: 8,000 calls, ...`` or ``measured: opened 96 times``; else 0."""
    match = _COUNTED.match(cause)
    if not match:
        return 0
    if match["once"]:
        return 1
    text = match["first"] or match["times"] or match["blocks"]
    digits = text.replace(",", "")
    return int(digits) if digits else 0
