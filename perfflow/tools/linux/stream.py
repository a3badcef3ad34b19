"""``stream``: measure the peaks of this machine: memory bandwidth, and FLOP/s of each precision.

The C program, whose source is part of perfflow, is built for the processor at hand and runs once on all cores. Figures
of kernels are compared with its peaks, so each peak has a description of how it was measured, with warnings about
doubts.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Peak, Usage
from perfflow.model.units import Dimension, format_quantity, parse_as
from perfflow.tools import adapter, python_command, tool_files
from perfflow.tools.adapter import Adapter, Builder, Call, Invocation, Program, Role, Seconds, leaves
from perfflow.tools.parsed_output import Counted, Json, Positive, Whole, checked_json

CC = Program("cc", "apt-get install gcc libc6-dev")
_FILE = "tries.jsonl"
_SOURCE = Path(__file__).with_name("drivers") / "stream.c"
# -ffp-contract=fast is gcc's default, but not clang's. Without it no fused instruction is used.
_FLAGS = ("-O3", "-ffp-contract=fast", "-pthread")
# Arm names the option differently. On x86 both compilers by default use only half of AVX-512's width.
_NATIVE = {"x86_64": ("-march=native", "-mprefer-vector-width=512"), "aarch64": ("-mcpu=native",)}
_ERROR = re.compile(r"error: (?P<what>\S.*)")
_NO_HEADERS = re.compile(r"\.h: No such file|\.h' file not found|cannot find (?:crt1\.o|-lc\b|-lpthread)")
# McCalpin's rule: https://www.cs.virginia.edu/stream/ref.html#size
_TIMES_OF_CACHE = 4
_WARNING_SPREAD = 0.1
"""Difference of tries or sizes, as a share, above which a warning is given; on a quiet machine it is about 2%."""


BANDWIDTH, FLOPS = "bandwidth", "flops"
Kernel = Literal["copy", "scale", "add", "triad", "load"]
Precision = Literal["f64", "f32", "f16"]
_PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_Words = Annotated[str, AfterValidator(lambda text: tool_files.clean_name(text)[:80] if text.strip() else "")]


def _bytes(value: object) -> object:
    """Read a size as the user writes it. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("write a size with its unit, such as 512MiB")  # noqa: TRY004 (pydantic's own)
    return round(parse_as(value, Dimension.BYTES).value)


class StreamOptions(adapter.Options):
    """``with`` keys of ``uses: stream``."""

    seconds: Seconds = Field(
        default=3.0, ge=0.01, le=600, description="Measuring time, such as `3s`, without start-up."
    )
    size: Annotated[int, BeforeValidator(_bytes)] | None = Field(
        default=None,
        ge=1,
        le=2**50,
        description="Size of one array, such as `512MiB` (default: 4, 6 and 8 times the last-level cache).",
    )
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="Number of threads (default: one per usable core)."
    )
    precisions: list[Precision] = Field(
        default=[], description="Floating-point precisions (default: all that the processor supports)."
    )


class StreamMachine(Json):
    """The machine: the number of cores, the number of started threads, and the bytes of all last-level caches.

    ``quota`` is the cgroup's limit in cores, None without a limit; ``cache`` is 0 if unknown.
    """

    kind: Literal["machine"]
    cores: Counted
    quota: Positive | None
    threads: Counted
    cache: Whole
    hypervisor: bool


class StreamBuild(Json):
    """The compiler, the bytes of a vector, the instruction set, and whether a multiply-add is one instruction.

    ``chains`` is the number of independent chains of operations; ``unused`` names a set with wider vectors.
    """

    kind: Literal["built"]
    compiler: _Words
    width: Counted
    set: _Words
    fused: bool
    chains: Counted
    unused: _Words


class _Try(Json):
    round: Whole
    seconds: Positive


class _BandwidthTry(_Try):
    name: Kernel = Field(alias="kernel")
    array: Counted
    amount: Positive = Field(alias="bytes")


class _FlopsTry(_Try):
    name: Precision = Field(alias="precision")
    array: Literal[0] = 0
    amount: Positive = Field(alias="flops")


class _StreamEnd(Json):
    kind: Literal["end"]
    tries: Whole


_TRIES: Mapping[str, type[_BandwidthTry | _FlopsTry]] = {BANDWIDTH: _BandwidthTry, FLOPS: _FlopsTry}


