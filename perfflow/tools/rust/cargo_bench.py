"""``cargo-bench``: run the benchmarks of a crate, with criterion, divan or libtest's harness.

cargo builds them once per side. Then each executable runs directly, in the folder and environment that cargo would use,
since starting cargo takes longer than a short sample. ``drivers/cargo_suite.py`` records both. A brief run of criterion
takes up to 100 samples in 0.1 s, without criterion's comparison. Settings of a group in the code override the command
line, so slow benchmarks are measured in criterion's quick mode, which no group can override.

All three harnesses time by the monotonic clock. Benchmarks that only compute in one thread are timed by CPU time, with
``tools/drivers/cpu_clock.c``; the elapsed time of the same batches is in its log.

For profilers the benchmarks are built again with source lines if the profile has none. Under a counting profiler, a
benchmark uses the clock of ``tools/drivers/stepping_clock.c``, which advances 1 s per reading. In criterion's profiling
mode, one iteration takes three readings: it does one iteration in the 1 s of warm-up, and then as many as fit into its
time, whatever a group sets. libtest times one iteration, and chooses as many per batch as fit into 1 ms. divan takes
the number of iterations from the command line, and the clock only fixes how it measures its own overhead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import cpu_clock, pacing, python_command, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Effort, Invocation, Parts, Role
from perfflow.tools.cpu_clock import ClockLog
from perfflow.tools.rust import cargo_packages, criterion_files
from perfflow.tools.rust.cargo_packages import CARGO
from perfflow.tools.tool_json import Json

_SUITE = "suite.json"
_LISTED = "listing.out"
_LISTER = python_command.driver_command("cargo_suite.py", __file__)
_LIBTEST, _DIVAN = "libtest", "divan"
# Start of criterion's messages about a successful benchmark.
_PROGRESS = "Benchmarking "
# Without --bench both harnesses only run tests. The baseline never exists, so criterion compares nothing.
_CRITERION = ("--bench", "--noplot", "--baseline-lenient", "perfflow-none")
# Times in s, which apply unless a group sets its own.
_BRIEF = ("--measurement-time=0.1", "--nresamples=1001")
# At least one iteration, which is all for a slow benchmark.
_WARM_UP, _WARM_UP_OF_SLOW = "--warm-up-time=0.1", "--warm-up-time=0.001"
# At least three iterations, doubled until 0.1 s have passed, or 0.3 s for a benchmark that varies.
_QUICK = ("--quick", "--measurement-time=0.3", "--nresamples=1001")
# At least three iterations, doubled until 30 ms have passed.
_QUICKEST = ("--quick", "--measurement-time=0.03", "--nresamples=1001")
# Largest time of all samples in s, if that allows _FEWEST, which are many.
_FEWEST, _LONGEST = 10, 0.2
_READINGS = "clock-readings"
# Readings of the clock from the start to the end of criterion's first iteration.
_OF_ONE = 3
# Readings of criterion's first iteration and around the batches after it, and of each batch.
_AROUND, _OF_BATCH = 6, 2
# libtest runs one iteration, then 50 batches of n iterations and 50 of 5 n, for n = 1 and n = 2.
_OF_LIBTEST: Mapping[int, int] = {301: 1, 601: 2}
# One sample at least, whatever a benchmark sets. divan counts the 50 ms for finding its overhead as time of the first.
_BRIEF_OF_DIVAN = ("--sample-count=1", "--min-time=0.2", "--max-time=1")
_SAMPLED_OF_DIVAN = ("--sample-count=1", "--min-time=1", "--max-time=2")
_COUNTED_OF_DIVAN = ("--sample-count=1", "--min-time=0", "--skip-ext-time=true", "--threads=1", "--timer=os")
# divan reads the clock for its precision, for four kinds of overhead, and around the only sample.
_READINGS_OF_DIVAN = (202 + 4 * 200 + 2,)
# Readings of the clock before libtest has timed its first iteration, at most, and in all of its batches.
_EARLY, _BATCHES_OF_LIBTEST = 8, range(200, 213)
_MILLISECOND = 1_000_000
# Digits of criterion's time: the harness keeps its arguments, so two runs differ unless these are equally long.
_DIGITS = 12
# divan's AllocProfiler allocates for the benchmark.
_HARNESS = (
    r"<?(?:criterion|divan(?!::alloc::)|test)::|.*/criterion-\d[^/]*/|.*/divan-\d[^/]*/(?!src/alloc\.rs)"
    r"|(?:.*/)?library/test/src/"
)
_MEASURED = re.compile(
    r"^test (?P<name>\S.*?) +\.\.\. bench: +(?P<time>[\d,.]+) ns/iter \(\+/- [\d,.]+\)"
    r"(?: = (?P<rate>[\d,]+) MB/s)?\s*$",
    re.MULTILINE,
)
_TIME = r"[\d.]+ (?:ns|µs|ms|s|m|h|d) +│ "
# Fastest, slowest, median, mean, samples, iterations; nothing but the lines between them in the row of a group.
_ROW = re.compile(
    r"(?P<above>(?:│  |   )*)[├╰]─ (?P<name>.*?) +"
    rf"(?:{_TIME}{_TIME}(?P<median>{_TIME}){_TIME}\d+ +│ \d+|(?:│ +){{4}}│)"
)
_ROOT = re.compile(r"(?P<name>\S.*?) +fastest +│ .*│ iters")
# The median, then the mean and two empty columns. Lines divide the six columns.
_LINES = 5
_AMOUNT = re.compile(r".* │ (?P<amount>[\d.]+|inf) (?P<scale>(?:[KMGTP]i?)?)(?P<unit>B|item|char)/s +│ [^│]*│ +│")
_OF_THREADS = re.compile(r"t=\d+")
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SCALES = {"": 1.0}
for _power, _letter in enumerate("KMGTP", 1):
    _SCALES |= {_letter: 1e3**_power, f"{_letter}i": 1024.0**_power}
_FAILED = re.compile(r"^test (?P<name>\S.*?) +\.\.\. FAILED", re.MULTILINE)
_IGNORED = re.compile(r"^test (?P<name>\S.*?) +\.\.\. ignored\b", re.MULTILINE)
_TOTAL_LINE = re.compile(r"^test result: (?P<what>\w+)\. .*?(?P<measured>\d+) measured;.*\n?", re.MULTILINE)
# Largest time in s of the iterations to count. Counting takes about 50 times as long.
_COUNTED_SECONDS = 0.05
# Seconds; a program starts fast, and the slowest benchmark determines the samples of all.
_TOGETHER = 0.01
# criterion divides the iterations into ten batches, and does not collect the inputs of batches of one. So that both
# numbers are divided alike, the smaller number is not ten.
_FEW: Mapping[int, int] = {100: 20}


class Options(cargo_packages.Options):
    """``with`` keys of ``uses: cargo-bench``."""

    bench: list[str] | str = Field(default="", description="Bench targets (default: all that `cargo bench` runs).")
    filter: str = Field(
        default="", description="Benchmarks to run: a regular expression, or for libtest a part of the name."
    )
    profile: str = Field(default="bench", min_length=1, description="Cargo's profile.")
    sample_size: int = Field(default=100, ge=10, description="Largest number of criterion's samples per process.")


class _Bench(Json):
    """One executable with its working directory and environment. ``ids`` maps perfflow's names to its benchmark ids."""

    program: str
    cwd: str
    env: dict[str, str]
    harness: str
    ids: dict[str, str]
    lines: bool = True
    steps: bool = False


