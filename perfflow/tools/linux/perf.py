"""``perf``: sample the stacks of any program with Linux perf, and rank its functions.

``perf record`` falls back to the timer ``cpu-clock`` if there are no hardware counters; the event is read from the
samples. The inlined callers and source lines come from debug information, so compile with ``-g``.

``recording``, ``script_text`` and ``parse_script`` are for all tools that sample with perf. In the text a sample is a
header, then its frames, the running function first. Code generated at run time has the names in ``/tmp/perf-PID.map``.
They are shown without the process id, and those of Python and Node.js with the function's file, so that they are equal
in two runs. The stacks are folded from the text by drivers/perf_text.py.

A sample is attributed to the innermost function of the project's own code on its stack, which includes its calls into
libraries. If no frame is known to be the project's own, it is attributed to the running function. Its weight is its
period: perf begins with short periods and adapts them, so equal weights would overrepresent the start of a program.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed, Profile, StackCounts, Usage
from perfflow.model.stacks import Frame, Stack, callers_and_callees, costs_of, hotspots_of, innermost_own, write_folded
from perfflow.tools import python_command, symbol_names, tool_files
from perfflow.tools.adapter import (
    Adapter,
    Call,
    CommandOptions,
    Invocation,
    Profiler,
    ProfilingMethod,
    Program,
    Role,
    Seconds,
    leaves,
)
from perfflow.tools.linux import costly_calls

PERF = Program("perf", "apt-get install linux-perf")
# Without --no-bpf-event, recording takes 1 s longer. With -N, perf does not write to the user's build-id cache.
# With --max-size, a program that runs longer than expected does not fill the disk: perf ends it.
MOST_RECORDED = 256
"""Largest recording, in MiB; one of a few thousand samples with call stacks has some 20 MiB."""
RECORD = ("record", "-q", "--no-bpf-event", "-N", f"--max-size={MOST_RECORDED}M")
_TOO_LARGE = "perf size limit reached"
DATA, SCRIPT = "perf.data", "perf.script"
"""The recording and its text. The texts of several recordings can be concatenated."""
NO_SAMPLE = "perf took no sample: give the program more work or a higher `frequency`"
_FOLDED = "stacks.folded"
_FEW = 100
_FIELDS = "comm,pid,tid,time,period,event,ip,sym,dso,srcline"
_TEXT = python_command.driver_command("perf_text.py", __file__)
_NO_SOURCES = (
    "no sample has a source file of the project: build with debug information (-g; in Rust `debug = 1`) to get files, "
    "lines and inlined callers"
)
_DEEPEST = 512
# perf_text.py's last line. Only it shows that perf's text was not cut between two samples.
_END = "# end"
# A line before it, if perf took too long or crashed while it looked for inlined callers.
_WITHOUT = re.compile(
    r"# without inlined callers: "
    r"(?:more than (?P<limit>[\d.e+]{1,9}) s|perf (?:was ended by signal (?P<signal>\d{1,3}) .*|exited with \d+))\Z"
)
# `hot  3980/3980    919.305178: cpu-clock:ppp: `. Without call graphs the only frame follows on the same line.
_SAMPLE = re.compile(
    r"\s*(?P<comm>\S.{0,40}?)\s+(?:\d{1,10}/)?\d{1,10}\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+"
    r"(?:(?P<period>\d{1,18})\s+)?(?P<event>\S+):(?:\s+(?P<rest>.*))?\Z"
)
# `f(int)+0x1c (/usr/lib/x.so)`, where both parts may hold parentheses, and `g (inlined)`.
_FRAME = re.compile(
    r"\s*[0-9a-f]{1,16}\s+(?P<symbol>\S.*?)(?:\+0x[0-9a-f]+)?"
    r"(?: \((?P<library>/.*|\[[^()]*|(?!inlined\))[^()]+)\))?(?: \(inlined\))?\s*\Z"
)
# Not `??:0` and `libc.so.6[27249]`, which perf prints if there is no source.
_SOURCE = re.compile(r"(?!\?\?)(?P<file>.*\S):(?P<line>[1-9]\d{0,8})(?: \(discriminator \d+\))?(?: \(inlined\))?\Z")
_GENERATED_IN = re.compile(r"perf-\d+\.map\Z|\[?JIT\]? tid \d+\Z")
# `py::inner:/src/hot.py`, and `JS:*inner /src/hot.js:1:15`, where a mark is the level of optimisation.
_GENERATED = re.compile(
    r"py::(?P<python>[^:]*):(?P<module>.*)\Z"
    r"|(?:JS|LazyCompile|Function|Script|Eval):[~^+*]?(?P<name>.*?) ?(?:file://)?(?P<file>(?:/|node:).*?)"
    r":(?P<line>\d{1,9})(?::\d+)?\Z"
)
_TIMERS = frozenset({"cpu-clock", "task-clock"})
_FIRST, _CLOCK = "main", re.compile(r"\[vdso\]|_*clock_gettime\b")
_Place = tuple[str, str]
Event = Annotated[
    str,
    Field(
        pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9_:/=.,-]*)?$",
        description="Event to sample, as named by `perf list` (default: perf's choice for this machine).",
    ),
]


@dataclass(slots=True)
class PerfSample:
    """One sample: its frames leaf first, as perf prints them, and the ``library`` of the first.

    ``period`` is the number of events since the previous sample, ns for a timer; 1 if the text has no periods.
    """

    comm: str
    event: str
    period: int = 1
    frames: list[Frame] = field(default_factory=list)
    library: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether callers are missing, since the stack is deep. Of code that reads a clock, perf often finds none."""
        names = [frame.name for frame in self.frames]
        return _FIRST not in names and not any(map(_CLOCK.match, names[-1:]))

    @property
    def leaf(self) -> Frame:
        """The running function. If it has no source file, its name includes the library."""
        leaf = self.frames[0] if self.frames else Frame("[unknown]")
        is_told = leaf.file or not self.library or leaf.name.startswith("[")
        return leaf if is_told else Frame(f"{leaf.name} ({self.library})")


