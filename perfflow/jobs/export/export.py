"""Write files for CI services from a stored result. Nothing is measured, judged or sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.model.result import Result
from perfflow.report.payloads.files import PAYLOADS, ExportOptions
from perfflow.report.stack_files.files import files_of
from perfflow.store import result_file, run_folder
from perfflow.store.result_file import require_verdict
from perfflow.store.stored_stacks import has_stacks, stack_profiles
from perfflow.tools import regular_files
from perfflow.trees.git import names
from perfflow.trees.repository import look_at

EXPORTS = "export"
"""The folder for exports beside the runs. Files in a run's own folder would not match its receipt."""


def read_result(place: Path) -> Result:
    """Return the result at ``place``, a run's folder or a result file. Raises UserError if there is none."""
    if place.is_dir() and not (place / run_folder.RESULT).is_file():
        require_verdict(place)
        text = f"{place}: the run has no {run_folder.RESULT} yet"
        raise UserError.of(text, f"`perfflow report {place}` writes it from the samples")
    return result_file.read(place / run_folder.RESULT if place.is_dir() else place)


def export(
    result: Result,
    formats: Sequence[str],
    out: Path,
    options: ExportOptions,
    tables: Mapping[str, Iterable[str]],
    profiles: Mapping[str, bytes],
) -> list[Path]:
    """Write the files of these formats, ``tables`` and ``profiles`` (by file name), and overwrite existing files.

    The texts of all formats are made before any file is written. Raises UserError if the folder cannot be written.
    """
    chosen = [PAYLOADS[name] for name in dict.fromkeys(formats)]
    texts: list[tuple[str, str | Iterable[str]]] = [(item.file, item.make(result, options)) for item in chosen]
    texts += tables.items()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts:
            run_folder.write_text(out / name, text)
        for name, content in profiles.items():
            run_folder.write_bytes(out / name, [content])
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
        raise UserError.of(f"{place}: a result file contains no profiles", hint)
    profiles = stack_profiles(place, result, lost)
    if not profiles and has_stacks(result):
        raise UserError.of(f"{place}: none of its profiles can be read", "run the workflow again", Exit.UNMEASURED)
    if not profiles:
        hint = "add a step that profiles to the workflow, such as `uses: perf` or `uses: py-spy`, and run it again"
        raise UserError.of(f"{place}: the run has no profile with stacks", hint)
    return dict(files_of(profiles, dict.fromkeys(formats)))


def default_folder(root: Path, result: Result) -> Path:
    """Return the default folder for the exports of a run."""
    return run_folder.home(root) / EXPORTS / run_folder.file_name(result.run.id)


def unchanged_files(root: Path, result: Result) -> list[str]:
    """Return the files of the commit that kept candidates started from, but those that they touch.

    Empty if that commit is not in the repository at ``root``.
    """
    revision = (result.trees.get("baseline") or {}).get("revision")
    touched = {name for item in result.optimizations if item.decision == "accepted" for name in item.files}
    try:
        listed = look_at(root).git().run("ls-tree", "-r", "-z", "--name-only", str(revision)) if revision else b""
    except UserError:
        return []
    return [name for name in names(listed) if name not in touched]


def read_previous(path: Path) -> str:
    """Return the text of an earlier comment. Raises UserError if the file cannot be read."""
    try:
        return regular_files.read(path).decode("utf-8", "replace")
    except OSError as error:
        hint = "--previous names a file with the text of the earlier comment; leave it out for the first comment"
        raise UserError.of(f"{path}: {error.strerror}", hint) from error