class _Suite(Json):
    """The lister's output: ``target`` is cargo's target folder, ``outside`` packages outside the workspace."""

    benches: Annotated[list[_Bench], Field(min_length=1)]
    target: str = ""
    outside: list[str] = Field(default=[])


def preparations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Build the benchmarks and list them; with ``call.built``, build with source lines in a separate folder."""
    options = call.options
    targets = (f"--bench={name}" for name in cargo_packages.words(options.bench))
    selection = ("--no-run", f"--profile={options.profile}", *targets)
    lister = (*_LISTER, str(call.place), call.program or CARGO.name, *_filter(call))
    listing = Invocation(lister, stdout=_LISTED, cwd=options.crate)
    if call.built is None:
        return cargo_packages.cargo(call, options, "bench", selection), listing
    measured = _suite_in(call.built)
    lines = cargo_packages.with_lines(measured.target, options.profile, measured.outside)
    return (
        cargo_packages.shared_units(measured.target, options.crate),
        cargo_packages.cargo(call, options, "bench", selection, lines),
        listing,
    )


def lacks_lines(call: Call) -> bool:
    """Whether the benchmarks have no source lines for profilers. Raises ToolOutputError if nothing is built."""
    return not all(bench.lines for bench in _suite_in(call.place).benches)


def iteration_counts(call: Call, seconds: float) -> tuple[int, ...]:
    """Return two numbers of iterations, powers of ten for criterion; () if the stepping clock cannot be used."""
    bench = _selected(call)[0][1] if call.only else None
    if bench is None or not bench.steps or call.clock is None:
        return ()
    if bench.harness == _LIBTEST:
        few, many = _OF_LIBTEST
        return few, many
    many = next((10**power for power in range(3, 1, -1) if 10**power * seconds <= _COUNTED_SECONDS), _FEWEST)
    return _FEW.get(many, many // 10), many


def iterated(call: Call) -> str:
    """Return how often the clock was read, which is equal for equal numbers of iterations.

    Raises ToolOutputError if the benchmark itself reads the clock, since the harness then ran fewer.
    """
    text = tool_files.first_text(call.folder, _READINGS).strip()
    count, harness = int(text) if text.isdecimal() else 0, _selected(call)[0][1].harness
    fixed = {_LIBTEST: _BATCHES_OF_LIBTEST, _DIVAN: _READINGS_OF_DIVAN}.get(harness)
    if count not in fixed if fixed else not _is_whole(count, call.iterations):
        why = "it reads the clock itself, or its harness measures something else than time"
        raise ToolOutputError(f"its number of iterations cannot be fixed: {why} ({count} readings of the clock)")
    return text


def _is_whole(readings: int, iterations: int) -> bool:
    """Return whether criterion read the clock as often as for this number of iterations, in batches of any size."""
    batches, rest = divmod(readings - _AROUND, _OF_BATCH)
    # The largest size that gives so many batches.
    return not rest and 0 < batches <= iterations and -(-iterations // -(-iterations // batches)) == batches


def _filter(call: Call[Options]) -> tuple[str, ...]:
    text = call.options.filter
    return (text,) if text else ()


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the benchmarks of each executable, or the chosen ones. Raises ToolOutputError if they are not built."""
    return tuple(_invocation(call, number, bench) for number, bench in _selected(call))


