"""``stream``: what this machine can do at most, measured: memory bandwidth, and FLOP/s of each precision.

A C program, which comes along as source, is built for the very processor and run once on all cores. Its peaks are what
the figures of kernels are held against, so each says how it was found, and whatever makes one doubtful is a warning.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Peak, Usage
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role, Seconds, leaves
from perfflow.tools.linux import stream_tries
from perfflow.tools.linux.stream_tries import BANDWIDTH, FLOPS, PRECISIONS, Group, Tries
from perfflow.units import Dimension, format_quantity, parse_as

CC = Program("cc", "apt-get install gcc libc6-dev")
_FILE = "tries.jsonl"
_DRIVERS = Path(__file__).with_name("drivers")
_SOURCE, _DRIVER = _DRIVERS / "stream.c", _DRIVERS / "stream_run.py"
# -ffp-contract=fast is gcc's default, not clang's: without it no fused instruction is used.
_FLAGS = ("-O3", "-ffp-contract=fast", "-pthread")
# What is asked for by another name on Arm. Of x86 both compilers would rather take half of what AVX-512 has.
_NATIVE = {"x86_64": ("-march=native", "-mprefer-vector-width=512"), "aarch64": ("-mcpu=native",)}
_ERROR = re.compile(r"error: (?P<what>\S.*)")
_NO_HEADERS = re.compile(r"\.h: No such file|\.h' file not found|cannot find (?:crt1\.o|-lc\b|-lpthread)")
# McCalpin's rule: https://www.cs.virginia.edu/stream/ref.html#size
_TIMES_OF_CACHE = 4
_DOUBTFUL = 0.1
"""The share by which tries, or sizes, may differ without a warning: the same work on a quiet machine differs by 2%."""


def _bytes(value: object) -> object:
    """Read a size as the user writes it. Raises ValueError."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("write a size with its unit, such as 512MiB")  # noqa: TRY004 (pydantic's own)
    return round(parse_as(value, Dimension.BYTES).value)


class Options(adapter.Options):
    """``with`` keys of ``uses: stream``."""

    seconds: Seconds = Field(default=3.0, ge=0.01, le=600, description="How long to try, as in `3s`, start-up aside.")
    size: Annotated[int | None, BeforeValidator(_bytes)] = Field(
        default=None, ge=1, le=2**50, description="One array, as in `512MiB`; default 4, 6 and 8 times the last cache."
    )
    threads: int | None = Field(default=None, ge=1, le=4096, description="Default one on each core that may be used.")
    precisions: list[Literal["f64", "f32", "f16"]] = Field(
        default=[], description="Of floating point; default all that the processor calculates in."
    )


def preparations(call: Call) -> tuple[Invocation, ...]:
    """Build the program for this processor."""
    native = _NATIVE.get(platform.machine(), ("-march=native",))
    argv = (call.program or "cc", *_FLAGS, *native, "-o", str(_program(call)), str(_SOURCE))
    return (Invocation(argv, {"LC_ALL": "C"}),)


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run it on what the driver finds of cores, caches and memory."""
    options = cast(Options, call.options)
    asked = (f"{options.seconds:g}", str(options.threads or 0), str(options.size or 0))
    precisions = ",".join(options.precisions or PRECISIONS)
    argv = (sys.executable, "-I", "-S", str(_DRIVER), str(_program(call)), *asked, precisions)
    return (Invocation(argv, stdout=_FILE),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the best try of each kind, in B/s and FLOP/s, how it was found, and what speaks against it.

    Raises ToolOutputError if the program was not built, gave up, found a wrong result or was ended, or if its output
    is nonsense.
    """
    if not (call.folder / _FILE).exists():
        raise ToolOutputError(_why_not_built(call))
    try:
        tries = stream_tries.read(call.folder / _FILE)
    except ToolOutputError as error:
        raise ToolOutputError(_why_cut(call) or str(error)) from error
    bandwidth = tries.of(BANDWIDTH)
    if not bandwidth:
        raise ToolOutputError(f"{_FILE} holds no try of the bandwidth")
    best = max(bandwidth, key=lambda group: group.best)
    sums = [group for precision in PRECISIONS for group in tries.of(FLOPS, precision)]
    peaks = [Peak(FLOPS, group.best, group.name, _how_flops(tries, group)) for group in sums]
    warnings = list(_doubts(tries, [best, *sums]))
    if missing := [name for name in cast(Options, call.options).precisions if not tries.of(FLOPS, name)]:
        lacking = f"this processor does not calculate in {' and '.join(missing)} of its own"
        warnings.insert(0, f"{lacking}: no peak of that was measured")
    how = _how_bandwidth(tries, best)
    return Parsed(peaks=(Peak(BANDWIDTH, best.best, "", how), *peaks), warnings=tuple(warnings))


