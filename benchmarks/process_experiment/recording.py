"""The recording: rounds in which every harness runs each change once, all in random order, one line a process."""

from __future__ import annotations

import json
import lzma
import os
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.process_experiment.harnesses import Harness, Samples, run

BASE = "no change"
CHANGES: Mapping[str, tuple[int, float]] = {
    BASE: (1, 1.0),
    "no change, again": (1, 1.0),
    "all +2%": (1, 1.02),
    "all +5%": (1, 1.05),
    "every 2nd x1.1": (2, 1.1),
    "every 2nd x2": (2, 2.0),
    "every 10th x2": (10, 2.0),
    "every 50th x3": (50, 3.0),
}
"""Every n-th call takes so many times as long."""
_STEPS = 3000
"""A value is kept to this part of its process's median, which is finer than any noise here."""


@dataclass(frozen=True, slots=True)
class Process:
    """The samples of one process: seconds per iteration, and iterations."""

    harness: str
    size: str
    change: str
    round: int
    load: float
    """The machine's load average when it ended."""
    seconds: tuple[float, ...]
    iterations: tuple[float, ...]


def record(harnesses: Sequence[Harness], rounds: int, seed: int, path: Path) -> None:
    """Run all, and write a line for each process."""
    rng = random.Random(seed)
    kinds = [(harness, size) for harness in harnesses for size in harness.units]
    with lzma.open(path, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8") as stream:
        for number in range(rounds):
            rng.shuffle(kinds)
            for harness, size in kinds:
                for change in rng.sample(list(CHANGES), len(CHANGES)):
                    found = run(harness, size, CHANGES[change])
                    _write(stream, {"of": f"{harness.name}/{size}", "change": change, "round": number}, found)
            print(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
            stream.flush()


def _write(stream: TextIO, line: dict[str, object], found: Samples) -> None:
    seconds, iterations = found
    unit = statistics.median(seconds) / _STEPS
    line |= {"load": round(os.getloadavg()[0], 1), "unit": float(f"{unit:.6g}")}
    line |= {"values": [round(value / unit) for value in seconds]}
    step = iterations[1] - iterations[0] if len(iterations) > 1 else 0
    # Criterion's samples have d, 2d, 3d ... iterations, those of the others all the same number.
    stream.write(json.dumps(line | {"first": iterations[0], "step": step}, separators=(",", ":")) + "\n")


def read(path: Path) -> Iterator[Process]:
    """Read what ``record`` wrote."""
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            harness, size = line["of"].split("/")
            seconds = tuple(value * line["unit"] for value in line["values"])
            iterations = tuple(line["first"] + line["step"] * number for number in range(len(seconds)))
            yield Process(harness, size, line["change"], line["round"], line["load"], seconds, iterations)
