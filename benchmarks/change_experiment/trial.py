"""Looks for changes in simulated histories, by perfflow and by Otava, and counts what was found."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.change_experiment import series
from benchmarks.change_experiment.series import CHANGING, NOISES, SHAPES, History, history
from perfflow.stats import change_points, partition, series_noise
from perfflow.stats.change_points import changes

PERFFLOW, OTAVA = "perfflow", "Otava"
NEAR = 10
"""A change within so many points of the true one has found it."""
PUBLISHED = {"TigerBeetle": "tigerbeetle.json", "fib_20": "fib_20.json"}
# Run by the Python that has Otava: a series of values a line in, the indices of its change points a line out.
_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    found, _ = compute_change_points(json.loads(line))
    print(json.dumps([int(item.index) for item in found]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """What one program says of one series: indices of the first point after each change, and the number of drifts."""

    changes: list[int]
    drifts: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Counts of series of one shape and noise. ``near``, ``within_1`` and ``within_2``: all true steps found so."""

    program: str
    version: str
    """Of Otava its package's; of perfflow a hash of the code that was asked."""
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
    exact: int
    """Series with as many changes told as there are, all within two points."""


def own_version() -> str:
    """Return a hash of the code that looks for changes and of that which draws the series, without their comments."""
    modules = (
        change_points,
        change_points,
        change_points,
        change_points,
        series_noise,
        partition,
        series_noise,
        series,
    )
    digest = hashlib.sha256()
    for module in modules:
        tree = ast.parse(Path(module.__file__ or "").read_text())
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                node.body = [one for one in node.body if not _is_docstring(one)]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def by_perfflow(one: History) -> SeriesResult:
    """What ``perfflow history changes`` would say of a series."""
    found = changes(one.values, one.errors)
    return SeriesResult([change.at for change in found.changes], len(found.drifts))


class Otava:
    """Otava with its defaults, asked through a Python that has it. Raises CalledProcessError without the package."""

    def __init__(self, python: str) -> None:
        script = "from importlib.metadata import version; print(version('apache-otava'))"
        self.version = subprocess.run(
            [python, "-c", script], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()
        self._process = subprocess.Popen(
            [python, "-c", _OTAVA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def told(self, values: Sequence[float]) -> SeriesResult:
        """What it says of a series of values. Raises ValueError where it ended without an answer."""
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise ValueError("Otava's process has no pipes")
        asked.write(json.dumps(list(values)) + "\n")
        return SeriesResult(json.loads(answers.readline()))


def counted(program: str, version: str, key: tuple[str, str], rows: Sequence[tuple[History, SeriesResult]]) -> Cell:
    """Count what was told of the series of one cell; ``key`` is its shape and noise."""
    off = [_off(one.steps, said.changes) for one, said in rows]
    told = [said for _, said in rows]
    as_many = [len(one.steps) == len(said.changes) for one, said in rows]
    shape, noise = key
    return Cell(
        program=program,
        version=version,
        shape=shape,
        noise=noise,
        series=len(rows),
        changed=sum(bool(said.changes) for said in told),
        drifted=sum(said.drifts > 0 for said in told),
        either=sum(bool(said.changes) or said.drifts > 0 for said in told),
        told=sum(len(said.changes) for said in told),
        near=sum(far <= NEAR for far in off),
        within_1=sum(far <= 1 for far in off),
        within_2=sum(far <= 2 for far in off),
        exact=sum(far <= 2 and same for far, same in zip(off, as_many, strict=True)),
    )


def _off(steps: Sequence[int], told: Sequence[int]) -> float:
    """How far the worst found of the true steps is from the nearest change told."""
    if not steps or not told:
        return math.inf
    return max(min(abs(at - one) for one in told) for at in steps)


def every_key() -> list[tuple[str, str]]:
    """The shape and noise of every cell, in the order in which they are counted."""
    return [(shape, noise) for shape in SHAPES for noise in (*NOISES, *CHANGING)]


def count_perfflow(key: tuple[str, str], count: int) -> dict[str, Any]:
    """Count one cell of perfflow with ``count`` series."""
    drawn = [history(*key, seed) for seed in range(count)]
    return asdict(counted(PERFFLOW, own_version(), key, [(one, by_perfflow(one)) for one in drawn]))


def count_otava(otava: Otava, key: tuple[str, str], count: int) -> dict[str, Any]:
    """Count one cell of Otava with the first ``count`` of the same series."""
    drawn = [history(*key, seed) for seed in range(count)]
    rows = [(one, otava.told([math.exp(value) for value in one.values])) for one in drawn]
    return asdict(counted(OTAVA, otava.version, key, rows))


def published(name: str) -> dict[str, Any]:
    """What perfflow says of a public series, whose runs have no errors of their own."""
    data = _read(name)
    found = changes([math.log(value) for value in data["values"]], [0.0] * len(data["values"]))
    dates = data.get("dates", [""] * len(data["values"]))
    return {
        **_heading(PERFFLOW, own_version(), name),
        "points": len(data["values"]),
        "rho": found.rho,
        "changes": [{**asdict(change), "date": dates[change.at]} for change in found.changes],
        "drifts": [asdict(one) for one in found.drifts],
        "outliers": found.outliers,
    }


def published_otava(name: str, otava: Otava) -> dict[str, Any]:
    """What Otava says of a public series."""
    told = otava.told(_read(name)["values"])
    return {**_heading(OTAVA, otava.version, name), "changes": [{"at": at} for at in told.changes]}


def _read(name: str) -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((Path(__file__).parents[1] / PUBLISHED[name]).read_text())
    return data


def _heading(program: str, version: str, name: str) -> dict[str, Any]:
    """What entries of public series share with those of cells."""
    return {"program": program, "version": version, "shape": "published", "noise": name, "series": 1}