def _invocation(call: Call, number: int, bench: _Bench) -> Invocation:
    own, env = [bench.ids[name] for name in call.chosen if name in bench.ids], dict(bench.env)
    if call.iterations:
        env |= {"LD_PRELOAD": str(call.clock), "PERFFLOW_CLOCK_READINGS": str(call.folder / _READINGS)}
    elif call.cpu_clock:
        env |= cpu_clock.environment(call.cpu_clock, _clock_log(call, number))
    if bench.harness == _LIBTEST:
        if call.iterations:
            first = _MILLISECOND // _OF_LIBTEST[call.iterations]
            env |= {"PERFFLOW_CLOCK_EARLY": str(_EARLY), "PERFFLOW_CLOCK_EARLY_NS": str(first)}
        chosen = (*own, "--exact") if own else _filter(call)
        return Invocation((bench.program, "--bench", *chosen), env, _output_file(call, number, bench).name, bench.cwd)
    if bench.harness == _DIVAN:
        chosen = ("--exact", *own) if own else _filter(call)
        argv = (bench.program, "--bench", "--color=never", "--bytes-format=decimal", *_how_of_divan(call), *chosen)
        return Invocation(argv, env, _output_file(call, number, bench).name, bench.cwd)
    env["CRITERION_HOME"] = str(_criterion_folder(call, number))
    how: tuple[str, ...] = _CRITERION
    if call.iterations:
        seconds = _OF_ONE * (1 + call.iterations)
        how = ("--bench", "--noplot", f"--profile-time={seconds:0{_DIGITS}}")
    elif call.effort is Effort.SAMPLED:
        how = ("--bench", "--noplot", "--profile-time=1")
    elif call.effort is Effort.BRIEF:
        how = (*_CRITERION, *_brief(call))
    chosen = (criterion_files.exactly(*own),) if own else _filter(call)
    return Invocation((bench.program, *how, *chosen), env, cwd=bench.cwd)


