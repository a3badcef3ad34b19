"""What a night on a cluster takes: ``python -m benchmarks.placement`` (``--help`` for its settings).

Suites are planned and shared out into groups by ``perfflow.plan.groups``, as ``run --executor`` does it. Each benchmark
takes one of the durations that ``dev/experiments/verdicts.jsonl`` has of comparisons, drawn at random. The groups then
wait for the nodes of their kind in the order in which they were submitted, and a node has one job at a time.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfflow.plan.groups import LEAST, MOST, Durations, Group, Lengths, groups
from perfflow.session.open_workflow import open_workflow

LOG = Path(__file__).parents[1] / "dev" / "experiments" / "verdicts.jsonl"
BYTES = 57_820
"""Bytes of a run's folder for each benchmark of a gate: 693,835 for 12 of them in one group, each with its own step."""
PACKED = 75_365 / 693_835
"""What is left of these bytes after ``tar czf``."""
POINTS, POINT = 18, 49
"""Points that such a benchmark adds to the history, 9 metrics of both sides; bytes of one.

dev/performance.md has these figures.
"""
NIGHTS = 365


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds beside the measuring: of each job, of a build, of bringing it to a node, of a submission."""

    start: float
    build: float
    again: float
    submit: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """A group that waits for a node of its kind; times in s, ``submitted`` since the night began."""

    kind: str
    seconds: float
    submitted: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A job on a node, named by kind and number; times in s since the night began."""

    job: Job
    node: tuple[str, int]
    began: float
    ended: float

    @property
    def overhead(self) -> float:
        """Seconds in which the node did not measure for it."""
        return self.ended - self.began - self.job.seconds


def simulate(jobs: Sequence[Job], nodes: Mapping[str, int], costs: Costs) -> list[Placed]:
    """Give each job, in order of submission, the node of its kind that is free first. ``nodes``: how many of a kind.

    The first job of a kind builds, and those that start before it has built wait on their nodes.
    """
    free = {kind: [(0.0, number) for number in range(count)] for kind, count in nodes.items()}
    built: dict[str, float] = {}
    found = []
    for job in sorted(jobs, key=lambda job: job.submitted):
        moment, number = heapq.heappop(free[job.kind])
        began = max(moment, job.submitted)
        ready = began + costs.start
        if job.kind in built:
            ready = max(ready, built[job.kind]) + costs.again
        else:
            ready = built[job.kind] = ready + costs.build
        ended = ready + job.seconds
        heapq.heappush(free[job.kind], (ended, number))
        found.append(Placed(job, (job.kind, number), began, ended))
    return found


def recorded(log: Path = LOG) -> list[float]:
    """Seconds that comparisons in pairs took, of identical programs and of slower ones."""
    entries = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [entry["seconds"] for entry in entries if "kind" in entry and entry["part"] in ("same", "slower")]


def shared_out(suites: int, seconds: Mapping[str, Sequence[float]], lengths: Lengths) -> list[Group]:
    """Groups of a workflow whose suites run on each kind of node. ``seconds``: by kind, of each benchmark there."""
    step = 'uses: google-benchmark, matrix: {node: *kinds}, runs-on: "${{ matrix.node }}", with: {command: ./suite}'
    steps = [f"    - {{id: s{number}, {step}}}" for number in range(suites)]
    # The first has the list that the others name again.
    steps[0] = steps[0].replace("*kinds", f"&kinds [{', '.join(seconds)}]")
    text = "\n".join(["perfflow: 1", "name: night", "stages:", "  baseline:", *steps, ""])
    benchmarks: dict[str, dict[str, float]] = {}
    for kind, own in seconds.items():
        for suite in range(suites):
            benchmarks[f"s{suite}[node={kind}]"] = {
                f"b{number}": own[number] for number in range(suite, len(own), suites)
            }
    known = Durations({step: sum(names.values()) for step, names in benchmarks.items()}, benchmarks)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "night.yaml"
        path.write_text(text)
        opened = open_workflow(str(path))
    opened.require_usable(to_run=False)
    return groups(opened.plan, [item.id for item in opened.plan.steps], known, lengths)


@dataclass(frozen=True, slots=True)
class Night:
    """How much is measured, and on how many nodes; ``suites`` share the benchmarks."""

    benchmarks: int
    suites: int
    kinds: int
    nodes: int
    seed: int = 1

    def seconds(self) -> Mapping[str, Sequence[float]]:
        """How long each benchmark takes on each kind of node, drawn from what was recorded."""
        luck, known = random.Random(self.seed), recorded()
        return {f"k{kind}": luck.choices(known, k=self.benchmarks) for kind in range(1, self.kinds + 1)}