class StreamTries(NamedTuple):
    """Tries of one kernel and array size in B/s, or of one precision in FLOP/s."""

    metric: str
    name: str
    array: int
    values: Sequence[float]

    @property
    def best(self) -> float:
        """The fastest try."""
        return max(self.values)


def preparations(call: Call) -> tuple[Invocation, ...]:
    """Build the program for this processor."""
    native = _NATIVE.get(platform.machine(), ("-march=native",))
    argv = (call.program or "cc", *_FLAGS, *native, "-o", str(_program(call)), str(_SOURCE))
    return (Invocation(argv, {"LC_ALL": "C"}),)


def invocations(call: Call[StreamOptions]) -> tuple[Invocation, ...]:
    """Run the program; the driver detects cores, caches and memory."""
    asked = (f"{call.options.seconds:g}", str(call.options.threads or 0), str(call.options.size or 0))
    precisions = ",".join(call.options.precisions or _PRECISIONS)
    argv = (*python_command.driver_command("stream_run.py", __file__), str(_program(call)), *asked, precisions)
    return (Invocation(argv, stdout=_FILE),)


def parse(call: Call[StreamOptions], usage: Usage) -> Parsed:
    """Read the best try of each kind in B/s and FLOP/s, with a description and warnings.

    Raises ToolOutputError if the program was not built, failed, found a wrong result or was killed, or if its output
    is invalid.
    """
    if not (call.folder / _FILE).exists():
        raise ToolOutputError(_why_not_built(call))
    try:
        machine, build, groups = read(call.folder / _FILE)
    except ToolOutputError as error:
        raise ToolOutputError(_why_cut(call) or str(error)) from error
    moved = [group for group in groups if group.metric == BANDWIDTH]
    if not moved:
        raise ToolOutputError(f"{_FILE} has no try of the bandwidth")
    best = max(moved, key=lambda group: group.best)
    by_name = {group.name: group for group in groups if group.metric == FLOPS}
    sums = [by_name[name] for name in _PRECISIONS if name in by_name]
    warnings = [*_warnings(machine, build, moved, [best, *sums])]
    if missing := [name for name in call.options.precisions if name not in by_name]:
        lacking = f"this processor has no arithmetic in {' and '.join(missing)}"
        warnings.insert(0, f"{lacking}, so its peak was not measured")
    peaks = [Peak(BANDWIDTH, best.best, "", _how_bandwidth(machine, build, moved, best))]
    kind = "fused multiply-adds" if build.fused else "multiplications and additions"
    vectors = f"vectors of {build.width} B{f' ({build.set})' if build.set else ''}"
    for group in sums:
        how = f"{build.chains} chains of {kind} per thread in {vectors}, {_run_text(machine, build, group)}"
        peaks.append(Peak(FLOPS, group.best, group.name, how))
    return Parsed(peaks=tuple(peaks), warnings=tuple(warnings))


def read(path: Path) -> tuple[StreamMachine, StreamBuild, list[StreamTries]]:
    """Read the JSON lines of ``drivers/stream_run.py`` and the program: the machine, the build, tries, and the end.

    The first round warms up caches and clocks and does not count. Raises ToolOutputError if the file is missing, cut
    or invalid.
    """
    try:
        first, second, *lines, end = [json.loads(line) for line in tool_files.read_whole(path).splitlines()]
        kinds = [str(line["kind"]) for line in lines]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ToolOutputError(f"{path.name} is cut short or not valid JSON") from error
    if set(kinds) - _TRIES.keys():
        raise ToolOutputError(f"{path.name} has a line that is not a try")
    machine, build = checked_json(StreamMachine, first, path.name), checked_json(StreamBuild, second, path.name)
    if (count := checked_json(_StreamEnd, end, path.name).tries) != len(lines):
        raise ToolOutputError(f"{path.name} has {len(lines)} tries instead of {count}")
    by_kind: dict[tuple[str, str, int], list[float]] = {}
    for metric, line in zip(kinds, lines, strict=True):
        tried = checked_json(_TRIES[metric], line, path.name)
        values = by_kind.setdefault((metric, tried.name, tried.array), [])
        if tried.round:
            values.append(tool_files.positive(tried.amount / tried.seconds, f"{metric} of {tried.name}"))
    if once := [name for (_, name, _), values in by_kind.items() if not values]:
        raise ToolOutputError(f"{once[0]} was tried only once, for warm-up")
    return machine, build, [StreamTries(*key, values) for key, values in by_kind.items()]


def _program(call: Call) -> Path:
    return call.place / "stream"


