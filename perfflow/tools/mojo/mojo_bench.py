"""``mojo-bench``: a program that uses the benchmark module of Mojo's standard library, its ``Bench`` or its ``run``.

A source is built once a side. The library's programs can neither list their benchmarks nor run one alone, so that the
whole program is one sample, unless it has words of its own for both. What it prints says all; the file of ``-o``, which
only has the last ``Bench`` of a program and is not written where it cannot be, without a word, is a second witness.

Where a source does not build, what helps is said. The remedies were tried with Mojo 1.2.0. Each belongs to the text of
an error and of the line that it points to: the compiler's own message seldom names a word that is gone, since to its
parser that is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, CommandText, Invocation, Program, Role, may_leave
from perfflow.tools.mojo import mojo_output
from perfflow.tools.mojo.mojo_output import Row
from perfflow.tools.tool_files import clean_name

_FILE = "bench.csv"
_PRINTED = "printed.txt"
_VERSION = "mojo-version.txt"
# Less than a third of a clock tick: no loop does anything in that time.
_NOTHING = 1e-10
_ERROR = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>[^\n]*)(?:\n(?P<source>[^\n]*))?", re.MULTILINE
)
# What it says without a place; of all others it also says that the module could not be parsed.
_GENERAL = re.compile(r"^\S*mojo: error: (?P<what>[^\n]*)", re.MULTILINE)
_STD = (
    "algorithm|atomic|base64|benchmark|bit|builtin|collections|compile|complex|ffi|format|gpu|hashlib|io|iter|itertools|"
    "logger|math|memory|os|pathlib|prelude|pwd|python|random|reflection|runtime|stat|subprocess|sys|tempfile|testing|"
    "time|utils"
)
_LONGEST_WHAT, _LONGEST_LINE, _MOST_REMEDIES = 120, 60, 2

REMEDIES: Mapping[str, str] = {
    r"'fn' has been removed": "write `def`, and `raises` after the arguments of one that may raise",
    r"^\s*alias\s+\w": "write `comptime NAME = ...` for `alias`",
    r"^\s*let\s+\w": "write `var` for `let`",
    r"\binout\s+self\b": "write `out self` in __init__ and `mut self` elsewhere for `inout self`",
    r"\binout\s+\w": "write `mut` for `inout`",
    r"\bowned\s+\w": "write `var` for `owned`",
    r"\bborrowed\s+\w": "leave out `borrowed`: arguments are read only unless told otherwise",
    r"'(?:if|for)' statement does not support decorators": "write `comptime if` or `comptime for`",
    rf"(?:unable to locate module '(?:{_STD})'|'(?:{_STD})' cannot import itself)": "modules of the standard "
    "library are imported from std: `from std.benchmark import run`",
    r"unable to locate module": "name the folder of that module in `include`",
    r"call to '(?:run|iter|iter_custom|bench_function|bench_with_input)'.*\n.*"
    r"\b(?:run|iter|iter_custom|bench_function|bench_with_input)\[": "functions are arguments now, `run(f)` or "
    "`b.iter(f)`, and say what they capture: `def f() {mut}:`",
    r"call to 'vectorize'.*\n.*\bvectorize\[\s*[A-Za-z_]\w*\s*,": "write `vectorize[WIDTH](n, body)` with `def "
    "body[width: Int](i: Int) {mut}:`",
    r"Could not infer capture convention": "say what a closure captures: `def f() {mut}:`, or {read}, {var}",
    r"unknown function effect 'unified'": "leave out `unified`: `def f() {mut}:`",
    r"may raise in a context that cannot raise": "add `raises`: `def main() raises:`",
    r"unknown declaration 'value'": "write `@fieldwise_init` and `struct A(Copyable, Movable):` for `@value`",
    r"\bsimdwidthof\b": "it is `simd_width_of` of std.sys",
    r"\bDTypePointer\b": "DTypePointer is gone: use a List, or `Pointer` of std.memory",
    r"unknown declaration '(?:str|int)'": "write `String(...)` for `str`, `Int(...)` for `int`",
    r"no matching function in initialization\n.*\bList\[": "write a list as `[1, 2, 3]`",
    r"unable to find suitable c compiler": "it links with the C compiler: apt-get install gcc",
    r"does not contain a 'main' function": "name the file that has `def main()`",
}
"""What helps where a pattern is found in an error's text, or in the line below; the more special ones come first."""