def _how_of_divan(call: Call) -> tuple[str, ...]:
    if call.iterations:
        return (*_COUNTED_OF_DIVAN, f"--sample-size={call.iterations:0{_DIGITS}}")
    return {Effort.BRIEF: _BRIEF_OF_DIVAN, Effort.SAMPLED: _SAMPLED_OF_DIVAN}.get(call.effort, ())


def _brief(call: Call) -> tuple[str, ...]:
    wanted = _wanted(call)
    if call.pace == pacing.FEWEST:
        return _QUICKEST
    if call.pace and max(call.pace.spent, call.pace.seconds * wanted) > pacing.SLOW:
        return _QUICK
    is_slow = call.pace is not None and call.pace.seconds * wanted > _LONGEST / 2
    return (*_BRIEF, _WARM_UP_OF_SLOW if is_slow else _WARM_UP, f"--sample-size={wanted}")


def _wanted(call: Call[Options]) -> int:
    """Return the number of samples for criterion, whose minimum is 10."""
    return pacing.samples(call.pace, _FEWEST, call.options.sample_size, _LONGEST)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the files that the executables left; ``parse`` reports missing ones."""
    files = (criterion_files.ABOUT, criterion_files.SAMPLE)
    patterns = (*(f"criterion/**/new/{name}" for name in files), f"{_LIBTEST}-*.txt", f"{_DIVAN}-*.txt")
    return tuple(sorted(path for text in patterns for path in call.folder.glob(text) if tool_files.left(path)))


def executed(call: Call) -> tuple[Path, ...]:
    """Return the copies of the executables from the build."""
    return tuple(Path(bench.program) for _, bench in _selected(call))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the seconds per iteration of every batch of criterion, and the medians of libtest's and divan's benchmarks.

    With ``call.cpu_clock`` they are CPU time, and the elapsed time is known from its log. Raises ToolOutputError if
    nothing was built, if no benchmark ran, or if a file is missing or invalid.
    """
    readings: list[Reading] = []
    warnings: dict[str, None] = {}
    for (number, bench), known in zip(_selected(call), chain([usage, *usage.rest], repeat(Usage(0.0))), strict=False):
        clock = ClockLog.read(_clock_log(call, number)) if call.cpu_clock else None
        if bench.harness in (_LIBTEST, _DIVAN):
            text, ignored = tool_files.read_text(_output_file(call, number, bench)), frozenset[str]()
            if bench.harness == _LIBTEST:
                ignored = frozenset(tool_files.clean_name(found["name"]) for found in _IGNORED.finditer(text))
            found = libtest_readings(text) if bench.harness == _LIBTEST else divan_readings(text)
            medians = _named(call, bench, found, ignored)
            readings += _of_both_clocks(call, medians, clock, known) if clock else medians
        else:
            home = _criterion_folder(call, number)
            readings += _named(call, bench, _criterion_readings(call, home, warnings, clock, known))
    names = [(reading.benchmark, reading.metric) for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[0]!r}")
    if not readings:
        raise _no_result(call, "no benchmark left a result")
    return Parsed(tuple(readings), warnings=tuple(warnings))


def _of_both_clocks(call: Call, medians: Sequence[Reading], clock: ClockLog, usage: Usage) -> Iterator[Reading]:
    """Yield figures that were timed by CPU time, and those by elapsed time, which differs by the factor of the log."""
    factor = _uncontended_factor(clock, usage, len({reading.benchmark for reading in medians}))
    elapsed = factor if call.core is not None and factor else clock.factor
    for reading in medians:
        if reading.metric == "time":
            yield replace(reading, metric="cpu")
            if factor:
                yield replace(reading, metric="uncontended", value=reading.value * factor, at_most=True)
            yield replace(reading, value=reading.value * elapsed)
        else:
            yield replace(reading, value=reading.value / elapsed)


