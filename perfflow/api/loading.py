"""Loads a stored run by its id, its folder, or its result.json."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from perfflow.api.model import Benchmark, Bounds, Sample, Target
from perfflow.api.run import Run
from perfflow.jobs.export.export import read_result
from perfflow.model import result
from perfflow.model.errors import UserError
from perfflow.model.readings import Design, Side
from perfflow.model.result import Benchmark as Row
from perfflow.model.result import Result, TargetResult
from perfflow.model.version import tree_of
from perfflow.report.payloads.revision import has_changes, revision_of
from perfflow.report.rows import is_bound
from perfflow.store import run_folder
from perfflow.trees import repository


def load(run: str | os.PathLike[str] = "latest", *, root: str | os.PathLike[str] | None = None) -> Run:
    """Read a stored run.

    ``run``: ``latest``, a run's id, a run's folder, or the path of a result.json.
    ``root``: the project in which ids and relative paths are looked up; by default the one of the current folder.
    Raises UserError if the run does not exist, or if its result.json is missing, damaged or from another tool.

    >>> import perfflow
    >>> run = perfflow.load("latest")
    >>> perfflow.load(run.id).id == perfflow.load(run.folder / "result.json").id == run.id
    True
    >>> perfflow.load("20200101-000000-abcdef")
    Traceback (most recent call last):
    perfflow.model.errors.UserError: error: 20200101-000000-abcdef: no run there
    ...
    """
    place = _place(os.fspath(run), root)
    return run_of(read_result(place), place if place.is_dir() else None)


def _place(name: str, root: str | os.PathLike[str] | None) -> Path:
    if root is None:
        here = Path.cwd()
        return run_folder.find(repository.root_of(here) or here, name)
    base = Path(root).absolute()
    base = repository.root_of(base) or base
    # `find` resolves a path from the current folder, which may be outside of the project in `root`.
    path = Path(root).absolute() / name
    return run_folder.find(base, str(path if path.exists() else base / run_folder.HOME / "runs" / name))


def run_of(result: Result, folder: Path | None) -> Run:
    """Return a result as a run. ``folder``: the run folder. Raises UserError if a start or end is not a time."""
    info = result.run
    revision = revision_of(result)
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return Run(
        id=info.id,
        workflow=info.workflow,
        component=info.component,
        started=_time(info.started, folder),
        finished=_time(info.finished, folder) if info.finished else None,
        seconds=info.seconds,
        seed=info.seed,
        version=info.version,
        interrupted=info.interrupted,
        verdict=result.verdict,
        gate=result.gate.status if result.gate else None,
        reasons=tuple(result.reasons),
        evidence=tuple(result.evidence),
        revision=revision,
        baseline_revision=baseline.revision if candidate.kind else None,
        dirty=has_changes(result),
        benchmarks=tuple(map(_benchmark, result.benchmarks)),
        targets=tuple(map(_target, result.targets)),
        warnings=(*info.warnings, *(f"{step.id}: {text}" for step in result.steps for text in step.warnings)),
        folder=folder,
        _result=result,
    )


def _time(text: str, folder: Path | None) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        where = f"{folder}: " if folder else ""
        raise UserError.of(
            f"{where}{text!r} in its result.json is not a time", "was the file edited by hand?"
        ) from error


def _benchmark(row: Row) -> Benchmark:
    return Benchmark(
        name=row.name,
        step=row.step,
        tool=row.tool,
        metric=row.metric,
        statistic=row.statistic,
        unit=row.unit,
        better=row.better,
        baseline=_sample(row.baseline),
        candidate=_sample(row.candidate),
        change=_bounds(row.change),
        speedup=_bounds(row.speedup),
        confidence=row.confidence,
        decision=row.decision,
        level=row.level,
        gating=row.gating,
        why=row.why,
        pairs=row.pairs,
        in_pairs=_in_pairs(row),
        design=row.design,
        more=row.more,
        warnings=tuple(row.warnings),
    )


def _in_pairs(row: Row) -> bool:
    """Return whether both sides were measured in pairs."""
    if not row.baseline or not row.candidate or not row.paired:
        return False
    in_turn = row.design in (Design.FEW, Design.FEW_LAYOUTS)
    return not in_turn and len(row.baseline.samples) == len(row.candidate.samples)


def _sample(side: result.Sample | None) -> Sample | None:
    if side is None:
        return None
    bounded = tuple(bool(item.get("at_most")) for item in side.readings or []) if is_bound(side) else ()
    return Sample(side.value, side.low, side.high, side.n, tuple(side.samples), bounded)


def _bounds(found: result.Bounds | None) -> Bounds | None:
    return None if found is None else Bounds(found.value, found.low, found.high)


def _target(found: TargetResult) -> Target:
    return Target(
        found.benchmark,
        found.metric,
        found.statistic,
        found.requirement,
        found.measured,
        found.low,
        found.high,
        found.unit,
        found.status,
        found.detail,
    )
