"""What judging many benchmarks costs: ``python benchmarks/judging.py [BENCHMARKS]`` (default 10000).

A seeded run of 60 pairs a benchmark is written by the writer of events, and judged through the command line: from its
events and, as a CI artifact would be, from its result.json alone. Prints seconds, peak memory and the cost per row.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design, Reading
from perfflow.store import run_folder
from perfflow.store.record import SCHEMA, reading_to_json

PAIRS = 60
STEP = "suite"
SEED = 20260102
SLOWER = 50
"""One benchmark in so many is 15% slower."""


def events(benchmarks: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one suite whose benchmarks take 1 to 20 ms, with 1% noise and bursts of up to 40%."""
    chance = random.Random(SEED)
    yield {
        "event": "run",
        "schema": SCHEMA,
        "run": {
            "id": "generated",
            "workflow": "generated",
            "component": "Generated",
            "started": "2026-01-02T03:04:05.000Z",
            "seed": SEED,
        },
        "machine": {},
        "trees": {"baseline": {}, "candidate": None},
        "criteria": Criteria().to_json(),
        "steps": [
            {
                "id": STEP,
                "stage": "baseline",
                "tool": "google-benchmark",
                "role": "measure",
                "benchmark": "*",
                "metric": None,
                "expect": [],
                "allowed": False,
                "selected": True,
            }
        ],
    }
    for number in range(PAIRS):
        for index in range(benchmarks):
            usual = 0.001 * (1 + index % 20)
            slower = 1.15 if index % SLOWER == 0 else 1.0
            values = [usual * chance.lognormvariate(0, 0.01) * _burst(chance) for _ in range(2)]
            yield {
                "event": "sample",
                "step": STEP,
                "design": Design.LOOKS.value,
                "pair": number,
                "first": chance.choice(("baseline", "candidate")),
                "baseline": [reading_to_json(Reading("time", values[0], _name(index)))],
                "candidate": [reading_to_json(Reading("time", values[1] * slower, _name(index)))],
            }
    yield {
        "event": "step",
        "id": STEP,
        "status": "done",
        "reason": "",
        "seconds": 1.0,
        "argv": ["./suite"],
        "exit_code": 0,
        "warnings": [],
    }
    yield {"event": "end", "time": "2026-01-02T03:14:05.000Z"}


def _burst(chance: random.Random) -> float:
    return 1 + 0.4 * chance.random() if chance.random() < 0.05 else 1.0


def _name(index: int) -> str:
    return f"module{index // 100}/group{index // 10 % 10}/case{index}"


def judged(*arguments: str) -> tuple[float, float, int]:
    """Run ``perfflow report``; returns seconds, peak MB and the exit status."""
    began = time.monotonic()
    with Path(os.devnull).open("wb") as nowhere:
        command = [sys.executable, "-m", "perfflow", "report", *arguments]
        streams = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        child = os.posix_spawn(sys.executable, command, os.environ, file_actions=streams)
        _, status, usage = os.wait4(child, 0)
    return time.monotonic() - began, usage.ru_maxrss / 1000, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Write the run, judge it twice, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("benchmarks", type=int, nargs="?", default=10_000)
    benchmarks: int = parser.parse_args().benchmarks
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        with run_folder.create(folder, folder) as run:
            for event in events(benchmarks):
                run.append(event)
        _print("events.jsonl", folder / run_folder.EVENTS, benchmarks, judged(str(folder)))
        alone = Path(place) / "artifact.json"
        (folder / run_folder.RESULT).rename(alone)
        _print("result.json", alone, benchmarks, judged(str(alone)))
        print(f"{run_folder.REPORT}: {(folder / run_folder.REPORT).stat().st_size / 1e6:.2f} MB")


def _print(what: str, path: Path, rows: int, took: tuple[float, float, int]) -> None:
    seconds, peak, status = took
    size = path.stat().st_size / 1e6
    cost = f"{seconds / rows * 1000:.2f} ms a row"
    print(
        f"{what} ({size:.0f} MB, {rows} rows): {seconds:.1f} s, peak {peak:.0f} MB, {cost}, exit {status}", flush=True
    )


if __name__ == "__main__":
    main()