def _why_not_built(call: Call) -> str:
    said = tool_files.last_bytes(call.place)
    found = _ERROR.search(said)
    reason = tool_files.clean_name(found["what"])[:200] if found else tool_files.last_words(call.place)
    remedy = f"; install the C library's headers: {CC.install}" if _NO_HEADERS.search(said) else ""
    return f"{_SOURCE.name} was not built{f': {reason}' if reason else ''}{remedy}"


def _why_cut(call: Call) -> str:
    """Return why the program did not finish, '' if unknown."""
    text = tool_files.last_bytes(call.folder, _FILE)
    began, ended = '"kind": "machine"' in text.partition("\n")[0], '"kind": "end"' in text
    early = "it was killed before its last try: if it ran out of memory, set a smaller `size`"
    return tool_files.last_words(call.folder) or (early if began and not ended else "")


def _how_bandwidth(machine: StreamMachine, build: StreamBuild, moved: Sequence[StreamTries], best: StreamTries) -> str:
    cache = machine.cache
    beyond = f" ({best.array / cache:.3g} × the last-level cache of {_size(cache)})" if cache else ""
    triad = max((group.best for group in moved if group.name == "triad"), default=0.0)
    others = f" (triad: {format_quantity(triad, Dimension.THROUGHPUT)})" if triad and best.name != "triad" else ""
    return (
        f"{best.name}{others}, 3 arrays of {_size(best.array)}{beyond}, {_run_text(machine, build, best)}; "
        "cache lines that are read only to be overwritten are not counted, as in STREAM"
    )


def _run_text(machine: StreamMachine, build: StreamBuild, group: StreamTries) -> str:
    threads = f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"
    return f"{threads}, best of {len(group.values)}, {build.compiler}"


def _warnings(
    machine: StreamMachine, build: StreamBuild, moved: Sequence[StreamTries], measured: Sequence[StreamTries]
) -> Iterator[str]:
    """Yield warnings if the figures may be of a part of the machine, of a busy machine, or of a cache."""
    if machine.threads < machine.cores:
        limit = f" (the quota is {machine.quota:g})" if machine.quota is not None else ""
        yield f"{machine.threads} of {machine.cores} cores were used{limit}, and the peaks are only of these"
    elif machine.quota is not None and machine.quota < machine.threads:
        yield f"the quota of {machine.quota:g} cores throttles {machine.threads} threads for a part of the time"
    if machine.hypervisor:
        yield "this is a virtual machine: others on the same host share its memory bandwidth and its clock"
    yield from _cache_warnings(machine.cache, moved)
    if build.unused:
        yield f"{build.unused}, which may have wider vectors, was not used: the peak FLOP/s may be higher"
    for group in measured:
        # Distance of the median try from the best.
        if (spread := 1 - median(group.values) / group.best) > _WARNING_SPREAD:
            metric = group.metric if group.metric == BANDWIDTH else f"{group.metric} {group.name}"
            below = f"half of the tries were {spread:.0%} or more below the best"
            yield f"{metric}: {below}, so other programs used the machine and the peak may be higher"


def _cache_warnings(cache: int, moved: Sequence[StreamTries]) -> Iterator[str]:
    smallest, largest = (pick(group.array for group in moved) for pick in (min, max))
    small, large = (max(group.best for group in moved if group.array == size) for size in (smallest, largest))
    arrays = f"arrays of {_size(smallest)}"
    if not cache:
        yield f"the size of the last-level cache is unknown: {arrays} may fit in it"
    elif smallest < _TIMES_OF_CACHE * cache * 0.99:
        are = f"{arrays} are {smallest / cache:.2g} × the last-level cache of {_size(cache)}"
        yield f"{are}, but STREAM requires {_TIMES_OF_CACHE} ×: a part of the bandwidth may be that of the cache"
    if large < small * (1 - _WARNING_SPREAD):
        slower = f"arrays of {_size(largest)} were {1 - large / small:.0%} slower than those of {_size(smallest)}"
        yield f"{slower}: a part of the bandwidth may be that of a cache"


def _size(size: int) -> str:
    return f"{size / 2**20:,.4g} MiB" if size < 2**30 else f"{size / 2**30:,.4g} GiB"


ADAPTER = Adapter(
    name="stream",
    role=Role.MACHINE,
    options=StreamOptions,
    program=CC,
    finds_peaks=True,
    build=Builder(preparations=preparations, executed=lambda call: (_program(call),)),
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
