"""What one look costs: the computing between two rounds, on up to a thousand pairs."""

from __future__ import annotations

import math
import random
import time

from benchmarks.verdict_experiment.replay import plan
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.sampling.stop_rule import BUDGET, StopRule

LOOKS = [pairs for pairs, _ in SCHEDULES[Design.LOOKS] if pairs <= 1024]

_REPEATS = 20


def seconds() -> dict[str, float]:
    """Median seconds of one look at each number of pairs, for a command with all the metrics it has."""
    rng = random.Random(1)
    planned = plan().steps[0]
    found: dict[str, list[float]] = {str(pairs): [] for pairs in LOOKS}
    for _ in range(_REPEATS):
        stop_rule = StopRule(plan().criteria, planned, BUDGET, lambda: True, clock=lambda: 0.0)
        subject = BenchmarkToSample(planned.benchmark, tuple(Side), lambda _: ())
        stop_rule.start([subject])
        for number in range(LOOKS[-1]):
            event: dict[str, object] = {"event": "sample", "step": planned.id, "design": "looks", "pair": number}
            for side in Side:
                time_, share = 0.02 * math.exp(rng.expovariate(20)), 0.99 + rng.random() / 100
                figures = {"time": time_, "cpu": time_ * share, "uncontended": time_, "main_share": 1.0, "rss": 2e7}
                event[side.value] = [{"metric": name, "value": value} for name, value in figures.items()]
            stop_rule.happened(event)
            if number + 1 in LOOKS:
                began = time.perf_counter()
                stop_rule.decided(subject, number + 1)
                found[str(number + 1)].append(time.perf_counter() - began)
    return {pairs: round(sorted(taken)[_REPEATS // 2], 6) for pairs, taken in found.items()}
