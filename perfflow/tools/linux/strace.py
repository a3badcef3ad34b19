"""``strace``: every system call of a program and its children, counted by the kernel's own tracing interface.

The program is stopped twice at each call, so its time under strace means nothing and is not reported. With ``files``
the program runs a second time, of which only the calls that open files are written down.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import MOST_HOTSPOTS, Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves

NAME = "strace"

_C = {"LC_ALL": "C"}
_SUMMARY = "strace.txt"
_OPENS = "opens.txt"
# `?` lets pass a name that this architecture or this strace does not know.
_OPENING = "trace=?open,?openat,?openat2,?creat"
_HEAD = "% time seconds usecs/call calls errors syscall"
_RULE = re.compile(r"[- ]+\Z")
_ROW = re.compile(
    r" *[\d.,]{1,9} +(?P<seconds>[\d.,]{1,20})(?P<counts>(?: +\d{1,15}){1,3}) +(?P<call>\w+) *\Z", re.ASCII
)
# The sums are those of unrounded times, the rows are rounded to a microsecond.
_ROUNDED = 1e-6
# `1234  openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3`; -f puts the thread's number first.
_CALL = re.compile(
    r'(?P<thread>\d{1,10}) +(?P<call>\w+)\((?:\w+, )?"(?P<path>(?:[^"\\]|\\.)*)"[^"]*\) += (?P<result>.*)\Z'
)
_BEGUN = re.compile(r"(?P<thread>\d{1,10}) .*?(?= ?<unfinished \.\.\.>\Z)")
_RESUMED = re.compile(r"(?P<thread>\d{1,10}) +<\.\.\. \w+ resumed>")
_ENDED_OR_SIGNAL = re.compile(r"\d{1,10} +(?:(?P<ended>\+\+\+ .* \+\+\+)|--- .* ---)\Z")
_REFUSED = re.compile(r"strace: .*ptrace.*(?:Operation not permitted|Permission denied)", re.IGNORECASE)
_REMEDY = (
    "the system does not let it trace: in a container add `--cap-add=SYS_PTRACE`, elsewhere set "
    "kernel.yama.ptrace_scope to 1 or lower; nor may another tracer hold the program"
)


class Options(CommandOptions):
    """``with`` keys of ``uses: strace``."""

    files: bool = Field(
        default=False, description="Run the program a second time to count how often it opens each file."
    )


class _Row(NamedTuple):
    """One kind of call: wall time spent in it (s), how often, and how often it failed."""

    call: str
    seconds: float
    calls: int
    errors: int


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Count all calls of one run; with ``files`` write down what opens files in a second one."""
    options, strace = call.options, (call.program or "strace", "-f", "-o")
    counted = Invocation((*strace, str(call.folder / _SUMMARY), "-c", "-w", "--", *call.command), _C)
    opens = Invocation((*strace, str(call.folder / _OPENS), "-e", _OPENING, "--", *call.command), _C)
    return (counted, opens) if options.files else (counted,)


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Count calls and errors, and rank the kinds of call by how often; with ``files``, files by how often opened.

    Raises ToolOutputError if the table is cut or does not add up, and with a remedy where tracing is refused.
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


def _rows(text: str) -> list[_Row]:
    """Read the table. Raises ToolOutputError unless its rows add up to its last line."""
    head, *lines = [line for line in text.splitlines() if line.strip() and not _RULE.match(line)] or [""]
    if head.split() != _HEAD.split():
        raise ToolOutputError(f"{_SUMMARY} holds no table of system calls")
    *found, (last, whole, totals) = [_cells(line) for line in lines] or [("", 0.0, [])]
    if last != "total":
        raise ToolOutputError(f"{_SUMMARY} is cut short: it has no line of totals")
    # The average, which is of no use here, stands before the counts; errors are blank where there are none.
    rows = [_Row(call, seconds, counts[1], (counts[2:] or [0])[0]) for call, seconds, counts in found if counts[1:]]
    if len({row.call for row in rows}) < len(found) or any(row.errors > row.calls for row in rows):
        raise ToolOutputError(f"{_SUMMARY} is damaged: it holds a call twice, or more errors than calls")
    calls, errors = sum(row.calls for row in rows), sum(row.errors for row in rows)
    sums = [calls, errors] if errors else [calls]
    # Before version 5.8 the line of totals has no average.
    if not calls or totals not in (sums, [*totals[:1], *sums]):
        raise ToolOutputError(f"{_SUMMARY} is damaged: its rows do not add up to its totals")
    if abs(sum(row.seconds for row in rows) - whole) > _ROUNDED * (len(rows) + 1):
        raise ToolOutputError(f"{_SUMMARY} is damaged: its times do not add up to {whole:g} s")
    return rows


def _cells(line: str) -> tuple[str, float, list[int]]:
    """Take ``4.63  0.000327  9  34  13 openat`` apart: the call, the time in it (s), and the counts between."""
    match = tool_files.matched(_ROW, line, f"{_SUMMARY} holds a row that is none")
    seconds = tool_files.number_in(match["seconds"], "seconds")
    return tool_files.clean_name(match["call"]), seconds, [int(word) for word in match["counts"].split()]


def _hotspot(row: _Row, calls: int) -> Hotspot:
    errors = f", {row.errors:,} of them failed" if row.errors else ""
    cause = f"measured: {row.calls:,} calls{errors}, {row.seconds:.3g} s in them, waiting and tracing included"
    return Hotspot(row.call, row.calls / calls, "calls", NAME, cause=cause)


def _files(path: Path) -> tuple[Counter[str], Counter[str]]:
    """How often each file was opened, and how often in vain. Raises ToolOutputError for a line that is none."""
    opened, failed = Counter[str](), Counter[str]()
    begun: dict[str, str] = {}
    has_ended = False
    for line in tool_files.read_lines(path):
        if match := _BEGUN.match(line):
            begun[match["thread"]] = match[0]
            continue
        # A call that another thread's interrupted is written in two halves.
        halves = _RESUMED.match(line)
        whole = begun.pop(halves["thread"], "") + line[halves.end() :] if halves else line
        other = _ENDED_OR_SIGNAL.match(whole)
        has_ended = bool(other and other["ended"])
        if match := _CALL.match(whole):
            (opened if match["result"][:1].isdecimal() else failed)[_unescaped(match["path"])] += 1
        elif not other:
            raise ToolOutputError(f"{_OPENS} holds a line that is none: {whole[:80]!r}")
    if not has_ended:
        raise ToolOutputError(f"{_OPENS} is cut short: it does not end with the program")
    return opened, failed


def _unescaped(text: str) -> str:
    """Undo strace's escapes: an octal number with a backslash is one byte of UTF-8."""
    plain = text.encode("latin-1", "replace").decode("unicode_escape", "replace")
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    program=Program("strace", "apt-get install strace"),
    metrics=of_perfflow("syscalls", "syscall_errors", "file_opens"),
    passes_stdout=True,
    invocations=invocations,
    # A program that opens no file leaves an empty list of them.
    outputs=leaves(_SUMMARY),
    parse=parse,
)
