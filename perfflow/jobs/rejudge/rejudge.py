"""Judge a stored run again, from its events or from its result.json alone. Nothing is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.jobs.rejudge.thresholds import with_thresholds
from perfflow.model.result import Result
from perfflow.report.page import page_of
from perfflow.session.conclude import record_of_events, write
from perfflow.store import result_file, run_folder
from perfflow.store.receipts.renewal import renewing
from perfflow.store.record import Record
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge


@dataclass(frozen=True)
class Rejudged:
    """A result, the path of its report (None: no report was written), and a note for the reader."""

    result: Result
    report: Path | None
    note: str = ""


def rejudge(place: Path, thresholds: Sequence[str], out: Path | None) -> Rejudged:
    """Judge a run's folder or a result file again, optionally by other thresholds.

    A run's own files are only rewritten if its events are judged by its own thresholds. For everything else,
    ``out`` is a new folder. Raises UserError for damaged files, bad thresholds, an ``out`` that is not empty, and a run
    that has not ended.
    """
    if place.is_dir():
        run_folder.require_ended(place)
    from_events = place.is_dir() and (place / run_folder.EVENTS).is_file()
    if from_events and not thresholds and out is None:
        return _written_beside(_rejudge_events(place, ())[0], place)
    source = place / (run_folder.EVENTS if from_events else run_folder.RESULT) if place.is_dir() else place
    result, note = _rejudge_events(place, thresholds) if from_events else _rejudge_result(source, thresholds)
    if out is None:
        return Rejudged(result, None, note)
    run_folder.require_empty(out)
    return Rejudged(result, write(result, out, source=place if place.is_dir() else None), note)


def _written_beside(result: Result, folder: Path) -> Rejudged:
    """Write the result into its run's folder. On a full or read-only disk, return it with a note instead."""
    try:
        with renewing(result, folder):
            return Rejudged(result, write(result, folder))
    except OSError as error:
        return Rejudged(result, None, f"cannot write the report to {folder}: {error.strerror}; --out DIR names another")


def _rejudge_result(source: Path, thresholds: Sequence[str]) -> tuple[Result, str]:
    stored = result_file.read(source)
    with run_folder.explaining_damage(source):
        result, note = _rejudge_record(record_of_result(stored), thresholds)
        # Judging does not read all parts of a file, so rendering the page finds damage in the others.
        page_of(result)
        return result, note


def _rejudge_events(folder: Path, thresholds: Sequence[str]) -> tuple[Result, str]:
    with run_folder.explaining_damage(folder / run_folder.EVENTS):
        return _rejudge_record(record_of_events(folder), thresholds)


def _rejudge_record(record: Record, thresholds: Sequence[str]) -> tuple[Result, str]:
    """Return the result, and a note about the thresholds."""
    notes: list[str] = []
    if thresholds:
        benchmarks = {benchmark for benchmark, _ in record.series}
        record.criteria, notes = with_thresholds(record.criteria, thresholds, benchmarks)
        record.run = replace(record.run, judged_by=(*record.run.judged_by, *thresholds))
    return judge(record, record.criteria), "; ".join(notes)
