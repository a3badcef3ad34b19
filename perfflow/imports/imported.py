"""What a result file of another tool says, and the one way its figures are gathered and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import METRICS
from perfflow.tools import tool_files

_DIGEST = 8
# Nothing runs in no time and no memory: a 0 here was below the tool's resolution or not measured, and no change can be
# told from it. For ``time`` that is an error, since without it there is little left to compare.
_NEVER_ZERO = frozenset({"cpu", "rss", "throughput", "rate"})


class FailedBenchmarkError(ToolOutputError):
    """The file is sound, but says that a benchmark failed: what ends early is no faster."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The raw values of one result file, in base units (s, B, B/s, 1/s, count), in the order of the file.

    ``benchmarks`` is keyed by (benchmark, metric). Values of two benchmarks, or of two files, are not pairs.
    A metric that perfflow does not know (Go's ``chars/op``) is named after its unit or counter and is not converted.
    ``version`` is '' where the file does not tell. ``machine`` holds facts of the file, never a host's name.
    """

    tool: str
    version: str
    benchmarks: Mapping[tuple[str, str], tuple[float, ...]]
    machine: Mapping[str, str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """One format whose file is a JSON object: how to know it, read it, and how to have the tool write it again.

    ``parse`` raises ToolOutputError with a reason of one line. ``companion`` names a file in the folder above that of
    the result, which ``parse`` finds in the object under that name where it is there.
    """

    tool: str
    written_by: str
    recognises: Callable[[Mapping[str, object]], bool]
    parse: Callable[[Mapping[str, object]], Imported]
    companion: str = ""


def label(name: str) -> str:
    """Return a name fit for pages (see ``tool_files.clean_name``) that still differs where the names differ."""
    spaced = " ".join(name.split())
    clean = tool_files.clean_name(spaced)
    if clean == spaced:
        return clean
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{clean[: tool_files.LONGEST_NAME - _DIGEST - 1]} {digest}"


@dataclass(slots=True)
class Samples:
    """Gathers values by (benchmark, metric); every value is finite and >= 0, or refused."""

    warnings: list[str] = field(default_factory=list)
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _left_out: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, metric: str, value: object, scale: float = 1.0) -> None:
        """Add one value, ``scale`` base units each. Raises ToolOutputError if it is no number or cannot be."""
        benchmark = label(name)
        what = f"{metric} of {benchmark}"
        figure = tool_files.number(value, what) * scale
        # Checked again, since scaling can make it too large, or 0.
        checked = tool_files.positive(figure, what) if metric == "time" else tool_files.number(figure, what)
        self._values.setdefault((benchmark, metric), []).append(checked)

    def add_custom(self, name: str, unit: str, value: object) -> None:
        """Add a value of the author's own metric. What has no place in a comparison is left out, with a warning."""
        metric = label(unit)
        if metric in METRICS:
            self.warnings.append(f"{metric} was left out: it bears the name of a metric of perfflow, but has no unit")
            return
        try:
            self.add(name, metric, value)
        except ToolOutputError:
            self._left_out.setdefault(metric, set()).add(label(name))

    def holds(self, name: str) -> bool:
        """Return whether there is a value of this benchmark."""
        benchmark = label(name)
        return any(key[0] == benchmark for key in self._values)

    def imported(self, tool: str, version: object, machine: Mapping[str, str]) -> Imported:
        """Return everything gathered. Raises ToolOutputError if nothing was."""
        self._drop_left_out()
        self._drop_zeros()
        if not self._values:
            raise ToolOutputError("there is no result of a benchmark in it")
        shown = label(version) if isinstance(version, str) and version else ""
        values = {key: tuple(found) for key, found in self._values.items()}
        return Imported(tool, shown, values, machine, tuple(dict.fromkeys(self.warnings)))

    def _drop_left_out(self) -> None:
        for metric, benchmarks in self._left_out.items():
            for benchmark in benchmarks:
                self._values.pop((benchmark, metric), None)
            where = _counted(len(benchmarks))
            self.warnings.append(f"{metric} is negative or no number in {where}, and was left out")

    def _drop_zeros(self) -> None:
        zeros = [key for key, values in self._values.items() if key[1] in _NEVER_ZERO and not all(values)]
        for name, metric in zeros:
            # Without any CPU time its two parts mean nothing.
            for gone in (metric, "user", "system") if metric == "cpu" else (metric,):
                self._values.pop((name, gone), None)
        for metric in dict.fromkeys(metric for _, metric in zeros):
            times = sum(key[1] == metric for key in zeros)
            self.warnings.append(f"{metric} is 0 in {_counted(times)}, which cannot be, and was left out")


def _counted(number: int) -> str:
    return "1 benchmark" if number == 1 else f"{number} benchmarks"
