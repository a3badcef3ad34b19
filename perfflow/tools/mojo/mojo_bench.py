"""``mojo-bench``: a program that uses the benchmark module of Mojo's standard library, its ``Bench`` or its ``run``.

A source is built once for each side. The library's programs can neither list their benchmarks nor run one alone, so the
whole program is one sample, unless it has its own arguments for both. The printed output contains all results. The file
of ``-o`` is a cross-check: it has only the last ``Bench``, and is silently missing if it cannot be written.

If a source does not build, the message has a remedy. The remedies were tested with Mojo 1.2.0. Each is found by the
text of an error and of the line to which it points: the compiler's message seldom names a removed keyword, which its
parser treats as any other word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, CommandText, Invocation, Program, Role, may_leave
from perfflow.tools.mojo import mojo_output
from perfflow.tools.mojo.mojo_output import Row
from perfflow.tools.tool_files import clean_name

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


class Options(CommandOptions):
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


def preparations(call: Call[Options]) -> tuple[Invocation, ...]:
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


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its benchmarks. Raises ToolOutputError for a shell command."""
    repeated = ("-r", str(call.options.repetitions)) if call.options.repetitions else ()
    only = (*adapter.words(call.options.only_with), call.only) if call.only and call.options.only_with else ()
    ours = ("-o", str(call.folder / _FILE), "--format", "csv", *repeated)
    return (Invocation((*_program(call), *ours, *only), stdout=_PRINTED),)


def executed(call: Call[Options]) -> tuple[Path, ...]:
    """Return the path of the built program, else the words of the command as paths."""
    return (_built(call),) if call.options.file else tuple(map(Path, call.command))


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Read s per iteration, and bytes, operations and elements per second; a ``Bench`` prints rates in 10^9.

    Raises ToolOutputError with the compiler's error and a remedy, or if the output is missing, truncated or invalid.
    """
    if call.options.file and (reason := why(call.place)):
        raise ToolOutputError(reason)
    said = tool_files.last_words(call.folder)
    text = tool_files.read_text(call.folder / _PRINTED, said or "the program printed nothing")
    file = call.folder / _FILE
    rows, warnings = mojo_output.read(text, tool_files.read_whole(file) if file.exists() else "")
    if not rows:
        reason = "the output contains no table of a Bench and no Benchmark Report"
        raise ToolOutputError(f"{reason}; its last line on stderr: {said}" if said else reason)
    series = _series(rows, call.options.repetitions)
    readings = tuple(reading for name, found in series.items() for reading in _readings(name, found))
    if empty := [name for name, found in series.items() if min(row.values["time"] for row in found) < _NOTHING]:
        warnings += (f"the compiler removed all work of {', '.join(sorted(empty))[:200]}: use keep() of std.benchmark",)
    return Parsed(readings, warnings=warnings)


def why(folder: Path) -> str:
    """Return why the build in ``folder`` failed, in one line of at most 400 characters; '' if it printed no error.

    The line has the version, the place and text of the first error that has a remedy, else of the first error, the
    source line, and the remedies.
    """
    said = tool_files.first_text(folder)
    errors = [match.groupdict("") for pattern in (_ERROR, _GENERAL) for match in pattern.finditer(said)]
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


def listing(call: Call[Options]) -> Invocation | None:
    """Return the process that prints the names, by the program's own arguments for it; None without ``list-with``."""
    asked = adapter.words(call.options.list_with)
    return Invocation((*_program(call), *asked)) if asked else None


def _program(call: Call[Options]) -> tuple[str, ...]:
    return (*((str(_built(call)),) if call.options.file else call.program_words), *adapter.words(call.options.args))


def _built(call: Call[Options]) -> Path:
    return call.place / f"{Path(call.options.file).stem}.program"


def _series(rows: Sequence[Row], repetitions: int) -> Mapping[str, list[Row]]:
    """Group rows by benchmark. Raises ToolOutputError if two benchmarks recognizably have the same name."""
    found: dict[str, list[Row]] = {}
    # Repetitions of one benchmark are consecutive.
    for name, repeated in groupby(rows, key=lambda row: row.name):
        if name in found:
            raise ToolOutputError(f"two benchmarks are called {name[:80]!r}")
        found[name] = list(repeated)
        if repetitions and found[name][0].repeats and (times := len(found[name])) != repetitions:
            raise ToolOutputError(f"{name[:80]!r} has {times} results instead of {repetitions} repetitions")
    return found


def _readings(name: str, rows: Sequence[Row]) -> Iterator[Reading]:
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
    options=Options,
    program=Program("mojo", "pip install mojo"),
    metrics=builtin_metrics("time", "bandwidth", "flops", "rate"),
    attaches=("file",),
    needs_program=needs_program,
    suite=True,
    preparations=preparations,
    invocations=invocations,
    outputs=may_leave(_PRINTED, _FILE),
    executed=executed,
    parse=parse,
    listing=listing,
)