def _uncontended_factor(clock: ClockLog, usage: Usage, benchmarks: int) -> float | None:
    """Return an upper bound of a benchmark's time without core waits as a multiple of its CPU time, None if unknown."""
    computed = (usage.user + usage.system) / max(1, benchmarks)
    return usage.uncontended_factor(computed, computed * clock.factor)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names from the list made after building."""
    return Invocation((*_LISTER, str(call.place)))


def _criterion_readings(
    call: Call, home: Path, warnings: dict[str, None], clock: ClockLog | None, usage: Usage
) -> Iterator[Reading]:
    # criterion writes sample.json first, so an interrupted benchmark has no benchmark.json.
    places = sorted({path.parent for path in home.rglob(f"new/{criterion_files.ABOUT}")})
    if not places:
        raise _no_result(call, "no benchmark left a result")
    factor = _uncontended_factor(clock, usage, len(places)) if clock else None
    is_told = call.effort is Effort.BRIEF and call.pace and _brief(call) not in (_QUICK, _QUICKEST)
    for place in places:
        found = criterion_files.read(place)
        name = tool_files.clean_name(found.listed)
        taken, wanted = len(found.seconds), _wanted(call)
        if is_told and taken != wanted:
            text = f"sets its own sample_size, so a process takes {taken} samples instead of {wanted}"
            warnings[f"{tool_files.clean_name(found.name)[:80]} {text}"] = None
        elapsed: Sequence[float] = clock.elapsed(found.nanoseconds) if clock else ()
        if factor:
            cpu = reading_of_process("uncontended", [value * factor for value in found.seconds], name, found.batch)
            yield replace(cpu, at_most=True)
            elapsed = [value * factor for value in found.nanoseconds] if call.core is not None else elapsed
        for metric, values in found.series(elapsed):
            yield reading_of_process(metric, values, name, found.batch)


def libtest_readings(text: str) -> Iterator[Reading]:
    """Yield seconds per iteration as libtest printed them, and bytes per second if a benchmark sets its bytes.

    libtest reports only the median of its samples, so a process gives one value without a distribution. MB are 10^6
    bytes. The JSON format has the same figures, but needs an unstable option. Raises ToolOutputError if a benchmark
    failed, or if the output is cut or lacks results.
    """
    if failed := _FAILED.search(text):
        raise ToolOutputError(f"benchmark {tool_files.clean_name(failed['name'])} failed")
    result = _TOTAL_LINE.search(text)
    if not result or result["what"] != "ok":
        raise ToolOutputError("the output of the benchmarks is cut short")
    lines = list(_MEASURED.finditer(text))
    if str(len(lines)) != result["measured"]:
        raise ToolOutputError(f"{result['measured'][:20]} benchmarks were measured, but {len(lines)} results found")
    for found in lines:
        name = tool_files.clean_name(found["name"])
        # libtest prints an empty loop as 0 or 0.00.
        nanoseconds = tool_files.number_in(found["time"].replace(",", ""), f"time of {name[:80]}")
        yield Reading("time", tool_files.positive(nanoseconds, f"time of {name[:80]}") * 1e-9, name)
        if found["rate"]:
            megabytes = tool_files.number_in(found["rate"].replace(",", ""), f"MB/s of {name[:80]}")
            yield Reading("throughput", megabytes * 1e6, name)


def divan_readings(text: str) -> Iterator[Reading]:
    """Yield the median of seconds per iteration from divan's tree, and of amounts per second if a benchmark counts any.

    Benchmarks are called by their paths. Raises ToolOutputError if a benchmark runs with several numbers of threads,
    which cannot be chosen one by one.
    """
    path: list[str] = []
    name, metrics = "", set[str]()
    for line in text.splitlines():
        if root := _ROOT.fullmatch(line):
            path = [root["name"]]
        elif row := _ROW.fullmatch(line):
            path = [*path[: len(row["above"]) // 3 + 1], row["name"]]
            if not row["median"]:
                continue
            if _OF_THREADS.fullmatch(row["name"]):
                several = "::".join(path[:-1])
                why = f"{several[:80]} runs with several numbers of threads, of which one name has one result"
                raise ToolOutputError(f"{why}; set one with `env: {{DIVAN_THREADS: {row['name'][2:]}}}`")
            name, metrics = tool_files.clean_name("::".join(path)), set()
            figure, unit = row["median"].split()[:2]
            median = tool_files.number_in(figure, f"time of {name[:80]}")
            yield Reading("time", tool_files.positive(median, f"time of {name[:80]}") * _SECONDS[unit], name)
        elif line.count(" │") >= _LINES and "/s " in line:
            amount = _AMOUNT.fullmatch(line)
            if not amount or not name:
                raise ToolOutputError(f"the amounts of {name[:80] or 'no benchmark'} are damaged")
            metric = "throughput" if amount["unit"] == "B" else "rate"
            if metric not in metrics and amount["amount"] != "inf":
                metrics.add(metric)
                number = tool_files.number_in(amount["amount"], f"{metric} of {name[:80]}")
                yield Reading(metric, number * _SCALES[amount["scale"]], name)


def _named(
    call: Call, bench: _Bench, found: Iterator[Reading], passed_over: AbstractSet[str] = frozenset()
) -> list[Reading]:
    """Rename benchmarks to their listed names. Raises ToolOutputError unless exactly the listed ones were measured."""
    wanted = call.chosen or bench.ids
    shown = {tool_files.clean_name(own): name for name, own in bench.ids.items() if name in wanted}
    named = []
    for reading in found:
        if reading.benchmark not in shown:
            raise ToolOutputError(f"{reading.benchmark[:80]} was measured, but was not listed")
        named.append(replace(reading, benchmark=shown[reading.benchmark]))
    for own in sorted(shown.keys() - passed_over):
        if shown[own] not in {reading.benchmark for reading in named}:
            raise _no_result(call, f"the benchmark {own[:80]} left no result")
    return named


def _selected(call: Call) -> Sequence[tuple[int, _Bench]]:
    benches, wanted = enumerate(_suite_in(call.place).benches), set(call.chosen)
    found = [(number, bench) for number, bench in benches if not wanted or wanted & bench.ids.keys()]
    if unknown := [name for name in call.chosen if not any(name in bench.ids for _, bench in found)]:
        raise ToolOutputError(f"the benchmark {unknown[0]!r} does not exist")
    return found


def _suite_in(place: Path) -> _Suite:
    """Read the lister's output. If it is missing, raises ToolOutputError with the message of the lister or cargo."""
    if (place / _SUITE).exists():
        return tool_json.read(_Suite, place / _SUITE)
    said = tool_files.last_words(place)
    if (place / _LISTED).exists():
        # cargo succeeded, so its messages are not the reason.
        words = filter(None, (said, cargo_packages.panic(place)))
        raise ToolOutputError("; ".join(words) or "the benchmarks were built, but not listed")
    raise ToolOutputError(cargo_packages.why(place) or said or "nothing was built")


