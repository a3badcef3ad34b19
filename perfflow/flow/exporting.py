"""Files for CI services, made of a stored result; nothing is measured, judged or sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfflow import result_file
from perfflow.errors import Exit, UserError
from perfflow.report.payloads.files import PAYLOADS, Wishes
from perfflow.result import Result
from perfflow.rundir import folder as rundir
from perfflow.rundir.bisection import require_verdict
from perfflow.tools import regular_files

EXPORTS = "export"
"""Beside the runs: a run's own folder stays as its receipt says it is."""


def read_result(place: Path) -> Result:
    """The result at ``place``, a run's folder or a result file. Raises UserError where there is none to read."""
    if place.is_dir() and not (place / rundir.RESULT).is_file():
        require_verdict(place)
        text = f"{place}: the run has no {rundir.RESULT} yet"
        raise UserError.of(text, f"`perfflow report {place}` makes it of what was measured")
    return result_file.read(place / rundir.RESULT if place.is_dir() else place)


def export(result: Result, formats: Sequence[str], out: Path, wishes: Wishes) -> list[Path]:
    """Write the files of these formats, all where none is named; files of the same names are replaced.

    All texts are made before any file is written. Raises UserError where the folder cannot be written.
    """
    chosen = [PAYLOADS[name] for name in dict.fromkeys(formats or PAYLOADS)]
    texts = [(payload.file, payload.make(result, wishes)) for payload in chosen]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts:
            rundir.write_text(out / name, text)
    except OSError as error:
        hint = "name a folder that can be written with --out DIR; the run's own files are untouched"
        raise UserError.of(f"{out}: {error.strerror}", hint, Exit.UNMEASURED) from error
    return [out / name for name, _ in texts]


def default_folder(root: Path, result: Result) -> Path:
    """Where the files of a run go unless told otherwise."""
    return rundir.home(root) / EXPORTS / rundir.file_name(result.run.id)


def read_previous(path: Path) -> str:
    """The text of an earlier comment. Raises UserError where the file cannot be read."""
    try:
        return regular_files.read(path).decode("utf-8", "replace")
    except OSError as error:
        hint = "--previous names a file with the text of the comment so far; leave it out for the first one"
        raise UserError.of(f"{path}: {error.strerror}", hint) from error
