"""The contents of another tool's result file, and the collector that checks its figures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import Parsed, Reading, reading_of_process
from perfflow.model.units import UNITS, Dimension
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.parsed_output import M

_DIGEST = 8
_LISTED = 5
# The year 2286 in seconds; larger timestamps are in ms.
_LATEST = 1e10
_BETTER: Mapping[Dimension, Better] = {
    **dict.fromkeys((Dimension.TIME, Dimension.BYTES), Better.LOWER),
    **dict.fromkeys((Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS), Better.HIGHER),
}
# A 0 of these metrics was below the tool's resolution or not measured, so it cannot be compared. For ``time`` a 0 is an
# error, since without it little is left to compare.
_NEVER_ZERO = frozenset({"cpu", "rss", "throughput", "rate"})


class FailedBenchmarkError(ToolOutputError):
    """The file is valid, but every benchmark in it failed. A benchmark that ends early is not faster."""


class SeveralSetsError(ToolOutputError):
    """The file has several results of one benchmark with different facts; ``choice`` is a fact that selects one."""

    def __init__(self, reason: str, choice: str) -> None:
        super().__init__(reason)
        self.choice = choice


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary of ``count`` samples: the standard ``error`` of their ``statistic``, in base units.

    ``statistic`` is '' for the mean, which is also the statistic of single values, or ``p50``.
    """

    count: int
    error: float
    statistic: str = ""


@dataclass(frozen=True, slots=True)
class ResultSet:
    """The raw values of one result file or process, in the order of the file and in base units (s, B, B/s, 1/s, count).

    ``benchmarks``: values by (benchmark, metric). Values of two benchmarks, or of two files, are not pairs.
    ``metrics``: dimension and direction of metrics that perfflow does not define (Go's ``chars/op``). They are named
    after their unit or counter.
    ``version``: version of the tool, '' if unknown.
    ``machine``: facts of the machine, never a host name. ``facts``: other facts of the set, such as the commit.
    ``started``: start of the measurement (RFC 3339), '' if unknown.
    ``failed``: benchmarks without a value, with the reason.
    ``summaries``: for figures with one value whose samples are not in the file.
    ``versions``: versions of the benchmarks' code, if the tool reports them. Figures of two versions measure different
    work.
    ``batches``: iterations of which each value is the mean, if single iterations were not timed.
    """

    tool: str
    version: str
    benchmarks: Mapping[tuple[str, str], tuple[float, ...]]
    machine: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    started: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)
    summaries: Mapping[tuple[str, str], StoredSummary] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def parsed(self, *warnings: str, single: bool = False) -> Parsed:
        """Return the values of one process as an adapter's result.

        ``single``: a single value becomes a plain figure, not a distribution of one value.
        """
        readings = tuple(
            Reading(metric, values[0], name)
            if single and len(values) == 1 and (name, metric) not in self.batches
            else reading_of_process(metric, values, name, self.batches.get((name, metric), 1.0))
            for (name, metric), values in self.benchmarks.items()
        )
        return Parsed(readings, warnings=(*warnings, *self.warnings), failed=self.failed)


@dataclass(frozen=True, slots=True)
class JsonFormat(Generic[M]):
    """One format whose file is a JSON object. Steps and comparisons of files read it in the same way.

    ``recognises`` distinguishes it from other formats. ``model`` declares the keys that are read, and ``gather`` raises
    ToolOutputError if their values make no sense. ``companion`` names a file in the folder above that of the result,
    whose contents are added to the object under that name. ``written_by`` is the command that writes such a file.
    """

    tool: str
    written_by: str
    recognises: Callable[[Mapping[str, object]], bool]
    model: type[M]
    gather: Callable[[M], ResultSet]
    companion: str = ""

    def parse(self, content: object) -> ResultSet:
        """Read decoded JSON. Raises ToolOutputError with a one-line reason."""
        return self.gather(parsed_output.checked_json(self.model, content))

    def load(self, path: Path, remedy: str = "") -> M:
        """Read a file of this format, for ``gather``. Raises ToolOutputError, also for another format."""
        return parsed_output.read_json(self.model, path, remedy)

    def read(self, path: Path, remedy: str = "") -> ResultSet:
        """Read a file of this format. Raises ToolOutputError as ``load`` and ``gather`` do."""
        return self.gather(self.load(path, remedy))


def label(name: str) -> str:
    """Return a printable name (see ``tool_files.clean_name``). Different names stay different."""
    spaced = " ".join(name.split())
    clean = tool_files.clean_name(spaced)
    if clean == spaced:
        return clean
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{clean[: tool_files.LONGEST_NAME - _DIGEST - 1]} {digest}"


