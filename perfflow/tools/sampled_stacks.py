"""Stacks with a value, of profilers that take CPU time and allocations in one run, and what follows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed, Profile, StackCounts
from perfflow.model.stacks import Frame, Stack, callers_and_callees, costs_of, hotspots_of, innermost_own, write_folded
from perfflow.tools.adapter import Call

Sample = tuple[tuple[Frame, ...], int]
"""The frames of a stack, root first, and its value."""
_FEW = 100


def _below_harness(
    samples: Iterable[Sample], harness: str, *, collector: str, ignored: Iterable[str] = ()
) -> Iterator[Sample]:
    """Yield the stacks from the function on that the harness calls, and those of the garbage collector.

    harness: a regular expression for its functions, '' if there is none. collector: the function that collects garbage,
    which it does for the program. ignored: innermost frames that are no place of the program.
    """
    passed_over = frozenset(ignored)
    for frames, count in samples:
        callers = [index for index, frame in enumerate(frames) if harness and frame.is_of(harness)]
        below = frames[callers[-1] + 1 :] if callers else frames
        while below and below[-1].name in passed_over:
            below = below[:-1]
        if below and (callers or not harness or any(frame.name == collector for frame in frames)):
            yield below, count


def parsed(
    call: Call,
    source: str,
    stacks: tuple[Iterable[Sample], Iterable[Sample]],
    raw: Sequence[Profile],
    *,
    collector: str,
    ignored: Iterable[str] = (),
    metric: str = "",
) -> Parsed:
    """Rank functions by samples of their CPU time, and by bytes; write both as folded stacks.

    stacks: those with samples, and those with bytes. raw: the profiler's own files. collector, ignored: see
    ``_below_harness``. metric: the one that the bytes cover completely, '' if there is none. Raises ToolOutputError if
    no sample is of the program.
    """
    folder = call.folder
    spent, held = (list(_below_harness(each, call.harness, collector=collector, ignored=ignored)) for each in stacks)
    samples = sum(count for _, count in spent)
    if not samples:
        raise ToolOutputError("no sample is of the program: it runs for too short a time")
    profiles = [_folded(folder / "cpu.folded", spent, StackCounts("samples", "time"))]
    if held:
        profiles.append(_folded(folder / "heap.folded", held, StackCounts("bytes", metric)))
    return Parsed(
        hotspots=(*_hotspots(spent, source, "time"), *_hotspots(held, source, "bytes")),
        profiles=(*profiles, *raw),
        warnings=(f"{samples} samples",) if samples < _FEW else (),
        costs=(*costs_of(_blamed(spent), "time"), *(costs_of(_blamed(held), metric) if metric else ())),
        few_samples=samples < _FEW,
    )


def _blamed(samples: Iterable[Sample]) -> Iterator[tuple[Frame, int]]:
    """Yield the frame to which each stack's value is attributed: the innermost one of the project's own code."""
    for frames, count in samples:
        leaf_first = frames[::-1]
        yield leaf_first[innermost_own(leaf_first) or 0], count


def _hotspots(samples: Sequence[Sample], source: str, unit: str) -> Iterator[Hotspot]:
    """Yield the places with the largest values; what a function spends itself is apart from what it calls."""
    whole = sum(count for _, count in samples)
    selves = Counter[tuple[str, str]]()
    for frames, count in samples:
        selves[frames[-1].name, frames[-1].file] += count
    inclusive = ((frame, count) for frames, count in samples for frame in callers_and_callees(frames))
    for spot in hotspots_of(_blamed(samples), source=source, unit=unit, inclusive=inclusive):
        yield replace(spot, self_share=selves[spot.location, spot.file] / whole)


def _folded(path: Path, samples: Iterable[Sample], counts: StackCounts) -> Profile:
    stacks = Counter[Stack]()
    for frames, count in samples:
        stacks[tuple(frame.name for frame in frames)] += count
    path.write_text(write_folded(stacks), encoding="utf-8")
    return Profile(path.name, "folded", counts)
