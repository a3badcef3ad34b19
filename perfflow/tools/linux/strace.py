"""``strace``: every system call of a program and its children, counted by the kernel's own tracing interface.

The program is stopped twice at each call, so its time under strace means nothing and is not reported. With ``files``
the program runs a second time, of which only the calls that open files are written down.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role

NAME = "strace"

_SUMMARY = "strace.txt"
_OPENS = "opens.txt"
_KEPT = 20
_OPENING = ("open", "openat", "openat2", "creat")
_HEAD = "% time seconds usecs/call calls errors syscall"
_RULE = re.compile(r"[- ]+\Z")
# The sums are those of unrounded times, the rows are rounded to a microsecond.
_ROUNDED = 1e-6
# `1234  openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3`; -f puts the thread's number first.
_CALL = re.compile(
    r'(?P<thread>\d{1,10}) +(?P<call>\w+)\((?:\w+, )?"(?P<path>(?:[^"\\]|\\.)*)"[^"]*\) += (?P<result>.*)\Z'
)
_BEGUN = re.compile(r"(?P<thread>\d{1,10}) .*?(?= ?<unfinished \.\.\.>\Z)")
_RESUMED = re.compile(r"(?P<thread>\d{1,10}) +<\.\.\. \w+ resumed>")
_ENDED = re.compile(r"\d{1,10} +\+\+\+ .* \+\+\+\Z")
_SIGNAL = re.compile(r"\d{1,10} +--- .* ---\Z")
_REFUSED = re.compile(r"strace: .*ptrace.*(?:Operation not permitted|Permission denied)", re.IGNORECASE)
_REMEDY = (
    "the system does not let it trace: in a container add `--cap-add=SYS_PTRACE`, elsewhere set "
    "kernel.yama.ptrace_scope to 1 or lower; nor may another tracer hold the program"
)


class Options(CommandOptions):
    """``with`` keys of ``uses: strace``."""

    files: bool = Field(default=False, description="Run it a second time to see which files it opens, and how often.")


@dataclass(frozen=True, slots=True)
class _Row:
    """One kind of call: wall time spent in it (s), how often, and how often it failed."""

    call: str
    seconds: float
    calls: int
    errors: int


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Count all calls of one run; with ``files`` write down what opens files in a second one."""
    program = call.program or "strace"
    counted = Invocation((program, "-c", "-w", "-f", "-o", str(call.folder / _SUMMARY), "--", *call.command), _C)
    if not cast(Options, call.options).files:
        return (counted,)
    # `?` lets pass a name that this architecture or this strace does not know.
    traced = "trace=" + ",".join(f"?{name}" for name in _OPENING)
    opens = (program, "-f", "-e", traced, "-o", str(call.folder / _OPENS), "--", *call.command)
    return (counted, Invocation(opens, _C))


_C = {"LC_ALL": "C"}


