"""``cargo-bench``: the benchmarks of a crate, of criterion or of libtest's own harness.

cargo builds them once a side. Then each executable is run directly, where and as cargo would run it, since cargo adds
more to every sample than a short one lasts. ``drivers/cargo_suite.py`` writes down how. A brief run of criterion has
up to 100 samples in a tenth of a second, and no comparison of its own. What a group in the code sets for itself goes
before the command line, so that criterion's quick mode, which no group can change, measures what would take long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import Field, TypeAdapter, ValidationError

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import BATCH, Parsed, Reading, Usage, reading_of_process
from perfflow.tools import pacing, tool_files
from perfflow.tools.adapter import Adapter, Call, Effort, Invocation, Role
from perfflow.tools.rust import cargo_packages, criterion_files, libtest_output
from perfflow.tools.rust.cargo_packages import CARGO
from perfflow.tools.rust.criterion_files import Batches

_SUITE = "suite.json"
_LISTED = "listing.out"
_LISTER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "cargo_suite.py"))
_LIBTEST = "libtest"
# What criterion says of a benchmark that went well.
_PROGRESS = "Benchmarking "
# Also of "--bench": without it both harnesses only test. The baseline to compare with is one that is never there.
_CRITERION = ("--bench", "--noplot", "--baseline-lenient", "perfflow-none")
# Seconds; measured where a group does not set its own.
_BRIEF = ("--warm-up-time=0.1", "--measurement-time=0.1", "--nresamples=1001")
# At least three iterations, which double until a tenth of a second is over or, of one that varies, a whole one.
_QUICK = ("--quick", "--measurement-time=1", "--nresamples=1001")
_FEWEST = 10


class Options(cargo_packages.Options):
    """``with`` keys of ``uses: cargo-bench``."""

    bench: list[str] | str = Field(default="", description="Bench targets; else all that `cargo bench` runs.")
    filter: str = Field(default="", description="Which benchmarks: a regular expression; of libtest part of the name.")
    profile: str = Field(default="bench", min_length=1, description="Cargo's profile.")
    sample_size: int = Field(default=100, ge=10, description="Criterion's samples in a process, at the most.")


@dataclass(frozen=True, slots=True)
class _Bench:
    """One executable: where it starts, and its benchmarks' own ids by the names that perfflow gives them."""

    program: str
    target: str
    cwd: str
    env: Mapping[str, str]
    harness: str
    ids: Mapping[str, str]


def preparations(call: Call) -> tuple[Invocation, ...]:
    """Build, then list what was built."""
    options = cast(Options, call.options)
    selection = (
        "--no-run",
        f"--profile={options.profile}",
        *(f"--bench={name}" for name in cargo_packages.words(options.bench)),
    )
    lister = (*_LISTER, str(call.place), call.program or CARGO.name, *_filter(options))
    return (
        cargo_packages.cargo(call, options, "bench", selection),
        Invocation(lister, stdout=_LISTED, cwd=options.crate),
    )


def _filter(options: Options) -> tuple[str, ...]:
    return (options.filter,) if options.filter else ()


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run each executable's benchmarks, or ``only`` one of them. Raises ToolOutputError if they are not built."""
    return tuple(_invocation(call, number, bench) for number, bench in _selected(call))


def _invocation(call: Call, number: int, bench: _Bench) -> Invocation:
    options = cast(Options, call.options)
    if bench.harness == _LIBTEST:
        chosen = (bench.ids[call.only], "--exact") if call.only else _filter(options)
        return Invocation((bench.program, "--bench", *chosen), bench.env, _printed(call, number).name, bench.cwd)
    brief = _brief(call) if call.effort is Effort.BRIEF else ()
    chosen = (criterion_files.exactly(bench.ids[call.only]),) if call.only else _filter(options)
    env = {**bench.env, "CRITERION_HOME": str(_home(call, number))}
    return Invocation((bench.program, *_CRITERION, *brief, *chosen), env, cwd=bench.cwd)


def _brief(call: Call) -> tuple[str, ...]:
    wanted = _wanted(call)
    if call.pace and max(call.pace.spent, call.pace.seconds * wanted) > pacing.SLOW:
        return _QUICK
    return (*_BRIEF, f"--sample-size={wanted}")


def _wanted(call: Call) -> int:
    """How many samples criterion is asked for; it takes no fewer than ten."""
    return pacing.samples(call.pace, _FEWEST, cast(Options, call.options).sample_size)


def outputs(call: Call) -> tuple[Path, ...]:
    """What the executables left; ``parse`` says what is missing."""
    found = [path for path in (*_files(call.folder), *call.folder.glob(f"{_LIBTEST}-*.txt")) if tool_files.left(path)]
    return tuple(sorted(found))


def _files(folder: Path) -> Iterator[Path]:
    for name in (criterion_files.ABOUT, criterion_files.SAMPLE):
        yield from (folder / "criterion").rglob(f"new/{name}")


