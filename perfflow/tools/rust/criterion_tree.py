"""Criterion.rs: the tree of folders under ``target/criterion``, one folder of JSON files per benchmark and baseline.

``tools.criterion_files`` reads one of them.
"""

from __future__ import annotations

import glob
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.tools.result_set import ResultSet, Samples, label
from perfflow.tools.rust import criterion_files

TOOL = "criterion"
WRITTEN_BY = "cargo bench, which leaves the folder target/criterion (FOLDER:NAME for a saved baseline)"
NEWEST = "new"

# group/function/value, each of which may be missing, and a folder above them.
_DEEPEST = 4


def parse(folder: Path, baseline: str = NEWEST) -> ResultSet:
    """Read what ``baseline`` holds of every benchmark below ``folder``.

    That is ``target/criterion``, a folder it is in, or a group or benchmark in it. Raises ToolOutputError if there is
    nothing, if a file of it is missing, cut or nonsense, or if two folders hold a benchmark of the same name.
    """
    root = _root(folder)
    samples = Samples()
    seen: dict[str, str] = {}
    for place in _places(root, glob.escape(baseline)):
        _add(samples, root, place, seen)
    if not seen:
        raise ToolOutputError(_nothing(root, baseline))
    return samples.result_set(TOOL, "", {})


def _root(folder: Path) -> Path:
    """Return criterion's own folder where it can be named, since a search through a whole project is slow."""
    usual = folder / "target" / "criterion"
    return usual if usual.is_dir() else folder


def _places(root: Path, baseline: str) -> list[Path]:
    """Return the folders of the baseline, by name; with ``*`` those of every baseline."""
    patterns = [f"{'*/' * depth}{baseline}/{criterion_files.ABOUT}" for depth in range(_DEEPEST + 1)]
    return sorted(about.parent for pattern in patterns for about in root.glob(pattern))


def _nothing(root: Path, baseline: str) -> str:
    found = {place.name for place in _places(root, "*")}
    if not found:
        return "there is no result of a tool that perfflow knows in this folder"
    return f"it has no results called {label(baseline)}, but {', '.join(map(label, sorted(found)))}"


def _add(samples: Samples, root: Path, place: Path, seen: dict[str, str]) -> None:
    where = label(str(place.relative_to(root)))
    try:
        found = criterion_files.read(place)
        samples.add(found.name, "time", found.seconds, batch=found.batch)
        for metric, amount in found.amounts:
            samples.add(found.name, metric, [amount / value for value in found.seconds], batch=found.batch)
    except ToolOutputError as error:
        raise ToolOutputError(f"{where}: {error}") from error
    if found.name in seen:
        raise ToolOutputError(f"{where} and {seen[found.name]} are both called {label(found.name)}")
    seen[found.name] = where
