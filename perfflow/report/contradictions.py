"""Contradictions between profilers about one function, and the known bias of each kind of profiler."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.model.readings import HOTSPOT
from perfflow.report.same_function import Column, Function
from perfflow.tools import registry
from perfflow.tools.adapter import ProfilingMethod

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

    column: Column
    method: ProfilingMethod
    share: float
    most: float
    below: bool = False

    @property
    def text(self) -> str:
        unit = "" if self.column.unit == "time" else f" of {self.column.unit}"
        return f"{self.column.source} {'under ' if self.below else ''}{self.share:.0%}{unit}"


def contradictions(
    functions: Sequence[Function], sides: Mapping[Column, Collection[str]], thin: Collection[str] = ()
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


def _figure(function: Function, column: Column, tree: str) -> _Figure | None:
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