def _program(call: Call) -> Path:
    return call.place / "stream"


def _why_not_built(call: Call) -> str:
    said = tool_files.last_bytes(call.place)
    found = _ERROR.search(said)
    reason = tool_files.clean_name(found["what"])[:200] if found else tool_files.last_words(call.place)
    remedy = f"; install the C library's headers: {CC.install}" if _NO_HEADERS.search(said) else ""
    return f"{_SOURCE.name} was not built{f': {reason}' if reason else ''}{remedy}"


def _why_cut(call: Call) -> str:
    """Return why the program did not come to its end, '' where it said nothing."""
    text = tool_files.last_bytes(call.folder, _FILE)
    began, ended = '"kind": "machine"' in text.partition("\n")[0], '"kind": "end"' in text
    early = "it was ended before its last try: if memory was short, name a smaller `size`"
    return tool_files.last_words(call.folder) or (early if began and not ended else "")


def _how_bandwidth(tries: Tries, best: Group) -> str:
    cache = tries.machine.cache
    beyond = f" ({best.array / cache:.3g} × the last cache of {_size(cache)})" if cache else ""
    triad = max((group.best for group in tries.of(BANDWIDTH, "triad")), default=0.0)
    others = f" (triad: {format_quantity(triad, Dimension.THROUGHPUT)})" if triad and best.name != "triad" else ""
    return (
        f"{best.name}{others}, 3 arrays of {_size(best.array)}{beyond}, {_among(tries, best)}; "
        "a line that is fetched to be overwritten is not counted, as by STREAM"
    )


def _how_flops(tries: Tries, group: Group) -> str:
    build = tries.build
    kind = "fused multiply-adds" if build.fused else "multiplications and additions"
    vectors = f"vectors of {build.width} B{f' ({build.set})' if build.set else ''}"
    return f"{build.chains} chains of {kind} a thread in {vectors}, {_among(tries, group)}"


def _among(tries: Tries, group: Group) -> str:
    threads = tries.machine.threads
    return f"{threads} thread{'s' if threads > 1 else ''}, best of {len(group.values)}, {tries.build.compiler}"


def _doubts(tries: Tries, measured: Sequence[Group]) -> Iterator[str]:
    """Say what makes the figures those of a part of the machine, or of a busy one, or of a cache."""
    machine = tries.machine
    if machine.threads < machine.cores:
        limit = f", whose quota is {machine.quota:g}" if machine.quota is not None else ""
        yield f"{machine.threads} of {machine.cores} cores were used{limit}: the peaks are theirs"
    elif machine.quota is not None and machine.quota < machine.threads:
        yield f"the quota of {machine.quota:g} cores slows {machine.threads} threads down for a part of the time"
    if machine.hypervisor:
        yield "a hypervisor is below: others on the same host share its memory and its clock"
    yield from _cache_doubts(tries)
    if tries.build.unused:
        yield f"{tries.build.unused}, which may have wider vectors, was not used: the FLOP/s may be more"
    for group in measured:
        if group.spread > _DOUBTFUL:
            metric = f"{group.metric} {group.name if group.metric == FLOPS else ''}".strip()
            yield (
                f"{metric}: half of the tries were {group.spread:.0%} or more below the best, so something else used "
                "the machine, and the peak may be higher"
            )


def _cache_doubts(tries: Tries) -> Iterator[str]:
    cache, groups = tries.machine.cache, tries.of(BANDWIDTH)
    smallest, largest = (pick(group.array for group in groups) for pick in (min, max))
    if not cache:
        yield f"the machine does not tell the size of its last cache: arrays of {_size(smallest)} may not be beyond it"
    elif smallest < _TIMES_OF_CACHE * cache * 0.99:
        yield (
            f"arrays of {_size(smallest)} are {smallest / cache:.2g} × the last cache of {_size(cache)}, and STREAM "
            f"asks for {_TIMES_OF_CACHE} ×: a part of the bandwidth may be the cache's"
        )
    small, large = (max(group.best for group in groups if group.array == size) for size in (smallest, largest))
    if large < small * (1 - _DOUBTFUL):
        yield (
            f"arrays of {_size(largest)} were {1 - large / small:.0%} slower than those of {_size(smallest)}: "
            "a part of the bandwidth may be a cache's"
        )


def _size(size: int) -> str:
    return f"{size / 2**20:,.4g} MiB" if size < 2**30 else f"{size / 2**30:,.4g} GiB"


ADAPTER = Adapter(
    name="stream",
    role=Role.MACHINE,
    options=Options,
    program=CC,
    finds_peaks=True,
    preparations=preparations,
    invocations=invocations,
    outputs=leaves(_FILE),
    executed=lambda call: (_program(call),),
    parse=parse,
)
