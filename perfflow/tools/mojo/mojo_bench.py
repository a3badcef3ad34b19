"""``mojo-bench``: a program that uses the benchmark module of Mojo's standard library, its ``Bench`` or its ``run``.

A source is built once for each side. The library's programs can neither list their benchmarks nor run one alone, so the
whole program is one sample, unless it has its own arguments for both. The printed output contains all results. The file
of ``-o`` is a cross-check: it has only the last ``Bench``, and is silently missing if it cannot be written.

``read_output`` reads the printed results: tables of a ``Bench``, and ``Report`` blocks. A ``Bench`` writes one table in
a form that the program chooses: CSV with quoted names, in which nothing is escaped; the same with aligned columns; or
columns between bars. Names are not quoted in the latter two, so rows are split from their end. An empty line after each
printed table marks it as complete. A ``Report`` has no name: it is the line right before it, which can be missing for a
single report.

If a source does not build, the message has a remedy (``REMEDIES``). The remedies were tested with Mojo 1.2.0. Each is
found by the text of an error and of the line to which it points: the compiler's message seldom names a removed keyword,
which its parser treats as any other word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import (
    Adapter,
    Builder,
    Call,
    CommandOptions,
    CommandText,
    Invocation,
    Program,
    Role,
    Suite,
    may_leave,
)
from perfflow.tools.tool_files import clean_name

_HEAD = re.compile(r"^\.*(?:\| )?(?P<columns>name *(?P<bar> \| |, *)met \(ms\).*)$")
_NONE = "No benchmarks recorded"
# Names of mean, iterations, total time, minimum and maximum in a Bench and a Report. A Bench can omit the last three.
_BENCH = ("met (ms)", "iters", "duration (ms)", "min (ms)", "max (ms)")
_OF_REPORT = ("Mean", "Iters", "Total", "Fastest Mean", "Slowest Mean")
# A Bench without names of metrics writes only their units. All are multiples of 10^9.
_RATES: Mapping[str, str] = {
    **dict.fromkeys(("DataMovement (GB/s)", "GB/s"), "bandwidth"),
    **dict.fromkeys(("Arithmetic (GFLOPS/s)", "GFLOPS/s"), "flops"),
    **dict.fromkeys(("throughput (GElems/s)", "GElems/s"), "rate"),
}
_MISSING = "N/A"
_REPORT = re.compile(
    r"^(?P<rule>-{5,})\nBenchmark Report \((?P<unit>[^)\n]*)\)\n(?P=rule)\n(?P<body>(?:[A-Z][A-Za-z ]*: [^\n]*\n)*)",
    re.MULTILINE,
)
_A_REPORT = "Benchmark Report ("
_UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Figures are printed to the last digit, and sums are rounded once more.
_ROUNDING = 1e-6


class MojoResult(NamedTuple):
    """One result of a benchmark: ``values`` by metric in base units, the mean of ``iterations`` iterations.

    ``repeats`` is true for a ``Bench``, which has an option for the number of repetitions.
    """

    name: str
    values: Mapping[str, float]
    iterations: float
    repeats: bool = True


_Table = list[dict[str, str]]
"""The cells of each row by their columns."""


def read_output(printed: str, file: str) -> tuple[list[MojoResult], tuple[str, ...]]:
    """Return every result that a program printed, and warnings.

    ``file`` is the text of its CSV file, '' if there is none; its table must equal the last printed one. Raises
    ToolOutputError if they differ, or if the output is truncated or invalid.
    """
    tables = list(_tables(printed, is_printed=True))
    if file and tables[-1:] != list(_tables(file, is_printed=False)):
        raise ToolOutputError("the CSV file differs from the last printed table: one of them is cut short")
    if _NONE in printed or not all(tables):
        raise ToolOutputError("the program recorded no benchmark")
    rows = [_row(cells) for table in tables for cells in table]
    known = {"name", "mean (ms)", *_BENCH, *_RATES}
    unknown = dict.fromkeys(name for table in tables for name in table[0] if name not in known)
    warnings = [f"column {name[:80]!r} is left out: perfflow does not know its unit" for name in unknown]
    return rows + list(_reports(printed)), tuple(warnings)


def _tables(text: str, *, is_printed: bool) -> Iterator[_Table]:
    # Not splitlines(), since names can contain characters that it takes for line ends.
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        head = _HEAD.match(line)
        if not head or _NONE in line:
            continue
        bars = head["bar"] == " | "
        separator = " | " if bars else ","
        columns = [column.strip() for column in head["columns"].removesuffix(" |" if bars else "").split(separator)]
        if columns[:3] != ["name", *_BENCH[:2]] or len({*columns}) != len(columns):
            raise ToolOutputError(
                "the table of the Bench has unexpected columns: it is cut short or its format has changed"
            )
        rows: _Table = []
        for row in lines:
            if not row.strip():
                break
            # A table between bars has dashes below its head.
            cells = _cells(row, separator, len(columns))
            if not bars or "".join(cells).strip("-"):
                rows.append(dict(zip(columns, cells, strict=True)))
        else:
            if is_printed:
                raise ToolOutputError("the table of the Bench is cut short: no empty line follows it")
        yield rows


def _cells(line: str, separator: str, count: int) -> list[str]:
    """Split a row from its end, since a name can contain the separator. Raises ToolOutputError for a wrong number."""
    shown = tool_files.clean_name(line)[:80]
    bars = separator == " | "
    if bars and not (line.startswith("| ") and line.endswith(" |")):
        raise ToolOutputError(f"a row is not between bars: {shown!r}")
    inner = line.removeprefix("| ").removesuffix(" |") if bars else line
    name, *rest = (cell.strip() for cell in inner.rsplit(separator, count - 1))
    if len(rest) != count - 1:
        raise ToolOutputError(f"a row has {len(rest) + 1} cells below {count} columns: {shown!r}")
    if name.startswith('"') and not bars:
        if len(name) < 2 or not name.endswith('"'):
            raise ToolOutputError(f"a row has more cells than {count} columns: {shown!r}")
        name = name[1:-1]
    return [name, *rest]


def _row(cells: Mapping[str, str]) -> MojoResult:
    if not cells["name"]:
        raise ToolOutputError("a benchmark has no name")
    name = tool_files.clean_name(cells["name"])
    seconds, iterations = _timed(cells, _BENCH, 1e-3, name[:80])
    values = {"time": seconds}
    for column, metric in _RATES.items():
        if cells.get(column, _MISSING) != _MISSING:
            if metric in values:
                raise ToolOutputError(f"{name[:80]} has two columns for {metric}")
            # Checked again, since the scaled value can be too large.
            what = f"{column} of {name[:80]}"
            values[metric] = tool_files.number(_positive(cells[column], what) * 1e9, what)
    return MojoResult(name, values, iterations)


def _reports(printed: str) -> Iterator[MojoResult]:
    reports = list(_REPORT.finditer(printed))
    if len(reports) != printed.count(_A_REPORT):
        raise ToolOutputError("a Benchmark Report is cut short")
    for report in reports:
        # The name is the line right before the report, which can be empty.
        before = printed[: report.start()].removesuffix("\n").rpartition("\n")[2]
        heading = before.strip().removesuffix(":").rstrip()
        if len(reports) > 1 and not heading:
            many = f"not all of {len(reports)} Benchmark Reports have a name"
            raise ToolOutputError(f"{many}: print one on the line before each")
        name = tool_files.clean_name(heading) if heading else ""
        shown = name[:80] or "the report"
        figures = dict(line.split(": ", 1) for line in report["body"].split("\n")[:-1])
        if missing := [key for key in _OF_REPORT if key not in figures]:
            raise ToolOutputError(f"a Benchmark Report is cut short: {missing[0]} of {shown} is missing")
        unit = tool_files.scale_of(report["unit"], _UNITS, shown)
        seconds, iterations = _timed(figures, _OF_REPORT, unit, shown)
        yield MojoResult(name, {"time": seconds}, iterations, repeats=False)


def _timed(cells: Mapping[str, str], keys: Sequence[str], unit: float, name: str) -> tuple[float, float]:
    """Return the mean time in s and the iterations. Raises ToolOutputError if figures contradict each other."""
    mean = _positive(cells[keys[0]], f"{keys[0]} of {name}")
    what = f"{keys[1]} of {name}"
    iterations = tool_files.positive(tool_files.whole(tool_files.number_in(cells[keys[1]], what), what), what)
    if keys[2] in cells:
        given = [(key, cells.get(key, cells[keys[0]])) for key in keys[2:]]
        total, least, most = (tool_files.number_in(text, f"{key} of {name}") for key, text in given)
        is_between = least * (1 - _ROUNDING) <= mean <= most * (1 + _ROUNDING)
        if not is_between or not math.isclose(mean * iterations, total, rel_tol=_ROUNDING):
            raise ToolOutputError(f"the figures of {name} contradict each other")
    return tool_files.positive(mean * unit, f"time of {name}"), iterations


def _positive(text: str, what: str) -> float:
    """Return a figure > 0. Raises ToolOutputError, for 0 with a remedy: the compiler can remove work without effect."""
    figure = tool_files.number_in(text, what)
    if figure == 0:
        raise ToolOutputError(
            f"{what} is 0: nothing was measured, perhaps because the compiler removed the work: use keep()"
        )
    return figure


_FILE = "bench.csv"
_PRINTED = "printed.txt"
_VERSION = "mojo-version.txt"
# Less than a third of a clock tick: no loop that does work is that fast.
_NOTHING = 1e-10
_ERROR = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>[^\n]*)(?:\n(?P<source>[^\n]*))?", re.MULTILINE
)
# Errors without a place. For all others, the compiler also prints that the module could not be parsed.
_GENERAL = re.compile(r"^\S*mojo: error: (?P<what>[^\n]*)", re.MULTILINE)
_STD = (
    "algorithm|atomic|base64|benchmark|bit|builtin|collections|compile|complex|ffi|format|gpu|hashlib|io|iter|itertools|"
    "logger|math|memory|os|pathlib|prelude|pwd|python|random|reflection|runtime|stat|subprocess|sys|tempfile|testing|"
    "time|utils"
)
_LONGEST_WHAT, _LONGEST_LINE, _MOST_REMEDIES = 120, 60, 2

REMEDIES: Mapping[str, str] = {
    r"'fn' has been removed": "write `def`, and `raises` after the arguments of a function that may raise",
    r"^\s*alias\s+\w": "write `comptime NAME = ...` for `alias`",
    r"^\s*let\s+\w": "write `var` for `let`",
    r"\binout\s+self\b": "for `inout self`, write `out self` in __init__ and `mut self` elsewhere",
    r"\binout\s+\w": "write `mut` for `inout`",
    r"\bowned\s+\w": "write `var` for `owned`",
    r"\bborrowed\s+\w": "leave out `borrowed`: arguments are read-only by default",
    r"'(?:if|for)' statement does not support decorators": "write `comptime if` or `comptime for`",
    rf"(?:unable to locate module '(?:{_STD})'|'(?:{_STD})' cannot import itself)": "modules of the standard "
    "library are imported from std: `from std.benchmark import run`",
    r"unable to locate module": "add the folder of that module to `include`",
    r"call to '(?:run|iter|iter_custom|bench_function|bench_with_input)'.*\n.*"
    r"\b(?:run|iter|iter_custom|bench_function|bench_with_input)\[": "pass functions as arguments, `run(f)` or "
    "`b.iter(f)`, and declare what they capture: `def f() {mut}:`",
    r"call to 'vectorize'.*\n.*\bvectorize\[\s*[A-Za-z_]\w*\s*,": "write `vectorize[WIDTH](n, body)` with `def "
    "body[width: Int](i: Int) {mut}:`",
    r"Could not infer capture convention": "declare what a closure captures: `def f() {mut}:`, or {read}, {var}",
    r"unknown function effect 'unified'": "leave out `unified`: `def f() {mut}:`",
    r"may raise in a context that cannot raise": "add `raises`: `def main() raises:`",
    r"unknown declaration 'value'": "write `@fieldwise_init` and `struct A(Copyable, Movable):` for `@value`",
    r"\bsimdwidthof\b": "use `simd_width_of` of std.sys",
    r"\bDTypePointer\b": "DTypePointer was removed: use a List, or `Pointer` of std.memory",
    r"unknown declaration '(?:str|int)'": "write `String(...)` for `str`, `Int(...)` for `int`",
    r"no matching function in initialization\n.*\bList\[": "write a list as `[1, 2, 3]`",
    r"unable to find suitable c compiler": "Mojo links with the C compiler: apt-get install gcc",
    r"does not contain a 'main' function": "name the file that has `def main()`",
}
"""The remedy for each pattern in an error's text or in the line below it. More specific patterns come first."""


