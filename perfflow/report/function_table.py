"""One table for several profilers: a row per function, a column per profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfflow.model.readings import FEW_SAMPLES
from perfflow.model.result import Result
from perfflow.report.contradictions import contradictions
from perfflow.report.same_function import Column, Function, functions, profiles
from perfflow.report.table import NOTHING

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
    thin = {step.id for step in result.steps if any(FEW_SAMPLES in warning for warning in step.warnings)}
    for benchmark in dict.fromkeys(spot.benchmark for spot in result.hotspots):
        spots = [spot for spot in result.hotspots if spot.benchmark == benchmark]
        # A name without a source file that only one profiler reports, such as a system call, cannot be joined.
        found = [item for item in functions(spots) if item.file or len({spot.step for spot in item.spots}) > 1]
        sides = dict(profiles(spot for item in found for spot in item.spots))
        if len({column.source for column in sides}) > 1:
            yield _table(benchmark, found, sides, tuple(contradictions(found, sides, thin)))


def _table(
    benchmark: str, found: Sequence[Function], sides: Mapping[Column, tuple[str, ...]], differences: tuple[str, ...]
) -> Joined:
    ranked = sorted(found, key=lambda item: (-_largest(item), item.name, item.file))
    sources = Counter((column.source, column.unit) for column in sides)
    return Joined(
        benchmark=benchmark,
        columns=tuple(_title(column, alone=sources[column.source, column.unit] == 1) for column in sides),
        two_sided=any(len(taken) > 1 for taken in sides.values()),
        rows=tuple(_row(item, sides) for item in ranked[:MOST_FUNCTIONS]),
        others=max(0, len(ranked) - MOST_FUNCTIONS),
        contradictions=differences,
    )


def _largest(function: Function) -> float:
    """Return the function's largest share in any profile, summed over its lines."""
    profiles_of = {(spot.step, spot.source, spot.unit, spot.tree) for spot in function.spots}
    return max(function.share(Column(*key[:3]), key[3]) or 0.0 for key in profiles_of)


def _title(column: Column, *, alone: bool) -> str:
    """Return a title such as ``py-spy: time``, with the step if several steps ran the same profiler."""
    source = column.source if alone else f"{column.source} ({column.step})"
    return f"{source}: {column.unit}"


def _row(function: Function, sides: Mapping[Column, tuple[str, ...]]) -> JoinedRow:
    place = f"{function.file}:{function.line}" if function.file and function.line else function.file
    return JoinedRow(function.name, place, tuple(_cell(function, column, taken) for column, taken in sides.items()))


def _cell(function: Function, column: Column, taken: Sequence[str]) -> str:
    shares = [function.share(column, tree) for tree in taken]
    if all(share is None for share in shares):
        return NOTHING
    return " → ".join(NOTHING if share is None else f"{share:.0%}" for share in shares)