def outputs(call: Call) -> tuple[Path, ...]:
    """The table of calls; a program that opens no file leaves an empty list of them."""
    return (call.folder / _SUMMARY,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Count calls and errors, and rank the kinds of call by how often; with ``files``, files by how often opened.

    Raises ToolOutputError if the table is cut or does not add up, and with a remedy where tracing is refused.
    """
    if not tool_files.left(call.folder / _SUMMARY) and _REFUSED.search(tool_files.last_bytes(call.folder)):
        raise ToolOutputError(_REMEDY)
    rows = _rows(tool_files.read_whole(call.folder / _SUMMARY, "the program did not start, or strace was killed"))
    calls = sum(row.calls for row in rows)
    readings = [Reading("syscalls", calls), Reading("syscall_errors", sum(row.errors for row in rows))]
    if not cast(Options, call.options).files:
        ranked = sorted(rows, key=lambda row: (-row.calls, row.call))[:_KEPT]
        return Parsed(tuple(readings), tuple(_hotspot(row, calls) for row in ranked if row.calls))
    opened, failed = _files(call.folder / _OPENS)
    total = sum(opened.values())
    readings.append(Reading("file_opens", total))
    spots = sorted(opened.items(), key=lambda item: (-item[1], item[0]))[:_KEPT]
    return Parsed(tuple(readings), tuple(_file(path, count, total) for path, count in spots), warnings=_said(failed))


def _rows(text: str) -> list[_Row]:
    """Read the table. Raises ToolOutputError unless its rows add up to its last line."""
    lines = [line for line in text.splitlines() if line.strip() and not _RULE.match(line)]
    if not lines or lines[0].split() != _HEAD.split():
        raise ToolOutputError(f"{_SUMMARY} holds no table of system calls")
    rows = [_row(line) for line in lines[1:]]
    if not rows or rows[-1].call != "total":
        raise ToolOutputError(f"{_SUMMARY} is cut short: it has no line of totals")
    total = rows.pop()
    if len({row.call for row in rows}) < len(rows):
        raise ToolOutputError(f"{_SUMMARY} is damaged: it holds a call twice")
    if (sum(row.calls for row in rows), sum(row.errors for row in rows)) != (total.calls, total.errors):
        raise ToolOutputError(f"{_SUMMARY} is damaged: its rows do not add up to its totals")
    seconds = sum(row.seconds for row in rows)
    if abs(seconds - total.seconds) > _ROUNDED * (len(rows) + 1) or not total.calls:
        raise ToolOutputError(f"{_SUMMARY} is damaged: its times do not add up to {total.seconds:g} s")
    return rows


def _row(line: str) -> _Row:
    """Take ``4.63  0.000327  9  34  13 openat`` apart; errors are blank where there are none."""
    words = line.split()
    if len(words) not in (5, 6):
        raise ToolOutputError(f"{_SUMMARY} holds a row that is none: {line.strip()[:80]!r}")
    counts = [_count(word) for word in words[3:-1]]
    # Share and average follow from the others.
    tool_files.number_in(words[0], "share")
    tool_files.number_in(words[2], "time a call")
    calls, errors = counts[0], counts[1] if len(counts) == 2 else 0
    if errors > calls or not words[-1].isidentifier():
        raise ToolOutputError(f"{_SUMMARY} holds a row that cannot be: {line.strip()[:80]!r}")
    return _Row(tool_files.clean_name(words[-1]), tool_files.number_in(words[1], "seconds"), calls, errors)


def _count(word: str) -> int:
    if not word.isascii() or not word.isdecimal() or len(word) > 15:
        raise ToolOutputError(f"{_SUMMARY} holds {word[:40]!r} where a count has to be")
    return int(word)


def _hotspot(row: _Row, calls: int) -> Hotspot:
    errors = f", {row.errors:,} of them failed" if row.errors else ""
    cause = f"measured: {row.calls:,} calls{errors}, {row.seconds:.3g} s in them, waiting and tracing included"
    return Hotspot(row.call, row.calls / calls, "calls", NAME, cause=cause)


def _file(path: str, count: int, total: int) -> Hotspot:
    times = "once" if count == 1 else f"{count:,} times"
    shown = tool_files.clean_name(path)
    return Hotspot(shown, count / total, "opens", NAME, cause=f"measured: opened {times}")


def _files(path: Path) -> tuple[Counter[str], Counter[str]]:
    """How often each file was opened, and how often in vain. Raises ToolOutputError for a line that is none."""
    opened: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    begun: dict[str, str] = {}
    has_ended = False
    for line in tool_files.read_lines(path):
        if match := _BEGUN.match(line):
            begun[match["thread"]] = match[0]
            continue
        # A call that another thread's interrupted is written in two halves.
        halves = _RESUMED.match(line)
        whole = begun.pop(halves["thread"], "") + line[halves.end() :] if halves else line
        has_ended = bool(_ENDED.match(whole))
        if match := _CALL.match(whole):
            came_to_nothing = not match["result"][:1].isdecimal()
            (failed if came_to_nothing else opened)[_unescaped(match["path"])] += 1
        elif not has_ended and not _SIGNAL.match(whole):
            raise ToolOutputError(f"{_OPENS} holds a line that is none: {whole[:80]!r}")
    if not has_ended:
        raise ToolOutputError(f"{_OPENS} is cut short: it does not end with the program")
    return opened, failed


def _unescaped(text: str) -> str:
    """Undo strace's escapes: an octal number with a backslash is one byte of UTF-8."""
    plain = text.encode("latin-1", "replace").decode("unicode_escape", "replace")
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


def _said(failed: Counter[str]) -> tuple[str, ...]:
    """Say how many attempts failed, and on which file most of them."""
    if not failed:
        return ()
    path, most = min(failed.items(), key=lambda item: (-item[1], item[0]))
    shown = tool_files.clean_name(path)[:120]
    return (f"{sum(failed.values()):,} attempts to open a file failed, {most:,} of them on {shown}",)


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    program=Program("strace", "apt-get install strace"),
    metrics=of_perfflow("syscalls", "syscall_errors", "file_opens"),
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
