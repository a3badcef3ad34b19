"""Hotspots of several profilers joined by function, although each profiler names functions in its own way.

- ``functions`` joins them. A function profiler reports the first or the costliest line of a function, a line profiler
  each line. Names come with and without classes, parameters and libraries. If the source was read (Python in the tree),
  the function around the line decides; otherwise file and name do.
- ``contradictions`` finds contradictions between profilers about one function, and knows the bias of each kind of
  profiler.
- ``joined_of`` makes one table for several profilers: a row per function, a column per profile.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.model.readings import HOTSPOT, Side
from perfflow.model.result import HotspotResult, Result
from perfflow.report.table import NOTHING
from perfflow.tools import registry
from perfflow.tools.adapter import ProfilingMethod

_LIBRARY = re.compile(r" \([^()]*\.(?:so|dll|dylib)[^()]*\)$")
_PARAMETERS = re.compile(r"\((?!anonymous namespace\)|\.\.\.).*\)(?: const)?$")
_ROOT = re.compile(r"'\d+$")
"""Suffix that callgrind adds to a recursive function."""


@dataclass(frozen=True, order=True)
class ProfileColumn:
    """One profile: the step that took it, the profiler, and the unit of its shares."""

    step: str
    source: str
    unit: str


@dataclass(frozen=True)
class FunctionHotspots:
    """One function with its hotspots; several hotspots of one profile are its lines. ``line`` is 0 if unknown."""

    name: str
    file: str
    line: int
    spots: tuple[HotspotResult, ...]

    def share(self, column: ProfileColumn, tree: str) -> float | None:
        """Return the own share in a profile of one side, summed over lines; None if the profile does not list it."""
        found = [spot.share for spot in self.spots if (column_of(spot), spot.tree) == (column, tree)]
        return min(1.0, sum(found)) if found else None

    def inclusive(self, column: ProfileColumn, tree: str) -> float | None:
        """Return the share including callees, or None if the profiler does not report it."""
        own = [spot for spot in self.spots if (column_of(spot), spot.tree) == (column, tree)]
        return max((spot.inclusive_share for spot in own if spot.inclusive_share is not None), default=None)


_Key = tuple[str, str, int]


def column_of(spot: HotspotResult) -> ProfileColumn:
    """Return the profile of a hotspot."""
    return ProfileColumn(spot.step, spot.source, spot.unit)


def functions(spots: Sequence[HotspotResult]) -> list[FunctionHotspots]:
    """Join the hotspots of one benchmark by function, in order of appearance.

    A hotspot without a file, as in a profile without debug information, joins the only function of its name.
    """
    begins = _beginnings(spots)
    keyed = [(_key(spot, begins), spot) for spot in spots]
    by_name: dict[str, set[_Key]] = defaultdict(set)
    for key, _ in keyed:
        if key[0]:
            by_name[key[1]].add(key)
    by_function: dict[_Key, list[HotspotResult]] = defaultdict(list)
    for key, spot in keyed:
        same = by_name[key[1]] if not key[0] else set()
        by_function[next(iter(same)) if len(same) == 1 else key].append(spot)
    return [FunctionHotspots(key[1], key[0], _line(key, items), tuple(items)) for key, items in by_function.items()]


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
    lines_of: dict[tuple[str, str], set[int]] = defaultdict(set)
    for spot in spots:
        if (
            registry.profiling_method(spot.source) is ProfilingMethod.CALLS
            and not spot.function
            and spot.file
            and spot.line
        ):
            lines_of[spot.file, _bare(spot)].add(spot.line)
    return {key: sorted(lines) for key, lines in lines_of.items() if len(lines) > 1}


def _line(key: _Key, spots: Sequence[HotspotResult]) -> int:
    """Return the first line of a function, else the line of its largest hotspot."""
    known = [spot for spot in spots if spot.line]
    return key[2] or (max(known, key=lambda spot: spot.share).line if known and key[0] else 0)


def profiles(spots: Iterable[HotspotResult]) -> Iterator[tuple[ProfileColumn, tuple[str, ...]]]:
    """Yield each profile with its sides, the baseline first. Profiles of time come first, those of bytes last."""
    sides: dict[ProfileColumn, set[str]] = defaultdict(set)
    for spot in spots:
        sides[column_of(spot)].add(spot.tree)
    for column in sorted(sides, key=lambda item: _UNITS.index(item.unit) if item.unit in _UNITS else len(_UNITS)):
        yield column, tuple(side.value for side in Side if side.value in sides[column])


_UNITS = ("time", "instructions", "stalls", "bytes")


LEAST_DIFFERENCE = 0.2
"""Smallest difference of two shares that counts. 100 samples are the fewest that are not called few. A share of 50% of
them has a standard error of 5 points, so the difference of two such shares has 7; this is about three times that."""
LEAST_TIMES = 2.0
"""Smallest ratio of two shares that counts. Below it, both profilers agree that the function matters."""

_SAMPLES = (ProfilingMethod.SAMPLES, ProfilingMethod.SAMPLED_TIME)
_LISTS_ALL = (*_SAMPLES, ProfilingMethod.COUNTS)
"""Profilers that list every function above the hotspot threshold, so a function that they do not list is below it.

