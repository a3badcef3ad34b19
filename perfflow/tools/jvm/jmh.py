"""``jmh``: run the JMH benchmarks of a Maven or Gradle project.

``drivers/jmh_suite.py`` builds the jars once per side, and lists their benchmarks with all combinations of parameters.
JMH runs a benchmark for a fixed time in a JVM of its own, a fork. A process has one fork for each of its benchmarks,
whose figure is the median of its iterations: a mean contains the time slices of other programs. Whatever the mode of a
benchmark is, its figure is the time of an operation.

A sample of a comparison has iterations of 1 ms. Programs on other threads of a core, or of a virtual machine's host,
slow them for some ms, often more than half of them. So of ten successive iterations only the fastest counts, if each is
the mean of several calls. On two busy cores, the medians of ten processes of one loop differed by up to 38%, and like
this by 2%. Where an iteration may be a single call, all of them count, since every second call may be slow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_distribution, reading_of_many
from perfflow.tools import adapter, parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Builder, Call, Effort, Invocation, Program, Role, Suite
from perfflow.tools.parsed_output import Json
from perfflow.tools.result_set import label

JAVA = Program("java", "apt-get install default-jdk-headless")
MAIN = "org.openjdk.jmh.Main"
SUITE, _LISTED = "suite.json", "listing.out"
_DRIVER = python_command.driver_command("jmh_suite.py", __file__)
# A Blackhole is given to benchmarks, and called by the generated code for what they return.
_HARNESS = r"(?:(?:.*\.)?jmh_generated|org\.openjdk\.jmh)\."
"""What calls a benchmark; JMH writes it for each."""
# Seconds of one operation of a benchmark; a slower one takes fewer iterations than the others.
_TOGETHER = 0.02
# Iterations of a sample: of 100 ms until the JVM has compiled the code, then of 1 ms, shorter than a time slice.
_WARM_UPS, _ITERATIONS = (2, 10), (5, 100)
_SECONDS_OF_WARM_UPS = 1.0
# Seconds of one operation up to which an iteration is the mean of at least five, and iterations of which one counts.
_SEVERAL_CALLS, _SUCCESSIVE = 2e-4, 10
_SAMPLED = ("-wi", "2", "-w", "250ms", "-i", "4", "-r", "500ms")
# In long iterations, what JMH itself allocates is little.
_ALLOCATING = ("-wi", "10", "-w", "100ms", "-i", "3", "-r", "100ms", "-prof", "gc")
# Before JMH 1.36, names of profilers' figures begin with a dot.
_BYTES = re.compile(r"·?gc\.alloc\.rate\.norm")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hr": 3600.0, "day": 86400.0}
_UNIT = re.compile(rf"(ops/)?({'|'.join(_SECONDS)})(/op)?")
_QUANTILES = {"0.0": "min", "50.0": "p50", "90.0": "p90", "95.0": "p95", "99.0": "p99", "100.0": "max"}
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
# What Maven, javac and kotlinc print.
_COMPILER = re.compile(
    r"(?:^|\[ERROR\] |e: )(?:file://)?(/\S+\.(?:java|kt|scala)):\[?(\d+)[,:\d\]]* ?(?:error: )?(.+)", re.MULTILINE
)
_MAVEN = re.compile(r"\[ERROR\] (.*)")
# The beginning of the output of one benchmark.
_RUN = re.compile(r"^# Benchmark: (\S+)\n(?:# Parameters: \((.*)\)\n)?", re.MULTILINE)
_EXCEPTION = re.compile(r"^((?:[\w$]+\.)*[\w$]*(?:Exception|Error)\b.*)", re.MULTILINE)


class JmhOptions(adapter.Options):
    """``with`` keys of ``uses: jmh``."""

    project: str = Field(default=".", min_length=1, description="The folder with pom.xml or build.gradle.")
    module: str = Field(
        default="", description="The Maven module or Gradle project to build, such as `benchmarks` (default: all)."
    )
    jar: str = Field(default="", description="A jar with JMH that a step builds (default: perfflow builds it).")
    filter: str = Field(default="", description="Benchmarks to run: a regular expression, as for JMH.")
    flags: adapter.CommandText = Field(default="", description="Further arguments of the build, such as `-Pfast`.")
    args: adapter.CommandText = Field(
        default="", description="Further options of JMH, such as `-jvmArgsAppend -Xmx1g`."
    )
    alloc: bool = Field(default=False, description="Also measure what an operation allocates, by further processes.")


class _JmhBenchmark(Json):
    """JMH's name of a benchmark, with the values of its parameters."""

    name: str
    parameters: dict[str, str]


class _Jar(Json):
    """A jar with JMH and its benchmarks by perfflow's names."""

    jar: Annotated[str, Field(pattern=r"^/[^\x00]*$")]
    ids: dict[str, _JmhBenchmark]


class _JmhSuite(Json):
    benches: Annotated[list[_Jar], Field(min_length=1)]
    left_out: list[str]