class MojoBenchOptions(CommandOptions):
    """``with`` keys of ``uses: mojo-bench``: a ``file`` to build, or the ``command`` of a built program."""

    file: str = Field(default="", description="A Mojo source with a main function. It is built once for each side.")
    include: list[str] | str = Field(default="", description="Folders to search for imported modules (-I).")
    flags: CommandText = Field(default="-O3", description="Additional arguments for `mojo build`.")
    args: CommandText = Field(default="", description="Additional arguments for the program.")
    repetitions: int = Field(
        default=0, ge=0, description="Runs of each benchmark in one process; 0 leaves the number to the program."
    )
    list_with: CommandText = Field(
        default="", description="Arguments that make the program print the names of its benchmarks."
    )
    only_with: CommandText = Field(
        default="", description="Arguments before a name that make the program run only that benchmark."
    )

    @model_validator(mode="after")
    def _lists_what_it_can_run_alone(self) -> Self:
        if bool(self.list_with) != bool(self.only_with):
            raise ValueError("set `list-with` and `only-with` together")
        return self


def needs_program(values: Mapping[str, object]) -> bool:
    """Return whether the step needs the compiler: a step with a ``command`` does not."""
    return values.get("command") is None


def preparations(call: Call[MojoBenchOptions]) -> tuple[Invocation, ...]:
    """Get the compiler's version and build the source; a built program needs neither.

    Raises ToolOutputError unless there is either a source or a command.
    """
    options = call.options
    if bool(options.file) == bool(call.command):
        raise ToolOutputError("set either `file`, a source to build, or `command`, a built program")
    if not options.file:
        return ()
    compiler = call.program or "mojo"
    include = [options.include] if isinstance(options.include, str) else options.include
    folders = (word for folder in include if folder for word in ("-I", folder))
    build = (compiler, "build", *adapter.words(options.flags), *folders, "-o", str(_built(call)), options.file)
    return (Invocation((compiler, "--version"), stdout=_VERSION), Invocation(build))