class RecordOptions(CommandOptions):
    """``with`` keys of the tools that record with perf."""

    frequency: int = Field(default=999, ge=1, le=100_000, description="Samples per second of CPU time.")


class Stacks(RecordOptions):
    """``with`` keys of the tools that record call stacks with perf."""

    inline_limit: float = Field(
        default=60,
        ge=0,
        le=3600,
        description="Time limit in seconds for finding inlined callers, 0 to skip them. Without inlined callers, their "
        "samples count for the functions that they were inlined into.",
    )


def recording(
    call: Call, frequency: int, event: str, graph: str = "", pid: int | None = None, seconds: float | None = None
) -> Invocation:
    """Return the process that samples the command, or a running process meanwhile or for ``seconds``.

    graph: the method for call stacks.
    """
    asked = (*(("-e", event) if event else ()), "-F", str(frequency), *(("--call-graph", graph) if graph else ()))
    asked += ("-p", str(pid)) if pid is not None else ()
    during = call.command if seconds is None else ("sleep", f"{seconds:g}")
    return Invocation((call.program or "perf", *RECORD, *asked, "-o", str(call.folder / DATA), "--", *during))


def script_text(program: str, data: str, limit: float) -> Invocation:
    """Return the process that writes the text of a recording; ``limit`` is in seconds, for inlined callers."""
    script = (program, "script", "-i", data, "-F", _FIELDS, "--full-source-path")
    # Otherwise perf script queries servers on the network for debug information.
    return Invocation((*_TEXT, f"{limit:g}", *script), env={"DEBUGINFOD_URLS": ""}, stdout=SCRIPT)


def parse_script(folder: Path, source: str, event: str = "", harness: str = "") -> Parsed:
    """Parse the text for the tool ``source``; ``event`` is the event that was requested.

    ``harness``: a regular expression for functions that call a benchmark. Samples of other work of the program are left
    out, unless no such function is on any stack.
    """
    if _TOO_LARGE in tool_files.last_bytes(folder):
        raise ToolOutputError(
            f"the recording reached {MOST_RECORDED} MiB, so perf ended the program: lower `frequency`, set "
            "`call-graph: none`, or give the program less work"
        )
    notes: list[str] = []
    events, called = (defaultdict[str, _EventSums](_EventSums) for _ in range(2))
    is_called = False
    for sample in read(folder / SCRIPT, notes):
        events[sample.event].take(sample)
        by_harness = bool(harness) and any(frame.is_of(harness) for frame in sample.frames)
        is_called |= by_harness
        if by_harness or (harness and sample.is_cut):
            called[sample.event].take(sample)
    events = called if is_called else events
    if not events:
        raise ToolOutputError(NO_SAMPLE)
    # Samples of several events cannot be added up, so the first event is ranked.
    sums = next(iter(events.values()))
    (folder / _FOLDED).write_text(write_folded(sums.stacks), encoding="utf-8")
    used, *others = (name.split(":")[0] for name in events)
    warnings = [*sampling_warnings(sums.samples, used, event)]
    if others:
        warnings.append(f"functions are ranked only by {used}; profile {' and '.join(others)} in a separate step")
    if not sums.is_own:
        notes.append(_NO_SOURCES)
    # Costs are in samples; if periods differ, in mean samples.
    mean = sums.stacks.total() / sums.samples
    weights = sums.blamed if mean == 1 else {frame: weight / mean for frame, weight in sums.blamed.items()}
    costs = costs_of(weights.items(), "time")
    profile = Profile(_FOLDED, "folded", _counts(used, sums))
    few = are_few(sums.samples)
    return Parsed((), sums.hotspots(source), (profile,), (*warnings, *notes), costs, few_samples=few)


