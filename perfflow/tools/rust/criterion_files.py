"""What criterion.rs leaves of one benchmark: ``benchmark.json`` names it, ``sample.json`` has its raw samples.

A sample is the time of a batch, over its iterations. Both are read as ns, which is what criterion measures unless a
crate brings a measurement of its own; the files do not name it. Folders have sanitised names, so they name nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files

ABOUT, SAMPLE = "benchmark.json", "sample.json"

_NANOSECOND = 1e-9
# In the expressions of Rust's regex crate.
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
# Criterion's titles end so where the id is longer.
_CUT = "..."
# Bytes of a title, which is cut between two characters.
_LONGEST = 100
_BYTES = {"Bytes": 1.0, "BytesDecimal": 1.0, "Bits": 0.125}


@dataclass(frozen=True, slots=True)
class Batches:
    """One benchmark's samples: ``seconds`` per iteration and ``iterations`` of each batch, in the order taken.

    ``amounts`` is what one iteration gets through, as (metric, bytes or elements). ``title`` is the id as criterion
    prints it, with the end of a long one cut off.
    """

    name: str
    title: str
    seconds: tuple[float, ...]
    iterations: tuple[float, ...]
    amounts: tuple[tuple[str, float], ...]

    @property
    def listed(self) -> str:
        """The id as it is listed: a long one as criterion prints it."""
        return self.title if self.title.endswith(_CUT) and self.title != self.name else self.name


def read(place: Path) -> Batches:
    """Read a folder of a benchmark's baseline. Raises ToolOutputError for a file that is missing, cut or nonsense."""
    about, sample = _object(place / ABOUT), _object(place / SAMPLE)
    name, title = about.get("full_id"), about.get("title")
    if not isinstance(name, str) or not name.strip():
        raise ToolOutputError("a benchmark has no full_id")
    times, iterations = _values(sample, "times"), _values(sample, "iters")
    if len(times) != len(iterations) or not times:
        raise ToolOutputError(f"{SAMPLE} has {len(times)} times of {len(iterations)} iters")
    counts = tuple(tool_files.positive(count, "a number of iterations") for count in iterations)
    seconds = tuple(
        tool_files.positive(tool_files.positive(time, "a time") * _NANOSECOND / count, "a time per iteration")
        for time, count in zip(times, counts, strict=True)
    )
    shown = title if isinstance(title, str) else name
    return Batches(name, shown, seconds, counts, tuple(_amounts(about.get("throughput"))))


def exactly(name: str) -> str:
    """Return the expression of one id as it is listed; --exact came after 0.4, and a list cuts long ids."""
    cut = len(name.encode()) >= _LONGEST and name.endswith(_CUT)
    kept = name.removesuffix(_CUT) if cut else name
    return f"^{_SPECIAL.sub(lambda found: chr(92) + found[0], kept)}{'' if cut else '$'}"


def _object(path: Path) -> Mapping[str, object]:
    content = tool_files.read_json(path)
    if not isinstance(content, dict):
        raise ToolOutputError(f"{path.name} is no object")
    return cast(Mapping[str, object], content)


def _values(content: Mapping[str, object], key: str) -> Sequence[object]:
    found = content.get(key)
    if not isinstance(found, list):
        raise ToolOutputError(f"{key} is {'missing' if found is None else 'no list'}")
    return found


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
    raise ToolOutputError(f"throughput is of the kind {tool_files.clean_name(str(kind))}, which perfflow does not know")