def executed(call: Call) -> tuple[Path, ...]:
    """The executables, as they were when they were built."""
    return tuple(Path(bench.program) for _, bench in _selected(call))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the seconds per iteration of every batch of criterion, and the median of every benchmark of libtest.

    Raises ToolOutputError if nothing was built or no benchmark ran, or if a file is missing or nonsense.
    """
    readings: list[Reading] = []
    warnings: dict[str, None] = {}
    for number, bench in _selected(call):
        if bench.harness == _LIBTEST:
            text = tool_files.read_text(_printed(call, number))
            readings += _named(call, bench, libtest_output.readings(text), libtest_output.ignored(text))
        else:
            wanted = 0 if _QUICK[0] in _brief(call) else _wanted(call)
            readings += _named(call, bench, _of_criterion(call, _home(call, number), wanted, warnings))
    names = [(reading.benchmark, reading.metric) for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[0]!r}")
    if not readings:
        raise ToolOutputError(_why_not_run(call, "no benchmark left a result"))
    return Parsed(tuple(readings), warnings=tuple(warnings))


def listing(call: Call) -> Invocation:
    """Return the process that prints the names that were listed after building."""
    return Invocation((*_LISTER, str(call.place)), stdout="benchmarks.txt")


def _of_criterion(call: Call, home: Path, wanted: int, warnings: dict[str, None]) -> Iterator[Reading]:
    # sample.json is written first, so a benchmark that was interrupted has no benchmark.json.
    places = sorted({path.parent for path in home.rglob(f"new/{criterion_files.ABOUT}")})
    if not places:
        raise ToolOutputError(_why_not_run(call, "no benchmark left a result"))
    for place in places:
        found = criterion_files.read(place)
        if call.effort is Effort.BRIEF and call.pace and wanted and len(found.seconds) != wanted:
            warnings[_overridden(found, wanted)] = None
        yield from _readings(found)


def _overridden(found: Batches, wanted: int) -> str:
    return (
        f"{tool_files.clean_name(found.name)[:80]} sets its own sample_size, so a process takes {len(found.seconds)} "
        f"samples instead of {wanted}"
    )


def _readings(found: Batches) -> Iterator[Reading]:
    name = found.listed
    batch = sum(found.iterations) / len(found.iterations)
    series = {"time": found.seconds}
    for metric, amount in found.amounts:
        series[metric] = tuple(
            tool_files.positive(amount / value, f"{metric} of {name[:80]}") for value in found.seconds
        )
    for metric, values in series.items():
        reading = reading_of_process(metric, values, tool_files.clean_name(name))
        yield replace(reading, inner={**reading.inner, BATCH: batch})


def _named(
    call: Call, bench: _Bench, found: Iterator[Reading], passed_over: AbstractSet[str] = frozenset()
) -> list[Reading]:
    """Give the benchmarks the names they were listed under. Raises ToolOutputError if not just those were measured."""
    shown = {tool_files.clean_name(own): name for name, own in bench.ids.items() if call.only in ("", name)}
    named = []
    for reading in found:
        if reading.benchmark not in shown:
            raise ToolOutputError(f"{reading.benchmark[:80]} was measured, which is not what was listed")
        named.append(replace(reading, benchmark=shown[reading.benchmark]))
    for own in sorted(shown.keys() - passed_over):
        if shown[own] not in {reading.benchmark for reading in named}:
            raise ToolOutputError(_why_not_run(call, f"the benchmark {own[:80]} left no result"))
    return named


def _selected(call: Call) -> Sequence[tuple[int, _Bench]]:
    benches = _suite(call)
    if not call.only:
        return list(zip(range(len(benches)), benches, strict=True))
    found = [
        (number, bench) for number, bench in zip(range(len(benches)), benches, strict=True) if call.only in bench.ids
    ]
    if not found:
        raise ToolOutputError(f"the benchmark {call.only!r} is not there")
    return found


def _suite(call: Call) -> list[_Bench]:
    """Read what the lister wrote. Raises ToolOutputError with what it, or cargo, said where there is nothing."""
    path = call.place / _SUITE
    content = tool_files.read_json(path) if path.exists() else {}
    if not content:
        raise ToolOutputError(_why_not_built(call.place))
    try:
        found = _reader().validate_python(content)["benches"]
    except (ValidationError, KeyError) as error:
        raise ToolOutputError(f"{_SUITE} is nonsense") from error
    if not found:
        raise ToolOutputError(f"{_SUITE} holds no benchmark")
    return found


@cache
def _reader() -> TypeAdapter[dict[str, list[_Bench]]]:
    return TypeAdapter(dict[str, list[_Bench]])


def _why_not_built(place: Path) -> str:
    if (place / _LISTED).exists():
        # cargo went well, and what it said before is no reason.
        return "; ".join(filter(None, (tool_files.last_words(place), cargo_packages.panic(place))))
    return cargo_packages.why(place) or tool_files.last_words(place) or "nothing was built"


def _why_not_run(call: Call, what: str) -> str:
    said = cargo_packages.panic(call.folder) or tool_files.last_words(call.folder)
    return what if not said or said.startswith(_PROGRESS) else f"{what}: {said}"


def _home(call: Call, number: int) -> Path:
    """The folder for criterion's files: two executables may have benchmarks of the same id."""
    return call.folder / "criterion" / str(number)


def _printed(call: Call, number: int) -> Path:
    return call.folder / f"{_LIBTEST}-{number}.txt"


ADAPTER = Adapter(
    name="cargo-bench",
    role=Role.MEASURE,
    options=Options,
    program=CARGO,
    metrics=of_perfflow("time", "throughput", "rate"),
    suite=True,
    preparations=preparations,
    invocations=invocations,
    outputs=outputs,
    executed=executed,
    parse=parse,
    listing=listing,
)