@dataclass(slots=True)
class ValueCollector:
    """Collects values by (benchmark, metric) and refuses those that are not finite and >= 0."""

    warnings: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Benchmarks that failed, with the reason. Their collected values are dropped."""
    better: dict[str, Better] = field(default_factory=dict)
    """Directions of units, as far as the file has them."""
    versions: dict[str, str] = field(default_factory=dict)
    summaries: dict[tuple[str, str], StoredSummary] = field(default_factory=dict)
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _batches: dict[tuple[str, str], float] = field(default_factory=dict)
    _metrics: dict[str, Metric] = field(default_factory=dict)
    _skipped: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, metric: str, values: Sequence[float], scale: float = 1.0, batch: float = 1.0) -> None:
        """Add values of ``scale`` base units each, the means of ``batch`` iterations.

        Raises ToolOutputError if scaling makes a value too large, or a time 0.
        """
        if not values:
            return
        key = label(name), metric
        figures = [value * scale for value in values]
        check = tool_files.positive if metric == "time" else tool_files.number
        for figure in (min(figures), max(figures)):
            check(figure, f"{metric} of {key[0]}")
        self._values.setdefault(key, []).extend(figures)
        if batch > 1:
            self._batches[key] = max(batch, self._batches.get(key, 1.0))

    def add_summary(self, name: str, metric: str, value: float, summary: StoredSummary) -> None:
        """Add the mean or median of samples that are not in the file. Raises ToolOutputError as ``add`` does."""
        self.add(name, metric, [value])
        self.summaries[label(name), metric] = summary

    def add_custom(self, name: str, unit: str, values: Sequence[object]) -> None:
        """Add values of a custom metric, which is named after its unit (``req/s``, ``p99-ms``).

        Metrics that cannot be compared are skipped with a warning.
        """
        metric = label(unit)
        if metric in METRICS:
            self.warnings.append(f"{metric} was skipped: it has the name of a metric of perfflow, but no unit")
            return
        dimension, scale = _dimension_of(unit)
        better = self.better.get(unit, _BETTER.get(dimension, Better.NONE))
        self._metrics[metric] = Metric(metric, dimension, better)
        try:
            self.add(name, metric, [tool_files.number(value, unit) for value in values], scale)
        except ToolOutputError:
            self._skipped.setdefault(metric, set()).add(label(name))

    def fail(self, name: str, reason: str) -> None:
        """Record that a benchmark failed, since a benchmark that ends early is not faster."""
        self.failed.setdefault(label(name), reason)

    @property
    def holds_any(self) -> bool:
        """Whether there is a value or a failed benchmark."""
        return bool(self._values or self.failed)

    def holds(self, name: str) -> bool:
        """Return whether there is a value of this benchmark."""
        benchmark = label(name)
        return any(key[0] == benchmark for key in self._values)

    def result_set(
        self,
        tool: str,
        version: object,
        machine: Mapping[str, str],
        facts: Mapping[str, str] | None = None,
        started: object = "",
    ) -> ResultSet:
        """Return all values. Raises ToolOutputError if there is none, FailedBenchmarkError if all benchmarks failed."""
        for metric, names in self._skipped.items():
            self._drop(metric, names, "negative or not a number in {}")
        self._drop_zeros()
        values = {key: tuple(found) for key, found in self._values.items() if key[0] not in self.failed}
        if self.failed and not values:
            name, reason = next(iter(self.failed.items()))
            raise FailedBenchmarkError(f"{name} {reason}")
        if not values:
            raise ToolOutputError("; ".join(("it has no benchmark result", *dict.fromkeys(self.warnings))))
        shown = label(version) if isinstance(version, str) and version else ""
        metrics = {name: metric for name, metric in self._metrics.items() if any(key[1] == name for key in values)}
        warnings = tuple(dict.fromkeys(self.warnings))
        summaries = {key: summary for key, summary in self.summaries.items() if len(values.get(key, ())) == 1}
        return ResultSet(
            *(tool, shown, values, machine, warnings, metrics, facts or {}, moment(started)),
            *(self.failed, summaries, self.versions, self._batches),
        )

    def _drop_zeros(self) -> None:
        zeros: dict[str, list[str]] = {}
        for (name, metric), values in self._values.items():
            if metric in _NEVER_ZERO and not all(values):
                zeros.setdefault(metric, []).append(name)
        for metric, names in zeros.items():
            self._drop(metric, names, "0 in {}, which is not valid")
        # If the CPU time is dropped, its two parts are meaningless.
        for key in [(name, part) for name in zeros.get("cpu", ()) for part in ("user", "system")]:
            self._values.pop(key, None)

    def _drop(self, metric: str, names: Collection[str], why: str) -> None:
        for name in names:
            self._values.pop((name, metric), None)
        where = "1 benchmark" if len(names) == 1 else f"{len(names)} benchmarks"
        self.warnings.append(f"{metric} is {why.format(where)}, and was skipped")


def listed(items: Iterable[str]) -> str:
    """Return the first few names in printable form, and the number of the others."""
    shown = [label(item) for item in items]
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more


def facts(content: object, **keys: str) -> dict[str, str]:
    """Return the available facts as text, by the given names: ``cpu="cpu.brand_raw"``."""
    found = {name: at(content, key) for name, key in keys.items()}
    told = {name: value for name, value in found.items() if isinstance(value, str | int | float) and value != ""}
    return {name: label(str(value)) for name, value in told.items()}


def at(content: object, key: str) -> object:
    """Return the value at a dotted key of nested JSON objects, such as ``platform.os``; None if it is missing."""
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def moment(value: object) -> str:
    """Return a date and time as RFC 3339 in UTC, '' if it is invalid. A time without a zone is taken as UTC.

    ``value`` is ISO 8601 text, or seconds or milliseconds since 1970.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            when = datetime.fromtimestamp(value / 1000 if value > _LATEST else value, UTC)
        else:
            when = datetime.fromisoformat(value if isinstance(value, str) else "")
    except (ValueError, OverflowError, OSError):
        return ""
    zoned = when if when.tzinfo else when.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _dimension_of(unit: str) -> tuple[Dimension, float]:
    """Return the dimension of a custom unit and its size in base units: ``p99-ms`` is a time, ``req/s`` a rate."""
    above, per, below = unit.partition("/")
    for text in (unit, unit.rpartition("-")[2], above, above.rpartition("-")[2]):
        dimension, scale = UNITS.get(text, (Dimension.COUNT, 1))
        if dimension in _BETTER:
            return dimension, float(scale)
    return (Dimension.RATE, 1.0) if per and below in ("s", "sec", "second") else (Dimension.COUNT, 1.0)
