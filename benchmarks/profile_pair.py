"""A pair of profiles of 5,000 stacks in which three functions changed, for tests and ``benchmarks.report``."""

from __future__ import annotations

import random
from collections.abc import Mapping

from perfflow.model.stacks import Stack, StackProfile

CHANGED = {"function 17": 2.0, "function 101": 0.4, "function 333": 1.5}
"""By how much their own cost per operation changed."""
PER_OPERATION = 2_000_000.0
"""ns before."""


def large_stacks(seed: int = 7) -> dict[Stack, float]:
    """5,000 stacks of up to 14 of 400 functions, with the mean of their samples; all functions have own costs."""
    chance = random.Random(seed)
    stacks: dict[Stack, float] = {}
    path = ["main"]
    while len(stacks) < 5000:
        del path[chance.randint(1, len(path)) :]
        path += [f"function {chance.randrange(400)}" for _ in range(chance.randint(1, 6))]
        del path[14:]
        stacks[tuple(path)] = chance.expovariate(1 / 60)
    for name in CHANGED:
        # Large enough for their change to be seen.
        stacks["main", f"caller of {name}", name] = 4000.0
    return stacks


def large_pair(profiles: int = 1) -> list[StackProfile]:
    """So many profiles of each side: samples vary from process to process, and three functions changed besides."""
    chance = random.Random(20260304)
    means = large_stacks()
    slower = {stack: mean * CHANGED.get(stack[-1], 1.0) for stack, mean in means.items()}
    costs = {"baseline": (means, PER_OPERATION), "candidate": (slower, PER_OPERATION * total(slower) / total(means))}
    found = []
    for side, (each, per_operation) in costs.items():
        for number in range(profiles):
            drift = {name: chance.lognormvariate(0, 0.01) for name in sorted({stack[-1] for stack in each})}
            counts = {stack: round(chance.gauss(mean * drift[stack[-1]], mean**0.5)) for stack, mean in each.items()}
            threads = {"": {stack: count for stack, count in counts.items() if count > 0}}
            found.append(StackProfile("cpu", "decode", side, "sampler", "samples", threads, number, per_operation))
    return found


def total(stacks: Mapping[Stack, float]) -> float:
    """All samples."""
    return sum(stacks.values())
