"""``go-bench``: run the benchmarks of Go packages. ``parse`` reads stored output of ``go test -bench``.

The text is specified by https://go.dev/design/14313-benchmark-format: a name, a count, then pairs of value and unit.
A line ``key: value`` applies to all later results until the key is set again; ``Unit`` lines describe a unit. Events of
``-json`` may split one line.

``drivers/go_suite.py`` builds the test binary of each package once per side, with -trimpath, so that equal sources give
equal binaries, and lists their benchmarks. Each binary runs in the folder of its package, as with ``go test``. A
process runs each benchmark many times for 1 ms, since a longer run contains the time slices of other programs. Its
value is that of the fastest of these runs, or their median where not only other programs make them differ.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple, cast

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import Better, builtin_metrics
from perfflow.model.readings import BATCH, Parsed, Reading, Usage
from perfflow.tools import adapter, parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Builder, Call, Effort, Invocation, Program, Role, Suite
from perfflow.tools.parsed_output import Json
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
_RESULT = re.compile(r"(Benchmark(?![a-z])\S*)\s+(\d+)\s+(\S.*)")
# A result whose line began with the name and output of the benchmark itself.
_NAMELESS = re.compile(r"\s*(\d+)\s+([\d.]+ ns/op\b.*)")
_STARTED = re.compile(r"(Benchmark(?![a-z])\S*) *\t")
_FAILED_OR_SKIPPED = re.compile(r"(?:Benchmark\S* *\t)?\s*--- (FAIL|SKIP): (Benchmark\S*)")
# The first message of a benchmark that failed.
_SAID = re.compile(r"\s+(\S+\.go:\d+: .*)")
_END = re.compile(r"(?:PASS|ok|FAIL)(?:\s|$)")
_PROCESSORS = re.compile(r"-(\d+)$")


class _GoBenchRow(NamedTuple):
    """One result line and its configuration."""

    name: str
    iterations: int
    """Of which each figure is the mean."""
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
    started: str = ""
    """The benchmark whose name is printed and whose result is not."""
    failing: str = ""
    """The benchmark that failed last; its message follows."""


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
        _add(samples, row.shown(processors), row)
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
    if _read_figures(results, line):
        return
    if match := _CONFIGURATION.match(line):
        results.configuration[match[1]] = match[2].rstrip()
        if match[1] == _PACKAGE:
            results.ended = False
    elif match := _UNIT.match(line):
        results.samples.better[match[1]] = Better(match[2])
    elif match := _FAILED_OR_SKIPPED.match(line):
        _read_outcome(results, match[1], match[2])
    elif (match := _SAID.match(line)) and results.samples.failed.get(results.failing) == "failed":
        results.samples.failed[results.failing] = f"failed: {label(match[1])}"
    elif _END.match(line):
        results.ended = True
        if line.startswith("FAIL\t"):
            results.samples.warnings.append(f"go test reports: {label(line)}")


def _read_figures(results: _GoBenchResults, line: str) -> bool:
    """Read a line with a result or with the start of one. Return whether it is such a line."""
    if match := _RESULT.match(line):
        _read_result(results, match[1], match[2], match[3].split())
        results.started = ""
    elif match := _NAMELESS.match(line):
        if results.started:
            _read_result(results, results.started, match[1], match[2].split())
            results.started = ""
        else:
            results.samples.warnings.append(
                "a result without a name was skipped: the benchmark's output broke its line"
            )
    elif match := _STARTED.match(line):
        results.started = match[1]
    else:
        return False
    return not _FAILED_OR_SKIPPED.match(line)


def _read_outcome(results: _GoBenchResults, outcome: str, own_name: str) -> None:
    name = _GoBenchRow(own_name, 0, (), results.configuration).shown()
    if outcome == "FAIL":
        results.samples.fail(name, "failed")
        results.failing = name
    else:
        results.samples.warnings.append(f"{label(name)} was skipped")


def _read_result(found: _GoBenchResults, name: str, iterations: str, pairs: list[str]) -> None:
    """Add a result line; prose that begins like one is skipped."""
    if re.match(r"[-+]?[\d.]|[-+]?Inf|NaN", pairs[0]):
        if len(pairs) % 2:
            raise ToolOutputError(f"the result of {label(name)} is cut short")
        found.rows.append(_GoBenchRow(name, int(iterations[:18]), pairs, dict(found.configuration)))


def _add(samples: ValueCollector, name: str, row: _GoBenchRow, batch: int = 1) -> None:
    for text, unit in zip(row.pairs[::2], row.pairs[1::2], strict=True):
        try:
            # Go prints a decimal point in any locale.
            value = float(text)
        except ValueError as error:
            if unit in _UNITS:
                raise ToolOutputError(f"{unit} of {label(name)} is {tool_files.shown(text)}, not a number") from error
            value = math.nan
        if unit in _UNITS:
            metric, scale = _UNITS[unit]
            samples.add(name, metric, [value], scale, batch)
        else:
            samples.add_custom(name, unit, [value])


GO = Program("go", "apt-get install golang-go", ("version",))
_HARNESS = r"testing\.\(\*B\)"
"""The functions that call a benchmark. What the runtime does for it, such as allocating, belongs to it."""
SUITE, _LISTED = "suite.json", "listing.out"
_DRIVER = python_command.driver_command("go_suite.py", __file__)
_P50 = "p50"
_FASTEST = {"time": "min", "throughput": "max"}
# The harness collects garbage before each run, and Go collects next when 4 MB or more were allocated. So a run that
# allocates less than this has no collection.
_WITHOUT_COLLECTION = 2**20
# With fewer calls in a run, the fastest run could be that of the cheapest call.
_CALLS_OF_RUN = 10
_SECONDS_OF_RUN, _FEWEST, _MOST, _MOST_OF_ALL = "1ms", 3, 15, 100
# Seconds; the runs of the slowest benchmark determine those of all.
_TOGETHER = 0.01
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_COMPILER = re.compile(r"^(?:vet: )?(\S+\.go:\d+(?::\d+)?: .*)", re.MULTILINE)
_PANIC = re.compile(r"^((?:panic|fatal error): .*)", re.MULTILINE)
# 1: a benchmark failed, 2: it panicked.
_STATUSES = frozenset({0, 1, 2})


class GoBenchOptions(adapter.Options):
    """``with`` keys of ``uses: go-bench``."""

    module: str = Field(default=".", min_length=1, description="The folder with go.mod or go.work.")
    package: list[str] | str = Field(default="", description="Packages, such as ./text (default: all).")
    filter: str = Field(default="", description="Benchmarks to run: a pattern of `go test -bench`.")
    flags: adapter.CommandText = Field(default="", description="Further flags of the build, such as -tags=fast.")


class _GoBinary(Json):
    """The test binary of a package. ``ids`` maps perfflow's names to those in the package."""

    package: str
    cwd: str
    program: Annotated[str, Field(pattern=r"^/[^\x00]*$")]
    ids: dict[str, str]

    def shown(self, own_name: str) -> str:
        """Return perfflow's name of a benchmark, also of one that was not listed."""
        return next((name for name, own in self.ids.items() if own == own_name), f"{self.package}.{own_name}")


