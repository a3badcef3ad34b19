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

The parts in order:

- ``read_criterion`` reads criterion.rs' files of one benchmark: ``benchmark.json`` has its name, ``sample.json`` its
  raw samples. A sample is the time of a batch and its number of iterations. Times are read as ns, which criterion uses
  unless a crate defines its own measurement; the files do not name the unit. ``target/criterion`` has a folder for each
  benchmark and baseline, but the names of folders are sanitised, so the benchmark's name is read from the file.
- ``cargo`` and ``CargoOptions`` are shared with ``cargo-build``: the selection of packages and features, and cargo's
  messages. cargo runs in the crate's folder, since its settings, the toolchain and a relative CARGO_TARGET_DIR depend
  on the working directory.
- ``ADAPTER`` and its functions.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, AliasPath, ConfigDict, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, cpu_clock, parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Builder, Call, Effort, Invocation, Parts, Program, Role, Suite
from perfflow.tools.cpu_clock import ClockLog
from perfflow.tools.parsed_output import Json, Positive, Positives
from perfflow.tools.result_set import ResultSet, ValueCollector, label
from perfflow.tools.rust.drivers import cargo_suite

TOOL = "criterion"
WRITTEN_BY = "cargo bench, which writes the folder target/criterion (FOLDER:NAME for a saved baseline)"
NEWEST = "new"

# group/function/value, each of them optional, and a parent folder.
_DEEPEST = 4

ABOUT, SAMPLE = "benchmark.json", "sample.json"

_NANOSECOND = 1e-9
# Special characters of Rust's regex crate.
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
# End of a title that criterion truncated.
_CUT = "..."
# Length in bytes at which criterion truncates titles.
_LONGEST_CRITERION_FILE = 100


class Batches(NamedTuple):
    """One benchmark's samples: ``seconds`` per iteration and ``iterations`` of each batch, in the order of measurement.

    ``nanoseconds`` are the times of whole batches as criterion took them. ``amounts`` is the work of one iteration, as
    (metric, bytes or elements). ``title`` is the id as criterion prints it, truncated if it is long.
    """

    name: str
    title: str
    seconds: tuple[float, ...]
    iterations: tuple[float, ...]
    amounts: tuple[tuple[str, float], ...]
    nanoseconds: tuple[float, ...]

    @property
    def batch(self) -> float:
        """The mean number of iterations per sample."""
        return sum(self.iterations) / len(self.iterations)

    def series(self, elapsed: Sequence[float] = ()) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield the metrics, each with its values of all batches. Raises ToolOutputError for an invalid value.

        elapsed: the elapsed time (ns) of each batch, if criterion timed by CPU time.
        """
        seconds: Sequence[float] = self.seconds
        if elapsed:
            yield "cpu", seconds
            seconds = [time * _NANOSECOND / count for time, count in zip(elapsed, self.iterations, strict=True)]
        yield "time", seconds
        for metric, amount in self.amounts:
            name = f"{metric} of {self.name[:80]}"
            yield metric, [tool_files.positive(amount / value, name) for value in seconds]

    @property
    def listed(self) -> str:
        """The id as listed by criterion, which truncates long ones."""
        return self.title if self.title.endswith(_CUT) and self.title != self.name else self.name


class _Both(Json):
    elements: Positive
    bytes: Positive


class _Throughput(Json):
    """The work of one iteration; one of the keys is set."""

    model_config = ConfigDict(extra="forbid")

    Bytes: Positive | None = None
    BytesDecimal: Positive | None = None
    Bits: Positive | None = None
    Elements: Positive | None = None
    ElementsAndBytes: _Both | None = None

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Yield the metrics with their bytes or elements."""
        both = self.ElementsAndBytes
        elements = both.elements if both else self.Elements
        size = both.bytes if both else self.Bytes or self.BytesDecimal or (self.Bits or 0) / 8
        yield from ((metric, amount) for metric, amount in (("throughput", size), ("rate", elements)) if amount)


class _CargoBenchAbout(Json):
    full_id: Annotated[str, Field(min_length=1)]
    title: str | None = None
    throughput: _Throughput | None = None


class _CargoBenchSample(Json):
    times: Annotated[Positives, Field(min_length=1)]
    iters: Positives


