"""How the looks of an adaptive comparison do: false alarms, what is found, and how many pairs it takes.

Programs are simulated, decisions are those of perfflow. Three kinds of noise: independent normal noise, a random walk
with bursts (Pareto, shape 1.5), and normal noise in whole clock ticks.

    python -m benchmarks.looks > dev/experiments/looks.md
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from statistics import mean, median

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.readings import SCHEDULES, Design, Reading, Side
from perfflow.stats.paired_test import (
    blocks_of,
    clopper_pearson_upper,
    paired_interval,
    paired_p,
    permutation_interval,
    permutation_p,
)
from perfflow.store.record import MetricSeries
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule, settled

AFFORDED = 400
"""Pairs of a command of 25 ms in the default budget of 20 s."""
FARTHEST = {"looks": 512, "few": 50}
"""How far the looks of identical programs are followed."""
TICK = 0.01

Runs = Callable[[random.Random, float], Iterator[float]]
"""(chance, noise) -> the times of one program's runs, one after the other."""


def normal(chance: random.Random, noise: float) -> Iterator[float]:
    """Yield independent times around one."""
    while True:
        yield math.exp(chance.gauss(0, noise))


def bursts(chance: random.Random, noise: float) -> Iterator[float]:
    """Yield times of a machine whose speed walks, and which others disturb now and then, sometimes for long."""
    level = 0.0
    while True:
        level += chance.gauss(0, noise)
        yield math.exp(level) * (1 + noise * (chance.paretovariate(1.5) - 1))


def ticks(chance: random.Random, noise: float) -> Iterator[float]:
    """Yield times of a coarse clock."""
    return (round(value / TICK) * TICK for value in normal(chance, noise))


SHAPES: Mapping[str, Runs] = {"normal": normal, "random walk, bursts": bursts, "clock ticks": ticks}


FOUND = {"normal": (0.003, 0.01, 0.03, 0.1), "random walk, bursts": (0.003, 0.01, 0.03)}
"""The noise beside which changes are looked for."""


def sides_of(runs: Iterator[float], design: str, count: int, chance: random.Random) -> tuple[list[float], list[float]]:
    """Take runs of two identical programs in coin-flip pairs, or in random order within blocks."""
    a: list[float] = []
    b: list[float] = []
    for size in blocks_of(count) if design == "few" else [1] * count:
        block = [next(runs) for _ in range(2 * size)]
        chance.shuffle(block)
        a += block[:size]
        b += block[size:]
    return a, b


def alarms(design: str, shape: Runs, trials: int) -> int:
    """Count the trials of identical programs in which any look rejects "no change", none ending the trial early."""
    looks = [(pairs, alpha) for pairs, alpha in SCHEDULES[design] if pairs <= FARTHEST[design]]
    found = 0
    for seed in range(trials):
        chance = random.Random(seed)
        a, b = sides_of(shape(chance, 0.03), design, looks[-1][0], chance)
        found += any(
            (permutation_p(a[:n], b[:n], 0.0, blocks_of(n)) if design == "few" else paired_p(a[:n], b[:n])) <= alpha
            for n, alpha in looks
        )
    return found


def decided(shape: Runs, noise: float, change: float, seed: int) -> tuple[str, int]:
    """The decision of one simulated run, and the pairs it took, with the floor of identical files."""
    chance = random.Random(seed)
    a, b = sides_of(shape(chance, noise), "looks", AFFORDED, chance)
    for pairs in [*(pairs for pairs, _ in SCHEDULES[Design.LOOKS] if pairs < AFFORDED), AFFORDED]:
        series = MetricSeries("b", "time", "s", "t", paired=True, two_sided=True, design="looks")
        series.sides[Side.BASELINE] = [Reading("time", value) for value in a[:pairs]]
        series.sides[Side.CANDIDATE] = [Reading("time", value * (1 + change)) for value in b[:pairs]]
        row = compare(series, Criteria())
        ruling = rule(row, Thresholds(), identical=True)
        if settled(row, ruling, Thresholds(), identical=True) or pairs >= SCHEDULES[Design.LOOKS][-1][0]:
            break
    return str(ruling.decision), row.pairs


def show_alarms(trials: int) -> None:
    """Print the share of identical programs that any look calls changed."""
    print(f"## False alarms\n\nIdentical programs, noise 3%, {trials} trials, every look of "
          f"{FARTHEST['looks']} pairs or {FARTHEST['few']} + {FARTHEST['few']} runs taken.\n")  # fmt: skip
    print("| design | noise | trials with an alarm | upper 95% bound |\n|---|---|---|---|")
    for design in FARTHEST:
        for name, shape in SHAPES.items():
            found = alarms(design, shape, trials)
            bound = clopper_pearson_upper(found, trials, 0.95)
            print(f"| {design} | {name} | {found} ({found / trials:.2%}) | {bound:.2%} |", flush=True)


def show_found(trials: int) -> None:
    """Print what is decided of programs that differ by a known change."""
    print(f"\n## What is found\n\n{trials} trials each, at most {AFFORDED} pairs (20 s of a 25 ms command), "
          "the floor of 0.5% of identical files.\n")  # fmt: skip
    print("| noise of a run | change | improved or regressed | same | unproven | median pairs | mean pairs |")
    print("|---|---|---|---|---|---|---|")
    for name, noises in FOUND.items():
        for noise in noises:
            for change in (0.0, 0.01, 0.02, 0.05):
                seen = [decided(SHAPES[name], noise, change, seed) for seed in range(trials)]
                said = Counter(decision for decision, _ in seen)
                shares = [(said["regressed"] + said["improved"]), said["same"], said["unproven"]]
                pairs = [count for _, count in seen]
                cells = [f"{name} {noise:.1%}", f"{change:.0%}", *(f"{share / trials:.0%}" for share in shares)]
                print(f"| {' | '.join([*cells, f'{median(pairs):.0f}', f'{mean(pairs):.1f}'])} |", flush=True)


def show_cost() -> None:
    """Print the CPU time of one interval."""
    print("\n## What one interval costs\n\n| design | samples of each side | normal | clock ticks |\n|---|---|---|---|")
    for design, counts in (("looks", (64, 256, 1024, 4096)), ("few", (8, 26, 98))):
        for count in counts:
            cells = []
            for shape in (normal, ticks):
                chance = random.Random(1)
                a, b = sides_of(shape(chance, 0.03), design, count, chance)
                began = time.process_time()
                if design == "few":
                    permutation_interval(a, b, 0.9998, blocks_of(count))
                else:
                    paired_interval(a, b, 0.9998)
                cells.append(f"{(time.process_time() - began) * 1e3:.0f} ms")
            print(f"| {design} | {count} | {' | '.join(cells)} |")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alarm-trials", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=100)
    asked = parser.parse_args()
    print("# The looks: a simulation\n\nWritten by `python -m benchmarks.looks`.\n")
    print("| design | at | share of false alarms |\n|---|---|---|")
    for design in ("looks", "few"):
        schedule = SCHEDULES[design]
        print(f"| {design} | {', '.join(str(n) for n, _ in schedule)} | {', '.join(f'{a:.5g}' for _, a in schedule)} |")
    print()
    show_alarms(asked.alarm_trials)
    show_found(asked.trials)
    show_cost()


if __name__ == "__main__":
    main()
