"""Why py-spy could not look into a process, by what it says on standard error, and what helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from perfflow.tools import tool_files

_ALLOWED = (
    "run perfflow as the process's own user or as root; where /proc/sys/kernel/yama/ptrace_scope is 1 or more, "
    "`sudo sysctl kernel.yama.ptrace_scope=0`; in a container, start it with `--cap-add SYS_PTRACE`"
)
# What py-spy 0.4 says, and what that means; the first that is found counts.
_REASONS: Sequence[tuple[re.Pattern[str], str]] = [
    (
        re.compile(
            r"^Permission Denied: Try running|denied \(os error 13\)|not permitted \(os error 1\)", re.MULTILINE
        ),
        f"py-spy was not allowed to look into {{process}}: {_ALLOWED}",
    ),
    (
        re.compile(r"Check that the process is running|No such process \(os error 3\)"),
        "there is no {process}: it has ended, or its number is wrong",
    ),
    (
        re.compile(r"^Error: Failed to find python version", re.MULTILINE),
        "{process} is no Python program that py-spy knows: `uses: perf` can look into others",
    ),
    (re.compile(r"^(?P<what>.{1,200} could not be started: .{1,80})$", re.MULTILINE), "{what}"),
]


def said(folder: Path, pid: int | None) -> str:
    """Return the reason that py-spy gave for not starting, with a remedy; '' where it gave none that is known."""
    words = tool_files.last_bytes(folder)
    process = "the program" if pid is None else f"process {pid}"
    for pattern, text in _REASONS:
        if match := pattern.search(words):
            return tool_files.clean_name(text.format(process=process, **match.groupdict()))
    return ""