def _counts(event: str, found: _EventSums) -> StackCounts:
    """Return the unit and metric of an event's stacks; the unit is samples if the text has no periods."""
    is_time = event in _TIMERS
    unit = "samples" if found.stacks.total() == found.samples else "ns" if is_time else event
    metric = {"cycles": "time", "instructions": "instructions"}.get(event, "time" if is_time else "")
    return StackCounts(unit, metric, by_thread=True)


def are_few(samples: int) -> bool:
    """Return whether there are too few samples for reliable shares."""
    return samples < _FEW


def sampling_warnings(samples: int, used: str, wanted: str) -> Iterator[str]:
    """Yield warnings if there are too few samples, or if perf did not sample the requested event."""
    if are_few(samples):
        yield f"{samples} samples are few: give the program more work or raise `frequency` to get reliable shares"
    if used in _TIMERS and wanted.split(":", maxsplit=1)[0] != used:
        yield f"sampled by the timer {used}, since this machine has no hardware counters for perf"


def read(path: Path, notes: list[str]) -> Iterator[PerfSample]:
    """Yield the samples and append warnings about the text to ``notes``.

    Raises ToolOutputError if a line is invalid or the text is cut.
    """
    sample: PerfSample | None = None
    is_ended = False
    for line in filter(str.strip, tool_files.read_lines(path)):
        is_ended = line == _END
        if note := _WITHOUT.match(line):
            notes.append(_warning_of(note))
        if note or is_ended:
            continue
        header = None if line.startswith("\t") else _SAMPLE.match(line)
        if header:
            if sample:
                yield sample
            comm, event = (tool_files.clean_name(header[name]) for name in ("comm", "event"))
            sample = PerfSample(comm, event, int(header["period"] or 1))
        if not sample:
            raise ToolOutputError(f"{path.name} does not start with a sample: {line[:80]!r}")
        if frame := header["rest"] if header else line:
            _add(sample, frame, path.name)
    if sample and not is_ended:
        raise ToolOutputError(f"{path.name} is cut short: its last line is missing")
    if sample:
        yield sample


def _warning_of(note: re.Match[str]) -> str:
    why = f"needs more than {note['limit']} s to find"
    if note["signal"]:
        why = f"was ended by signal {note['signal']} while it looked for"
    remedy = "; raise `inline-limit` to see them" if note["limit"] else ""
    return f"perf {why} inlined callers, so their samples count for the functions around them{remedy}"


def _add(sample: PerfSample, line: str, name: str) -> None:
    """Add a frame, or the source line below a frame, to the sample."""
    is_source = line.startswith("  ") and not line.startswith("   ")
    if is_source and sample.frames:
        if source := _SOURCE.match(line.strip()):
            file = tool_files.clean_name(source["file"])
            sample.frames[-1] = Frame(sample.frames[-1].name, file, int(source["line"]))
        return
    match = None if is_source else _FRAME.match(line)
    if not match:
        raise ToolOutputError(f"{name} has a line that is not a frame: {line[:80]!r}")
    if len(sample.frames) >= _DEEPEST:
        raise ToolOutputError(f"{name} has a stack of more than {_DEEPEST} frames")
    frame, library = _frame(match["symbol"], match["library"] or "")
    sample.library = sample.library if sample.frames else library
    sample.frames.append(frame)


def _frame(symbol: str, path: str) -> tuple[Frame, str]:
    """Return the frame of a symbol and the library's name. Unknown symbols are named after their library."""
    library = Path(path.removesuffix(" (deleted)")).name.strip("[]")
    if _GENERATED_IN.match(library):
        library = "JIT"
        if made := _GENERATED.match(symbol):
            name = tool_files.clean_name(made["python"] or made["name"] or "(anonymous)")
            return Frame(name, tool_files.clean_name(made["module"] or made["file"]), int(made["line"] or 0)), library
    name = symbol_names.plain(symbol)
    if name in {"", "[unknown]"}:
        name = f"[{library}]" if library else "[unknown]"
    return Frame(tool_files.clean_name(name)), tool_files.clean_name(library) if library else ""


