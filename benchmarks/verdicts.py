"""How often perfflow cries wolf, what it misses, and how long it takes: an experiment on this machine.

Beside a neighbour that loads one core half of the time, identical and truly different programs are compared by
``perfflow compare``, and by hyperfine with the usual rules on its times, in one random order. Then runs are recorded
and replayed as suites of 100 benchmarks, and as the blocks that other tools judge. Every trial is a line of the log;
``--summarize LOG`` prints the tables.

    python -m benchmarks.verdicts --log docs/experiments/verdicts.jsonl
    python -m benchmarks.verdicts --summarize docs/experiments/verdicts.jsonl > docs/experiments/verdicts.md
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.verdict_experiment import live, look, programs, replay, summary
from benchmarks.verdict_experiment.live import Entry
from perfflow.machine.facts import facts
from perfflow.trees import project


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of trial: which program, how long it takes in s (a range), and how much slower the second one is."""

    name: str
    mode: str
    seconds: tuple[float, float]
    factor: float
    tool: str = "perfflow"


IDENTICAL_CPU = Kind("identical, cpu", "cpu", (0.010, 0.025), 1.0)
IDENTICAL_MEM = Kind("identical, memory", "mem", (0.010, 0.025), 1.0)
SLOWER_CPU = Kind("2% slower, cpu", "cpu", (0.025, 0.025), 1.02)
SLOWER_MEM = Kind("5% slower, memory", "mem", (0.016, 0.016), 1.05)
PEER_CPU = Kind("hyperfine: identical, cpu", "cpu", (0.025, 0.025), 1.0, "hyperfine")
PEER_MEM = Kind("hyperfine: identical, memory", "mem", (0.016, 0.016), 1.0, "hyperfine")
PEER_SLOWER = Kind("hyperfine: 2% slower, cpu", "cpu", (0.025, 0.025), 1.02, "hyperfine")


def main() -> None:
    """Run the experiment, or summarize its log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, help="file to write, one JSON object a line; must not exist")
    parser.add_argument("--summarize", type=Path, help="print the tables of a log instead")
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--identical", type=int, default=1000, help="live comparisons of identical programs")
    parser.add_argument("--changed", type=int, default=80, help="of 2%% slower ones, and of 5%% slower ones")
    parser.add_argument("--peer", type=int, default=25, help="runs of hyperfine of each of its three kinds")
    parser.add_argument("--trace", type=int, default=6000, help="processes recorded of each program")
    parser.add_argument("--suites", type=int, default=200, help="unchanged suites replayed of each program")
    options = parser.parse_args()
    if options.summarize:
        sys.stdout.write(summary.tables([json.loads(line) for line in options.summarize.read_text().splitlines()]))
        return
    if not options.log:
        parser.error("--log FILE or --summarize FILE")
    with options.log.open("x", encoding="utf-8") as stream, tempfile.TemporaryDirectory() as folder:

        def note(entry: Entry) -> None:
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
            stream.flush()

        experiment(options, Path(folder), note)


def experiment(options: argparse.Namespace, folder: Path, note: Callable[[Entry], None]) -> None:
    """All of it, each trial noted as it ends."""
    rng = random.Random(options.seed)
    program = programs.build(folder)
    costs = {mode: programs.cost(program, mode) for mode in programs.MODES}
    note(_opening(options))
    trials = [
        *([IDENTICAL_CPU, IDENTICAL_MEM] * (options.identical // 2)),
        *([SLOWER_CPU, SLOWER_MEM] * options.changed),
        *([PEER_CPU, PEER_MEM, PEER_SLOWER] * options.peer),
    ]
    rng.shuffle(trials)
    with programs.neighbour(program):
        for number, kind in enumerate(trials):
            seconds = rng.uniform(*kind.seconds)
            amounts = [costs[kind.mode].amount(seconds * factor) for factor in (1.0, kind.factor)]
            old, new = ([str(program), kind.mode, str(amount)] for amount in amounts)
            seed = rng.randrange(2**31)
            found = live.hyperfine(old, new) if kind.tool == "hyperfine" else live.perfflow(old, new, seed)
            note({"trial": number, "kind": kind.name, "amounts": amounts, "seed": seed, **found})
        traces = {
            kind.mode: _recorded(program, kind, costs[kind.mode], options.trace, rng)
            for kind in (SLOWER_CPU, SLOWER_MEM)
        }
    for mode, trace in traces.items():
        _replay(mode, trace, options.suites, rng, note)
    note({"end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load": os.getloadavg(), "look": look.seconds()})


def _recorded(program: Path, kind: Kind, cost: programs.Cost, runs: int, rng: random.Random) -> replay.Trace:
    command = [str(program), kind.mode, str(cost.amount(kind.seconds[0]))]
    return list(live.trace(command, runs, rng.randrange(2**31)))


def _replay(mode: str, trace: replay.Trace, suites: int, rng: random.Random, note: Callable[[Entry], None]) -> None:
    for factor in (1.0, 1.02, 1.05):
        for _ in range(suites if factor == 1 else suites // 4):
            seed = rng.randrange(2**31)
            note({"suite": mode, "factor": factor, "seed": seed, **replay.suite(trace, seed, factor)})
        for found in replay.blocks(trace, factor):
            note({"blocks": mode, "factor": factor, **found})


def _opening(options: argparse.Namespace) -> Entry:
    known = {name: value for name, value in vars(options).items() if name not in ("log", "summarize")}
    return {
        "start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "options": known,
        "machine": facts(),
        "tree": project.describe(Path(__file__).parent),
        "perfflow": version("perfflow"),
        "neighbour": "one core, half of the time, in bursts of 5 to 105 ms",
    }


if __name__ == "__main__":
    main()