Line profilers do not list every function. The own time in a call profiler leaves out callees that are not Python.
"""
_JUDGED = (*_LISTS_ALL, ProfilingMethod.CALLS, ProfilingMethod.LINES)


@dataclass(frozen=True)
class _Figure:
    """One profiler's share, and the largest share that its method allows. ``below``: the share is a bound."""

    column: ProfileColumn
    method: ProfilingMethod
    share: float
    most: float
    below: bool = False

    @property
    def text(self) -> str:
        unit = "" if self.column.unit == "time" else f" of {self.column.unit}"
        return f"{self.column.source} {'under ' if self.below else ''}{self.share:.0%}{unit}"


def contradictions(
    functions: Sequence[FunctionHotspots], sides: Mapping[ProfileColumn, Collection[str]], thin: Collection[str] = ()
) -> Iterator[str]:
    """Yield a text for each function of the tree for which two profilers of one side report very different shares.

    ``sides`` are the sides of each profile. Steps in ``thin`` took too few samples and are ignored.
    """
    trees = dict.fromkeys(tree for of_column in sides.values() for tree in of_column)
    for function in functions:
        if not function.file or PurePosixPath(function.file).is_absolute():
            continue
        for tree in trees:
            known = [
                figure
                for column, taken in sides.items()
                if tree in taken and column.step not in thin and (figure := _figure(function, column, tree))
            ]
            which = f" on the {tree}" if len(trees) > 1 else ""
            if text := _apart(known):
                yield f"{function.name} ({function.file}){which}: {text}"


def _figure(function: FunctionHotspots, column: ProfileColumn, tree: str) -> _Figure | None:
    """Return the share of a function in a profile, or None if it cannot be compared."""
    method = registry.profiling_method(column.source)
    if method not in _JUDGED or column.unit not in ("time", "instructions"):
        return None
    share = function.share(column, tree)
    if share is None:
        return _Figure(column, method, HOTSPOT, HOTSPOT, below=True) if method in _LISTS_ALL else None
    if method is ProfilingMethod.CALLS:
        # Own time plus the time of callees written in C is at most the inclusive time.
        inclusive = function.inclusive(column, tree)
        return _Figure(column, method, share, 1.0 if inclusive is None else inclusive)
    # A line profiler lists only the larger lines, so their sum is a lower bound.
    return _Figure(column, method, share, 1.0 if method is ProfilingMethod.LINES else share)


def _apart(figures: Sequence[_Figure]) -> str:
    """Return the two shares that are farthest apart, with an explanation; '' if all are close."""
    pairs = [(high, low) for high in figures for low in figures if not high.below and _are_apart(high, low)]
    if not pairs:
        return ""
    high, low = max(pairs, key=lambda pair: (pair[0].share - pair[1].most, pair[0].column, pair[1].column))
    return f"{high.text}, {low.text}; {_explained(high, low)}"


def _are_apart(high: _Figure, low: _Figure) -> bool:
    return high.share - low.most >= LEAST_DIFFERENCE and high.share >= LEAST_TIMES * low.most


