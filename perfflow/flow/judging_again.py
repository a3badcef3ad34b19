"""A stored run judged again: from its events, or from its result.json alone. Nothing is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfflow import result_file
from perfflow.errors import UserError
from perfflow.flow.thresholds import with_thresholds
from perfflow.receipt.renewal import renewing
from perfflow.report.page import page_of
from perfflow.result import CURRENT_RULES, Result
from perfflow.result_file import chunks
from perfflow.rundir import folder as rundir
from perfflow.rundir.record import Record
from perfflow.samples.criteria import criteria_from_json
from perfflow.samples.rules import FIRST
from perfflow.verdict.judge import judge
from perfflow.verdict.stored import can_be_judged_again, record_of_result


@dataclass(frozen=True, slots=True)
class Again:
    """A result, the report that was written of it (None: nothing was written), and what a reader should know."""

    result: Result
    report: Path | None
    note: str = ""


def conclude(record: Record, folder: Path, *, report: bool = True) -> Result:
    """Judge a record and write result.json and the report; the same for a live, a killed and a stored run.

    Without ``report`` the report is left for `perfflow report` to write.
    """
    result = judge(record, criteria_from_json(record.criteria))
    if report:
        write(result, folder)
    else:
        rundir.write_text(folder / rundir.RESULT, chunks(result))
    return result


def write(result: Result, folder: Path) -> Path:
    """Write result.json and the report; returns the report's path."""
    from perfflow.report import markdown

    rundir.write_text(folder / rundir.RESULT, chunks(result))
    rundir.write_text(folder / rundir.REPORT, markdown.render(result))
    return folder / rundir.REPORT


def judge_again(folder: Path) -> Result:
    """Judge a stored run from its events and write what comes out. Raises UserError when they are damaged."""
    # The record is let go before the file is written: of many benchmarks both are large.
    result, _ = _from_events(folder, ())
    write(result, folder)
    return result


def judge_stored(place: Path, thresholds: Sequence[str], out: Path | None, rules: str = "") -> Again:
    """Judge what is stored at ``place``, a run's folder or a result file, perhaps by other thresholds or rules.

    A run's own files are only rewritten where its events are judged by its own thresholds and rules; ``out`` is a new
    folder for everything else. Raises UserError for damaged files, bad thresholds, an ``out`` that holds something, and
    a run that has not ended.
    """
    if place.is_dir():
        rundir.require_ended(place)
    from_events = place.is_dir() and (place / rundir.EVENTS).is_file()
    if from_events and not thresholds and not rules and out is None:
        return _written_beside(_from_events(place, ())[0], place)
    source = place / (rundir.EVENTS if from_events else rundir.RESULT) if place.is_dir() else place
    result, note = _from_events(place, thresholds, rules) if from_events else _judged(source, thresholds, rules)
    if out is None:
        return Again(result, None, note)
    rundir.require_empty(out)
    return Again(result, write(result, out), note)


def judged_anew(folder: Path) -> Result:
    """What the events of a run come to, by its own criteria. Raises UserError when they are damaged."""
    return _from_events(folder, ())[0]


def _written_beside(result: Result, folder: Path) -> Again:
    """What was kept on a disk that is full, or may only be read, is judged all the same."""
    try:
        with renewing(result, folder):
            return Again(result, write(result, folder))
    except OSError as error:
        return Again(result, None, f"cannot write the report to {folder}: {error.strerror}; --out DIR names another")


def _judged(source: Path, thresholds: Sequence[str], rules: str) -> tuple[Result, str]:
    stored = result_file.read(source)
    if not can_be_judged_again(stored) and not thresholds and not rules:
        return stored, f"{source} is of an earlier version and cannot be judged again; this is its stored verdict"
    with _readable(source):
        result, note = _judge(record_of_result(stored), thresholds, rules)
        # Parts of a damaged file that judging does not look at are found out where they would be shown.
        page_of(result)
        return result, note


def _from_events(folder: Path, thresholds: Sequence[str], rules: str = "") -> tuple[Result, str]:
    with _readable(folder / rundir.EVENTS):
        return _judge(_record_of_events(folder), thresholds, rules)


def _judge(record: Record, thresholds: Sequence[str], rules: str) -> tuple[Result, str]:
    """A result, and what a reader should know of the thresholds it is judged by."""
    notes: list[str] = []
    if thresholds:
        benchmarks = {benchmark for benchmark, _ in record.series}
        record.criteria, notes = with_thresholds(record.criteria, thresholds, benchmarks)
        record.run["judged_by"] = [*record.run.get("judged_by", []), *thresholds]
    if rules and record.criteria.get("rules", FIRST.name) != rules:
        record.criteria = {**record.criteria, "rules": rules}
        record.run["judged_by"] = [*record.run.get("judged_by", []), CURRENT_RULES]
    return judge(record, criteria_from_json(record.criteria)), "; ".join(notes)


def _record_of_events(folder: Path) -> Record:
    record = Record()
    for event in rundir.events(folder):
        record.fold(event)
    if not record.run:
        raise UserError.of(f"{folder / rundir.EVENTS}: holds no run", "was it killed before it started?")
    return record


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """What goes wrong inside is that of a damaged file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Ours would not: the file was changed, or written by another version.
        text = f"{source}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, "the file was changed by hand, or by another version?") from error
