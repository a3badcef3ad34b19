"""``variants``: two benchmarks of one suite as the two sides of one, in pairs like any comparison.

Where the suite can run one benchmark alone, each side of a pair is a fresh process of its own, in the order of the coin.
Where it cannot, one process yields both sides of a pair, in the suite's order, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from perfflow.measure import Subject, Take
from perfflow.run.invoke import Failure
from perfflow.samples.readings import Reading, Side
from perfflow.workflow.model import Variants

ONE_PROCESS = "both variants come from one process in the suite's own order, which the pairs' coins do not reach"
Rename = Callable[[str], str]
"""A suite's own id -> the name of the benchmark."""


@dataclass
class Found:
    """The suite's ids of each side by what ``*`` stands for, in the order of the suite."""

    variants: Variants
    ids: dict[Side, dict[str, str]] = field(default_factory=lambda: {side: {} for side in Side})

    @classmethod
    def among(cls, variants: Variants, ids: Iterable[str]) -> Found:
        """Sort a suite's ids by the two patterns; one that fits neither is no variant."""
        found = cls(variants)
        for name in ids:
            for side in Side:
                if (stem := found.stem(name, side)) is not None:
                    found.ids[side].setdefault(stem, name)
        return found

    def stem(self, name: str, side: Side) -> str | None:
        """What ``*`` of a side's pattern stands for in an id; None where the pattern does not fit."""
        before, _, after = str(getattr(self.variants, side.value)).partition("*")
        match = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name, re.DOTALL)
        return match[1] if match else None

    def both(self) -> list[str]:
        """What is there as both variants. Raises Failure where nothing is."""
        baseline, candidate = (self.ids[side] for side in Side)
        found = [stem for stem in baseline if stem in candidate]
        if not found:
            pair = " and ".join(f"`{getattr(self.variants, side.value)}`" for side in Side)
            raise Failure(f"no benchmark of the suite is there as both {pair}")
        return found

    def alone(self) -> list[str]:
        """What to say of ids that are there as one variant only."""
        sides = list(Side)
        return [
            f"{name} has no counterpart like `{getattr(self.variants, other.value)}`, so it is not compared"
            for side, other in zip(sides, reversed(sides), strict=True)
            for stem, name in self.ids[side].items()
            if stem not in self.ids[other]
        ]


def subjects(found: Found, take: Callable[[str], Take], name_of: Rename) -> list[Subject]:
    """One for each benchmark that is there as both variants, each side run alone. Raises Failure for none."""
    return [_subject(found, stem, take, name_of(stem)) for stem in found.both()]


def _subject(found: Found, stem: str, take: Callable[[str], Take], name: str) -> Subject:
    takes = {side: take(found.ids[side][stem]) for side in Side}

    def run(side: Side) -> tuple[Reading, ...]:
        return tuple(replace(reading, benchmark=name) for reading in takes[side](side))

    return Subject(name, tuple(Side), run)


class FromOneProcess:
    """Takes both sides of a pair from one process: the second side asked for is what the first one's process said."""

    def __init__(self, variants: Variants, take: Take, own: Rename, named: Rename, say: Callable[[str], None]) -> None:
        """``own`` turns the name of a reading into the suite's id, ``named`` what ``*`` stands for into a name."""
        self._variants, self._take, self._own, self._named, self._say = variants, take, own, named, say
        self._sides: Mapping[Side, tuple[Reading, ...]] = {}
        self._left: set[Side] = set()

    def __call__(self, side: Side) -> tuple[Reading, ...]:
        """The readings of a side. Raises Failure where the process reports no benchmark as both variants."""
        if side not in self._left:
            self._sides, self._left = self._sorted(self._take(side)), set(Side)
        self._left.remove(side)
        return self._sides[side]

    def _sorted(self, readings: Iterable[Reading]) -> dict[Side, tuple[Reading, ...]]:
        readings = list(readings)
        ids = {reading.benchmark: self._own(reading.benchmark) for reading in readings}
        found = Found.among(self._variants, ids.values())
        both = set(found.both())
        for text in (ONE_PROCESS, *found.alone()):
            self._say(text)
        sides: dict[Side, tuple[Reading, ...]] = {}
        for side in Side:
            stems = {reading: found.stem(ids[reading.benchmark], side) for reading in readings}
            sides[side] = tuple(
                replace(reading, benchmark=self._named(stem)) for reading, stem in stems.items() if stem in both and stem
            )
        return sides
