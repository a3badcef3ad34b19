"""``compute-sanitizer``: whether a CUDA program's accesses, races, reads and barriers on the GPU are right.

Its exit status is the program's, unless ``--error-exitcode`` says otherwise, so that its own report alone tells:
without the summary at its end nothing was checked, whatever the status was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import (
    Adapter,
    Call,
    CommandOptions,
    CommandText,
    Invocation,
    Program,
    Role,
    may_leave,
    words,
)
from perfflow.tools.nvidia import cuda_toolkit

_FILE = "sanitizer.txt"
# Rare among programs' own, so that the step's reason tells a finding from a program that failed.
_FOUND = "86"
_PREFIX = "========="
_TITLE = "COMPUTE-SANITIZER"
_ERRORS = re.compile(r"ERROR SUMMARY: (\d{1,12}) errors?$")
_RACES = re.compile(r"RACECHECK SUMMARY: (\d{1,12}) hazards? displayed \((\d{1,12}) errors?, (\d{1,12}) warnings?\)$")
_LEAKS = re.compile(r"LEAK SUMMARY: (\d{1,15}) bytes leaked in (\d{1,12}) allocations?$")
_SUMMARY = re.compile(r"[A-Z]+ SUMMARY:")
_WARNING = re.compile(r"Warning: (?P<what>Detected overflow.*)")
_INTERNAL = re.compile(r"Internal Sanitizer (?:Error|Warning): (?P<what>.*)|(?P<short>Error: No attachable process.*)")
_UNUSED = "Target application terminated before first instrumented API call"
_ABSENT = re.compile(r"Target application doesn't exist|Unable to (?:find|launch)")
# Lines of a finding that are not its first.
_CONTEXT = re.compile(r"^(?:at|by thread|Address|and |Saved host backtrace|Host Frame|Device Frame|Current Value)\b")


class Options(CommandOptions):
    """``with`` keys of ``uses: compute-sanitizer``."""

    check: Literal["memcheck", "racecheck", "initcheck", "synccheck"] = Field(
        default="memcheck",
        description="`memcheck` (accesses), `racecheck` (shared memory), `initcheck` or `synccheck` (barriers).",
    )
    leaks: bool = Field(default=False, description="Device memory that is not freed is an error, too: `memcheck`.")
    args: CommandText = Field(default="", description="Further arguments of compute-sanitizer.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command under the chosen check, its report apart from what it prints. Raises ToolOutputError."""
    options = cast(Options, call.options)
    if options.leaks and options.check != "memcheck":
        raise ToolOutputError("`leaks` belongs to the check memcheck")
    argv = (
        *(call.program or "compute-sanitizer", "--tool", options.check, "--error-exitcode", _FOUND),
        *("--log-file", str(call.folder / _FILE)),
        *(("--leak-check", "full") if options.leaks else ()),
        *words(options.args),
        *call.command,
    )
    return (Invocation(argv),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Check that the report is whole and finds nothing. Raises ToolOutputError with the first finding."""
    options = cast(Options, call.options)
    text = tool_files.read_whole(call.folder / _FILE, tool_files.last_words(call.folder))
    lines = [line.strip().removeprefix(_PREFIX).strip() for line in text.splitlines() if _PREFIX in line]
    if _TITLE not in lines:
        raise ToolOutputError(f"{_FILE} is not of compute-sanitizer")
    _require_run(lines)
    wanted = _RACES if options.check == "racecheck" else _ERRORS
    _require_none(lines, wanted)
    if options.leaks and not any(_LEAKS.match(line) for line in lines):
        raise ToolOutputError(f"{_FILE} is cut short: it has no summary of leaks")
    return Parsed(warnings=tuple(dict.fromkeys(_warnings(lines))))


def _require_run(lines: list[str]) -> None:
    """Raise ToolOutputError where nothing, or not everything, was checked."""
    for line in lines:
        if match := _INTERNAL.match(line):
            said = tool_files.clean_name(match["what"] or match["short"])[:200]
            raise ToolOutputError(f"it could not check everything: {said}")
        if line.endswith(_UNUSED):
            remedy = "without a GPU, `requires: {gpu: 1}` skips the step"
            raise ToolOutputError(f"the program ended before it used a GPU, so nothing was checked; {remedy}")
        if _ABSENT.match(line):
            raise ToolOutputError("the command is no program")


def _require_none(lines: list[str], wanted: re.Pattern[str]) -> None:
    """Raise ToolOutputError unless every summary is there and says that there is nothing."""
    summaries = [line for line in lines if _SUMMARY.match(line)]
    found = [pattern.match(line) for line in summaries for pattern in (_ERRORS, _RACES, _LEAKS)]
    if not any(wanted.match(line) for line in summaries) or sum(map(bool, found)) != len(summaries):
        raise ToolOutputError(f"{_FILE} is cut short: it has no summary")
    for pattern, group, what in ((_ERRORS, 1, "error"), (_RACES, 2, "race"), (_LEAKS, 1, "B of device memory leaked")):
        if count := sum(int(match[group]) for match in map(pattern.match, summaries) if match):
            plural = "s" if count > 1 and pattern is not _LEAKS else ""
            raise ToolOutputError(f"{count:,} {what}{plural}, first: {_first(lines)}")


def _first(lines: list[str]) -> str:
    """Return the first finding, with the place that follows it."""
    heads = [at for at, line in enumerate(lines) if line not in ("", _TITLE) and not _CONTEXT.match(line)]
    if not heads or _SUMMARY.match(lines[heads[0]]):
        return "the report does not say which"
    where = lines[heads[0] + 1] if heads[0] + 1 < len(lines) else ""
    told = f"{lines[heads[0]]} {where}" if where.startswith(("at ", "and ")) else lines[heads[0]]
    return tool_files.clean_name(told)[:240]


def _warnings(lines: list[str]) -> Iterator[str]:
    """Yield what makes the check weaker, and hazards that it takes for harmless."""
    for line in lines:
        if match := _WARNING.match(line):
            yield tool_files.clean_name(match["what"])[:200]
        elif (match := _RACES.match(line)) and int(match[3]):
            yield f"racecheck also warns ({int(match[3]):,}): {_first(lines)}"


ADAPTER = Adapter(
    name="compute-sanitizer",
    role=Role.CHECK,
    options=Options,
    program=Program("compute-sanitizer", "pip install nvidia-cuda-sanitizer-api", places=cuda_toolkit.PLACES),
    invocations=invocations,
    outputs=may_leave(_FILE),
    parse=parse,
)
