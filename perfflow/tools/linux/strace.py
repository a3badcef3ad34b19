"""``strace``: count the system calls of a program and its children.

strace stops the program twice per call, so its time under strace is meaningless and not reported. With ``files`` the
program runs a second time, in which only the calls that open files are recorded.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves

NAME = "strace"

_C = {"LC_ALL": "C"}
_SUMMARY = "strace.txt"
_OPENS = "opens.txt"
# With `?`, strace accepts a name that the architecture or its version does not know.
_OPENING = "trace=?open,?openat,?openat2,?creat"
_HEAD = "% time seconds usecs/call calls errors syscall"
_RULE = re.compile(r"[- ]+\Z")
_ROW = re.compile(
    r" *[\d.,]{1,9} +(?P<seconds>[\d.,]{1,20})(?P<counts>(?: +\d{1,15}){1,3}) +(?P<call>\w+) *\Z", re.ASCII
)
# The totals are sums of unrounded times, but rows are rounded to 1 µs.
_ROUNDED = 1e-6
# `1234  openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3`; -f puts the thread's number first.
_CALL = re.compile(
    r'(?P<thread>\d{1,10}) +(?P<call>\w+)\((?:\w+, )?"(?P<path>(?:[^"\\]|\\.)*)"[^"]*\) += (?P<result>.*)\Z'
)
# `1234 openat(AT_FDCWD</tree>, "data.txt", O_RDONLY) = 3</tree/data.txt>`; its second half may be on a line of its own.
_OPENED = re.compile(r"(?P<thread>\d+) .*= \d+<(?P<path>/[^>]*)>\Z")
_EXECUTED = re.compile(r'(?P<thread>\d+) +execve\("(?P<path>(?:[^"\\]|\\.)*)".*(?:= 0|<unfinished \.\.\.>)\Z')
_BEGUN = re.compile(r"(?P<thread>\d+) +(?:<\.\.\. )?(?:clone3?|v?fork)\b.*= (?P<child>\d+)\Z")
_FAMILY = ",execve,?clone,?clone3,?fork,?vfork"
_INDEXER = "git"
"""git reads files to find out whether they were changed, which nothing depends on."""
_UNFINISHED = re.compile(r"(?P<thread>\d{1,10}) .*?(?= ?<unfinished \.\.\.>\Z)")
_RESUMED = re.compile(r"(?P<thread>\d{1,10}) +<\.\.\. \w+ resumed>")
_ENDED_OR_SIGNAL = re.compile(r"\d{1,10} +(?:(?P<ended>\+\+\+ .* \+\+\+)|--- .* ---)\Z")
_REFUSED = re.compile(r"strace: .*ptrace.*(?:Operation not permitted|Permission denied)", re.IGNORECASE)
_REMEDY = (
    "the system does not permit tracing: in a container add `--cap-add=SYS_PTRACE`, elsewhere set "
    "kernel.yama.ptrace_scope to 1 or lower, and make sure that no other tracer is attached to the program"
)


class StraceOptions(CommandOptions):
    """``with`` keys of ``uses: strace``."""

    files: bool = Field(
        default=False, description="Run the program a second time to count how often it opens each file."
    )


class _StraceRow(NamedTuple):
    """One kind of call: its wall time (s), and the numbers of calls and of failed calls."""

    call: str
    seconds: float
    calls: int
    errors: int


def invocations(call: Call[StraceOptions]) -> tuple[Invocation, ...]:
    """Count all calls of one run; with ``files`` record the calls that open files in a second run."""
    options, strace = call.options, (call.program or "strace", "-f", "-o")
    counted = Invocation((*strace, str(call.folder / _SUMMARY), "-c", "-w", "--", *call.command), _C)
    opens = Invocation((*strace, str(call.folder / _OPENS), "-e", _OPENING, "--", *call.command), _C)
    return (counted, opens) if options.files else (counted,)


def parse(call: Call[StraceOptions], usage: Usage) -> Parsed:
    """Count calls and errors, and rank the kinds of call by count; with ``files``, rank files by number of opens.

    Raises ToolOutputError if the table is cut or does not add up, and with a remedy if tracing is not permitted.
    """
    if not tool_files.left(call.folder / _SUMMARY) and _REFUSED.search(tool_files.last_bytes(call.folder)):
        raise ToolOutputError(_REMEDY)
    rows = _rows(tool_files.read_whole(call.folder / _SUMMARY, "the program did not start, or strace was killed"))
    calls = sum(row.calls for row in rows)
    readings = (Reading("syscalls", calls), Reading("syscall_errors", sum(row.errors for row in rows)))
    if not call.options.files:
        ranked = sorted((row for row in rows if row.calls), key=lambda row: (-row.calls, row.call))[:MOST_HOTSPOTS]
        return Parsed(readings, tuple(_hotspot(row, calls) for row in ranked))
    opened, failed = _files(call.folder / _OPENS)
    spots = []
    for path, count in _ranked(opened)[:MOST_HOTSPOTS]:
        cause = f"measured: opened {'once' if count == 1 else f'{count:,} times'}"
        spots.append(Hotspot(tool_files.clean_name(path), count / opened.total(), "opens", NAME, cause=cause))
    warnings = tuple(
        f"{failed.total():,} attempts to open a file failed, {most:,} of them on {tool_files.clean_name(path)[:120]}"
        for path, most in _ranked(failed)[:1]
    )
    return Parsed((*readings, Reading("file_opens", opened.total())), tuple(spots), warnings=warnings)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _rows(text: str) -> list[_StraceRow]:
    """Read the table. Raises ToolOutputError unless its rows add up to its last line."""
    head, *lines = [line for line in text.splitlines() if line.strip() and not _RULE.match(line)] or [""]
    if head.split() != _HEAD.split():
        raise ToolOutputError(f"{_SUMMARY} has no table of system calls")
    *lines_of_calls, (last, whole, totals) = [_cells(line) for line in lines] or [("", 0.0, [])]
    if last != "total":
        raise ToolOutputError(f"{_SUMMARY} is cut short: it has no line of totals")
    # The counts follow the average, which is not used; the error column is blank if there are none.
    rows = [
        _StraceRow(call, seconds, counts[1], (counts[2:] or [0])[0])
        for call, seconds, counts in lines_of_calls
        if counts[1:]
    ]
    if len({row.call for row in rows}) < len(lines_of_calls) or any(row.errors > row.calls for row in rows):
        raise ToolOutputError(f"{_SUMMARY} is damaged: it has a call twice, or more errors than calls")
    calls, errors = sum(row.calls for row in rows), sum(row.errors for row in rows)
    sums = [calls, errors] if errors else [calls]
    # Before version 5.8 the line of totals has no average.
    if not calls or totals not in (sums, [*totals[:1], *sums]):
        raise ToolOutputError(f"{_SUMMARY} is damaged: its rows do not add up to its totals")
    if abs(sum(row.seconds for row in rows) - whole) > _ROUNDED * (len(rows) + 1):
        raise ToolOutputError(f"{_SUMMARY} is damaged: its times do not add up to {whole:g} s")
    return rows


def _cells(line: str) -> tuple[str, float, list[int]]:
    """Split ``4.63  0.000327  9  34  13 openat`` into the call, its time (s), and the counts between."""
    match = tool_files.matched(_ROW, line, f"{_SUMMARY} has an invalid row")
    seconds = tool_files.number_in(match["seconds"], "seconds")
    return tool_files.clean_name(match["call"]), seconds, [int(word) for word in match["counts"].split()]


def _hotspot(row: _StraceRow, calls: int) -> Hotspot:
    errors = f", {row.errors:,} of them failed" if row.errors else ""
    cause = f"measured: {row.calls:,} calls{errors}, {row.seconds:.3g} s in them including waiting and tracing"
    return Hotspot(row.call, row.calls / calls, "calls", NAME, cause=cause)


def _files(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how often each file was opened and how often that failed. Raises ToolOutputError for an invalid line."""
    opened, failed = Counter[str](), Counter[str]()
    begun: dict[str, str] = {}
    has_ended = False
    for line in tool_files.read_lines(path):
        if match := _UNFINISHED.match(line):
            begun[match["thread"]] = match[0]
            continue
        # If another thread interrupts a call, strace writes the call in two halves.
        halves = _RESUMED.match(line)
        whole = begun.pop(halves["thread"], "") + line[halves.end() :] if halves else line
        other = _ENDED_OR_SIGNAL.match(whole)
        has_ended = bool(other and other["ended"])
        if match := _CALL.match(whole):
            (opened if match["result"][:1].isdecimal() else failed)[_unescaped(match["path"])] += 1
        elif not other:
            raise ToolOutputError(f"{_OPENS} has an invalid line: {whole[:80]!r}")
    if not has_ended:
        raise ToolOutputError(f"{_OPENS} is cut short: the end of the program is missing")
    return opened, failed


