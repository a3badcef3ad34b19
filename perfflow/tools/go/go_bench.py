"""Read output of ``go test -bench``: text, or the events of ``-json``, which may split one line over several events.

The text is specified by https://go.dev/design/14313-benchmark-format: a name, a count, then pairs of value and unit.
A line ``key: value`` applies to all later results until the key is set again; ``Unit`` lines describe a unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import Better
from perfflow.tools import tool_files
from perfflow.tools.result_set import ResultSet, SeveralSetsError, ValueCollector, facts, label, listed

TOOL = "go test"
WRITTEN_BY = "go test -run '^$' -bench . -count=10 > FILE (or with -json)"

_UNITS = {
    "ns/op": ("time", 1e-9),
    # Throughput from SetBytes is in 10^6 bytes.
    "MB/s": ("throughput", 1e6),
    "B/op": ("alloc", 1.0),
    "allocs/op": ("allocs", 1.0),
}
_CONFIGURATION = re.compile(r"([a-z][^\sA-Z:]{0,99}):[ \t]*(\S.*)")
_HEADER = re.compile(r"(?:goos|goarch|pkg|cpu): *\S")
_UNIT = re.compile(r"Unit\s+(\S+)(?:\s+\S+=\S+)*?\s+better=(higher|lower)(?:\s+\S+=\S+)*\s*\Z")
_PACKAGE = "pkg"
_MACHINE: Mapping[str, str] = {"cpu": "cpu", "os": "goos", "arch": "goarch", "gomaxprocs": "gomaxprocs"}
_RESULT = re.compile(r"(Benchmark(?![a-z])\S*)\s+\d+\s+(\S.*)")
_NAMELESS = re.compile(r"\s*\d+\s+[\d.]+ ns/op\b")
_FAILED_OR_SKIPPED = re.compile(r"\s*--- (FAIL|SKIP): (Benchmark\S*)")
_END = re.compile(r"(?:PASS|ok|FAIL)(?:\s|$)")
_PROCESSORS = re.compile(r"-(\d+)$")


class _GoBenchRow(NamedTuple):
    """One result line and its configuration."""

    name: str
    pairs: Sequence[str]
    configuration: Mapping[str, str]

    def shown(self, processors: str = "") -> str:
        """Return the name with its package, if any, so that it does not depend on other results in the file."""
        name, package = self.name.removesuffix(processors), self.configuration.get(_PACKAGE)
        return f"{package}.{name}" if package else name


@dataclass(slots=True)
class _GoBenchResults:
    """The results so far; ``configuration`` applies to the next line."""

    rows: list[_GoBenchRow] = field(default_factory=list)
    samples: ValueCollector = field(default_factory=ValueCollector)
    configuration: dict[str, str] = field(default_factory=dict)
    ended: bool = True


def recognises(text: str) -> bool:
    """Whether a line is a header or a result of ``go test``, or the text is a stream of its events."""
    if _is_stream(text):
        return True
    if text.lstrip().startswith(("{", "[")):
        return False
    return any(_HEADER.match(line) or _RESULT.match(line) for line in text.splitlines())


def parse(text: str, where: Mapping[str, str]) -> ResultSet:
    """Read all result lines whose configuration matches ``where``.

    Raises ToolOutputError if a line is cut or invalid, if a benchmark has results with two configurations, or if none
    matches ``where``.
    """
    results = _GoBenchResults()
    for package, output in _outputs(text) if _is_stream(text) else [("", text)]:
        _read(results, output, package)
    samples = results.samples
    rows = _chosen(results.rows, where)
    # A suffix such as ``-8`` of all names is GOMAXPROCS. With ``-cpu 1,4`` the suffixes differ and are kept.
    ends = {match[0] if (match := _PROCESSORS.search(row.name)) else "" for row in rows}
    processors = ends.pop() if len(ends) == 1 else ""
    common = _configuration(rows, processors)
    for row in rows:
        _add(samples, row.shown(processors), row.pairs)
    configuration = {**common, "gomaxprocs": processors.removeprefix("-")}
    others = {key: label(value) for key, value in common.items() if key not in _MACHINE.values()}
    return samples.result_set(TOOL, "", facts(configuration, **_MACHINE), others)


def _chosen(rows: Sequence[_GoBenchRow], where: Mapping[str, str]) -> list[_GoBenchRow]:
    """Return the results that match a configuration. Raises ToolOutputError if there are results but none matches."""
    found = [row for row in rows if all(row.configuration.get(key) == value for key, value in where.items())]
    if rows and not found:
        there = {f"{key}={row.configuration[key]}": None for key in where for row in rows if key in row.configuration}
        asked = " ".join(f"{key}={value}" for key, value in where.items())
        raise ToolOutputError(f"no result has {label(asked)}" + (f", but {listed(there)}" if there else ""))
    return found


def _configuration(rows: Sequence[_GoBenchRow], processors: str) -> dict[str, str]:
    """Return the configuration that all rows share. Raises SeveralSetsError if two rows of one benchmark differ."""
    sets: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for key, value in row.configuration.items():
            sets.setdefault((row.shown(processors), key), {})[value] = None
    for (name, key), values in sets.items():
        if len(values) > 1:
            there = listed([f"{key}={value}" for value in values])
            raise SeveralSetsError(f"{label(name)} has results with {there}", f"{key}={next(iter(values))}")
    first = rows[0].configuration if rows else {}
    shared = {key: value for key, value in first.items() if all(row.configuration.get(key) == value for row in rows)}
    return {"package" if key == _PACKAGE else key: value for key, value in shared.items()}


def _is_stream(text: str) -> bool:
    first = text.lstrip().partition("\n")[0]
    return first.startswith("{") and '"Action"' in first


def _outputs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each package and its output as the text that ``-json`` split into events."""
    packages: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        # Compiler messages on stderr may be mixed with the events.
        if line.startswith("{"):
            event = cast(dict[str, object], tool_files.decoded(line, f"line {number}"))
            if event.get("Action") == "output":
                packages.setdefault(str(event.get("Package") or ""), []).append(str(event.get("Output", "")))
    return ((package, "".join(pieces)) for package, pieces in packages.items())


