"""Criterion.rs: the tree of folders under ``target/criterion``, one folder of JSON files per benchmark and baseline.

``sample.json`` has the raw samples: the time of each, over its iterations. Both are read as ns, which is what criterion
measures unless a crate brings a measurement of its own; the files do not name it.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.imports.imported import Imported, Samples, label
from perfflow.imports.json_parts import values, word
from perfflow.tools import tool_files

TOOL = "criterion"
WRITTEN_BY = "cargo bench, which leaves the folder target/criterion (FOLDER:NAME for a saved baseline)"
NEWEST = "new"

_ABOUT, _SAMPLE = "benchmark.json", "sample.json"
# group/function/value, each of which may be missing, and a folder above them.
_DEEPEST = 4
_NANOSECOND = 1e-9
_BYTES = {"Bytes": 1.0, "BytesDecimal": 1.0, "Bits": 0.125}


def parse(folder: Path, baseline: str = NEWEST) -> Imported:
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
    return samples.imported(TOOL, "", {})


def _root(folder: Path) -> Path:
    """Return criterion's own folder where it can be named, since a search through a whole project is slow."""
    usual = folder / "target" / "criterion"
    return usual if usual.is_dir() else folder


def _places(root: Path, baseline: str) -> list[Path]:
    """Return the folders of the baseline, by name; with ``*`` those of every baseline."""
    patterns = [f"{'*/' * depth}{baseline}/{_ABOUT}" for depth in range(_DEEPEST + 1)]
    return sorted(about.parent for pattern in patterns for about in root.glob(pattern))


def _nothing(root: Path, baseline: str) -> str:
    found = {place.name for place in _places(root, "*")}
    if not found:
        return "there is no result of a tool that perfflow knows in this folder"
    return f"it has no results called {label(baseline)}, but {', '.join(map(label, sorted(found)))}"


def _add(samples: Samples, root: Path, place: Path, seen: dict[str, str]) -> None:
    where = label(str(place.relative_to(root)))
    try:
        about = _object(place / _ABOUT)
        name = word(about, "full_id")
        _add_samples(samples, name, about, _object(place / _SAMPLE))
    except ToolOutputError as error:
        raise ToolOutputError(f"{where}: {error}") from error
    if name in seen:
        raise ToolOutputError(f"{where} and {seen[name]} are both called {label(name)}")
    seen[name] = where


def _object(path: Path) -> Mapping[str, object]:
    content = tool_files.read_json(path)
    if not isinstance(content, dict):
        raise ToolOutputError(f"{path.name} is no object")
    return cast(Mapping[str, object], content)


def _add_samples(samples: Samples, name: str, about: Mapping[str, object], sample: Mapping[str, object]) -> None:
    times, iterations = values(sample, "times"), values(sample, "iters")
    if len(times) != len(iterations) or not times:
        raise ToolOutputError(f"{_SAMPLE} has {len(times)} times of {len(iterations)} iters")
    seconds = [_per_iteration(time, count) for time, count in zip(times, iterations, strict=True)]
    for value in seconds:
        samples.add(name, "time", value)
    for metric, amount in _amounts(about.get("throughput")):
        for value in seconds:
            samples.add(name, metric, amount / value)


def _per_iteration(time: object, iterations: object) -> float:
    return tool_files.positive(time, "a time") * _NANOSECOND / tool_files.positive(iterations, "a number of iterations")


def _amounts(throughput: object) -> Sequence[tuple[str, float]]:
    """Return what one iteration gets through, as (metric, bytes or elements)."""
    if throughput is None:
        return ()
    if not isinstance(throughput, dict) or len(throughput) != 1:
        raise ToolOutputError("throughput is nothing that perfflow knows")
    ((kind, amount),) = throughput.items()
    if kind == "ElementsAndBytes" and isinstance(amount, dict):
        both = {"Bytes": amount.get("bytes"), "Elements": amount.get("elements")}
        return [pair for each, number in both.items() for pair in _amounts({each: number})]
    if kind == "Elements":
        return [("rate", tool_files.positive(amount, kind))]
    if kind in _BYTES:
        return [("throughput", tool_files.positive(amount, kind) * _BYTES[kind])]
    raise ToolOutputError(f"throughput is of the kind {label(str(kind))}, which perfflow does not know")