class Options(CommandOptions):
    """``with`` keys of ``uses: mojo-bench``: a ``file`` to build, or the ``command`` of a program that is built."""

    file: str = Field(default="", description="A Mojo source with a main function. It is built once for each side.")
    include: list[str] | str = Field(default="", description="Folders to search for imported modules (-I).")
    flags: CommandText = Field(default="-O3", description="Further arguments of `mojo build`.")
    args: CommandText = Field(default="", description="Further arguments of the program.")
    repetitions: int = Field(
        default=0, ge=0, description="How often each benchmark runs in a process; 0 means as the program says."
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
            raise ValueError("`list_with` and `only_with` go together")
        return self


def needs_program(values: Mapping[str, object]) -> bool:
    """Whether the compiler is needed, which a program that is built does without."""
    return values.get("command") is None


def preparations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Ask for the compiler's version and build the source; a program that is there needs neither.

    Raises ToolOutputError unless there is either a source or a command.
    """
    options = call.options
    if bool(options.file) == bool(call.command):
        raise ToolOutputError("name either a `file` to build or the `command` of a program that is built")
    if not options.file:
        return ()
    compiler = call.program or "mojo"
    include = [options.include] if isinstance(options.include, str) else options.include
    folders = (word for folder in include if folder for word in ("-I", folder))
    build = (compiler, "build", *adapter.words(options.flags), *folders, "-o", str(_built(call)), options.file)
    return (Invocation((compiler, "--version"), stdout=_VERSION), Invocation(build))


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its benchmarks. Raises ToolOutputError for a shell's text."""
    repeated = ("-r", str(call.options.repetitions)) if call.options.repetitions else ()
    only = (*adapter.words(call.options.only_with), call.only) if call.only and call.options.only_with else ()
    ours = ("-o", str(call.folder / _FILE), "--format", "csv", *repeated)
    return (Invocation((*_program(call), *ours, *only), stdout=_PRINTED),)


def executed(call: Call[Options]) -> tuple[Path, ...]:
    """The program that was built, else the words of the command."""
    return (_built(call),) if call.options.file else tuple(map(Path, call.command))


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Read s per iteration, and bytes, operations and elements per second; a ``Bench`` counts in 10^9.

    Raises ToolOutputError with the compiler's error and what helps, or where the output is missing, cut or nonsense.
    """
    if call.options.file and (reason := why(call.place)):
        raise ToolOutputError(reason)
    said = tool_files.last_words(call.folder)
    text = tool_files.read_text(call.folder / _PRINTED, said or "the program printed nothing")
    file = call.folder / _FILE
    rows, warnings = mojo_output.read(text, tool_files.read_whole(file) if file.exists() else "")
    if not rows:
        reason = "what it printed holds no table of a Bench and no Benchmark Report"
        raise ToolOutputError(f"{reason}; it said last: {said}" if said else reason)
    series = _series(rows, call.options.repetitions)
    readings = tuple(reading for name, found in series.items() for reading in _readings(name, found))
    if empty := [name for name, found in series.items() if min(row.values["time"] for row in found) < _NOTHING]:
        warnings += (f"the compiler left nothing of {', '.join(sorted(empty))[:200]}: use keep() of std.benchmark",)
    return Parsed(readings, warnings=warnings)


def why(folder: Path) -> str:
    """Return why the build in ``folder`` failed, in one line of at most 400 characters; '' where it said no error.

    That is the version, the place and text of the first error of which something is known to help, else of the first
    one, the line of the source, and what helps.
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
    # Rather one remedy that is whole than two of which one is not.
    return line if len(line) < tool_files.LONGEST_NAME else "; ".join(parts[:2])


def _remedy_for(text: str) -> str:
    return next((says for pattern, says in REMEDIES.items() if re.search(pattern, text, re.MULTILINE)), "")


def listing(call: Call[Options]) -> Invocation | None:
    """Return the process that prints the names, by the program's own words for it; None where it has none."""
    asked = adapter.words(call.options.list_with)
    return Invocation((*_program(call), *asked)) if asked else None


def _program(call: Call[Options]) -> tuple[str, ...]:
    return (*((str(_built(call)),) if call.options.file else call.program_words), *adapter.words(call.options.args))


def _built(call: Call[Options]) -> Path:
    return call.place / f"{Path(call.options.file).stem}.program"


def _series(rows: Sequence[Row], repetitions: int) -> Mapping[str, list[Row]]:
    """Sort rows by benchmark. Raises ToolOutputError where two benchmarks bear one name, as far as that can be told."""
    found: dict[str, list[Row]] = {}
    # Repetitions of one benchmark follow upon each other.
    for name, repeated in groupby(rows, key=lambda row: row.name):
        if name in found:
            raise ToolOutputError(f"two benchmarks are called {name[:80]!r}")
        found[name] = list(repeated)
        if repetitions and found[name][0].repeats and (times := len(found[name])) != repetitions:
            raise ToolOutputError(f"{name[:80]!r} was to run {repetitions} times, and {times} results bear it")
    return found


def _readings(name: str, rows: Sequence[Row]) -> Iterator[Reading]:
    """Yield what a process says of one benchmark: of repetitions their mean, each that of a batch."""
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
    metrics=of_perfflow("time", "bandwidth", "flops", "rate"),
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
