"""How rounds of suites do: suites called changed without a change, changes found, and the pairs that it takes.

Suites are simulated, and perfflow's own sampling and judging decide. One process of each side measures all benchmarks,
a pair in the rounds or alone. The logarithm of a ratio varies by the noise of a pair, of which a part is common to all
benchmarks of a process: other work on the machine slows down all of them. Now and then a process is disturbed by more.

    python -m benchmarks.rounds > dev/experiments/rounds.md
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Request
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import StopRule
from perfflow.session.open_workflow import open_workflow
from perfflow.stats.paired_test import clopper_pearson_upper
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule

ROWS = 64
COMMON = 0.5
"""Share of the variance of a process that is common to all of its benchmarks."""
DISTURBED = 0.05
"""Share of the processes that other work slows down, by up to ten times the noise."""
MOST = 40
"""Pairs of the rounds after which the time is spent."""
ALARMS = (0.03, 0.1)
"""The noise of a pair beside which suites are compared with themselves."""
FOUND = ((0.03, 0.05), (0.03, 0.1), (0.03, 0.15), (0.05, 0.15), (0.1, 0.15), (0.1, 0.3))
"""The noise of a pair, and a change to find."""
IN_PROCESS = 0.05
"""Seconds of one benchmark in a process."""
START = 1.0


class Suite:
    """A suite of ROWS benchmarks; ``factors``: how many times as long some take on the candidate's side."""

    def __init__(self, plan: Plan, noise: float, factors: Mapping[str, float], seed: int) -> None:
        self._chance, self._noise, self._factors = random.Random(seed), noise / math.sqrt(2), factors
        self.now, self.processes = 0.0, 0
        self.events: list[Mapping[str, Any]] = []
        step = plan.steps[0]
        self.rule = StopRule(Criteria(), step, math.inf, clock=lambda: self.now)
        scheduler = PairScheduler(seed, warmup=1, clock=lambda: self.now)
        self.sampling = StepSampling(step.id, scheduler, self.rule, self.events.append, {})
        self.benchmarks = [
            BenchmarkToSample(f"b{number}", tuple(Side), self._take, own_id=f"b{number}", together=math.inf)
            for number in range(ROWS)
        ]

    def _take(self, request: Request) -> tuple[Reading, ...]:
        self.processes += 1
        self.now += START + IN_PROCESS * len(request.benchmarks)
        chance, noise = self._chance, self._noise
        common = chance.gauss(0, noise * math.sqrt(COMMON))
        if chance.random() < DISTURBED:
            common += noise * chance.uniform(1, 10)
        found = []
        for item in request.benchmarks:
            factor = self._factors.get(item.name, 1.0) if request.side is Side.CANDIDATE else 1.0
            value = factor * math.exp(common + chance.gauss(0, noise * math.sqrt(1 - COMMON)))
            found.append(Reading("time", value, item.name))
        return tuple(found)

    def measure(self) -> dict[str, str]:
        """Sample the suite as a gate does, and return the decisions."""
        pair = 2 * (START + IN_PROCESS * ROWS)
        self.sampling.take_until_decided(self.benchmarks, MOST * pair, math.inf, coarsely=True)
        return {name: str(self._decided(name)) for name, _ in self.rule.record.series}

    def _decided(self, name: str) -> str | None:
        row = compare(self.rule.record.series[name, "time"], Criteria())
        return rule(row, Criteria().thresholds_of(name, "time"), identical=False).decision

    @property
    def rounds(self) -> list[int]:
        """The pairs of each benchmark."""
        return list(Counter(event["baseline"][0]["benchmark"] for event in self.events).values())


def share(count: int, of: int) -> str:
    """Return a count, its share and the upper 95% bound of the share."""
    return f"{count} of {of} ({count / of:.2%}, at most {clopper_pearson_upper(count, of, 0.95):.2%})"


def show_alarms(plan: Plan, suites: int) -> None:
    """Print the rows and suites without a change that are called changed."""
    print("## False alarms\n\nSuites against themselves.\n")
    print(
        "| noise of a pair | rows called changed | suites with such a row | unproven rows | median pairs | processes |"
    )
    print("|---|---|---|---|---|---|")
    for noise in ALARMS:
        rows = alarmed = unproven = 0
        pairs, processes = list[int](), list[int]()
        for seed in range(suites):
            suite = Suite(plan, noise, {}, seed)
            found = Counter(suite.measure().values())
            changed = found["regressed"] + found["improved"]
            rows, alarmed, unproven = rows + changed, alarmed + (changed > 0), unproven + found["unproven"]
            pairs += suite.rounds
            processes.append(suite.processes)
        of = suites * ROWS
        cells = [f"{noise:.0%}", share(rows, of), share(alarmed, suites), f"{unproven / of:.1%}"]
        print(f"| {' | '.join([*cells, f'{median(pairs):.0f}', f'{median(processes):.0f}'])} |", flush=True)


def show_found(plan: Plan, suites: int) -> None:
    """Print what is found of changes of two benchmarks."""
    print(f"\n## What is found\n\nTwo of {ROWS} benchmarks take longer, in {suites} suites.\n")
    print("| noise of a pair | change | regressed | unproven | same | others changed | others unproven | processes |")
    print("|---|---|---|---|---|---|---|---|")
    for noise, change in FOUND:
        changed, others = Counter[str](), Counter[str]()
        processes = []
        factors = {"b3": 1 + change, "b40": 1 + change}
        for seed in range(suites):
            suite = Suite(plan, noise, factors, 10_000 + seed)
            for name, decision in suite.measure().items():
                (changed if name in factors else others)[decision] += 1
            processes.append(suite.processes)
        cells = [f"{noise:.0%}", f"+{change:.0%}"]
        cells += [f"{changed[word] / changed.total():.0%}" for word in ("regressed", "unproven", "same")]
        cells += [str(others["regressed"] + others["improved"]), f"{others['unproven'] / others.total():.1%}"]
        print(f"| {' | '.join([*cells, f'{median(processes):.0f}'])} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=32, help="suites of each row of the first table")
    parser.add_argument("--changed", type=int, default=4, help="suites of each row of the second table")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suite.yaml"
        path.write_text(json.dumps(workflow_of(Question("old", "new"))), encoding="utf-8")
        plan = open_workflow(str(path)).plan
    print(f"# Rounds of suites: a simulation\n\nWritten by `python -m benchmarks.rounds --suites {asked.suites} "
          f"--changed {asked.changed}`.\n\n{ROWS} benchmarks in one process a side, at most {MOST} pairs of the whole "
          f"suite, as in a gate. {COMMON:.0%} of the variance is common to\nall benchmarks of a process, and "
          f"{DISTURBED:.0%} of the processes are slower by up to ten times the noise. A process for each "
          f"benchmark\nand sample would be {2 * ROWS * 11} processes for 11 pairs.\n")  # fmt: skip
    show_alarms(plan, asked.suites)
    show_found(plan, asked.changed)


if __name__ == "__main__":
    main()