class GoSuite(Json):
    """The driver's output. ``processors`` is GOMAXPROCS of all runs; ``modules`` has the folders of modules by path."""

    benches: Annotated[list[_GoBinary], Field(min_length=1)]
    processors: str
    modules: dict[str, str] = Field(default={})

    @property
    def suffix(self) -> str:
        """What Go adds to the name of every benchmark."""
        return "" if self.processors == "1" else f"-{self.processors}"


def preparations(call: Call[GoBenchOptions]) -> tuple[Invocation, ...]:
    """Build the test binaries, and run each of their benchmarks once to learn its name."""
    options = call.options
    packages = options.package.split() if isinstance(options.package, str) else options.package
    settings = {
        "go": call.program or GO.name,
        "packages": packages,
        "flags": adapter.words(options.flags),
        "filter": options.filter,
    }
    argv = (*_DRIVER, str(call.place), json.dumps(settings))
    return (Invocation(argv, stdout=_LISTED, cwd=options.module),)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names from the list made after building."""
    return Invocation((*_DRIVER, str(call.place)))


def exactly(*names: str) -> str:
    """Return a pattern for benchmarks: Go matches each part between slashes with a regular expression of its own."""
    return "|".join("/".join(f"^{_quoted(part)}$" for part in name.split("/")) for name in names)


def _quoted(text: str) -> str:
    return _SPECIAL.sub(lambda special: f"\\{special[0]}", text)


def invocations(call: Call[GoBenchOptions]) -> tuple[Invocation, ...]:
    """Run the benchmarks of each package, or the chosen ones. Raises ToolOutputError if they are not built."""
    suite, found = suite_in(call.place), []
    for number, bench in adapter.having_chosen(call, suite.benches):
        pattern = exactly(*(bench.ids[name] for name in call.chosen if name in bench.ids))
        words = ("-test.run=^$", f"-test.bench={pattern or call.options.filter or '.'}", "-test.benchmem")
        env = {"GOMAXPROCS": suite.processors}
        argv = (bench.program, *words, *_length(call))
        found.append(Invocation(argv, env, _output(number), bench.cwd, stderr=_errors(number)))
    return tuple(found)


def _length(call: Call) -> tuple[str, ...]:
    if call.effort is Effort.SAMPLED:
        return ("-test.benchtime=1s",)
    runs = _MOST_OF_ALL if call.effort is Effort.NORMAL else adapter.samples_of_pace(call.pace, _FEWEST, _MOST)
    return (f"-test.benchtime={_SECONDS_OF_RUN}", f"-test.count={runs}")


def executed(call: Call) -> tuple[Path, ...]:
    """Return the test binaries."""
    return tuple(Path(bench.program) for _, bench in adapter.having_chosen(call, suite_in(call.place).benches))


def relink(call: Call[GoBenchOptions], program: Path, seed: int, output: Path) -> Invocation | None:
    """Return the process that builds a test binary with its functions in the order of a seed; only linking takes time.

    Of several -ldflags, the last counts.
    """
    bench = next(bench for bench in suite_in(call.place).benches if Path(bench.program) == program)
    flags, order = adapter.words(call.options.flags), f"-randlayout={seed}"
    given = [flag.partition("=")[2] for flag in flags if flag.lstrip("-").startswith("ldflags=")]
    linked = f"-ldflags={given[-1]} {order}" if given else f"-ldflags={order}"
    argv = (call.program or GO.name, "test", "-trimpath", "-c", "-o", str(output), *flags, linked, bench.package)
    return Invocation(argv, cwd=call.options.module)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the files that the binaries left; ``parse`` reports missing ones."""
    return tuple(sorted(path for path in call.folder.glob(_output("*")) if tool_files.left(path)))