@dataclass(slots=True)
class _EventSums:
    """Sums of one event's samples, weighted by period. A place is a function by name and file."""

    samples: int = 0
    stacks: Counter[Stack] = field(default_factory=Counter)
    is_own: bool = False
    blamed: Counter[Frame] = field(default_factory=Counter)
    selves: Counter[_Place] = field(default_factory=Counter)
    inclusive: Counter[Frame] = field(default_factory=Counter)
    below: defaultdict[_Place, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))

    def take(self, sample: PerfSample) -> None:
        """Count one sample."""
        weight, frames = max(1, sample.period), sample.frames
        self.samples += 1
        self.stacks[sample.comm, *(frame.name for frame in reversed(frames))] += weight
        at = innermost_own(frames)
        self.is_own |= at is not None
        blamed = sample.leaf if at is None else frames[at]
        place = (blamed.name, blamed.file)
        self.blamed[blamed] += weight
        self.selves[place] += 0 if at else weight
        for each in callers_and_callees((blamed, *reversed(frames))):
            self.inclusive[each] += weight
        # Below the function, the first one whose name shows its kind.
        kinds = (
            (kind, frame.name) for frame in reversed(frames[: at or 0]) if (kind := costly_calls.kind_of(frame.name))
        )
        if call := next(kinds, None):
            self.below[place][call] += weight

    def hotspots(self, source: str) -> tuple[Hotspot, ...]:
        """Rank places by the samples attributed to them, each with a cause if it is known."""
        found, total = [], self.stacks.total()
        for spot in hotspots_of(self.blamed.items(), source=source, inclusive=self.inclusive.items()):
            place = (spot.location, spot.file)
            cause = costly_calls.cause(self.below[place], round(spot.share * total))
            if not cause and (kind := costly_calls.kind_of(spot.location)):
                cause = f"supposed: {kind}, by the function's name"
            found.append(replace(spot, cause=cause, self_share=self.selves[place] / total))
        return tuple(found)


NAME = "perf"


class PerfOptions(Stacks):
    """``with`` keys of ``uses: perf``."""

    call_graph: Literal["dwarf", "fp", "lbr", "none"] = Field(
        default="dwarf",
        description="How to record callers: dwarf (8 KiB per sample, correct for all code with debug information), fp "
        "(small, needs -fno-omit-frame-pointer and still misses some callers), lbr (Intel's branch records, at most 32 "
        "callers) or none.",
    )
    event: Event = ""
    pid: int | None = Field(
        default=None, ge=1, description="Record the running process with this number; `command` puts load on it."
    )
    duration: Seconds | None = Field(
        default=None, description="How long to record the process of `pid` without `command`, such as `5s`."
    )


def invocations(call: Call[PerfOptions]) -> tuple[Invocation, ...]:
    """Record the command, or a running process, then convert the samples to text.

    Raises ToolOutputError if ``pid``, ``duration`` and ``command`` do not say what is recorded and for how long.
    """
    options = call.options
    graph = {"dwarf": "dwarf,8192", "none": ""}.get(options.call_graph, options.call_graph)
    if options.duration is not None and (call.command or options.pid is None):
        raise ToolOutputError("`duration` needs the `pid` of a running process and no `command`, which has its own end")
    if options.pid is not None and options.duration is None and not call.command:
        raise ToolOutputError(
            "with `pid`, set how long to record: add `duration: 5s`, or a `command` that puts load on it"
        )
    record = recording(call, options.frequency, options.event, graph, options.pid, options.duration)
    return record, script_text(call.program or "perf", str(call.folder / DATA), options.inline_limit)


def parse(call: Call[PerfOptions], usage: Usage) -> Parsed:
    """Fold the samples into ``stacks.folded`` and rank functions by the samples attributed to them.

    Raises ToolOutputError if there are no samples, or if the text is cut or invalid.
    """
    return parse_script(call.folder, NAME, call.options.event, call.harness)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(
        method=ProfilingMethod.SAMPLES,
        follows={"time": 0, "instructions": 1},
        python=2,
        repeats=True,
        recording=SCRIPT,
        raw=(DATA, SCRIPT),
    ),
    options=PerfOptions,
    program=PERF,
    attaches=("pid", "duration"),
    passes_stdout=True,
    invocations=invocations,
    # The text is not listed, since `parse` reports an empty text with a better reason.
    outputs=leaves(DATA),
    parse=parse,
)
