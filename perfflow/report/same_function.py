"""Hotspots of several profilers joined by function, although each profiler names functions in its own way.

A function profiler reports the first or the costliest line of a function, a line profiler each line. Names come with
and without classes, parameters and libraries. If the source was read (Python in the tree), the function around the line
decides; otherwise file and name do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perfflow.model.readings import Side
from perfflow.model.result import HotspotResult
from perfflow.tools import registry
from perfflow.tools.adapter import ProfilingMethod

_LIBRARY = re.compile(r" \([^()]*\.(?:so|dll|dylib)[^()]*\)$")
_PARAMETERS = re.compile(r"\((?!anonymous namespace\)|\.\.\.).*\)(?: const)?$")
_ROOT = re.compile(r"'\d+$")
"""Suffix that callgrind adds to a recursive function."""


@dataclass(frozen=True, order=True)
class Column:
    """One profile: the step that took it, the profiler, and the unit of its shares."""

    step: str
    source: str
    unit: str


@dataclass(frozen=True)
class Function:
    """One function with its hotspots; several hotspots of one profile are its lines. ``line`` is 0 if unknown."""

    name: str
    file: str
    line: int
    spots: tuple[HotspotResult, ...]

    def share(self, column: Column, tree: str) -> float | None:
        """Return the own share in a profile of one side, summed over lines; None if the profile does not list it."""
        found = [spot.share for spot in self.spots if (column_of(spot), spot.tree) == (column, tree)]
        return min(1.0, sum(found)) if found else None

    def inclusive(self, column: Column, tree: str) -> float | None:
        """Return the share including callees, or None if the profiler does not report it."""
        own = [spot for spot in self.spots if (column_of(spot), spot.tree) == (column, tree)]
        return max((spot.inclusive_share for spot in own if spot.inclusive_share is not None), default=None)


_Key = tuple[str, str, int]


def column_of(spot: HotspotResult) -> Column:
    """Return the profile of a hotspot."""
    return Column(spot.step, spot.source, spot.unit)


def functions(spots: Sequence[HotspotResult]) -> list[Function]:
    """Join the hotspots of one benchmark by function, in order of appearance.

    A hotspot without a file, as in a profile without debug information, joins the only function of its name.
    """
    begins = _beginnings(spots)
    keyed = [(_key(spot, begins), spot) for spot in spots]
    by_name: dict[str, set[_Key]] = defaultdict(set)
    for key, _ in keyed:
        if key[0]:
            by_name[key[1]].add(key)
    found: dict[_Key, list[HotspotResult]] = defaultdict(list)
    for key, spot in keyed:
        same = by_name[key[1]] if not key[0] else set()
        found[next(iter(same)) if len(same) == 1 else key].append(spot)
    return [Function(key[1], key[0], _line(key, items), tuple(items)) for key, items in found.items()]


def _key(spot: HotspotResult, begins: dict[tuple[str, str], list[int]]) -> _Key:
    if spot.function:
        return (spot.file, spot.function, spot.begins)
    name = _bare(spot)
    first = max((line for line in begins.get((spot.file, name), ()) if line <= spot.line), default=0)
    return (spot.file, name, first)


def _bare(spot: HotspotResult) -> str:
    """Return a name without parts that only some profilers add: classes in Python, else library and parameters."""
    if spot.file.endswith(".py"):
        return spot.location.rpartition(".")[2]
    return _PARAMETERS.sub("", _LIBRARY.sub("", _ROOT.sub("", spot.location))) or spot.location


def _beginnings(spots: Iterable[HotspotResult]) -> dict[tuple[str, str], list[int]]:
    """Return the first lines of functions with equal file and name, as reported by the profiler of calls."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for spot in spots:
        if (
            registry.profiling_method(spot.source) is ProfilingMethod.CALLS
            and not spot.function
            and spot.file
            and spot.line
        ):
            found[spot.file, _bare(spot)].add(spot.line)
    return {key: sorted(lines) for key, lines in found.items() if len(lines) > 1}


def _line(key: _Key, spots: Sequence[HotspotResult]) -> int:
    """Return the first line of a function, else the line of its largest hotspot."""
    known = [spot for spot in spots if spot.line]
    return key[2] or (max(known, key=lambda spot: spot.share).line if known and key[0] else 0)


def profiles(spots: Iterable[HotspotResult]) -> Iterator[tuple[Column, tuple[str, ...]]]:
    """Yield each profile with its sides, the baseline first. Profiles of time come first, those of bytes last."""
    sides: dict[Column, set[str]] = defaultdict(set)
    for spot in spots:
        sides[column_of(spot)].add(spot.tree)
    for column in sorted(sides, key=lambda item: _UNITS.index(item.unit) if item.unit in _UNITS else len(_UNITS)):
        yield column, tuple(side.value for side in Side if side.value in sides[column])


_UNITS = ("time", "instructions", "stalls", "bytes")
