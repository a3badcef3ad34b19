"""Wall and CPU time of whole programs: rounds in random order, medians of each."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds: wall, and user + system of a program with all its children."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def each(self, count: int) -> Cost:
        """The share of one of ``count``."""
        return Cost(self.wall / count, self.cpu / count)


@dataclass(frozen=True, slots=True)
class Job:
    """A command line; ``@`` in a word stands for a new folder, since runs never overwrite one."""

    argv: Sequence[str]
    cwd: Path
    exits: tuple[int, ...] = (0,)


def take(jobs: Mapping[str, Job], rounds: int, *, warm: bool = True) -> dict[str, Cost]:
    """Run every job once a round and return the medians, by name. Raises RuntimeError for one that fails.

    With ``warm`` a round before them fills caches.
    """
    generator = random.Random(1)
    taken: dict[str, list[Cost]] = {name: [] for name in jobs}
    for number in range(rounds + warm):
        for name in generator.sample(list(jobs), len(jobs)):
            cost = _once(jobs[name])
            if number or not warm:
                taken[name].append(cost)
    return {
        name: Cost(statistics.median(cost.wall for cost in costs), statistics.median(cost.cpu for cost in costs))
        for name, costs in taken.items()
    }


def _once(job: Job) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        argv = [word.replace("@", f"{folder}/new") for word in job.argv]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(argv, cwd=job.cwd, env=_environment(), capture_output=True, text=True, check=False)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in job.exits:
        raise RuntimeError(f"{' '.join(argv)[:200]} exited with {done.returncode}: {done.stderr[-2000:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _environment() -> dict[str, str]:
    """Ours, but modules are compiled once and kept, as where a package was installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
