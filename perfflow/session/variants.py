"""``variants``: two benchmarks of one suite as the two sides of a comparison, measured in pairs.

If the suite can run chosen benchmarks, each side of a pair is a separate process, in random order; one process measures
its variants together where the tool can. Otherwise one process gives both sides of a pair in the suite's own order,
with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfflow.execute.invoke import Failure
from perfflow.model.readings import Reading, Side
from perfflow.sampling.pairs import BenchmarkToSample, Request, Take
from perfflow.workflow.model import Variants

ONE_PROCESS = "both variants run in one process in the suite's own order, so perfflow cannot randomize their order"


@dataclass
class SuiteIds:
    """The suite's ids of each side, by the text that ``*`` matches, in the order of the suite."""

    variants: Variants
    ids: dict[Side, dict[str, str]] = field(default_factory=lambda: {side: {} for side in Side})

    @classmethod
    def among(cls, variants: Variants, ids: Iterable[str]) -> SuiteIds:
        """Sort a suite's ids by the two patterns; ids that match neither are ignored."""
        found = cls(variants)
        for name in ids:
            for side in Side:
                if (stem := found.stem(name, side)) is not None:
                    found.ids[side].setdefault(stem, name)
        return found

    def stem(self, name: str, side: Side) -> str | None:
        """Return the text that ``*`` of a side's pattern matches in an id; None if the pattern does not match."""
        before, _, after = str(getattr(self.variants, side.value)).partition("*")
        match = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name, re.DOTALL)
        return match[1] if match else None

    def both(self) -> list[str]:
        """Return the stems that exist as both variants. Raises Failure if there are none."""
        baseline, candidate = (self.ids[side] for side in Side)
        found = [stem for stem in baseline if stem in candidate]
        if not found:
            pair = " and ".join(f"`{getattr(self.variants, side.value)}`" for side in Side)
            raise Failure(f"no benchmark of the suite exists as both {pair}")
        return found

    def alone(self) -> list[str]:
        """Return warnings about ids that exist as one variant only."""
        sides = list(Side)
        return [
            f"{name} has no counterpart like `{getattr(self.variants, other.value)}`, so it is not compared"
            for side, other in zip(sides, reversed(sides), strict=True)
            for stem, name in self.ids[side].items()
            if stem not in self.ids[other]
        ]


@dataclass(frozen=True)
class Suite:
    """A step's suite: its ``name`` as a whole, the ids that it can run, and the pattern of benchmark names.

    ``ids`` is empty if the suite only runs as a whole. ``take`` runs some of them, or all, and returns readings named
    by ``pattern``. ``say`` receives warnings. ``together``: see BenchmarkToSample.
    """

    name: str
    ids: Sequence[str]
    pattern: str
    take: Take
    say: Callable[[str], None]
    together: float = 0.0

    def name_of(self, found: str) -> str:
        """Return the name of a benchmark."""
        return self.pattern.replace("*", found, 1)

    def id_of(self, name: str) -> str:
        """Return the suite's own id for a name."""
        before, _, after = self.pattern.partition("*")
        return name.removeprefix(before).removesuffix(after)


def benchmarks_of(variants: Variants, suite: Suite) -> list[BenchmarkToSample]:
    """Return the benchmarks that exist as both variants, or one for all if the suite runs as a whole.

    Raises Failure if no benchmark exists as both.
    """
    if not suite.ids:
        return [BenchmarkToSample(suite.name, tuple(Side), FromOneProcess(variants, suite))]
    found = SuiteIds.among(variants, suite.ids)
    for text in found.alone():
        suite.say(text)

    def run(request: Request) -> tuple[Reading, ...]:
        own_ids = {item.name: found.ids[request.side][item.own_id] for item in request.benchmarks}
        own = tuple(replace(item, own_id=own_ids[item.name]) for item in request.benchmarks)
        names = {suite.name_of(own_id): name for name, own_id in own_ids.items()}
        readings = suite.take(replace(request, benchmarks=own))
        return tuple(replace(reading, benchmark=names[reading.benchmark]) for reading in readings)

    return [
        BenchmarkToSample(suite.name_of(stem), tuple(Side), run, own_id=stem, together=suite.together)
        for stem in found.both()
    ]


class FromOneProcess:
    """Takes both sides of a pair from one process: the second side uses the readings of the first side's process."""

    def __init__(self, variants: Variants, suite: Suite) -> None:
        self._variants, self._suite = variants, suite
        self._sides: Mapping[Side, tuple[Reading, ...]] = {}
        self._left: set[Side] = set()

    def __call__(self, request: Request) -> tuple[Reading, ...]:
        """Return the readings of a side. Raises Failure if the process reports no benchmark as both variants."""
        if request.side not in self._left:
            self._sides, self._left = self._sorted(self._suite.take(request)), set(Side)
        self._left.remove(request.side)
        return self._sides[request.side]

    def _sorted(self, readings: Iterable[Reading]) -> dict[Side, tuple[Reading, ...]]:
        own = [(self._suite.id_of(reading.benchmark), reading) for reading in readings]
        found = SuiteIds.among(self._variants, [name for name, _ in own])
        both = set(found.both())
        for text in (ONE_PROCESS, *found.alone()):
            self._suite.say(text)
        sides: dict[Side, tuple[Reading, ...]] = {}
        for side in Side:
            stems = [(reading, found.stem(name, side)) for name, reading in own]
            named = [(reading, self._suite.name_of(stem)) for reading, stem in stems if stem and stem in both]
            sides[side] = tuple(replace(reading, benchmark=name) for reading, name in named)
        return sides