class _JmhFigures(Json):
    """The figures of one metric. ``raw`` has those of each iteration; the mode SampleTime has quantiles instead."""

    unit: str = Field(alias="scoreUnit")
    raw: list[list[object]] = Field(default=[], alias="rawData")
    quantiles: dict[str, object] = Field(default={}, alias="scorePercentiles")


class _JmhResult(Json):
    benchmark: str
    parameters: dict[str, str] = Field(default={}, alias="params")
    primary: _JmhFigures = Field(alias="primaryMetric")
    secondary: dict[str, _JmhFigures] = Field(default={}, alias="secondaryMetrics")


class _JmhResults(Json):
    results: list[_JmhResult]


@dataclass(frozen=True)
class _Process:
    """A process of JMH, and the names of its benchmarks. ``options`` set the length of its iterations."""

    name: str
    bench: _Jar
    names: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def result(self) -> str:
        """The file with its figures."""
        return f"{self.name}.json"

    @property
    def printed(self) -> str:
        """The file with its output."""
        return f"{self.name}.txt"


def preparations(call: Call[JmhOptions]) -> tuple[Invocation, ...]:
    """Build the jars, and list their benchmarks."""
    options = call.options
    settings = {
        "java": call.program or JAVA.name,
        "jar": options.jar,
        "module": options.module,
        "flags": adapter.words(options.flags),
        "filter": options.filter,
    }
    return (Invocation((*_DRIVER, str(call.place), json.dumps(settings)), stdout=_LISTED, cwd=options.project),)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names from the list made after building."""
    return Invocation((*_DRIVER, str(call.place)))


def invocations(call: Call[JmhOptions]) -> tuple[Invocation, ...]:
    """Run the benchmarks of each jar, or the chosen ones. Raises ToolOutputError if nothing was built."""
    return tuple(_invocation(call, process) for process in _processes(call))


def _invocation(call: Call[JmhOptions], process: _Process) -> Invocation:
    words = [call.program or JAVA.name, "-Djmh.ignoreLock=true", "-cp", process.bench.jar, MAIN]
    chosen = [process.bench.ids[name] for name in process.names]
    if call.chosen:
        words += [f"^{_SPECIAL.sub(lambda special: chr(92) + special[0], each.name)}$" for each in chosen]
        words += [f"-p{key}={value}" for key, value in chosen[0].parameters.items()]
    elif call.options.filter:
        words.append(call.options.filter)
    words += [*process.options, "-f", "1", "-rf", "json", "-rff", str(call.folder / process.result)]
    words += adapter.words(call.options.args)
    return Invocation(tuple(words), stdout=process.printed, cwd=call.options.project)


def _processes(call: Call[JmhOptions]) -> Iterator[_Process]:
    """Yield the processes of a call: one for each jar, or one for each combination of parameters of what is chosen.

    An option for a parameter is one of all benchmarks of a process.
    """
    for number, bench in adapter.having_chosen(call, suite_in(call.place).benches):
        groups: dict[object, list[str]] = {}
        for name, each in bench.ids.items():
            if not call.chosen or name in call.chosen:
                groups.setdefault(frozenset(each.parameters.items()) if call.chosen else None, []).append(name)
        for group, names in enumerate(groups.values()):
            yield _Process(f"jmh-{number}-{group}", bench, tuple(names), _length(call))
            if call.options.alloc and call.effort is not Effort.SAMPLED:
                yield _Process(f"alloc-{number}-{group}", bench, tuple(names), _ALLOCATING)


def _length(call: Call) -> tuple[str, ...]:
    """Return the options for the length of a run; () for what the benchmarks declare."""
    if call.effort is Effort.SAMPLED:
        return _SAMPLED
    if call.effort is Effort.NORMAL:
        return ()
    warm_ups = adapter.samples_of_pace(call.pace, *_WARM_UPS, seconds=_SECONDS_OF_WARM_UPS)
    iterations = adapter.samples_of_pace(call.pace, *_ITERATIONS)
    return ("-wi", str(warm_ups), "-w", "100ms", "-i", str(iterations), "-r", "1ms")


def tracing(_call: Call) -> None:
    """Return no process: a JVM that JMH starts talks to it, so it is not known what the benchmark depends on."""


def executed(call: Call) -> tuple[Path, ...]:
    """Return the files with the hashes of what is in the jars; the jars themselves contain the times of a build."""
    chosen = adapter.having_chosen(call, suite_in(call.place).benches)
    return tuple(call.place / f"contents-{number}.txt" for number, _ in chosen)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the results that the processes left; ``parse`` reports missing ones."""
    files = (path for pattern in ("jmh-*.json", "alloc-*.json") for path in call.folder.glob(pattern))
    return tuple(sorted(path for path in files if tool_files.left(path)))