def _no_result(call: Call, what: str) -> ToolOutputError:
    said = cargo_packages.panic(call.folder) or tool_files.last_words(call.folder)
    return ToolOutputError(what if not said or said.startswith(_PROGRESS) else f"{what}: {said}")


def _criterion_folder(call: Call, number: int) -> Path:
    """Return the folder for an executable's criterion files, since two executables may share benchmark ids."""
    return call.folder / "criterion" / str(number)


def _clock_log(call: Call, number: int) -> Path:
    return call.folder / f"clock-{number}"


def _output_file(call: Call, number: int, bench: _Bench) -> Path:
    return call.folder / f"{bench.harness}-{number}.txt"


ADAPTER = Adapter(
    name="cargo-bench",
    role=Role.MEASURE,
    options=Options,
    program=CARGO,
    metrics=builtin_metrics("time", "cpu", "uncontended", "throughput", "rate"),
    suite=True,
    preparations=preparations,
    parts=Parts("bench", cargo_packages.has_bench),
    invocations=invocations,
    outputs=outputs,
    lacks_lines=lacks_lines,
    iteration_counts=iteration_counts,
    iterated=iterated,
    harness=_HARNESS,
    times_by_clock=True,
    steps_clock=True,
    together=_TOGETHER,
    executed=executed,
    parse=parse,
    listing=listing,
)
