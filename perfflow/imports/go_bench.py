"""``go test -bench``: its text, and the stream of ``-json``, which may split one line over several events.

The text is specified by https://go.dev/design/14313-benchmark-format: a name, a count, then pairs of value and unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfflow.errors import ToolOutputError
from perfflow.imports.imported import FailedBenchmarkError, Imported, Samples, label
from perfflow.imports.json_parts import facts
from perfflow.tools import tool_files

TOOL = "go test"
WRITTEN_BY = "go test -run '^$' -bench . -count=10 > FILE (or with -json)"

_UNITS = {
    "ns/op": ("time", 1e-9),
    # SetBytes counts in 10^6 bytes.
    "MB/s": ("throughput", 1e6),
    "B/op": ("alloc", 1.0),
    "allocs/op": ("allocs", 1.0),
}
_HEADER = re.compile(r"(goos|goarch|pkg|cpu): *(\S.*)")
_RESULT = re.compile(r"(Benchmark(?![a-z])\S*)\s+\d+\s+(\S.*)")
_NAMELESS = re.compile(r"\s*\d+\s+[\d.]+ ns/op\b")
_BROKEN = re.compile(r"\s*--- (FAIL|SKIP): (Benchmark\S*)")
_END = re.compile(r"(?:PASS|ok|FAIL)(?:\s|$)")
_PROCESSORS = re.compile(r"-(\d+)$")


@dataclass(frozen=True, slots=True)
class _Row:
    package: str
    name: str
    pairs: Sequence[str]


@dataclass(slots=True)
class _Found:
    """What was read so far; ``package`` is the one whose lines are being read."""

    rows: list[_Row] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    package: str = ""
    ended: bool = True


def recognises(text: str) -> bool:
    """Whether some line is a header, a result or an end of ``go test``, as text or as an event."""
    if _is_stream(text):
        return True
    if text.lstrip().startswith(("{", "[")):
        return False
    return any(_HEADER.match(line) or _RESULT.match(line) for line in text.splitlines())


def parse(text: str) -> Imported:
    """Read every result line. Raises ToolOutputError if one is cut, nonsense, or a benchmark failed."""
    found = _Found()
    for output in _outputs(text) if _is_stream(text) else [text]:
        _read(found, output)
    samples = Samples(found.warnings)
    processors = _processors(found.rows)
    names = _names(found.rows, processors)
    for row, name in zip(found.rows, names, strict=True):
        _add(samples, name, row.pairs)
    headers = found.headers
    packages = {row.package for row in found.rows}
    machine = facts(
        cpu=headers.get("cpu"),
        os=headers.get("goos"),
        arch=headers.get("goarch"),
        gomaxprocs=processors.removeprefix("-"),
        package=packages.pop() if len(packages) == 1 else "",
    )
    return samples.imported(TOOL, "", machine)


def _is_stream(text: str) -> bool:
    first = text.lstrip().partition("\n")[0]
    return first.startswith("{") and '"Action"' in first


def _outputs(text: str) -> Iterator[str]:
    """Yield the output of each package as the text it was before ``-json`` took it apart."""
    packages: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        # What the compiler says on stderr may stand between the events.
        if line.startswith("{"):
            event = _event(line, number)
            if event.get("Action") == "output":
                packages.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    return ("".join(pieces) for pieces in packages.values())


def _event(line: str, number: int) -> Mapping[str, object]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"line {number} is cut short or no JSON") from error
    return event if isinstance(event, dict) else {}


def _read(found: _Found, output: str) -> None:
    """Read the output of one package, or of several one after the other."""
    found.package, found.ended = "", True
    lines = output.splitlines()
    for line in lines:
        _read_line(found, line)
    if lines and not output.endswith("\n") and lines[-1].startswith("Benchmark"):
        raise ToolOutputError("it is cut short: its last line has no end")
    if not found.ended:
        found.warnings.append("there is no final ok or FAIL; was the run cut short?")


def _read_line(found: _Found, line: str) -> None:
    if match := _RESULT.match(line):
        _read_result(found, match[1], match[2].split())
    elif match := _HEADER.match(line):
        found.headers[match[1]] = match[2]
        if match[1] == "pkg":
            found.package, found.ended = match[2], False
    elif match := _BROKEN.match(line):
        if match[1] == "FAIL":
            raise FailedBenchmarkError(f"{label(match[2])} failed")
        found.warnings.append(f"{label(match[2])} was skipped")
    elif _NAMELESS.match(line):
        found.warnings.append("a result has lost its name to what the benchmark printed, and was left out")
    elif _END.match(line):
        found.ended = True
        if line.startswith("FAIL\t"):
            found.warnings.append(f"go test says: {label(line)}")


def _read_result(found: _Found, name: str, pairs: list[str]) -> None:
    """Keep a result line; prose that begins like one is passed over."""
    if not re.match(r"[-+]?[\d.]|[-+]?Inf|NaN", pairs[0]):
        return
    if len(pairs) % 2:
        raise ToolOutputError(f"the result of {label(name)} is cut short")
    found.rows.append(_Row(found.package, name, pairs))


def _processors(rows: Sequence[_Row]) -> str:
    """Return the ``-8`` that all names end in, which is GOMAXPROCS, or ''. With ``-cpu 1,4`` they differ, and stay."""
    ends = {match[0] if (match := _PROCESSORS.search(row.name)) else "" for row in rows}
    return ends.pop() if len(ends) == 1 else ""


def _names(rows: Sequence[_Row], processors: str) -> list[str]:
    """Return each row's name; one that several packages have comes after its package's."""
    short = [row.name.removesuffix(processors) for row in rows]
    homes: dict[str, set[str]] = {}
    for row, name in zip(rows, short, strict=True):
        homes.setdefault(name, set()).add(row.package)
    return [f"{row.package}.{name}" if len(homes[name]) > 1 else name for row, name in zip(rows, short, strict=True)]


def _add(samples: Samples, name: str, pairs: Sequence[str]) -> None:
    for text, unit in zip(pairs[::2], pairs[1::2], strict=True):
        if unit in _UNITS:
            metric, scale = _UNITS[unit]
            samples.add(name, metric, _figure(text, f"{unit} of {label(name)}"), scale)
        else:
            samples.add_custom(name, unit, _custom(text))


def _figure(text: str, what: str) -> float:
    """Return a figure as Go prints it, in any locale with a point. Raises ToolOutputError."""
    if "," in text:
        raise ToolOutputError(f"{what} is {ascii(text)[:60]}, not a number")
    return tool_files.number_in(text, what)


def _custom(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
