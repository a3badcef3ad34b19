"""Judge a run's events and write the result files, in the same way for a live, a killed and a stored run."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.html import document
from perfflow.report.stack_files.files import FORMATS, files_of
from perfflow.store import run_folder
from perfflow.store.record import Record
from perfflow.store.result_file import chunks
from perfflow.store.sample_order import order_in
from perfflow.store.stack_profiles import has_stacks, stack_profiles
from perfflow.verdict.judge import judge


def write(result: Result, folder: Path, *, report: bool = True, source: Path | None = None) -> Path:
    """Write result.json and the report as Markdown and HTML; return the path of the Markdown file.

    Without ``report``, only result.json is written. ``source``: the run's own folder, if it differs from ``folder``.
    """
    run_folder.write_text(folder / run_folder.RESULT, chunks(result))
    if report:
        run_folder.write_text(folder / run_folder.REPORT, markdown.render(result))
        source = source or folder
        profiles = stack_profiles(source, result) if has_stacks(result) else ()
        run_folder.write_text(folder / run_folder.PAGE, document.render(result, order_in(source), profiles))
    return folder / run_folder.REPORT


def write_profiles(result: Result, folder: Path) -> None:
    """Write the run's profiles with stacks as files for other viewers; replace those of an earlier part of the run.

    Profiles that cannot be read any more are skipped, because no measurement depends on them.
    """
    place = folder / run_folder.PROFILES
    shutil.rmtree(place, ignore_errors=True)
    if not has_stacks(result):
        return

    for name, content in files_of(stack_profiles(folder, result), FORMATS):
        place.mkdir(exist_ok=True)
        run_folder.write_bytes(place / name, [content])


def result_of_events(folder: Path) -> Result:
    """Judge the events of a run by its own criteria. Raises UserError if they are damaged."""
    with run_folder.explaining_damage(folder / run_folder.EVENTS):
        record = record_of_events(folder)
        return judge(record, record.criteria)


def record_of_events(folder: Path) -> Record:
    """Fold the events of a run into a record. Raises UserError if they contain no run."""
    record = Record()
    for event in run_folder.events(folder):
        record.fold(event)
    if not record.run.id:
        raise UserError.of(f"{folder / run_folder.EVENTS}: holds no run", "was it killed before it started?")
    return record
