"""``callgrind``: count executed instructions with valgrind, in total and per function.

Counts are exactly repeatable whatever the load of the machine, so one run is enough. They do not include the effects of
caches, branches or waiting. Python's hashes of strings differ between runs; PYTHONHASHSEED=0 fixes them.

``stacks_of_graph`` converts a call graph to stacks, which are estimates. callgrind records the cost of all calls of one
function by another, but not the callers further up. The cost of a function is therefore divided among its callers in
proportion to the cost of their calls, and so on up to a function without callers. This assumes that a call costs the
same wherever its caller was called from. The own cost of each function is exact; the frames above it are estimates if a
function has several callers.

``valgrind_invocation`` and the functions after it are for all tools of valgrind: they run a command and its children
under one of them, and describe the processes that ran.

``read`` reads files of callgrind and cachegrind, and ``hotspots_of`` ranks functions by executed instructions. A file
has cost lines under ``fl=`` (file), ``fn=`` (function) and ``ob=`` (object). Names may be compressed to ``(id) name``
and then ``(id)``, positions to ``+n``, ``-n`` and ``*``. The line after ``calls=`` is the cost of the call, which is
not added to the caller. ``cob=``, ``cfi=`` and ``cfn=`` name the callee, if they differ from the place of the call.
``fi=`` and ``fe=`` switch to and from inlined source; a function belongs to the file of the last ``fl=``. Every part of
a file ends with ``totals:`` (cachegrind: ``summary:``), which must be the sum of its cost lines, so that a file that is
cut or misread never gives a smaller figure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Cost, Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Stack, is_own, write_folded
from perfflow.tools import python_command, symbol_names, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Program, Role

_DEEPEST = 256
_PARTS = 2000
"""A share below 1/2000 of the total is not divided: it goes to the caller with the highest cost."""
_Callers = Sequence[tuple[str, int]]


def stacks_of_graph(own: Mapping[str, int], calls: Mapping[tuple[str, str], int]) -> Counter[Stack]:
    """Return stacks, root first. The costs of their last frames add up to ``own``.

    ``calls`` are the costs of all calls by caller and callee. In a recursion, a stack begins with a function whose
    callers are all in it already.
    """
    callers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for (caller, callee), cost in sorted(calls.items(), key=lambda item: (-item[1], item[0])):
        if cost > 0:
            callers[callee].append((caller, cost))
    least = sum(own.values()) / _PARTS
    stacks: Counter[Stack] = Counter()
    for name, whole in own.items():
        waiting: list[tuple[Stack, int]] = [((name,), whole)] if whole else []
        while waiting:
            stack, count = waiting.pop()
            above = [item for item in callers.get(stack[0], ()) if item[0] not in stack]
            if not above or len(stack) >= _DEEPEST:
                stacks[stack] += count
            else:
                waiting += [((caller, *stack), share) for caller, share in _divided(count, above, least)]
    return stacks


def _divided(count: int, callers: _Callers, least: float) -> Iterator[tuple[str, int]]:
    """Divide a count among callers, which are sorted by cost, in whole numbers that add up to the count."""
    whole, given = sum(cost for _, cost in callers), 0
    for caller, cost in callers[1:]:
        share = count * cost // whole
        if share < max(1.0, least):
            break
        given += share
        yield caller, share
    yield callers[0][0], count - given


VALGRIND = Program("valgrind", "apt-get install valgrind")
MALLOC: Mapping[str, str] = {"PYTHONMALLOC": "malloc"}
"""Environment that turns off Python's allocator of small objects, which hides allocations from valgrind."""


class Seeded(CommandOptions):
    """``with`` keys of the tools that count instructions."""

    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, for repeatable counts.")

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that are added to the program's environment."""
        return {"PYTHONHASHSEED": "0"} if self.hash_seed else {}


valgrind_tool = partial(Adapter, program=VALGRIND, deterministic=True, passes_stdout=True)
"""``Adapter`` with the fields that all of valgrind's tools share."""


def valgrind_invocation(call: Call, tool: str, *flags: str, env: Mapping[str, str]) -> Invocation:
    """Return the process that runs valgrind's ``tool``, which writes a file ``TOOL.PID.out`` for each process."""
    # In this pattern valgrind replaces %p by the process id, and %% by %.
    pattern = f"{str(call.folder).replace('%', '%%')}/{tool}.%p.out"
    fixed = ("-q", f"--tool={tool}", "--trace-children=yes", f"--{tool}-out-file={pattern}")
    return Invocation((call.program or VALGRIND.name, *fixed, *flags, *call.command), env=env)