def parse(call: Call[JmhOptions], _usage: Usage) -> Parsed:
    """Read the median of each benchmark's iterations.

    Raises ToolOutputError if nothing was built, if JMH refused its options, or if a benchmark left no result.
    """
    readings: dict[tuple[str, str], Reading] = {}
    failed: dict[str, str] = {}
    for process in _processes(call):
        said = tool_files.first_text(call.folder, process.printed)
        last = tool_files.last_line(said) or tool_files.last_words(call.folder) or "JMH was killed"
        content = tool_files.read_json(call.folder / process.result, tool_files.clean_name(last)[:200])
        results = parsed_output.checked_json(_JmhResults, {"results": content}, process.result).results
        for own_name in process.names:
            name, each = label(own_name), process.bench.ids[own_name]
            # Of a benchmark in several modes, the first counts.
            found = next(
                (one for one in results if (one.benchmark, one.parameters) == (each.name, each.parameters)), None
            )
            if found:
                is_alloc = process.options is _ALLOCATING
                reading = _bytes(name, found) if is_alloc else _time(name, found, _successive(call))
                readings[name, reading.metric] = reading
            elif reason := _why(said, each):
                failed.setdefault(name, f"failed: {reason}")
            else:
                raise ToolOutputError(f"{name} left no result")
    if not readings:
        name, reason = next(iter(failed.items()))
        raise ToolOutputError(f"{name} {reason}")
    figures = tuple(reading for reading in readings.values() if reading.benchmark not in failed)
    return Parsed(figures, failed=failed, warnings=tuple(map(label, suite_in(call.place).left_out)))


def _successive(call: Call) -> int:
    """Return the number of successive iterations of which the fastest counts, the same on both sides."""
    short = call.effort is Effort.BRIEF and call.pace is not None and call.pace.seconds <= _SEVERAL_CALLS
    return _SUCCESSIVE if short else 1


def _time(name: str, result: _JmhResult, successive: int) -> Reading:
    """Return the time of an operation. Raises ToolOutputError for an unknown unit, and for an invalid figure."""
    figures = result.primary
    unit = _UNIT.fullmatch(figures.unit)
    if unit is None or bool(unit[1]) == bool(unit[3]):
        raise ToolOutputError(f"{name} is measured in {tool_files.shown(figures.unit)}, which is no time and no rate")

    def seconds(value: object) -> float:
        figure = tool_files.positive(value, f"the figure of {name}")
        return _SECONDS[unit[2]] / figure if unit[1] else _SECONDS[unit[2]] * figure

    if values := [seconds(value) for fork in figures.raw for value in fork]:
        fastest = [min(values[start : start + successive]) for start in range(0, len(values), successive)]
        return reading_of_many("time", fastest, name)
    known = {key: seconds(figures.quantiles[own]) for own, key in _QUANTILES.items() if own in figures.quantiles}
    return reading_of_distribution("time", known, name)


def _bytes(name: str, result: _JmhResult) -> Reading:
    """Return the bytes that an operation allocates. What JMH allocates itself is part of a byte."""
    figures = next((figures for metric, figures in result.secondary.items() if _BYTES.fullmatch(metric)), None)
    values = [tool_files.number(value, f"alloc of {name}") for fork in figures.raw for value in fork] if figures else []
    # JMH leaves the figure out if nothing was allocated.
    return Reading("alloc", float(int(min(values, default=0.0))), name)


def _why(said: str, benchmark: _JmhBenchmark) -> str:
    """Return why a benchmark has no result, from what JMH printed; '' if it does not say so."""
    runs = list(_RUN.finditer(said))
    for number, run in enumerate(runs, 1):
        end = runs[number].start() if number < len(runs) else len(said)
        given = dict(item.partition(" = ")[::2] for item in (run[2] or "").split(", ") if item)
        error = _EXCEPTION.search(said, run.end(), end)
        if (run[1], given) == (benchmark.name, benchmark.parameters) and error:
            return tool_files.clean_name(error[1])[:200]
    return ""


def suite_in(place: Path) -> _JmhSuite:
    """Read the driver's output. If it is missing, raises ToolOutputError with the message of the compiler or driver."""
    if (place / SUITE).exists():
        return parsed_output.read_json(_JmhSuite, place / SUITE)
    said = tool_files.first_text(place)
    if error := _COMPILER.search(said):
        reason = f"it does not compile: {Path(error[1]).name}:{error[2]}: {error[3]}"
    elif error := _MAVEN.search(said):
        reason = f"Maven: {error[1]}"
    else:
        reason = tool_files.last_words(place) or "nothing was built"
    raise ToolOutputError(tool_files.clean_name(reason)[:300])


ADAPTER = Adapter(
    "jmh",
    Role.MEASURE,
    invocations,
    parse,
    options=JmhOptions,
    program=JAVA,
    metrics=builtin_metrics("time", "alloc"),
    suite=Suite(listing=listing, tracing=tracing, together=_TOGETHER, harness=_HARNESS, profilers=("jfr",)),
    build=Builder(preparations=preparations, executed=executed),
    outputs=outputs,
    # JMH exits with 1 if it refuses its options, or finds no benchmark; the message is in its output.
    good_statuses=frozenset({0, 1}),
)
