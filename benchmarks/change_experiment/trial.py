"""Looks for changes in simulated histories, by perfflow and by Otava, and counts what was found."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.change_experiment.series import NOISES, SHAPES, History, history
from perfflow.stats.change_points import changes

NEAR = 10
"""A change within so many points of the true one has found it."""
PUBLISHED = Path(__file__).parents[1] / "tigerbeetle.json"
# Run by the Python that has Otava: a series of values a line in, the indices of its change points a line out.
_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    found, _ = compute_change_points(json.loads(line))
    print(json.dumps([int(item.index) for item in found]))
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What one program says of one series: indices of the first point after each change, and the number of drifts."""

    changes: list[int]
    drifts: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Counts of series of one shape and noise. ``near``, ``within_1`` and ``within_2``: all true steps found so."""

    program: str
    shape: str
    noise: str
    series: int
    changed: int
    """Series with any change of level told."""
    drifted: int
    either: int
    told: int
    """Changes of level told in all series."""
    near: int
    within_1: int
    within_2: int

    def as_json(self) -> dict[str, Any]:
        """The counts as data."""
        return asdict(self)


def by_perfflow(series: Sequence[History]) -> list[Told]:
    """What ``perfflow history changes`` would say of each series."""
    found = (changes(one.values, one.errors) for one in series)
    return [Told([change.at for change in one.changes], len(one.drifts)) for one in found]


def by_otava(python: str, values: Sequence[Sequence[float]]) -> list[Told]:
    """What Otava says of each series of values by default. Raises CalledProcessError where it fails."""
    with tempfile.TemporaryFile("w+") as lines:
        lines.writelines(json.dumps(list(one)) + "\n" for one in values)
        lines.seek(0)
        done = subprocess.run([python, "-c", _OTAVA], stdin=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [Told(json.loads(line)) for line in done.stdout.splitlines()]


def version_of_otava(python: str) -> str:
    """The version of the package apache-otava that this Python has; raises CalledProcessError without one."""
    script = "from importlib.metadata import version; print(version('apache-otava'))"
    return subprocess.run([python, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def counted(program: str, shape: str, noise: str, series: Sequence[History], told: Sequence[Told]) -> Cell:
    """Count what was told of the series of one cell."""
    off = [_off(one.steps, said.changes) for one, said in zip(series, told, strict=True)]
    return Cell(
        program,
        shape,
        noise,
        len(series),
        sum(bool(said.changes) for said in told),
        sum(said.drifts > 0 for said in told),
        sum(bool(said.changes) or said.drifts > 0 for said in told),
        sum(len(said.changes) for said in told),
        *(sum(far <= most for far in off) for most in (NEAR, 1, 2)),
    )


def _off(steps: Sequence[int], told: Sequence[int]) -> float:
    """How far the worst found of the true steps is from the nearest change told."""
    if not steps or not told:
        return math.inf
    return max(min(abs(at - one) for one in told) for at in steps)


def cells(count: int, otava: str | None) -> Iterator[Cell]:
    """Yield the counts of every shape and noise, ``count`` series each; of Otava too where a Python has it."""
    with ThreadPoolExecutor(1) as pool:
        for shape in SHAPES:
            every = {noise: [history(shape, noise, seed) for seed in range(count)] for noise in NOISES}
            values = [[math.exp(value) for value in one.values] for series in every.values() for one in series]
            of_otava = pool.submit(by_otava, otava, values) if otava else None
            for noise, series in every.items():
                yield counted("perfflow", shape, noise, series, by_perfflow(series))
            if of_otava:
                told = of_otava.result()
                for number, (noise, series) in enumerate(every.items()):
                    yield counted("Otava", shape, noise, series, told[number * count : (number + 1) * count])


def published(otava: str | None) -> dict[str, Any]:
    """What each program says of TigerBeetle's public series."""
    values = json.loads(PUBLISHED.read_text())["values"]
    found = changes([math.log(value) for value in values], [0.0] * len(values))
    said: dict[str, Any] = {
        "perfflow": [asdict(change) for change in found.changes],
        "drifts": [asdict(drift) for drift in found.drifts],
        "outliers": found.outliers,
        "rho": found.rho,
    }
    if otava:
        said["Otava"] = by_otava(otava, [values])[0].changes
    return said
