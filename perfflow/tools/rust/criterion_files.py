"""What criterion.rs leaves of one benchmark: ``benchmark.json`` names it, ``sample.json`` has its raw samples.

A sample is the time of a batch, over its iterations. Both are read as ns, which is what criterion measures unless a
crate brings a measurement of its own; the files do not name it. Folders have sanitised names, so they name nothing:
under ``target/criterion`` is one for each benchmark and baseline.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files, tool_json
from perfflow.tools.result_set import ResultSet, Samples, label
from perfflow.tools.tool_json import Json, Positive, Positives

TOOL = "criterion"
WRITTEN_BY = "cargo bench, which leaves the folder target/criterion (FOLDER:NAME for a saved baseline)"
NEWEST = "new"

# group/function/value, each of which may be missing, and a folder above them.
_DEEPEST = 4

ABOUT, SAMPLE = "benchmark.json", "sample.json"

_NANOSECOND = 1e-9
# In the expressions of Rust's regex crate.
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
# Criterion's titles end so where the id is longer.
_CUT = "..."
# Bytes of a title, which is cut between two characters.
_LONGEST = 100


class Batches(NamedTuple):
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
    def batch(self) -> float:
        """How many iterations a sample is the mean of."""
        return sum(self.iterations) / len(self.iterations)

    def series(self) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield the metrics, each with its value of every batch. Raises ToolOutputError if one cannot be."""
        yield "time", self.seconds
        for metric, amount in self.amounts:
            name = f"{metric} of {self.name[:80]}"
            yield metric, [tool_files.positive(amount / value, name) for value in self.seconds]

    @property
    def listed(self) -> str:
        """The id as it is listed: a long one as criterion prints it."""
        return self.title if self.title.endswith(_CUT) and self.title != self.name else self.name


class _Both(Json):
    elements: Positive
    bytes: Positive


class _Throughput(Json):
    """What one iteration gets through, in one of these."""

    model_config = ConfigDict(extra="forbid")

    Bytes: Positive | None = None
    BytesDecimal: Positive | None = None
    Bits: Positive | None = None
    Elements: Positive | None = None
    ElementsAndBytes: _Both | None = None

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Yield the metric, and bytes or elements."""
        both = self.ElementsAndBytes
        elements = both.elements if both else self.Elements
        size = both.bytes if both else self.Bytes or self.BytesDecimal or (self.Bits or 0) / 8
        yield from ((metric, amount) for metric, amount in (("throughput", size), ("rate", elements)) if amount)


class _About(Json):
    full_id: Annotated[str, Field(min_length=1)]
    title: str | None = None
    throughput: _Throughput | None = None


class _Sample(Json):
    times: Annotated[Positives, Field(min_length=1)]
    iters: Positives


def read(place: Path) -> Batches:
    """Read a folder of a benchmark's baseline. Raises ToolOutputError for a file that is missing, cut or nonsense."""
    about, sample = tool_json.read(_About, place / ABOUT), tool_json.read(_Sample, place / SAMPLE)
    if len(sample.times) != len(sample.iters):
        raise ToolOutputError(f"{SAMPLE} has {len(sample.times)} times of {len(sample.iters)} iters")
    seconds = tuple(time * _NANOSECOND / count for time, count in zip(sample.times, sample.iters, strict=True))
    tool_files.positive(min(seconds), "a time per iteration")
    amounts = tuple(about.throughput.amounts()) if about.throughput else ()
    return Batches(about.full_id, about.title or about.full_id, seconds, tuple(sample.iters), amounts)


def exactly(name: str) -> str:
    """Return the expression of one id as it is listed; --exact came after 0.4, and a list cuts long ids."""
    cut = len(name.encode()) >= _LONGEST and name.endswith(_CUT)
    kept = name.removesuffix(_CUT) if cut else name
    return f"^{_SPECIAL.sub(lambda found: chr(92) + found[0], kept)}{'' if cut else '$'}"


def parse(folder: Path, baseline: str = NEWEST) -> ResultSet:
    """Read what ``baseline`` holds of every benchmark below ``folder``.

    That is ``target/criterion``, a folder it is in, or a group or benchmark in it. Raises ToolOutputError if there is
    nothing, if a file of it is missing, cut or nonsense, or if two folders hold a benchmark of the same name.
    """
    # A search through a whole project is slow.
    usual = folder / "target" / "criterion"
    root = usual if usual.is_dir() else folder
    samples = Samples()
    seen: dict[str, str] = {}
    for place in _places(root, glob.escape(baseline)):
        where = label(str(place.relative_to(root)))
        try:
            found = read(place)
            for metric, values in found.series():
                samples.add(found.name, metric, values, batch=found.batch)
        except ToolOutputError as error:
            raise ToolOutputError(f"{where}: {error}") from error
        if found.name in seen:
            raise ToolOutputError(f"{where} and {seen[found.name]} are both called {label(found.name)}")
        seen[found.name] = where
    if not seen:
        there = ", ".join(sorted({label(place.name) for place in _places(root, "*")}))
        what = f"it has no results called {label(baseline)}, but {there}"
        raise ToolOutputError(what if there else "there is no result of a tool that perfflow knows in this folder")
    return samples.result_set(TOOL, "", {})


def _places(root: Path, baseline: str) -> list[Path]:
    """Return the folders of the baseline, by name; with ``*`` those of every baseline."""
    patterns = [f"{'*/' * depth}{baseline}/{ABOUT}" for depth in range(_DEEPEST + 1)]
    return sorted(about.parent for pattern in patterns for about in root.glob(pattern))