def valgrind_files(call: Call, tool: str) -> tuple[Path, ...]:
    """Return the existing files. A process may write several parts, so the names are only known after the run."""
    return tuple(sorted(call.folder.glob(f"{tool}.*.out*")))


def files_of_a_run(call: Call, tool: str) -> tuple[Path, ...]:
    """Return the existing files. Raises ToolOutputError if there are none, since every process writes one."""
    if paths := valgrind_files(call, tool):
        return paths
    said = tool_files.last_words(call.folder)
    hint = f": {said}" if said.startswith("valgrind:") else ""
    raise ToolOutputError(f"{tool} wrote no file: the command did not start or was killed{hint}")


def sum_warnings(commands: Sequence[str], what: str) -> tuple[str, ...]:
    """Return warnings that ``what`` is summed over all processes, and about figures that are counted twice.

    A forked process starts with the figures of its parent; after ``exec`` it starts at 0.
    """
    if len(commands) == 1:
        return ()
    warnings = [f"{len(commands)} processes ran; {what} summed over them"]
    if forked := next((command for command, count in Counter(commands).items() if count > 1), ""):
        name = tool_files.clean_name(forked)[:80]
        warnings.append(f"{name!r} forked: its figures before the fork are counted again in each child")
    return tuple(warnings)


_COMPRESSED = re.compile(r"\((\d{1,9})\)(?: (.*))?\Z")
# Keys by the list of compressed ids that they use.
_LISTS = {
    **dict.fromkeys(("ob", "cob"), "ob"),
    **dict.fromkeys(("fl", "fi", "fe", "cfi", "cfl", "jfi"), "fl"),
    **dict.fromkeys(("fn", "cfn", "jfn"), "fn"),
}
_POSITION = re.compile(r"(?P<sign>[+-]?)(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,12})\Z", re.ASCII)
# Starts of the line after the command, which in older versions of valgrind may contain line ends.
_AFTER_COMMAND = ("part: ", "events: ")
# callgrind treats the second and deeper levels of a recursion as separate functions.
_RECURSION = re.compile(r"'\d+\Z")

_UNKNOWN = re.compile(r"0x[0-9A-Fa-f]+\Z|\?\?\?\Z")
_UNKNOWN_FILES = {"", "???"}
_QUALIFIED = re.compile(r"::|.\(")
_HEADER = re.compile(r".*\.(?:h|hh|hpp|hxx|inc|inl|ipp|tcc)\Z")
_KEPT = 20
_CAUSE_SHARE = 0.1
"""The share of another event, such as cache misses, above which it becomes part of the cause."""

Place = tuple[str, int]
Sums = Mapping[str, Sequence[str]]
NO_SUMS: Sums = MappingProxyType({})


class CalledFunction(NamedTuple):
    """A function by name, the object (program or library) that holds it, and its own source file."""

    name: str
    object: str
    file: str


@dataclass(slots=True)
class Costs:
    """The contents of one file: totals by event, and for every function all events, and the first event by line.

    ``calls`` are inclusive costs of calls in the first event, by caller and callee. ``triggers`` are the reasons why
    parts were written.
    """

    path: Path
    command: str = ""
    events: tuple[str, ...] = ()
    totals: Counter[str] = field(default_factory=Counter)
    functions: dict[CalledFunction, Counter[Place]] = field(default_factory=dict)
    of_function: dict[CalledFunction, Counter[str]] = field(default_factory=dict)
    calls: Counter[tuple[CalledFunction, CalledFunction]] = field(default_factory=Counter)
    triggers: list[str] = field(default_factory=list)

    def total(self, *events: str) -> float:
        """Return the sum of events. Raises ToolOutputError if the file lacks one."""
        if missing := [event for event in events if event not in self.events]:
            raise ToolOutputError(f"{self.path.name} lacks {', '.join(missing)}")
        return tool_files.number(sum(self.totals[event] for event in events), "+".join(events))


def read(path: Path) -> Costs:
    """Read one file. Raises ToolOutputError if it is incomplete or its sums are wrong."""
    return _CallgrindReader(path).read()


