"""Localize a regression: a function, a file or a crate that accounts for most of the loss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from perfflow.model.result import Attribution, HotspotResult
from perfflow.verdict.findings import Findings

MOST = 0.5
"""Share of a benchmark's loss from which a place accounts for most of it."""

_PLACES: Mapping[str, Callable[[Attribution], str]] = {
    "function": lambda item: f"{item.function} {item.file}",
    "file": lambda item: item.file,
    "crate": lambda item: item.crate,
}
"""Kinds of places, the narrowest first."""


def localized_in(found: Findings) -> str:
    """Return ``function``, ``file`` or ``crate``: the widest kind needed to localize all regressed benchmarks; else ''.

    The benchmarks are those of level action, or all regressed ones if there are none. Benchmarks without attributions
    are ignored. Without any attribution nothing is localized. A file or crate only counts if the benchmark's profiles
    name more than one, because in a program of one file the file means nothing.
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
    """Return whether one place of a kind accounts for most of the loss in one of the metrics."""
    if kind != "function" and len(_known(kind, items, found, benchmark)) < 2:
        return False
    lost: dict[tuple[str, str], float] = defaultdict(float)
    for item in items:
        place = _PLACES[kind](item)
        if place and item.share is not None and item.share > 0:
            lost[item.metric, place] += item.share
    return max(lost.values(), default=0) >= MOST


def _known(kind: str, items: list[Attribution], found: Findings, benchmark: str) -> set[str]:
    """Return the places of a kind that the benchmark's profiles name, slower or not."""
    named = {_PLACES[kind](item) for item in items}
    if kind == "file":
        named |= {spot.file for spot in found.hotspots if spot.benchmark == benchmark}
    return named - {""}


def leading(found: Findings) -> Attribution | HotspotResult | None:
    """Return the function with the largest loss, else the costliest current hotspot; None without a profile."""
    lost = [item for item in found.blamed if item.share is not None]
    if lost:
        return max(lost, key=lambda item: (item.share or 0, item.function))
    return max(current(found.hotspots), key=lambda spot: (spot.share, spot.location), default=None)


def current(hotspots: Sequence[HotspotResult]) -> list[HotspotResult]:
    """Return the hotspots of the candidate, or of the baseline for steps that profiled only that."""
    both = {spot.step for spot in hotspots if spot.tree == "candidate"}
    return [spot for spot in hotspots if spot.tree == "candidate" or spot.step not in both]
