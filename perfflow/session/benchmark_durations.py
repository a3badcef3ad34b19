"""Durations of the benchmarks of a step, used by short processes of a suite to set their number of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perfflow.model.readings import Reading, Side
from perfflow.store.record import reading_from_json
from perfflow.tools.pacing import Pace, pace_of


class Paces:
    """The slowest pace of each benchmark over both sides, so that both take the same number of samples."""

    def __init__(self) -> None:
        self._found: dict[str, Pace] = {}

    def notice(self, benchmark: str, readings: Iterable[Reading]) -> None:
        """Update the pace from the readings of one process."""
        found, known = pace_of(readings), self._found.get(benchmark)
        if found and known and found.seconds > known.seconds:
            # Keep the number of samples of the first process, because a later one may have been asked for more.
            found = Pace(found.seconds, known.spent * (found.seconds / known.seconds))
        if found and (known is None or found.seconds > known.seconds):
            self._found[benchmark] = found

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Restore the paces of an interrupted run from its first samples."""
        for event in events:
            if event.get("pair") == 0:
                for side in Side:
                    readings = [reading_from_json(item) for item in event.get(side.value, ())]
                    self.notice(readings[0].benchmark if readings else "", readings)

    def slowest(self, benchmarks: Iterable[str]) -> Pace | None:
        """Return the pace of the slowest of some benchmarks, None before the first process of one of them."""
        found = [self._found.get(name) for name in benchmarks]
        known = [pace for pace in found if pace]
        return max(known, key=lambda pace: pace.seconds) if len(known) == len(found) else None