class _CallgrindReader:
    """A parser with the state on which lines of the format depend."""

    def __init__(self, path: Path) -> None:
        self.costs = Costs(path)
        self.names: dict[tuple[str, str], str] = {}
        self.object = self.file = self.own_file = ""
        self.line_index, self.positions = 0, [0]
        # Sums of the cost lines of this part, empty before the first line, and of this function.
        self.part = Counter[str]()
        self.own = Counter[str]()
        self.places: Counter[Place] | None = None
        self.function: CalledFunction | None = None
        # Names of the next call's callee that differ from those of the caller.
        self.called: dict[str, str] = {}
        self.in_command = self.callee = self.is_ended = False

    def read(self) -> Costs:
        for line in tool_files.read_lines(self.costs.path):
            if not self.in_command or line.startswith(_AFTER_COMMAND):
                self.in_command = False
                self._line(line)
        if not self.is_ended or self.part:
            self._refuse("is cut short or not a file of valgrind")
        return self.costs

    def _line(self, line: str) -> None:
        """Process a cost line, ``key=value`` or ``key: value``. Unknown headers are skipped."""
        key, equals, value = line.partition("=")
        if not line or line[0] == "#":
            return
        if line[0] in "+-*0123456789":
            self._cost(line.split())
        elif equals and key in _LISTS:
            self._name(key, self._uncompressed(_LISTS[key], value))
        elif equals and key in {"calls", "jump", "jcnd"}:
            self.callee = key == "calls"
        elif ":" in line:
            key, _, value = line.partition(":")
            self._header(key, value.strip())
        else:
            self._refuse(f"has an unknown line: {line[:80]!r}")

    def _header(self, key: str, text: str) -> None:
        words = tuple(text.split())
        if key == "cmd":
            self.costs.command, self.in_command = text, True
        elif key == "desc" and text.startswith("Trigger: "):
            self.costs.triggers.append(text.removeprefix("Trigger: "))
        elif key == "events":
            if self.part or not words or self.costs.events not in {(), words}:
                self._refuse("is damaged: its events change")
            self.costs.events, self.is_ended = words, False
        elif key == "positions":
            if "line" not in words or len(words) > 3:
                self._refuse("gives no source lines")
            self.line_index, self.positions = words.index("line"), [0] * len(words)
        # cachegrind ends with a summary; callgrind begins with a summary and ends with totals.
        elif key == "totals" or (key == "summary" and self.part):
            if not words or self._counts(words) != [self.part[event] for event in self.costs.events]:
                self._refuse("is damaged: its costs do not add up to its totals")
            self.costs.totals.update(self.part)
            self.part, self.is_ended = Counter(), True
        elif key == "summary" and self.is_ended:
            self._refuse("is damaged: it has a summary twice")

    def _uncompressed(self, names: str, text: str) -> str:
        match = _COMPRESSED.match(text)
        if not match:
            return text
        key = (names, match[1])
        if match[2] is not None:
            self.names[key] = match[2]
        elif key not in self.names:
            self._refuse(f"is damaged: it uses {text} before its definition")
        return self.names[key]

    def _name(self, key: str, name: str) -> None:
        if key == "ob":
            self.object = name
        elif key == "fl":
            self.file = self.own_file = name
        elif key in {"fi", "fe"}:
            self.file = name
        elif key[0] == "c":
            self.called[_LISTS[key]] = name
        elif key == "fn":
            self.file, self.positions = self.own_file, [0] * len(self.positions)
            self.function = function = CalledFunction(_RECURSION.sub("", name), self.object, self.own_file)
            self.places = self.costs.functions.setdefault(function, Counter())
            self.own = self.costs.of_function.setdefault(function, Counter())

    def _cost(self, words: list[str]) -> None:
        """Add a cost line to its function; that of a callee only moves the position."""
        width = len(self.positions)
        self.positions = [self._position(old, word) for old, word in zip(self.positions, words, strict=False)]
        counts = self._counts(words[width:])
        if len(words) < width or counts is None or len(counts) > len(self.costs.events):
            self._refuse(f"has an invalid cost line: {' '.join(words)[:80]!r}")
        callee, self.callee = self.callee, False
        if callee:
            self._call(counts)
        if callee or not counts:
            return
        if self.places is None:
            self._refuse("is damaged: it has costs outside of a function")
        self.places[self.file, self.positions[self.line_index]] += counts[0]
        # Trailing zeros are omitted in the file.
        for event, count in zip(self.costs.events, counts, strict=False):
            self.own[event] += count
            self.part[event] += count

    def _call(self, counts: Sequence[int]) -> None:
        """Add the inclusive cost of a call."""
        called, self.called = self.called, {}
        if counts and self.function and "fn" in called:
            name = _RECURSION.sub("", called["fn"])
            callee = CalledFunction(name, called.get("ob", self.object), called.get("fl", self.file))
            self.costs.calls[self.function, callee] += counts[0]

    def _position(self, old: int, word: str) -> int:
        if word == "*":
            return old
        match = tool_files.matched(_POSITION, word, f"{self.costs.path.name} has an invalid position")
        number = int(match["number"], 16 if match["number"][1:2] in {"x", "X"} else 10)
        new = {"": number, "+": old + number, "-": old - number}[match["sign"]]
        if new < 0:
            self._refuse(f"is damaged: it refers to line {new}")
        return new

    def _counts(self, words: Sequence[str]) -> list[int] | None:
        """Return words as counts; None if a word is not a count."""
        digits = "".join(words)
        are_counts = digits.isascii() and digits.isdecimal() and max(map(len, words)) <= 18
        return [*map(int, words)] if are_counts or not words else None

    def _refuse(self, reason: str) -> NoReturn:
        raise ToolOutputError(f"{self.costs.path.name} {reason}")