def _read(found: _GoBenchResults, output: str, package: str) -> None:
    """Read the output of one package or of several in sequence."""
    found.configuration, found.ended = {_PACKAGE: package} if package else {}, True
    lines = output.splitlines()
    for line in lines:
        _read_line(found, line)
    if lines and not output.endswith("\n") and lines[-1].startswith("Benchmark"):
        raise ToolOutputError("it is cut short: its last line has no end")
    if not found.ended:
        found.samples.warnings.append("there is no final ok or FAIL, so the run may have been cut short")


def _read_line(results: _GoBenchResults, line: str) -> None:
    if match := _RESULT.match(line):
        _read_result(results, match[1], match[2].split())
    elif match := _CONFIGURATION.match(line):
        results.configuration[match[1]] = match[2].rstrip()
        if match[1] == _PACKAGE:
            results.ended = False
    elif match := _UNIT.match(line):
        results.samples.better[match[1]] = Better(match[2])
    elif match := _FAILED_OR_SKIPPED.match(line):
        name = _GoBenchRow(match[2], (), results.configuration).shown()
        if match[1] == "FAIL":
            results.samples.fail(name, "failed")
        else:
            results.samples.warnings.append(f"{label(name)} was skipped")
    elif _NAMELESS.match(line):
        results.samples.warnings.append("a result without a name was skipped: the benchmark's output broke its line")
    elif _END.match(line):
        results.ended = True
        if line.startswith("FAIL\t"):
            results.samples.warnings.append(f"go test reports: {label(line)}")


def _read_result(found: _GoBenchResults, name: str, pairs: list[str]) -> None:
    """Add a result line; prose that begins like one is skipped."""
    if re.match(r"[-+]?[\d.]|[-+]?Inf|NaN", pairs[0]):
        if len(pairs) % 2:
            raise ToolOutputError(f"the result of {label(name)} is cut short")
        found.rows.append(_GoBenchRow(name, pairs, dict(found.configuration)))


def _add(samples: ValueCollector, name: str, pairs: Sequence[str]) -> None:
    for text, unit in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            # Go prints a decimal point in any locale.
            value = float(text)
        except ValueError as error:
            if unit in _UNITS:
                raise ToolOutputError(f"{unit} of {label(name)} is {tool_files.shown(text)}, not a number") from error
            value = math.nan
        if unit in _UNITS:
            metric, scale = _UNITS[unit]
            samples.add(name, metric, [value], scale)
        else:
            samples.add_custom(name, unit, [value])
