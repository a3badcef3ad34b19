"""Which benchmarks of a suite take another time alone than among the others."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from perfflow.jobs.calibrate.calibrate import disturbed
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, Request
from perfflow.sampling.sampling import MOST_ALONE
from perfflow.stats.paired_test import ENOUGH
from tests.sampling.test_sampling import BOTH, made


def test_benchmarks_that_take_another_time_among_others_are_named(plan: Plan) -> None:
    world, requests = made(plan), Counter[int]()

    def take(request: Request) -> tuple[Reading, ...]:
        requests[len(request.benchmarks)] += 1
        found = []
        for item in request.benchmarks:
            # Different code on a side would be another effect.
            assert request.side is Side.BASELINE
            among = len(request.benchmarks) > 1
            (reading,) = world.steady(replace(request, benchmarks=(item,)), 1.0)
            factor = {"b0": 2.0, "b4": 0.5, "b8": 1.02}.get(item.name, 1.0) if among else 1.0
            found.append(replace(reading, value=reading.value * factor))
        return tuple(found)

    suite = [
        BenchmarkToSample(f"b{number}", BOTH, take, own_id=f"b{number}", together=math.inf) for number in range(32)
    ]
    own = BenchmarkToSample("own", BOTH, take)
    changes = dict(disturbed(world.sampling, [suite, [own]], Criteria()))
    assert set(changes) == {"b0", "b4"}
    assert math.isclose(changes["b0"], -0.5, abs_tol=0.01)
    assert math.isclose(changes["b4"], 1.0, abs_tol=0.01)
    # One process of the whole suite for each pair and for the warm-up, whatever the number of benchmarks.
    assert requests[32] == ENOUGH + 1
    assert requests[1] <= MOST_ALONE * (2 * ENOUGH + 2)