@dataclass(slots=True)
class _CallgrindPart:
    """The costs of a function, in total or in one source file: the first event by line, and all events."""

    location: str
    file: str
    object: str
    places: Counter[Place] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.places.total()

    @property
    def position(self) -> tuple[str, int]:
        """The costliest line: in the project's code for C++, Rust and library functions, else in its own file."""
        file = self.file
        if file and ("::" in self.location or not is_own(file)):
            mine = _costliest(item for item in self.places.items() if is_own(item[0][0]))
            file = tool_files.clean_name(mine[0]) if mine else file
        own = _costliest(item for item in self.places.items() if tool_files.clean_name(item[0][0]) == file)
        return file, own[1] if own and file else 0


def costs_of_a_run(call: Call, source: str) -> list[Costs]:
    """Read the files of all processes.

    Raises ToolOutputError if there is no file, or if a file is cut, invalid or does not add up.
    """
    found = [read(path) for path in files_of_a_run(call, source)]
    if not sum(costs.total("Ir") for costs in found):
        raise ToolOutputError(f"{source} counted no instructions: the program turned off the instrumentation")
    return found


def parsed_of(
    call: Call[Seeded],
    processes: Sequence[Costs],
    figures: Mapping[str, float],
    warnings: Iterable[str],
    others: Sums = NO_SUMS,
) -> Parsed:
    """Return the figures with the functions and warnings; ``others`` is that of ``hotspots_of``."""
    largest = max(processes, key=lambda costs: (costs.total("Ir"), costs.path.name)).path.name
    # The name is TOOL.PID.out.
    source = largest.partition(".")[0]
    if call.options.hash_seed:
        warnings = (*warnings, *python_command.random_hashes(call.command))
    readings, profiles = tuple(Reading(*figure) for figure in figures.items()), (Profile(largest, source),)
    return Parsed(readings, hotspots_of(processes, source, others), profiles, tuple(warnings), costs_of(processes))


def hotspots_of(processes: Iterable[Costs], source: str, others: Sums = NO_SUMS) -> tuple[Hotspot, ...]:
    """Rank the functions of all processes by their own instructions, the first event of the files.

    ``others`` are sums of further events by name. A function's cause lists those of which it has at least a tenth, the
    largest share first, and the line of inlined code if that is its costliest line.
    """
    ranked, spots = _ranked(processes), []
    whole = sum(part.count for part in ranked)
    sums = [{name: sum(part.events[event] for event in of) for name, of in others.items()} for part in ranked]
    wholes = {name: sum(each[name] for each in sums) for name in others}
    for part, of_function in zip(ranked[:_KEPT], sums, strict=False):
        shares = sorted((-of_function[name] / of_all, name) for name, of_all in wholes.items() if of_all)
        details = "".join(f", {-share:.0%} of the {name}" for share, name in shares if -share >= _CAUSE_SHARE)
        hottest, position = _costliest(part.places.items()), part.position
        elsewhere = hottest and (tool_files.clean_name(hottest[0]), hottest[1]) != position
        if part.file and hottest and elsewhere and hottest[0] not in _UNKNOWN_FILES:
            details += f", most in inlined {tool_files.clean_name(Path(hottest[0]).name)}:{hottest[1]}"
        cause, share = f"measured: {part.count:,} instructions{details}", part.count / whole
        spots.append(Hotspot(part.location, share, "instructions", source, *position, cause, share))
    return tuple(spots)


def costs_of(found: Iterable[Costs]) -> tuple[Cost, ...]:
    """Return every function's own instructions, the largest first, without its calls into libraries."""
    return tuple(Cost("instructions", part.location, part.count, *part.position) for part in _ranked(found))


def stacks_of(found: Iterable[Costs]) -> Counter[Stack]:
    """Return the combined call graphs of all processes as stacks; see ``stacks_of_graph``."""
    own, calls = Counter[str](), Counter[tuple[str, str]]()
    for costs in found:
        for function, places in costs.functions.items():
            own[_location_of(function)[0]] += places.total()
        for (caller, callee), cost in costs.calls.items():
            calls[_location_of(caller)[0], _location_of(callee)[0]] += cost
    return stacks_of_graph(own, calls)


