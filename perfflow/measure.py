"""Which side is sampled next. Pairs in coin-flip order; when to stop is a rule handed in.

Order decides, not the test: measuring all of A and then all of B gives 8-57% false alarms on a noisy machine, and a
fixed ABAB order aliases with periodic noise. The coin depends on seed, benchmark and pair number alone, so a resumed
run flips the same coins.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfflow.samples.readings import Reading, Side

Take = Callable[[Side], tuple[Reading, ...]]
"""Run one fresh process of a side and return its readings; raises when it fails."""
Stop = Callable[[int], bool]
"""Number of finished rounds -> whether that is enough."""

IDLE = 0.1
"""After a pause of this many seconds caches and clocks have gone cold: a first run reads up to 39% slower."""


@dataclass(frozen=True, slots=True)
class Round:
    """One process of each side: pair ``number`` (from 0), which side went first, and what each said."""

    number: int
    first: Side
    readings: Mapping[Side, tuple[Reading, ...]]


def fixed(rounds: int) -> Stop:
    """Stop after a number of rounds."""
    return lambda finished: finished >= rounds


def coin(seed: int, benchmark: str, pair: int) -> bool:
    """A fair coin that is the same for the same seed, benchmark and pair number."""
    text = f"{seed}\0{benchmark}\0{pair}".encode()
    return bool(hashlib.blake2b(text, digest_size=1).digest()[0] & 1)


def rounds(take: Take, sides: Sequence[Side], *, seed: int, benchmark: str, warmup: int, stop: Stop) -> Iterator[Round]:
    """Yield rounds until ``stop`` says so. Warm-up runs, also those after a pause, are thrown away."""
    last_run = 0.0
    for _ in range(warmup):
        for side in sides:
            take(side)
            last_run = time.monotonic()
    number = 0
    while not stop(number):
        flip = len(sides) == 2 and coin(seed, benchmark, number)
        order = list(reversed(sides)) if flip else list(sides)
        if warmup and time.monotonic() - last_run > IDLE:
            take(order[0])
        readings = {}
        for side in order:
            readings[side] = take(side)
        last_run = time.monotonic()
        yield Round(number, order[0], {side: readings[side] for side in sides})
        number += 1
