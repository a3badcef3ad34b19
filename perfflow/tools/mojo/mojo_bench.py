"""``mojo-bench``: a program that uses the benchmark module of Mojo's standard library, its ``Bench`` or its ``run``.

A source is built once a side. The library's programs can neither list their benchmarks nor run one alone, so that the
whole program is one sample, unless it has words of its own for both. What it prints says all; the file of ``-o``, which
only has the last ``Bench`` of a program and is not written where it cannot be, without a word, is a second witness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Self, cast

from pydantic import Field, model_validator

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import BATCH, Parsed, Reading, Usage, reading_of_process
from perfflow.tools import tool_files
from perfflow.tools.adapter import (
    Adapter,
    Call,
    CommandOptions,
    CommandText,
    Invocation,
    Program,
    Role,
    may_leave,
    words,
)
from perfflow.tools.mojo import mojo_compiler, mojo_output
from perfflow.tools.mojo.mojo_output import Row

_FILE = "bench.csv"
_PRINTED = "printed.txt"
_LIST = "benchmarks.txt"
# Less than a third of a clock tick: no loop does anything in that time.
_NOTHING = 1e-10


class Options(CommandOptions):
    """``with`` keys of ``uses: mojo-bench``: a ``file`` to build, or the ``command`` of a program that is built."""

    file: str = Field(default="", description="A Mojo source with a main function, which is built once a side.")
    include: list[str] | str = Field(default="", description="Folders in which imported modules are looked up (-I).")
    flags: CommandText = Field(default="-O3", description="What `mojo build` is told besides.")
    args: CommandText = Field(default="", description="Further arguments of the program.")
    repetitions: int = Field(default=0, ge=0, description="How often each benchmark is run in a process; 0: its own.")
    list_with: CommandText = Field(default="", description="Words by which the program prints its benchmarks' names.")
    only_with: CommandText = Field(default="", description="Words before a name, by which it runs that one alone.")

    @model_validator(mode="after")
    def _lists_what_it_can_run_alone(self) -> Self:
        if bool(self.list_with) != bool(self.only_with):
            raise ValueError("`list_with` and `only_with` go together")
        return self


def needs_program(values: Mapping[str, object]) -> bool:
    """Whether the compiler is needed, which a program that is built does without."""
    return values.get("command") is None


def preparations(call: Call) -> tuple[Invocation, ...]:
    """Ask for the compiler's version and build the source; a program that is there needs neither.

    Raises ToolOutputError unless there is either a source or a command.
    """
    options = cast(Options, call.options)
    if bool(options.file) == bool(call.command):
        raise ToolOutputError("name either a `file` to build or the `command` of a program that is built")
    if not options.file:
        return ()
    compiler = call.program or "mojo"
    include = [options.include] if isinstance(options.include, str) else options.include
    folders = (word for folder in include if folder for word in ("-I", folder))
    build = (compiler, "build", *words(options.flags), *folders, "-o", str(_built(call)), options.file)
    return (Invocation((compiler, "--version"), stdout=mojo_compiler.VERSION), Invocation(build))


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its benchmarks. Raises ToolOutputError for a shell's text."""
    options = cast(Options, call.options)
    repeated = ("-r", str(options.repetitions)) if options.repetitions else ()
    only = (*words(options.only_with), call.only) if call.only and options.only_with else ()
    ours = ("-o", str(call.folder / _FILE), "--format", "csv", *repeated)
    return (Invocation((*_program(call), *ours, *only), stdout=_PRINTED),)


def executed(call: Call) -> tuple[Path, ...]:
    """The program that was built, else the words of the command."""
    return (_built(call),) if cast(Options, call.options).file else tuple(map(Path, call.command))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read s per iteration, and bytes, operations and elements per second; a ``Bench`` counts in 10^9.

    Raises ToolOutputError with the compiler's error and what helps, or where the output is missing, cut or nonsense.
    """
    options = cast(Options, call.options)
    if options.file and (reason := mojo_compiler.why(call.place)):
        raise ToolOutputError(reason)
    said = tool_files.last_words(call.folder)
    text = tool_files.read_text(call.folder / _PRINTED, said or "the program printed nothing")
    file = call.folder / _FILE
    rows, warnings = mojo_output.read(text, tool_files.read_whole(file) if file.exists() else "")
    if not rows:
        reason = "what it printed holds no table of a Bench and no Benchmark Report"
        raise ToolOutputError(f"{reason}; it said last: {said}" if said else reason)
    series = _series(rows, options.repetitions)
    readings = tuple(reading for name, found in series.items() for reading in _readings(name, found))
    if empty := [name for name, found in series.items() if min(row.values["time"] for row in found) < _NOTHING]:
        warnings += (f"the compiler left nothing of {', '.join(sorted(empty))[:200]}: use keep() of std.benchmark",)
    return Parsed(readings, warnings=warnings)


def listing(call: Call) -> Invocation | None:
    """Return the process that prints the names, by the program's own words for it; None where it has none."""
    asked = words(cast(Options, call.options).list_with)
    return Invocation((*_program(call), *asked), stdout=_LIST) if asked else None


def _program(call: Call) -> tuple[str, ...]:
    if call.shell_text:
        raise ToolOutputError("perfflow adds flags to the program, which a shell's text hides: drop `shell: true`")
    options = cast(Options, call.options)
    return (*((str(_built(call)),) if options.file else call.command), *words(options.args))


def _built(call: Call) -> Path:
    return call.place / f"{Path(cast(Options, call.options).file).stem}.program"


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
        reading = reading_of_process(metric, [row.values[metric] for row in rows if metric in row.values], name)
        yield replace(reading, inner={**reading.inner, BATCH: batch})


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