def _ranked(found: Iterable[Costs]) -> list[_CallgrindPart]:
    """Return the functions of all processes that have a cost, the largest first."""
    named: dict[str, dict[str, _CallgrindPart]] = {}
    for costs in found:
        for function, places in costs.functions.items():
            location, file = _location_of(function)
            part = named.setdefault(location, {}).setdefault(file, _CallgrindPart(location, file, function.object))
            part.places.update(places)
            part.events.update(costs.of_function[function])
    whole = [part for parts in named.values() for part in _merged(parts) if part.count]
    return sorted(whole, key=lambda part: (-part.count, part.location, part.file))


def _merged(parts: dict[str, _CallgrindPart]) -> Iterable[_CallgrindPart]:
    """Merge the parts of one function, which cachegrind separates by the sources inlined into it.

    A qualified name, or one with parameters, is one function in the first of its files that is the project's own. In C
    two static functions may share a name, so parts from headers are merged only if there is a single other file. If
    the object is known, as in callgrind's files, nothing is merged, since these mark inlined source.
    """
    files = [file for file in parts if file]
    bodies = [file for file in files if not _HEADER.match(file)]
    if len(files) > 1 and _QUALIFIED.search(parts[files[0]].location):
        bodies = bodies or files
    elif len(files) < 2 or len(bodies) != 1 or any(part.object for part in parts.values()):
        return parts.values()
    first = min(bodies, key=lambda file: (not is_own(file), file))
    for file in files:
        if file != first:
            part = parts.pop(file)
            parts[first].places.update(part.places)
            parts[first].events.update(part.events)
    return parts.values()


def _location_of(function: CalledFunction) -> tuple[str, str]:
    """Return the location and file of a function; its library replaces a missing name and is added without a file."""
    library, name = Path(function.object).name, symbol_names.plain(function.name)
    if _UNKNOWN.match(name):
        return tool_files.clean_name(f"[{library}]" if library else "???"), ""
    if function.file in _UNKNOWN_FILES:
        return tool_files.clean_name(f"{name} ({library})" if library else name), ""
    return tool_files.clean_name(name), tool_files.clean_name(function.file)


def _costliest(items: Iterable[tuple[Place, int]]) -> Place | None:
    """Return the place with the highest cost, the first if several are equal."""
    return min(items, key=lambda item: (-item[1], item[0]), default=(None, 0))[0]


NAME = "callgrind"
_FOLDED = "stacks.folded"

# A forked child inherits its parent's counts. Writing and clearing them before the fork prevents counting them twice.
_AT_FORK = "--dump-before="
_FORKS = tuple(
    f"{_AT_FORK}{name}{version}" for name in ("fork", "__fork", "__libc_fork", "_Fork") for version in ("", "@*")
)


def invocations(call: Call[Seeded]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    return (valgrind_invocation(call, NAME, *_FORKS, env=call.options.env),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``instructions``, the sum over all processes, and the functions that executed them, with their callers.

    Raises ToolOutputError if there is no file, or if a file is cut, invalid or does not add up.
    """
    processes = costs_of_a_run(call, NAME)
    # The parts of one process share its number: callgrind.12.out.1, callgrind.12.out.
    commands = {costs.path.name.split(".")[1]: costs.command for costs in processes}
    warnings = sum_warnings(list(commands.values()), "instructions are")
    if any(trigger.startswith(_AT_FORK) for costs in processes for trigger in costs.triggers):
        # callgrind recognised the fork, so nothing is counted twice and the warning about that is dropped.
        warnings = warnings[:1]
    figures = {"instructions": sum(costs.total("Ir") for costs in processes)}
    parsed = parsed_of(call, processes, figures, warnings)
    (call.folder / _FOLDED).write_text(write_folded(stacks_of(processes)), encoding="utf-8")
    stacks = StackCounts("instructions", "instructions", is_call_pairs=True)
    return replace(parsed, profiles=(*parsed.profiles, Profile(_FOLDED, "folded", stacks)))


ADAPTER = valgrind_tool(
    name=NAME,
    role=Role.MEASURE,
    profiler=Profiler(method=ProfilingMethod.COUNTS, follows={"instructions": 0, "time": 1}, sees="instructions"),
    options=Seeded,
    metrics=builtin_metrics("instructions"),
    invocations=invocations,
    outputs=partial(valgrind_files, tool=NAME),
    parse=parse,
)
