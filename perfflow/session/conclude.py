"""A run's events -> its result, and the result in its files: the same for a live, a killed and a stored run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.store import folder as rundir
from perfflow.store.record import Record
from perfflow.store.result_file import chunks
from perfflow.store.stack_profiles import has_stacks, stack_profiles
from perfflow.verdict.judge import judge


def write(result: Result, folder: Path, *, report: bool = True, source: Path | None = None) -> Path:
    """Write result.json and the report, as Markdown and as a page to look at; returns the path of the first.

    Without ``report`` that is left for `perfflow report` to write. ``source`` is the run's own folder, if that is
    another one.
    """
    rundir.write_text(folder / rundir.RESULT, chunks(result))
    if report:
        from perfflow.report import markdown
        from perfflow.report.html import document
        from perfflow.store.sample_order import order_in

        rundir.write_text(folder / rundir.REPORT, markdown.render(result))
        source = source or folder
        profiles = stack_profiles(source, result) if has_stacks(result) else ()
        rundir.write_text(folder / rundir.PAGE, document.render(result, order_in(source), profiles))
    return folder / rundir.REPORT


def write_profiles(result: Result, folder: Path) -> None:
    """Write the run's profiles with stacks as files for other viewers, in place of those of an earlier part of it.

    What cannot be read was lost since its step ended, and is left out here: nothing that is measured depends on it.
    """
    place = folder / rundir.PROFILES
    shutil.rmtree(place, ignore_errors=True)
    if not has_stacks(result):
        return
    from perfflow.report.stack_files.files import FORMATS, files_of

    for name, content in files_of(stack_profiles(folder, result), FORMATS):
        place.mkdir(exist_ok=True)
        rundir.write_bytes(place / name, [content])


def result_of_events(folder: Path) -> Result:
    """Judge the events of a run by its own criteria. Raises UserError if they are damaged."""
    with readable(folder / rundir.EVENTS):
        record = record_of_events(folder)
        return judge(record, record.criteria)


def record_of_events(folder: Path) -> Record:
    """Fold the events of a run. Raises UserError if there is no run in them."""
    record = Record()
    for event in rundir.events(folder):
        record.fold(event)
    if not record.run.id:
        raise UserError.of(f"{folder / rundir.EVENTS}: holds no run", "was it killed before it started?")
    return record


@contextmanager
def readable(source: Path) -> Iterator[None]:
    """What goes wrong inside is that of a damaged file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Ours would not: the file was changed, or written by another version.
        text = f"{source}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, "the file was changed by hand, or by another version?") from error