def invocations(call: Call[MojoBenchOptions]) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its benchmarks. Raises ToolOutputError for a shell command."""
    repeated = ("-r", str(call.options.repetitions)) if call.options.repetitions else ()
    only = (*adapter.words(call.options.only_with), call.only) if call.only and call.options.only_with else ()
    ours = ("-o", str(call.folder / _FILE), "--format", "csv", *repeated)
    return (Invocation((*_program(call), *ours, *only), stdout=_PRINTED),)


def executed(call: Call[MojoBenchOptions]) -> tuple[Path, ...]:
    """Return the path of the built program, else the words of the command as paths."""
    return (_built(call),) if call.options.file else tuple(map(Path, call.command))


def parse(call: Call[MojoBenchOptions], usage: Usage) -> Parsed:
    """Read s per iteration, and bytes, operations and elements per second; a ``Bench`` prints rates in 10^9.

    Raises ToolOutputError with the compiler's error and a remedy, or if the output is missing, truncated or invalid.
    """
    if call.options.file and (reason := why(call.place)):
        raise ToolOutputError(reason)
    last_line = tool_files.last_words(call.folder)
    text = tool_files.read_text(call.folder / _PRINTED, last_line or "the program printed nothing")
    file = call.folder / _FILE
    rows, warnings = read_output(text, tool_files.read_whole(file) if file.exists() else "")
    if not rows:
        reason = "the output contains no table of a Bench and no Benchmark Report"
        raise ToolOutputError(f"{reason}; its last line on stderr: {last_line}" if last_line else reason)
    series = _series(rows, call.options.repetitions)
    readings = tuple(reading for name, rows_of_name in series.items() for reading in _readings(name, rows_of_name))
    if empty := [
        name for name, rows_of_name in series.items() if min(row.values["time"] for row in rows_of_name) < _NOTHING
    ]:
        warnings += (f"the compiler removed all work of {', '.join(sorted(empty))[:200]}: use keep() of std.benchmark",)
    return Parsed(readings, warnings=warnings)


def why(folder: Path) -> str:
    """Return why the build in ``folder`` failed, in one line of at most 400 characters; '' if it printed no error.

    The line has the version, the place and text of the first error that has a remedy, else of the first error, the
    source line, and the remedies.
    """
    printed = tool_files.first_text(folder)
    errors = [match.groupdict("") for pattern in (_ERROR, _GENERAL) for match in pattern.finditer(printed)]
    remedies = [_remedy_for(f"{error['what']}\n{error.get('source', '')}") for error in errors]
    if not errors:
        return ""
    first = next((error for error, remedy in zip(errors, remedies, strict=True) if remedy), errors[0])
    place = f"{Path(first['file']).name}:{first['line']}:{first['column']}: " if "file" in first else ""
    version = re.match(r"\s*Mojo\s+(\S+)", tool_files.first_text(folder, _VERSION))
    said_by = f"Mojo {clean_name(version[1])[:20]}" if version else "mojo"
    parts = [f"{said_by}: {clean_name(place + first['what'])[:_LONGEST_WHAT]}"]
    if source := first.get("source", "").strip():
        parts[0] += f": `{clean_name(source)[:_LONGEST_LINE]}`"
    parts += [remedy for remedy in dict.fromkeys(remedies) if remedy][:_MOST_REMEDIES]
    line = "; ".join(parts)
    # One whole remedy is better than two of which one is truncated.
    return line if len(line) < tool_files.LONGEST_NAME else "; ".join(parts[:2])


def _remedy_for(text: str) -> str:
    return next((says for pattern, says in REMEDIES.items() if re.search(pattern, text, re.MULTILINE)), "")


def listing(call: Call[MojoBenchOptions]) -> Invocation | None:
    """Return the process that prints the names, by the program's own arguments for it; None without ``list-with``."""
    asked = adapter.words(call.options.list_with)
    return Invocation((*_program(call), *asked)) if asked else None


