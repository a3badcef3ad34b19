"""Files for CI services, made of a stored result; nothing is measured, judged or sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.model.result import Result
from perfflow.report.payloads.files import PAYLOADS, ExportOptions
from perfflow.report.stack_files.files import files_of
from perfflow.store import folder as rundir
from perfflow.store import result_file
from perfflow.store.run_bisection import require_verdict
from perfflow.store.stack_profiles import has_stacks, stack_profiles
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


def export(
    result: Result,
    formats: Sequence[str],
    out: Path,
    options: ExportOptions,
    tables: Mapping[str, Iterable[str]],
    profiles: Mapping[str, bytes],
) -> list[Path]:
    """Write the files of these formats, ``tables`` and ``profiles``, by file name, in place of any of the same names.

    The texts of all formats are made before any file is written. Raises UserError where the folder cannot be written.
    """
    chosen = [PAYLOADS[name] for name in dict.fromkeys(formats)]
    texts: list[tuple[str, str | Iterable[str]]] = [(item.file, item.make(result, options)) for item in chosen]
    texts += tables.items()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts:
            rundir.write_text(out / name, text)
        for name, content in profiles.items():
            rundir.write_bytes(out / name, [content])
    except OSError as error:
        hint = "name a folder that can be written with --out DIR; the run's own files are untouched"
        raise UserError.of(f"{out}: {error.strerror}", hint, Exit.UNMEASURED) from error
    return [out / name for name in (*(name for name, _ in texts), *profiles)]


def profile_files(result: Result, place: Path, formats: Sequence[str], lost: Callable[[str], None]) -> dict[str, bytes]:
    """Convert the run's profiles with stacks to these formats, and return name -> bytes.

    ``place``: the run's folder. ``lost``: called with a message for each profile that cannot be read.
    Raises UserError if ``place`` is a result.json instead of a folder, or if the run has no profile.
    """
    if not formats:
        return {}
    if not place.is_dir():
        hint = "name the run's folder: its profiles are beside its result.json"
        raise UserError.of(f"{place}: a result alone holds no profile", hint)
    found = stack_profiles(place, result, lost)
    if not found and has_stacks(result):
        raise UserError.of(f"{place}: none of its profiles can be read", "run the workflow again", Exit.UNMEASURED)
    if not found:
        hint = "add a step that profiles to the workflow, such as `uses: perf` or `uses: py-spy`, and run it again"
        raise UserError.of(f"{place}: the run has no profile with stacks", hint)
    return dict(files_of(found, dict.fromkeys(formats)))


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
