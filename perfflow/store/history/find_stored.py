"""Resolve a command-line word to a stored set: a baseline, a run, or a result file of perfflow or another tool."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.store import result_file as results
from perfflow.store.history import baselines
from perfflow.store.history.stored import Source, Stored, branch_of, listed, stored_of, suggestion
from perfflow.store.result_file import is_bisection, require_verdict
from perfflow.store.run_folder import EVENTS, HOME, RESULT, require_ended, require_own
from perfflow.tools import read_file as imports
from perfflow.tools.tool_files import clean_name

LATEST = "latest"
_LOOKED_AT = 200
"""Number of runs to search for one of a branch."""


def names_stored(root: Path, word: str) -> bool:
    """Return whether a word names a stored set instead of a command.

    Stored sets are baselines, runs, folders, files that are not executable, and branches with a baseline or a run. An
    existing program is a command. A word that ends in .json is a file, whether or not it exists.
    """
    if not word.strip():
        return False
    if baselines.exists(root, word) or _run_called(root, word):
        return True
    is_json = word.endswith(".json") and len(word.split()) == 1
    path = Path(word)
    try:
        if path.is_dir() or _criterion_folder(word):
            return True
        if is_json or (path.is_file() and not os.access(path, os.X_OK)):
            return True
        if path.is_file() or len(word.split()) != 1:
            return False
        return bool(baselines.of_branch(root, word)) or (not shutil.which(word) and bool(_newest_of(root, word)))
    except OSError:
        # Too long for a file name, so it is a command.
        return False


def _criterion_folder(word: str) -> bool:
    """Return whether a word is ``FOLDER:NAME``, a baseline stored by criterion."""
    folder, colon, name = word.rpartition(":")
    return bool(colon and folder and name) and "/" not in name and Path(folder).is_dir()


def _run_called(root: Path, word: str) -> Path | None:
    """Return the folder of the run with this id, None if there is none."""
    if "/" in word or word in (".", ".."):
        return None
    folder = root / HOME / "runs" / word
    try:
        return folder.resolve() if (folder / RESULT).is_file() or (folder / EVENTS).is_file() else None
    except OSError:
        return None


def open_source(root: Path, word: str, where: Mapping[str, str] | None = None) -> tuple[Source, str]:
    """Read the source that a word names, and return it with its label.

    ``where`` selects one of several sets in another tool's file. Raises UserError with a remedy if it cannot be read.
    """
    require_own(root)
    if baselines.exists(root, word):
        return baselines.load(root, word), word
    folder = _run_called(root, word)
    if folder and word == LATEST and is_bisection(folder):
        # `report` and `bisect --resume` use it, but it has no verdict to store or compare.
        folder = _newest_with_verdict(root) or folder
    if folder:
        return _run(folder), folder.name
    path = Path(word)
    if path.name in (RESULT, EVENTS) and (path.parent / EVENTS).is_file():
        return _run(path.parent), word
    if (path / baselines.FILE).is_file():
        return baselines.read(path / baselines.FILE), word
    if (path / RESULT).is_file() or (path / EVENTS).is_file():
        return _run(path), word
    if imports.is_perfflow_result(path):
        return results.read(path), word
    if not path.exists() and (of_branch := _of_branch(root, word)):
        return of_branch
    if not path.exists() and not word.endswith(".json") and not _criterion_folder(word):
        raise not_found(root, word)
    return imports.read(path, where), word


def _newest_with_verdict(root: Path) -> Path | None:
    """Return the newest run with a result. Bisections have none."""
    runs = (_run_called(root, name) for name in _runs(root) if name != LATEST)
    return next((run for run in runs if run and (run / RESULT).is_file()), None)


def _of_branch(root: Path, branch: str) -> tuple[Source, str] | None:
    """Return the baseline of a branch, else the newest run that measured it; None if there is neither."""
    if name := baselines.of_branch(root, branch):
        return baselines.load(root, name), name
    run = _newest_of(root, branch)
    return (_run(run), run.name) if run else None


def _newest_of(root: Path, branch: str) -> Path | None:
    """Return the newest run that measured a branch, among the newest of all runs."""
    named = json.dumps(branch).encode()
    for name in _runs(root)[:_LOOKED_AT]:
        run = _run_called(root, name) if name != LATEST else None
        try:
            if run and named in (run / RESULT).read_bytes() and branch_of(results.read(run / RESULT)) == branch:
                return run
        except (OSError, UserError):
            continue
    return None


def passed_over(root: Path, word: str, label: str) -> str:
    """Return a note if a word stands for another ``label``; else ''.

    Either ``latest`` is a bisection and the run before it is used, or the word is a branch.
    """
    if label != word and baselines.exists(root, label) and baselines.branch_of(root, label) == word:
        return f"{clean_name(word)} is a branch, whose baseline is called {label}"
    run = _run_called(root, label)
    if label != word and run and word != LATEST and not Path(word).exists():
        return f"{clean_name(word)} is a branch without a baseline; {label} is the newest run that measured it"
    folder = _run_called(root, word) if word == LATEST else None
    if folder is None or folder.name == label:
        return ""
    return f"the latest run, {folder.name}, is a bisection, which has no verdict; the run before it is used: {label}"


def find(root: Path, word: str, where: Mapping[str, str] | None = None) -> Stored:
    """Return the stored set that a word names. Raises UserError with a remedy if it is missing or cannot be read."""
    return stored_of(*open_source(root, word, where))


def _run(folder: Path) -> Result:
    require_ended(folder)
    if not (folder / RESULT).is_file():
        require_verdict(folder)
        hint = f"`perfflow report {clean_name(str(folder))}` writes it from the events"
        raise UserError.of(f"{clean_name(str(folder))}: the run has no {RESULT}", hint)
    return results.read(folder / RESULT)


def not_found(root: Path, word: str) -> UserError:
    """Return the error for an unknown word, with similar names."""
    known, runs = baselines.names(root), _runs(root)
    close = suggestion(word, [*known, *runs], "")
    near = f"{close} " if close.startswith("did you mean") else ""
    hint = f"{near}baselines: {listed(known) or 'none'}; runs: {listed(runs) or 'none'}"
    return UserError.of(f"{clean_name(word)!r} is not a baseline, a run or a result file", hint)


def _runs(root: Path) -> list[str]:
    """Return the ids of the stored runs, newest first, with ``latest`` before them."""
    require_own(root)
    folder = root / HOME / "runs"
    if not folder.is_dir():
        return []
    return sorted((path.name for path in folder.iterdir() if not path.name.startswith(".")), reverse=True)