def parse_suite(call: Call, _usage: Usage) -> Parsed:
    """Read the figures of every run of a benchmark.

    Raises ToolOutputError if nothing was built, if a binary panicked, or if a benchmark left no result.
    """
    suite = suite_in(call.place)
    samples = ValueCollector()
    expected: dict[str, None] = {}
    for number, bench in adapter.having_chosen(call, suite.benches):
        expected |= dict.fromkeys(label(name) for name in bench.ids if not call.chosen or name in call.chosen)
        results = _GoBenchResults()
        text = tool_files.read_text(call.folder / _output(number), "the test binary was killed")
        if said := _PANIC.search(tool_files.first_text(call.folder, _errors(number))):
            raise ToolOutputError(f"the benchmarks of {bench.package} stopped: {tool_files.clean_name(said[1])[:200]}")
        _read(results, text, bench.package)
        if not results.ended:
            raise ToolOutputError(f"the output of {bench.package} is cut short")
        for row in results.rows:
            _add(samples, bench.shown(row.name.removesuffix(suite.suffix)), row, row.iterations)
        for name, reason in results.samples.failed.items():
            own_name = name.removeprefix(f"{bench.package}.").removesuffix(suite.suffix)
            samples.fail(bench.shown(own_name), reason)
        samples.warnings += results.samples.warnings
    if missing := [name for name in expected if not samples.holds(name) and name not in samples.failed]:
        raise ToolOutputError(f"{missing[0]} left no result")
    for parent in [name for name in samples.failed if name not in expected]:
        # It failed since a part of it did.
        del samples.failed[parent]
    parsed = samples.result_set(TOOL, "", {}).parsed(single=True)
    alike = _alike(parsed.readings)
    return replace(parsed, readings=tuple(_of_runs(item, item.benchmark in alike) for item in parsed.readings))


def _alike(readings: Iterable[Reading]) -> set[str]:
    """Return the benchmarks all of whose runs do the same work: means of many calls, and no garbage is collected.

    What other programs take then is all that makes one run slower than another. If the garbage of some runs is
    collected, the fastest is one that left it to the next run.
    """
    return {
        item.benchmark
        for item in readings
        if item.metric == "alloc"
        and (calls := item.inner.get(BATCH, 1.0)) >= _CALLS_OF_RUN
        and item.inner["max"] * calls < _WITHOUT_COLLECTION
    }


def _of_runs(reading: Reading, alike: bool) -> Reading:
    """Return a reading whose value is that of the fastest run if all are ``alike``, else the median."""
    if not reading.inner:
        return reading
    statistic = _FASTEST.get(reading.metric, _P50) if alike else _P50
    return replace(reading, value=reading.inner[statistic], statistic=statistic)


def suite_in(place: Path) -> GoSuite:
    """Read the driver's output. If it is missing, raises ToolOutputError with the message of the compiler or driver."""
    if (place / SUITE).exists():
        return parsed_output.read_json(GoSuite, place / SUITE)
    error = _COMPILER.search(tool_files.first_text(place))
    reason = f"go cannot build it: {error[1]}" if error else tool_files.last_words(place)
    raise ToolOutputError(tool_files.clean_name(reason)[:300] if reason else "nothing was built")


def _output(number: int | str) -> str:
    return f"go-{number}.txt"


def _errors(number: int) -> str:
    return f"go-{number}.stderr"


ADAPTER = Adapter(
    "go-bench",
    Role.MEASURE,
    invocations,
    parse_suite,
    options=GoBenchOptions,
    program=GO,
    metrics=builtin_metrics("time", "throughput", "alloc", "allocs"),
    suite=Suite(listing=listing, together=_TOGETHER, harness=_HARNESS, profilers=("go-pprof",)),
    build=Builder(preparations=preparations, executed=executed, relink=relink),
    outputs=outputs,
    counters=True,
    good_statuses=_STATUSES,
)