def read_criterion(place: Path) -> Batches:
    """Read the folder of one benchmark and baseline. Raises ToolOutputError for a missing, cut or invalid file."""
    about, sample = (
        parsed_output.read_json(_CargoBenchAbout, place / ABOUT),
        parsed_output.read_json(_CargoBenchSample, place / SAMPLE),
    )
    if len(sample.times) != len(sample.iters):
        raise ToolOutputError(f"{SAMPLE} has {len(sample.times)} times but {len(sample.iters)} iters")
    seconds = tuple(time * _NANOSECOND / count for time, count in zip(sample.times, sample.iters, strict=True))
    tool_files.positive(min(seconds), "a time per iteration")
    amounts = tuple(about.throughput.amounts()) if about.throughput else ()
    return Batches(
        about.full_id, about.title or about.full_id, seconds, tuple(sample.iters), amounts, tuple(sample.times)
    )


def exactly(*names: str) -> str:
    """Return a regular expression for listed ids. criterion 0.4 has no --exact, and its list truncates long ids."""
    return "|".join(map(_exactly, names))


def _exactly(name: str) -> str:
    cut = len(name.encode()) >= _LONGEST_CRITERION_FILE and name.endswith(_CUT)
    kept = name.removesuffix(_CUT) if cut else name
    return f"^{_SPECIAL.sub(lambda found: chr(92) + found[0], kept)}{'' if cut else '$'}"


def parse_criterion(folder: Path, baseline: str = NEWEST) -> ResultSet:
    """Read the results of ``baseline`` of every benchmark below ``folder``.

    ``folder`` is ``target/criterion``, a parent of it, or a group or benchmark in it. Raises ToolOutputError if there
    are no results, if a file is missing, cut or invalid, or if two folders have a benchmark of the same name.
    """
    # Searching a whole project is slow.
    usual = folder / "target" / "criterion"
    root = usual if usual.is_dir() else folder
    samples = ValueCollector()
    seen: dict[str, str] = {}
    for place in _places(root, glob.escape(baseline)):
        where = label(str(place.relative_to(root)))
        try:
            batches = read_criterion(place)
            for metric, values in batches.series():
                samples.add(batches.name, metric, values, batch=batches.batch)
        except ToolOutputError as error:
            raise ToolOutputError(f"{where}: {error}") from error
        if batches.name in seen:
            raise ToolOutputError(f"{where} and {seen[batches.name]} have the same name {label(batches.name)}")
        seen[batches.name] = where
    if not seen:
        there = ", ".join(sorted({label(place.name) for place in _places(root, "*")}))
        what = f"it has no results called {label(baseline)}, but {there}"
        raise ToolOutputError(what if there else "this folder has no results of a supported tool")
    return samples.result_set(TOOL, "", {})


def _places(root: Path, baseline: str) -> list[Path]:
    """Return the sorted folders of a baseline, or with ``*`` of all baselines."""
    patterns = [f"{'*/' * depth}{baseline}/{ABOUT}" for depth in range(_DEEPEST + 1)]
    return sorted(about.parent for pattern in patterns for about in root.glob(pattern))


CARGO = Program("cargo", "apt-get install cargo")

MESSAGES = "cargo.json"
"""cargo's messages about each build product, one JSON object per line."""

