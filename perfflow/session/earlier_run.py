"""Finished steps and samples of an interrupted run, read from its events, so that they are not repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfflow.machine.facts import IDENTITY, facts
from perfflow.model.errors import UserError
from perfflow.model.secrets import MASK
from perfflow.session.conclude import record_of_events
from perfflow.store import run_folder
from perfflow.store.record import Record
from perfflow.verdict.judge import judge

_DONE = ("done", "cached")
_OPEN = ("unproven", "not measured")
"""Decisions of rows, and statuses of targets, that more samples may change."""


@dataclass(frozen=True)
class Earlier:
    """Finished steps with their outputs, all samples, and the hashes of the measured files; empty for a new run."""

    seed: int = 0
    done: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)

    def samples_of(self, step_id: str) -> Sequence[Mapping[str, Any]]:
        """Return the sample events of a step in their order."""
        return self.samples.get(step_id, ())

    def files_of(self, step_id: str) -> Mapping[str, list[str]] | None:
        """Return the file hashes of a step, None if it has taken no samples."""
        return self.files.get(step_id) if self.samples_of(step_id) else None


def earlier(path: Path, digest: str, selected: frozenset[str], *, elsewhere: bool = False) -> Earlier:
    """Read the progress of the run in a folder. ``elsewhere``: it ran on other machines, so do not check this one.

    Raises UserError if the workflow, its parameters or the machine changed, and for damaged events.
    """
    record, samples, files = Record(), dict[str, list[Mapping[str, Any]]](), dict[str, Mapping[str, list[str]]]()
    with run_folder.explaining_damage(path / run_folder.EVENTS, "start a new run without --resume"):
        for event in run_folder.events(path):
            record.fold(event)
            if event.get("event") == "sample":
                samples.setdefault(event["step"], []).append(event)
            elif event.get("event") == "measuring":
                files[event["step"]] = event["files"]
        _require_same(record, digest, path, elsewhere=elsewhere)
        done = {name: step.outputs for name, step in record.steps.items() if step.status in _DONE}
        # Masked outputs were not stored, so the step must run again to give them to later steps.
        done = {name: outputs for name, outputs in done.items() if not any(MASK in text for text in outputs.values())}
        seed = int(record.run.seed)
    return Earlier(seed, {name: outputs for name, outputs in done.items() if name in selected}, samples, files)


def undecided(path: Path) -> frozenset[str]:
    """Return the steps of a gate that ended whose benchmarks or targets are not all decided.

    Raises UserError for a run that has not ended, or that other machines measured, and if everything is decided: then
    there is nothing to measure.
    """
    record = record_of_events(path)
    if not record.ended:
        raise UserError.of(f"{path}: this run was not finished", "resume it with --resume, then use --again")
    if record.jobs:
        raise UserError.of(f"{path}: other machines measured this run", "measure the part there, and merge again")
    result = judge(record, record.criteria)
    rows = [row for row in result.benchmarks if row.gating and row.decision in _OPEN and row.level is None]
    names = {row.name for row in rows} | {item.benchmark for item in result.targets if item.status in _OPEN}
    steps = {row.step for row in result.benchmarks if row.name in names}
    failed = {name for name, step in record.steps.items() if step.status not in (*_DONE, "skipped")}
    if not steps and not failed:
        raise UserError.of(f"{path}: everything in this run is decided", "for a new measurement, leave out --again")
    return frozenset(steps | failed)


def trees(path: Path) -> Mapping[str, Any]:
    """Return the trees in the first event of the run in a folder; empty if it has none."""
    found = _opening(path).get("trees")
    return found if isinstance(found, dict) else {}


def chosen(path: Path) -> tuple[str, ...]:
    """Return the globs of the benchmarks that the run in a folder measures; () for all."""
    run = _opening(path).get("run")
    found = run.get("chosen", ()) if isinstance(run, dict) else ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def shard(path: Path) -> str:
    """Return which part of the benchmarks the run in a folder measures, such as ``2/4``; '' for all."""
    run = _opening(path).get("run")
    return str(run.get("shard", "")) if isinstance(run, dict) else ""


def _opening(path: Path) -> Mapping[str, Any]:
    try:
        return next((event for event in run_folder.events(path) if event.get("event") == "run"), {})
    except UserError:
        return {}


def _require_same(record: Record, digest: str, path: Path, *, elsewhere: bool) -> None:
    if record.run.digest != digest:
        text = f"{path}: the workflow or its parameters changed since this run of {record.run.file}"
        hint = "undo the change, name another run with --resume=RUN, or start a new run without --resume"
        raise UserError.of(text, hint)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing and not elsewhere:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, "samples of two machines cannot be mixed; start a new run without --resume")
