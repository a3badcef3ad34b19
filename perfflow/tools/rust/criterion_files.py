"""Read criterion.rs' files of one benchmark: ``benchmark.json`` has its name, ``sample.json`` its raw samples.

A sample is the time of a batch and its number of iterations. Times are read as ns, which criterion uses unless a crate
defines its own measurement; the files do not name the unit. ``target/criterion`` has a folder for each benchmark and
baseline, but the names of folders are sanitised, so the benchmark's name is read from the file.
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
WRITTEN_BY = "cargo bench, which writes the folder target/criterion (FOLDER:NAME for a saved baseline)"
NEWEST = "new"

# group/function/value, each of them optional, and a parent folder.
_DEEPEST = 4

ABOUT, SAMPLE = "benchmark.json", "sample.json"

_NANOSECOND = 1e-9
# Special characters of Rust's regex crate.
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
# End of a title that criterion truncated.
_CUT = "..."
# Length in bytes at which criterion truncates titles.
_LONGEST = 100


class Batches(NamedTuple):
    """One benchmark's samples: ``seconds`` per iteration and ``iterations`` of each batch, in the order of measurement.

    ``nanoseconds`` are the times of whole batches as criterion took them. ``amounts`` is the work of one iteration, as
    (metric, bytes or elements). ``title`` is the id as criterion prints it, truncated if it is long.
    """

    name: str
    title: str
    seconds: tuple[float, ...]
    iterations: tuple[float, ...]
    amounts: tuple[tuple[str, float], ...]
    nanoseconds: tuple[float, ...]

    @property
    def batch(self) -> float:
        """The mean number of iterations per sample."""
        return sum(self.iterations) / len(self.iterations)

    def series(self, elapsed: Sequence[float] = ()) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield the metrics, each with its values of all batches. Raises ToolOutputError for an invalid value.

        elapsed: the elapsed time (ns) of each batch, if criterion timed by CPU time.
        """
        seconds: Sequence[float] = self.seconds
        if elapsed:
            yield "cpu", seconds
            seconds = [time * _NANOSECOND / count for time, count in zip(elapsed, self.iterations, strict=True)]
        yield "time", seconds
        for metric, amount in self.amounts:
            name = f"{metric} of {self.name[:80]}"
            yield metric, [tool_files.positive(amount / value, name) for value in seconds]

    @property
    def listed(self) -> str:
        """The id as listed by criterion, which truncates long ones."""
        return self.title if self.title.endswith(_CUT) and self.title != self.name else self.name


class _Both(Json):
    elements: Positive
    bytes: Positive


class _Throughput(Json):
    """The work of one iteration; one of the keys is set."""

    model_config = ConfigDict(extra="forbid")

    Bytes: Positive | None = None
    BytesDecimal: Positive | None = None
    Bits: Positive | None = None
    Elements: Positive | None = None
    ElementsAndBytes: _Both | None = None

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Yield the metrics with their bytes or elements."""
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
    """Read the folder of one benchmark and baseline. Raises ToolOutputError for a missing, cut or invalid file."""
    about, sample = tool_json.read(_About, place / ABOUT), tool_json.read(_Sample, place / SAMPLE)
    if len(sample.times) != len(sample.iters):
        raise ToolOutputError(f"{SAMPLE} has {len(sample.times)} times but {len(sample.iters)} iters")
    seconds = tuple(time * _NANOSECOND / count for time, count in zip(sample.times, sample.iters, strict=True))
    tool_files.positive(min(seconds), "a time per iteration")
    amounts = tuple(about.throughput.amounts()) if about.throughput else ()
    return Batches(
        about.full_id, about.title or about.full_id, seconds, tuple(sample.iters), amounts, tuple(sample.times)
    )


def exactly(*names: str) -> str:
    """Return a regular expression for listed ids. criterion 0.4 has no --exact, and its list truncates long ids."""
    return "|".join(map(_exactly, names))


def _exactly(name: str) -> str:
    cut = len(name.encode()) >= _LONGEST and name.endswith(_CUT)
    kept = name.removesuffix(_CUT) if cut else name
    return f"^{_SPECIAL.sub(lambda found: chr(92) + found[0], kept)}{'' if cut else '$'}"


def parse(folder: Path, baseline: str = NEWEST) -> ResultSet:
    """Read the results of ``baseline`` of every benchmark below ``folder``.

    ``folder`` is ``target/criterion``, a parent of it, or a group or benchmark in it. Raises ToolOutputError if there
    are no results, if a file is missing, cut or invalid, or if two folders have a benchmark of the same name.
    """
    # Searching a whole project is slow.
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
            raise ToolOutputError(f"{where} and {seen[found.name]} have the same name {label(found.name)}")
        seen[found.name] = where
    if not seen:
        there = ", ".join(sorted({label(place.name) for place in _places(root, "*")}))
        what = f"it has no results called {label(baseline)}, but {there}"
        raise ToolOutputError(what if there else "this folder has no results of a supported tool")
    return samples.result_set(TOOL, "", {})


def _places(root: Path, baseline: str) -> list[Path]:
    """Return the sorted folders of a baseline, or with ``*`` of all baselines."""
    patterns = [f"{'*/' * depth}{baseline}/{ABOUT}" for depth in range(_DEEPEST + 1)]
    return sorted(about.parent for pattern in patterns for about in root.glob(pattern))