_QUIET = {"CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"}
# rustc prints the place on the next line, or after a few continuation lines.
_ERROR = re.compile(
    r"^error(?:\[E\d+\])?: (?P<what>\S.*)(?:(?:\n(?!error|warning).*){0,4}?\n *--> (?P<place>\S.*:\d+:\d+)$)?",
    re.MULTILINE,
)
_FAILED_CRATE = re.compile(r"^error: (?P<what>could not compile .*)", re.MULTILINE)
# Since Rust 1.73 the message is on the next line; before, it was in quotes.
_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (?:'|[^'\n]*:\n)(\S.*?)(?:', \S+)?$", re.MULTILINE)
# Patterns of messages of cargo or the compiler, and remedies.
_REMEDIES: Mapping[str, str] = {
    r"--locked was passed": "commit the new Cargo.lock, or remove `locked`",
    r"--offline was (?:passed|specified)|without the offline flag|offline mode": (
        "run `cargo fetch` once with network access"
    ),
    r"Could(?:n't| not) resolve host|failed to download|network failure|spurious network error": (
        "without network access, run `cargo fetch` beforehand and add `offline: true`"
    ),
    r"may not be used on the (?:stable|beta) release channel": (
        '#[bench] needs a nightly toolchain, or `env: {RUSTC_BOOTSTRAP: "1"}`'
    ),
}
_AMBIGUOUS = re.compile(r"is ambiguous\.?\n.*following specifications:?\n(?P<names>(?: +\S+\n?)+)")
_TARGET = "--target-dir"
# The subfolder for builds with source lines for profilers.
_CARGO_LINES = "/perfflow-lines"
_COPIER = python_command.driver_command("cargo_units.py", __file__)
_MOST_NAMED = 4
# Members of a workspace are usually at most two folders deep.
_MANIFESTS = ("Cargo.toml", "*/Cargo.toml", "*/*/Cargo.toml")
_LONGEST_MESSAGE = 200


class CargoOptions(adapter.Options):
    """``with`` keys that select what cargo builds."""

    crate: str = Field(default=".", min_length=1, description="The folder with Cargo.toml.")
    package: list[str] | str = Field(default="", description="Packages of a workspace (default: cargo's default).")
    workspace: bool = Field(default=False, description="All packages of the workspace.")
    features: list[str] | str = Field(default="", description="Features to enable.")
    default_features: bool = Field(default=True, description="`false` disables the default features.")
    all_features: bool = Field(default=False, description="Enable all features.")
    locked: bool = Field(default=False, description="Require a Cargo.lock that is up to date.")
    offline: bool = Field(default=False, description="Do not use the network.")
    args: adapter.CommandText = Field(default="", description="Further arguments of cargo.")


class CargoExecutable(Json):
    """An executable of a package from cargo's messages. ``kind`` is bin, bench, example, test or lib.

    The path must be absolute, as cargo prints it, and valid in a file system.
    """

    package: Annotated[str, AfterValidator(cargo_suite.package_name)] = Field(alias="package_id")
    name: str = Field(validation_alias=AliasPath("target", "name"))
    kind: str = Field(validation_alias=AliasPath("target", "kind", 0))
    path: str = Field(alias="executable", pattern=r"^/[^\x00]*$")


def cargo(
    call: Call, options: CargoOptions, command: str, selection: Sequence[str], lines: Sequence[str] = ()
) -> Invocation:
    """Return the process that builds and writes cargo's messages to MESSAGES; ``lines`` is from ``with_lines``."""
    args = cargo_words(options.args)
    argv = (
        *(call.program or CARGO.name, command, "--message-format=json-render-diagnostics"),
        *selection,
        *_switches(options),
        *(_without_target(args) if lines else args),
        *lines,
    )
    return Invocation(argv, _QUIET, stdout=MESSAGES, cwd=options.crate)


def with_lines(target: str, profile: str, outside: Sequence[str]) -> tuple[str, ...]:
    """Return cargo's arguments to build the same code with source lines, in a subfolder of ``target``.

    External crates stay without lines, so that their units of ``target`` can be reused. ``outside`` are packages of the
    tree outside the workspace. With ``line-tables-only`` instead of ``debug = 1``, inlined functions lose their crates
    and types.
    """
    settings = {
        "debug": "1",
        "strip": '"none"',
        'package."*".debug': "false",
        **{f'package."{name}".debug': "1" for name in outside},
    }
    options = (f"--config=profile.{profile}.{key}={value}" for key, value in settings.items())
    return (f"--target-dir={target}{_CARGO_LINES}", *options)


def shared_units(target: str, crate: str) -> Invocation:
    """Return the process that copies the built units of external crates to the folder of the build with lines."""
    return Invocation((*_COPIER, target, target + _CARGO_LINES, str(Path(target).parent)), cwd=crate)


def _without_target(args: Sequence[str]) -> Iterator[str]:
    """Remove the option for the target folder."""
    skipped = False
    for word in args:
        if not skipped and word != _TARGET and not word.startswith(f"{_TARGET}="):
            yield word
        skipped = word == _TARGET


def cargo_words(text: list[str] | str) -> tuple[str, ...]:
    """Split a text at spaces and commas; keep a list."""
    return tuple(text.replace(",", " ").split()) if isinstance(text, str) else tuple(text)


def has_bench(options: CargoOptions, name: str, folder: Path) -> bool:
    """Return whether a crate, or a package of a workspace, has a bench target: its file, or its name in Cargo.toml."""
    manifests = (path for glob in _MANIFESTS for path in (folder / options.crate).glob(glob))
    return any(
        (path.parent / "benches" / f"{name}.rs").is_file()
        or (path.parent / "benches" / name / "main.rs").is_file()
        or f'"{name}"' in path.read_text(errors="replace")
        for path in manifests
    )


def _switches(options: CargoOptions) -> Iterator[str]:
    yield from (f"--package={name}" for name in cargo_words(options.package))
    if chosen := cargo_words(options.features):
        yield f"--features={','.join(chosen)}"
    switches = {
        "--workspace": options.workspace,
        "--no-default-features": not options.default_features,
        "--all-features": options.all_features,
        "--locked": options.locked,
        "--offline": options.offline,
    }
    yield from (switch for switch, is_on in switches.items() if is_on)


def built_benches(folder: Path) -> tuple[CargoExecutable, ...]:
    """Read the executables that cargo built or found up to date.

    Raises ToolOutputError if cargo did not report success.
    """
    try:
        messages = list(cargo_suite.messages_in(tool_files.read_whole(folder / MESSAGES)))
    except (ToolOutputError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ToolOutputError) else f"{MESSAGES} is cut short or not valid JSON"
        raise ToolOutputError(why_cargo_failed(folder) or reason) from error
    artifacts = [each for each in messages if each.get("reason") == "compiler-artifact"]
    executables = [each for each in artifacts if each.get("executable") is not None]
    executables_built = tuple(parsed_output.checked_json(CargoExecutable, message, MESSAGES) for message in executables)
    if any(each.name != tool_files.clean_name(each.name) for each in executables_built):
        raise ToolOutputError(f"{MESSAGES} has an executable without a valid name")
    return executables_built


def panic(folder: Path) -> str:
    """Return the message of the last panic; '' if there was none."""
    found = _PANIC.findall(tool_files.last_bytes(folder))
    return f"it panicked: {tool_files.clean_name(found[-1])[:_LONGEST_MESSAGE]}" if found else ""


def why_cargo_failed(folder: Path) -> str:
    """Return why cargo failed: the first error with its place and a remedy; '' if it printed no error."""
    printed = tool_files.last_bytes(folder)
    # The first of many errors is the cause, and may be far from the end.
    gave_up, first = (
        _FAILED_CRATE.search(printed),
        _ERROR.search(tool_files.first_text(folder)) or _ERROR.search(printed),
    )
    if not first:
        return ""
    parts = list(dict.fromkeys(match["what"] for match in (gave_up, first) if match))
    reason = ": ".join(tool_files.clean_name(part)[:_LONGEST_MESSAGE] for part in parts)
    reason += f" ({tool_files.clean_name(first['place'])})" if first["place"] else ""
    remedies = [remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, printed)]
    if ambiguous := _AMBIGUOUS.search(printed):
        names = [tool_files.clean_name(name)[:_LONGEST_MESSAGE] for name in ambiguous["names"].split()[:_MOST_NAMED]]
        remedies.append(f"replace the name by one of these: {', '.join(names)}")
    return f"{reason}; {remedies[0]}" if remedies else reason


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


