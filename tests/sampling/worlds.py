"""Steps whose processes take the time of a clock that runs only while they do, and suites of benchmarks."""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, LostError, PairScheduler, Request, SamplingProgress
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.verdict.comparison import ComparedMetric, compare

BOTH = tuple(Side)
START = 1000.0
MUCH = 99
"""So many other benchmarks that changes must be confirmed."""
Readings = tuple[Reading, ...]


@cache
def plan() -> Plan:
    """The plan of a comparison of two commands."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "compare.yaml"
        path.write_text(json.dumps(workflow_of(Question("old", "new"))))
        return open_workflow(str(path)).plan


class World:
    """A step whose processes take ``lasts`` seconds; readings of the candidate are ``slower`` times as large."""

    def __init__(self, lasts: float = 0.05, noise: float = 0.01, slower: float = 1.0, budget: float = math.inf) -> None:
        self.now, self.lasts, self.noise, self.slower = START, lasts, noise, slower
        self.events: list[dict[str, Any]] = []
        self.told: list[SamplingProgress] = []
        self.warnings: dict[str, None] = {}
        self.runs: Counter[str] = Counter()
        self.lost_after: dict[str, int] = {}
        self.rule = StopRule(Criteria(), plan().steps[0], budget, clock=lambda: self.now)
        scheduler = PairScheduler(7, clock=lambda: self.now)
        self.sampling = StepSampling("s", scheduler, self.rule, self._store, self.warnings, self.told.append)

    def _store(self, event: Any) -> None:
        self.events.append(dict(event))

    def subject(self, name: str, sides: tuple[Side, ...] = BOTH, *, one_sided: bool = False) -> BenchmarkToSample:
        def take(request: Request) -> Readings:
            self.runs[name] += 1
            self.now += self.lasts
            if self.runs[name] > self.lost_after.get(name, 10**6):
                raise LostError
            # The value does not depend on the order of the processes, so a resumed run gives the same.
            luck = random.Random(f"{name} {request.side} {request.number} {request.layout}")
            slower = self.slower if request.side is Side.CANDIDATE else 1.0
            return (Reading("time", slower * math.exp(luck.gauss(0, self.noise)), name),)

        return BenchmarkToSample(name, sides, take, one_sided)

    def subjects(self, names: str) -> list[BenchmarkToSample]:
        return [self.subject(name) for name in names]

    def steady(self, request: Request, slower: float) -> Readings:
        """Take a reading with hardly any noise; the candidate's is ``slower`` times as large."""
        self.now += self.lasts
        name = request.benchmarks[0].name
        luck = random.Random(f"{name} {request.side} {request.number}").gauss(0, 0.002)
        return (Reading("time", math.exp(luck) * (slower if request.side is Side.CANDIDATE else 1.0), name),)

    def decided(
        self, subjects: str | Sequence[BenchmarkToSample], end: float = math.inf, budget: float = math.inf, **keys: Any
    ) -> World:
        """Sample until all are decided; ``budget``: that of each benchmark."""
        known = self.subjects(subjects) if isinstance(subjects, str) else subjects
        self.sampling.take_until_decided(known, end, budget, **keys)
        return self

    def samples(self, name: str) -> list[dict[str, Any]]:
        return [item for item in self.events if name in (item.get("baseline") or item["candidate"])[0]["benchmark"]]

    def designs(self, name: str = "") -> dict[str, int]:
        return Counter(item["design"] for item in self.samples(name))

    def row(self, name: str) -> ComparedMetric:
        return compare(self.rule.record.series[name, "time"], Criteria())


class Together:
    """A suite of benchmarks that one process measures; ``among`` and ``alone``: how much slower the candidate is."""

    def __init__(self, world: World, names: str, among: float, alone: float) -> None:
        self.world, self.among, self.alone, self.requests = world, among, alone, list[str]()
        self.benchmarks = [BenchmarkToSample(name, BOTH, self.take, own_id=name, together=math.inf) for name in names]

    def take(self, request: Request) -> Readings:
        names = "".join(sorted(item.name for item in request.benchmarks))
        self.requests.append(names)
        slower = self.among if len(names) > 1 else self.alone
        return tuple(
            reading
            for item in request.benchmarks
            for reading in self.world.steady(replace(request, benchmarks=(item,)), slower if item.name == "a" else 1.0)
        )


def without(items: Sequence[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return events without some keys."""
    return [{key: value for key, value in item.items() if key not in keys} for item in items]


def taken_up(
    made: Callable[[], World], subjects: Callable[[World], list[BenchmarkToSample]], cuts: Sequence[int], **keys: Any
) -> Iterator[tuple[int, World, World]]:
    """Yield each cut with a whole sampling, and one of the same world that takes it up after so many events."""
    whole = made()
    whole.decided(subjects(whole), **keys)
    for cut in cuts:
        again = made()
        known = subjects(again)
        again.sampling.recall(whole.events[:cut], known)
        yield cut, whole, again.decided(known, **keys)
