"""``compute-sanitizer``: checks a CUDA program for invalid accesses, races, uninitialized reads and wrong barriers.

Its exit status is the program's, unless ``--error-exitcode`` sets another one, so only its report is reliable: without
the summary at the end nothing was checked, whatever the status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, CommandText, Invocation, Program, Role, may_leave
from perfflow.tools.nvidia import cuda_bench

_FILE = "sanitizer.txt"
# An exit status that programs rarely use, so that the step's reason distinguishes a finding from a failed program.
_FOUND = "86"
_PREFIX = "========="
_TITLE = "COMPUTE-SANITIZER"
_SUMMARY = re.compile(
    r"ERROR SUMMARY: (?P<error>\d{1,12}) errors?|LEAK SUMMARY: (?P<leak>\d{1,15}) bytes leaked in \d{1,12} allocations?"
    r"|RACECHECK SUMMARY: \d{1,12} hazards? displayed \((?P<race>\d{1,12}) errors?, (?P<harmless>\d{1,12}) warnings?\)"
)
_FINDINGS = {"error": "error", "race": "race", "leak": "B of device memory leaked"}
"""The text for each count of a summary."""
_NOT_CHECKED: Mapping[str, str] = {
    r"^(?:Internal Sanitizer (?:Error|Warning): |(?=Error: No attachable process))(?P<said>.*)": "compute-sanitizer "
    "could not check everything: {said}",
    "Target application terminated before first instrumented API call$": "the program ended before it used a GPU, so "
    "nothing was checked; add `requires: {{gpu: 1}}` to skip the step on machines without a GPU",
    "^(?:Target application doesn't exist|Unable to (?:find|launch))": "the command is not a program",
}
"""Lines of a report in which nothing, or not everything, was checked, and the reason for each."""
_OVERFLOW = re.compile(r"Warning: (Detected overflow.*)")
# The further lines of a finding.
_CONTEXT = re.compile(r"^(?:at|by thread|Address|and |Saved host backtrace|Host Frame|Device Frame|Current Value)\b")


class ComputeSanitizerOptions(CommandOptions):
    """``with`` keys of ``uses: compute-sanitizer``."""

    check: Literal["memcheck", "racecheck", "initcheck", "synccheck"] = Field(
        default="memcheck",
        description="`memcheck` (accesses), `racecheck` (races in shared memory), `initcheck` (uninitialized reads) or "
        "`synccheck` (barriers).",
    )
    leaks: bool = Field(default=False, description="Also report device memory that is never freed (`memcheck`).")
    args: CommandText = Field(default="", description="Additional arguments for compute-sanitizer.")


def invocations(call: Call[ComputeSanitizerOptions]) -> tuple[Invocation, ...]:
    """Run the command under the chosen check, with the report in a file. Raises ToolOutputError for wrong options."""
    options = call.options
    if options.leaks and options.check != "memcheck":
        raise ToolOutputError("`leaks` needs `check: memcheck`")
    argv = (
        *(call.program or "compute-sanitizer", "--tool", options.check, "--error-exitcode", _FOUND),
        *("--log-file", str(call.folder / _FILE)),
        *(("--leak-check", "full") if options.leaks else ()),
        *adapter.words(options.args),
        *call.command,
    )
    return (Invocation(argv),)


def parse(call: Call[ComputeSanitizerOptions], usage: Usage) -> Parsed:
    """Check that the report is complete and has no finding. Raises ToolOutputError with the first finding."""
    text = tool_files.read_whole(call.folder / _FILE, tool_files.last_words(call.folder))
    lines = [line.strip().removeprefix(_PREFIX).strip() for line in text.splitlines() if _PREFIX in line]
    if _TITLE not in lines:
        raise ToolOutputError(f"{_FILE} is not a report of compute-sanitizer")
    if reason := tool_files.why("\n".join(lines), _NOT_CHECKED):
        raise ToolOutputError(reason)
    summaries = [_SUMMARY.fullmatch(line) for line in lines if _is_summary(line)]
    matches = [match for match in summaries if match]
    counts = {kind: [int(match[kind]) for match in matches if match[kind]] for kind in _FINDINGS}
    if len(matches) < len(summaries) or not counts["race" if call.options.check == "racecheck" else "error"]:
        raise ToolOutputError(f"{_FILE} is cut short: it has no summary")
    for kind, what in _FINDINGS.items():
        if count := sum(counts[kind]):
            plural = "s" if count > 1 and kind != "leak" else ""
            raise ToolOutputError(f"{count:,} {what}{plural}, first: {_first(lines)}")
    if call.options.leaks and not counts["leak"]:
        raise ToolOutputError(f"{_FILE} is cut short: it has no summary of leaks")
    # Overflows weaken the check; racecheck's warnings are hazards that it considers harmless.
    warnings = [tool_files.clean_name(match[1])[:200] for match in map(_OVERFLOW.match, lines) if match]
    harmless = [int(match["harmless"]) for match in matches if int(match["harmless"] or 0)]
    warnings += [f"racecheck also warns ({count:,}): {_first(lines)}" for count in harmless]
    return Parsed(warnings=tuple(dict.fromkeys(warnings)))


def _is_summary(line: str) -> bool:
    return bool(re.match("[A-Z]+ SUMMARY:", line))


def _first(lines: list[str]) -> str:
    """Return the first finding, with the place that follows it."""
    heads = [at for at, line in enumerate(lines) if line not in ("", _TITLE) and not _CONTEXT.match(line)]
    if not heads or _is_summary(lines[heads[0]]):
        return "the report does not name it"
    head, *below = lines[heads[0] : heads[0] + 2]
    where = [line for line in below if line.startswith(("at ", "and "))]
    return tool_files.clean_name(" ".join([head, *where]))[:240]


ADAPTER = Adapter(
    name="compute-sanitizer",
    role=Role.CHECK,
    options=ComputeSanitizerOptions,
    program=Program("compute-sanitizer", "pip install nvidia-cuda-sanitizer-api", places=cuda_bench.TOOLKIT_PLACES),
    invocations=invocations,
    outputs=may_leave(_FILE),
    parse=parse,
)