def _unescaped(text: str) -> str:
    """Decode strace's escapes: a backslash and an octal number are one byte of UTF-8."""
    plain = text.encode("latin-1", "replace").decode("unicode_escape", "replace")
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


def watching_opens(record: Path) -> tuple[str, ...]:
    """Return the words that, before the argv of a program, record in a file which files it and its children open."""
    # With --seccomp-bpf, no other call stops the program. -y writes the whole path of what was opened.
    calls = ("-e", _OPENING + _FAMILY, "-e", "signal=none")
    return (NAME, "-f", "-qq", "-y", "--seccomp-bpf", *calls, "-o", str(record), "--")


def opened_paths(record: bytes) -> frozenset[str]:
    """Return the absolute paths that were opened, but not by git, from the file of ``watching_opens``."""
    opened: set[tuple[str, str, str]] = set()
    program: dict[str, str] = {}
    parents: dict[str, str] = {}
    for line in record.decode("ascii", "replace").splitlines():
        if match := _OPENED.match(line):
            opened.add((match["thread"], program.get(match["thread"], ""), match["path"]))
        elif match := _EXECUTED.match(line):
            program[match["thread"]] = match["path"].rpartition("/")[2]
        elif match := _BEGUN.match(line):
            parents[match["child"]] = match["thread"]

    def of(thread: str) -> str:
        while thread not in program and thread in parents:
            thread = parents[thread]
        return program.get(thread, "")

    return frozenset(_unescaped(path) for thread, name, path in opened if (name or of(thread)) != _INDEXER)


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=StraceOptions,
    program=Program("strace", "apt-get install strace"),
    metrics=builtin_metrics("syscalls", "syscall_errors", "file_opens"),
    passes_stdout=True,
    invocations=invocations,
    # The list of opened files is not required, since it is empty for a program that opens none.
    outputs=leaves(_SUMMARY),
    parse=parse,
)