APART = (0.0, 0.0)
"""In the place of a group's shortest and longest: each benchmark is a job of its own."""


def submitted(night: Night, bounds: tuple[float, float], machines: int, submit: float) -> list[Job]:
    """The jobs of a night, one submitted after the other. ``machines`` of each kind are there; times in s."""
    seconds = night.seconds()
    if bounds == APART:
        each = [(kind, one) for kind, own in seconds.items() for one in own]
    else:
        shared = shared_out(night.suites, seconds, Lengths(*bounds, lambda _: machines))
        each = [(group.place.labels[0], group.seconds) for group in shared]
    return [Job(kind, own, number * submit) for number, (kind, own) in enumerate(each)]


def row(night: Night, bounds: tuple[float, float], costs: Costs) -> str:
    """Simulate a night and say how it went, as a row of the table."""
    nodes = {f"k{kind}": night.nodes for kind in range(1, night.kinds + 1)}
    jobs = submitted(night, bounds, night.nodes, costs.submit)
    placed = simulate(jobs, nodes, costs)
    busy = sum(each.ended - each.began for each in placed)
    overhead = sum(each.overhead for each in placed)
    last, ends = max(each.began for each in placed), max(each.ended for each in placed)
    group = "one benchmark" if bounds == APART else " to ".join(map(_length, bounds))
    return (
        f"| {night.nodes} | {group} | {len(jobs):,} | {_length(busy / len(jobs))} "
        f"| {_length(last)} | {_length(ends)} | {overhead / busy:.1%} |"
    )


def growth(rows: int) -> Iterator[str]:
    """What as many rows of reports add to the disks, each night and each year, as lines of a table."""
    night = {
        "run folders": rows * BYTES,
        "run folders, packed with gzip": rows * BYTES * PACKED,
        "history": float(rows * POINTS * POINT),
    }
    for name, size in night.items():
        yield f"| {name} | {_size(size)} | {_size(size * NIGHTS)} |"


def _length(seconds: float) -> str:
    if seconds > 2 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 200 else f"{seconds:.0f} s"


def _size(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counts = {"benchmarks": 10_000, "suites": 100, "kinds": 20, "seed": 1}
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="default: %(default)s")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4, 8], help="of each kind; default: %(default)s")
    lengths = [APART, (LEAST, MOST)]
    parser.add_argument(
        "--group", type=_bounds, nargs="+", default=lengths, help="seconds LEAST-MOST of a group; 0-0: one benchmark"
    )
    costs = {"start": 10.0, "build": 300.0, "again": 10.0, "submit": 0.03}
    for cost, seconds in costs.items():
        parser.add_argument(f"--{cost}", type=float, default=seconds, help="s; default: %(default)s")
    return parser.parse_args()


def _bounds(text: str) -> tuple[float, float]:
    least, _, most = text.partition("-")
    return float(least), float(most)


def main() -> None:
    """Print both tables."""
    asked = _asked()
    costs = Costs(asked.start, asked.build, asked.again, asked.submit)
    rows = asked.benchmarks * asked.kinds
    known = recorded()
    print(f"{asked.benchmarks:,} benchmarks in {asked.suites} suites on each of {asked.kinds} kinds of node;")
    print(f"durations drawn from {len(known):,} recorded ones, {sum(known) / len(known):.1f} s on average;")
    print(f"a job costs {costs.start:g} s, a kind's build {costs.build:g} s, bringing it to a job {costs.again:g} s\n")
    heads = ("nodes of a kind", "group", "jobs", "a job lasts", "last job starts", "all ends", "overhead")
    _heading(heads)
    for count in asked.nodes:
        night = Night(asked.benchmarks, asked.suites, asked.kinds, count, asked.seed)
        for bounds in asked.group:
            print(row(night, bounds, costs), flush=True)
    print(f"\n{rows:,} rows of reports:\n")
    _heading(("", "a night", "a year"))
    for line in growth(rows):
        print(line)


def _heading(names: Sequence[str]) -> None:
    print(f"| {' | '.join(names)} |\n|{'---|' + '--:|' * (len(names) - 1)}")


if __name__ == "__main__":
    main()