class CargoBenchOptions(CargoOptions):
    """``with`` keys of ``uses: cargo-bench``."""

    bench: list[str] | str = Field(default="", description="Bench targets (default: all that `cargo bench` runs).")
    filter: str = Field(
        default="", description="Benchmarks to run: a regular expression, or for libtest a part of the name."
    )
    profile: str = Field(default="bench", min_length=1, description="Cargo's profile.")
    sample_size: int = Field(default=100, ge=10, description="Largest number of criterion's samples per process.")


class _CargoBenchBench(Json):
    """One executable with its working directory and environment. ``ids`` maps perfflow's names to its benchmark ids."""

    program: str
    cwd: str
    env: dict[str, str]
    harness: str
    ids: dict[str, str]
    lines: bool = True
    steps: bool = False


class _CargoBenchSuite(Json):
    """The lister's output: ``target`` is cargo's target folder, ``outside`` packages outside the workspace."""

    benches: Annotated[list[_CargoBenchBench], Field(min_length=1)]
    target: str = ""
    outside: list[str] = Field(default=[])


def preparations(call: Call[CargoBenchOptions]) -> tuple[Invocation, ...]:
    """Build the benchmarks and list them; with ``call.built``, build with source lines in a separate folder."""
    options = call.options
    targets = (f"--bench={name}" for name in cargo_words(options.bench))
    selection = ("--no-run", f"--profile={options.profile}", *targets)
    lister = (*_LISTER, str(call.place), call.program or CARGO.name, *_filter(call))
    listing = Invocation(lister, stdout=_LISTED, cwd=options.crate)
    if call.built is None:
        return cargo(call, options, "bench", selection), listing
    measured = _suite_in(call.built)
    lines = with_lines(measured.target, options.profile, measured.outside)
    return (
        shared_units(measured.target, options.crate),
        cargo(call, options, "bench", selection, lines),
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


def _filter(call: Call[CargoBenchOptions]) -> tuple[str, ...]:
    text = call.options.filter
    return (text,) if text else ()


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the benchmarks of each executable, or the chosen ones. Raises ToolOutputError if they are not built."""
    return tuple(_invocation(call, number, bench) for number, bench in _selected(call))


def _invocation(call: Call, number: int, bench: _CargoBenchBench) -> Invocation:
    ids, env = [bench.ids[name] for name in call.chosen if name in bench.ids], dict(bench.env)
    if call.iterations:
        env |= {"LD_PRELOAD": str(call.clock), "PERFFLOW_CLOCK_READINGS": str(call.folder / _READINGS)}
    elif call.cpu_clock:
        env |= cpu_clock.environment(call.cpu_clock, _clock_log(call, number))
    if bench.harness == _LIBTEST:
        if call.iterations:
            first = _MILLISECOND // _OF_LIBTEST[call.iterations]
            env |= {"PERFFLOW_CLOCK_EARLY": str(_EARLY), "PERFFLOW_CLOCK_EARLY_NS": str(first)}
        chosen = (*ids, "--exact") if ids else _filter(call)
        return Invocation((bench.program, "--bench", *chosen), env, _output_file(call, number, bench).name, bench.cwd)
    if bench.harness == _DIVAN:
        chosen = ("--exact", *ids) if ids else _filter(call)
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
    chosen = (exactly(*ids),) if ids else _filter(call)
    return Invocation((bench.program, *how, *chosen), env, cwd=bench.cwd)


def _how_of_divan(call: Call) -> tuple[str, ...]:
    if call.iterations:
        return (*_COUNTED_OF_DIVAN, f"--sample-size={call.iterations:0{_DIGITS}}")
    return {Effort.BRIEF: _BRIEF_OF_DIVAN, Effort.SAMPLED: _SAMPLED_OF_DIVAN}.get(call.effort, ())


def _brief(call: Call) -> tuple[str, ...]:
    wanted = _wanted(call)
    if call.pace == adapter.FEWEST:
        return _QUICKEST
    if call.pace and max(call.pace.spent, call.pace.seconds * wanted) > adapter.SLOW:
        return _QUICK
    is_slow = call.pace is not None and call.pace.seconds * wanted > _LONGEST / 2
    return (*_BRIEF, _WARM_UP_OF_SLOW if is_slow else _WARM_UP, f"--sample-size={wanted}")


def _wanted(call: Call[CargoBenchOptions]) -> int:
    """Return the number of samples for criterion, whose minimum is 10."""
    return adapter.samples_of_pace(call.pace, _FEWEST, call.options.sample_size, _LONGEST)


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the files that the executables left; ``parse`` reports missing ones."""
    files = (ABOUT, SAMPLE)
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
                ignored = frozenset(
                    tool_files.clean_name(readings_printed["name"]) for readings_printed in _IGNORED.finditer(text)
                )
            readings_printed = libtest_readings(text) if bench.harness == _LIBTEST else divan_readings(text)
            medians = _named(call, bench, readings_printed, ignored)
            shares = call.core is not None
            readings += cpu_clock.of_both_clocks(medians, clock, known, shares_core=shares) if clock else medians
        else:
            home = _criterion_folder(call, number)
            readings += _named(call, bench, _criterion_readings(call, home, warnings, clock, known))
    names = [(reading.benchmark, reading.metric) for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[0]!r}")
    if not readings:
        raise _no_result(call, "no benchmark left a result")
    return Parsed(tuple(readings), warnings=tuple(warnings))


def listing(call: Call) -> Invocation:
    """Return the process that prints the names from the list made after building."""
    return Invocation((*_LISTER, str(call.place)))


def _criterion_readings(
    call: Call, home: Path, warnings: dict[str, None], clock: ClockLog | None, usage: Usage
) -> Iterator[Reading]:
    # criterion writes sample.json first, so an interrupted benchmark has no benchmark.json.
    places = sorted({path.parent for path in home.rglob(f"new/{ABOUT}")})
    if not places:
        raise _no_result(call, "no benchmark left a result")
    factor = cpu_clock.uncontended_factor(clock, usage, len(places)) if clock else None
    is_told = call.effort is Effort.BRIEF and call.pace and _brief(call) not in (_QUICK, _QUICKEST)
    for place in places:
        batches = read_criterion(place)
        name = tool_files.clean_name(batches.listed)
        taken, usual = len(batches.seconds), _wanted(call)
        if is_told and taken != usual:
            text = f"sets its own sample_size, so a process takes {taken} samples instead of {usual}"
            warnings[f"{tool_files.clean_name(batches.name)[:80]} {text}"] = None
        elapsed: Sequence[float] = clock.elapsed(batches.nanoseconds) if clock else ()
        if factor:
            cpu = reading_of_process("uncontended", [value * factor for value in batches.seconds], name, batches.batch)
            yield replace(cpu, at_most=True)
            elapsed = [value * factor for value in batches.nanoseconds] if call.core is not None else elapsed
        for metric, values in batches.series(elapsed):
            yield reading_of_process(metric, values, name, batches.batch)


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
    for line in lines:
        name = tool_files.clean_name(line["name"])
        # libtest prints an empty loop as 0 or 0.00.
        nanoseconds = tool_files.number_in(line["time"].replace(",", ""), f"time of {name[:80]}")
        yield Reading("time", tool_files.positive(nanoseconds, f"time of {name[:80]}") * 1e-9, name)
        if line["rate"]:
            megabytes = tool_files.number_in(line["rate"].replace(",", ""), f"MB/s of {name[:80]}")
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
    call: Call, bench: _CargoBenchBench, readings: Iterator[Reading], passed_over: AbstractSet[str] = frozenset()
) -> list[Reading]:
    """Rename benchmarks to their listed names. Raises ToolOutputError unless exactly the listed ones were measured."""
    chosen = call.chosen or bench.ids
    shown = {tool_files.clean_name(own_id): name for name, own_id in bench.ids.items() if name in chosen}
    named = []
    for reading in readings:
        if reading.benchmark not in shown:
            raise ToolOutputError(f"{reading.benchmark[:80]} was measured, but was not listed")
        named.append(replace(reading, benchmark=shown[reading.benchmark]))
    for own_id in sorted(shown.keys() - passed_over):
        if shown[own_id] not in {reading.benchmark for reading in named}:
            raise _no_result(call, f"the benchmark {own_id[:80]} left no result")
    return named