def _explained(high: _Figure, low: _Figure) -> str:
    """Return the known reason why the two profilers differ. A sampler's share of time is taken as the true one."""
    first, second = high.column.source, low.column.source
    if high.method is ProfilingMethod.CALLS and low.method in (*_SAMPLES, ProfilingMethod.LINES):
        return f"{first} adds overhead to every call, and counts waiting: for many small calls trust {second}"
    if high.method is ProfilingMethod.LINES:
        return f"{first} adds overhead to every executed line: trust {second}"
    if high.method is ProfilingMethod.COUNTS and low.method is not ProfilingMethod.COUNTS:
        return "its instructions are cheap: trust the time"
    if low.method is ProfilingMethod.COUNTS and high.method is not ProfilingMethod.COUNTS:
        return "it takes more time than its instructions explain: it waits, for example for memory or another thread"
    if low.method is ProfilingMethod.CALLS:
        return f"{second} sees only the main thread, and slows the program down unevenly"
    return "the two runs differ this much: profile for longer, or check what each profiler leaves out"


MOST_FUNCTIONS = 10
"""Most rows of the table. The hotspots of each profile are in the result."""


@dataclass(frozen=True)
class JoinedRow:
    """One function with a cell for each column: ``12%``, or ``12% → 3%`` if both sides were profiled."""

    function: str
    place: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Joined:
    """The profiles of one benchmark by function. ``others`` is the number of functions left out."""

    benchmark: str
    columns: tuple[str, ...]
    two_sided: bool
    rows: tuple[JoinedRow, ...]
    others: int
    contradictions: tuple[str, ...]


def joined_of(result: Result) -> Iterator[Joined]:
    """Yield a table for each benchmark with functions of at least two profilers that can be joined."""
    thin = {step.id for step in result.steps if step.few_samples}
    for benchmark in dict.fromkeys(spot.benchmark for spot in result.hotspots):
        spots = [spot for spot in result.hotspots if spot.benchmark == benchmark]
        # A name without a source file that only one profiler reports, such as a system call, cannot be joined.
        found = [item for item in functions(spots) if item.file or len({spot.step for spot in item.spots}) > 1]
        sides = dict(profiles(spot for item in found for spot in item.spots))
        if len({column.source for column in sides}) > 1:
            yield _table(benchmark, found, sides, tuple(contradictions(found, sides, thin)))


def _table(
    benchmark: str,
    joined: Sequence[FunctionHotspots],
    sides: Mapping[ProfileColumn, tuple[str, ...]],
    differences: tuple[str, ...],
) -> Joined:
    ranked = sorted(joined, key=lambda item: (-_largest(item), item.name, item.file))
    sources = Counter((column.source, column.unit) for column in sides)
    return Joined(
        benchmark=benchmark,
        columns=tuple(_title(column, alone=sources[column.source, column.unit] == 1) for column in sides),
        two_sided=any(len(taken) > 1 for taken in sides.values()),
        rows=tuple(_row(item, sides) for item in ranked[:MOST_FUNCTIONS]),
        others=max(0, len(ranked) - MOST_FUNCTIONS),
        contradictions=differences,
    )


def _largest(function: FunctionHotspots) -> float:
    """Return the function's largest share in any profile, summed over its lines."""
    profiles_of = {(spot.step, spot.source, spot.unit, spot.tree) for spot in function.spots}
    return max(function.share(ProfileColumn(*key[:3]), key[3]) or 0.0 for key in profiles_of)


def _title(column: ProfileColumn, *, alone: bool) -> str:
    """Return a title such as ``py-spy: time``, with the step if several steps ran the same profiler."""
    source = column.source if alone else f"{column.source} ({column.step})"
    return f"{source}: {column.unit}"


def _row(function: FunctionHotspots, sides: Mapping[ProfileColumn, tuple[str, ...]]) -> JoinedRow:
    place = f"{function.file}:{function.line}" if function.file and function.line else function.file
    return JoinedRow(function.name, place, tuple(_cell(function, column, taken) for column, taken in sides.items()))


def _cell(function: FunctionHotspots, column: ProfileColumn, taken: Sequence[str]) -> str:
    shares = [function.share(column, tree) for tree in taken]
    if all(share is None for share in shares):
        return NOTHING
    return " → ".join(NOTHING if share is None else f"{share:.0%}" for share in shares)
