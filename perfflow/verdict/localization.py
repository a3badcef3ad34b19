"""Whether what regressed is in one place: a function, a file or a crate that holds most of what was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from perfflow.model.result import Attribution, HotspotResult
from perfflow.verdict.findings import Findings

MOST = 0.5
"""The part of what a benchmark lost from which on a place holds most of it."""

_PLACES: Mapping[str, Callable[[Attribution], str]] = {
    "function": lambda item: f"{item.function} {item.file}",
    "file": lambda item: item.file,
    "crate": lambda item: item.crate,
}
"""From the narrowest on."""


def localized_in(found: Findings) -> str:
    """``function``, ``file`` or ``crate``: the widest that is needed for all benchmarks that regressed, '' if none is.

    They are those of level action, or all where there is none. Of a benchmark that no profile attributes nothing is
    known, so it counts neither way; with no attribution at all nothing is localized. A file or crate only counts where
    the benchmark's profiles name another one: in a program of one file that file tells nothing.
    """
    of_level = found.regressed("action") or found.regressed()
    names = {row.name for row in of_level}
    blamed: dict[str, list[Attribution]] = defaultdict(list)
    for item in found.blamed:
        if item.benchmark in names:
            blamed[item.benchmark].append(item)
    widest = ""
    for name, items in blamed.items():
        places = [kind for kind in _PLACES if _holds_most(kind, items, found, name)]
        if not places:
            return ""
        widest = max(widest, places[0], key=["", *_PLACES].index)
    return widest


def _holds_most(kind: str, items: list[Attribution], found: Findings, benchmark: str) -> bool:
    """Whether one place of a kind holds most of what was lost, in one of the metrics."""
    if kind != "function" and len(_known(kind, items, found, benchmark)) < 2:
        return False
    lost: dict[tuple[str, str], float] = defaultdict(float)
    for item in items:
        place = _PLACES[kind](item)
        if place and item.share is not None and item.share > 0:
            lost[item.metric, place] += item.share
    return max(lost.values(), default=0) >= MOST


def _known(kind: str, items: list[Attribution], found: Findings, benchmark: str) -> set[str]:
    """The places of a kind that the benchmark's profiles name, slower or not."""
    named = {_PLACES[kind](item) for item in items}
    if kind == "file":
        named |= {spot.file for spot in found.hotspots if spot.benchmark == benchmark}
    return named - {""}


def leading(found: Findings) -> Attribution | HotspotResult | None:
    """The function that lost most, else the costliest hotspot of what was measured last; None without a profile."""
    lost = [item for item in found.blamed if item.share is not None]
    if lost:
        return max(lost, key=lambda item: (item.share or 0, item.function))
    return max(current(found.hotspots), key=lambda spot: (spot.share, spot.location), default=None)


def current(hotspots: Sequence[HotspotResult]) -> list[HotspotResult]:
    """Hotspots of the candidate, of the baseline where a step profiled that alone."""
    both = {spot.step for spot in hotspots if spot.tree == "candidate"}
    return [spot for spot in hotspots if spot.tree == "candidate" or spot.step not in both]