def _program(call: Call[MojoBenchOptions]) -> tuple[str, ...]:
    return (*((str(_built(call)),) if call.options.file else call.program_words), *adapter.words(call.options.args))


def _built(call: Call[MojoBenchOptions]) -> Path:
    return call.place / f"{Path(call.options.file).stem}.program"


def _series(rows: Sequence[MojoResult], repetitions: int) -> Mapping[str, list[MojoResult]]:
    """Group rows by benchmark. Raises ToolOutputError if two benchmarks recognizably have the same name."""
    found: dict[str, list[MojoResult]] = {}
    # Repetitions of one benchmark are consecutive.
    for name, repeated in groupby(rows, key=lambda row: row.name):
        if name in found:
            raise ToolOutputError(f"two benchmarks are called {name[:80]!r}")
        found[name] = list(repeated)
        if repetitions and found[name][0].repeats and (times := len(found[name])) != repetitions:
            raise ToolOutputError(f"{name[:80]!r} has {times} results instead of {repetitions} repetitions")
    return found


def _readings(name: str, rows: Sequence[MojoResult]) -> Iterator[Reading]:
    """Yield the readings of one benchmark in one process. Each repetition is the mean of a batch."""
    if len(rows) == 1:
        yield from (Reading(metric, value, name) for metric, value in rows[0].values.items())
        return
    batch = sum(row.iterations for row in rows) / len(rows)
    for metric in rows[0].values:
        values = [row.values[metric] for row in rows if metric in row.values]
        yield reading_of_process(metric, values, name, batch)


ADAPTER = Adapter(
    name="mojo-bench",
    role=Role.MEASURE,
    options=MojoBenchOptions,
    program=Program("mojo", "pip install mojo"),
    metrics=builtin_metrics("time", "bandwidth", "flops", "rate"),
    attaches=("file",),
    needs_program=needs_program,
    suite=Suite(listing=listing),
    build=Builder(preparations=preparations, executed=executed),
    invocations=invocations,
    outputs=may_leave(_PRINTED, _FILE),
    parse=parse,
)