def _selected(call: Call) -> list[tuple[int, _CargoBenchBench]]:
    return adapter.having_chosen(call, _suite_in(call.place).benches)


def _suite_in(place: Path) -> _CargoBenchSuite:
    """Read the lister's output. If it is missing, raises ToolOutputError with the message of the lister or cargo."""
    if (place / _SUITE).exists():
        return parsed_output.read_json(_CargoBenchSuite, place / _SUITE)
    said = tool_files.last_words(place)
    if (place / _LISTED).exists():
        # cargo succeeded, so its messages are not the reason.
        words = filter(None, (said, panic(place)))
        raise ToolOutputError("; ".join(words) or "the benchmarks were built, but not listed")
    raise ToolOutputError(why_cargo_failed(place) or said or "nothing was built")


def _no_result(call: Call, what: str) -> ToolOutputError:
    said = panic(call.folder) or tool_files.last_words(call.folder)
    return ToolOutputError(what if not said or said.startswith(_PROGRESS) else f"{what}: {said}")


def _criterion_folder(call: Call, number: int) -> Path:
    """Return the folder for an executable's criterion files, since two executables may share benchmark ids."""
    return call.folder / "criterion" / str(number)


def _clock_log(call: Call, number: int) -> Path:
    return call.folder / f"clock-{number}"


def _output_file(call: Call, number: int, bench: _CargoBenchBench) -> Path:
    return call.folder / f"{bench.harness}-{number}.txt"


ADAPTER = Adapter(
    name="cargo-bench",
    role=Role.MEASURE,
    options=CargoBenchOptions,
    program=CARGO,
    metrics=builtin_metrics("time", "cpu", "uncontended", "throughput", "rate"),
    suite=Suite(
        parts=Parts("bench", has_bench),
        iteration_counts=iteration_counts,
        iterated=iterated,
        harness=_HARNESS,
        times_by_clock=True,
        steps_clock=True,
        together=_TOGETHER,
        listing=listing,
    ),
    build=Builder(preparations=preparations, lacks_lines=lacks_lines, executed=executed),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
