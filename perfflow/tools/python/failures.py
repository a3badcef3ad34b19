"""Error messages of tools as regular expressions, and the message with a remedy for each."""

from __future__ import annotations

from collections.abc import Mapping

_ALLOWED = (
    "run perfflow as the process's own user or as root; if /proc/sys/kernel/yama/ptrace_scope is 1 or more, run "
    "`sudo sysctl kernel.yama.ptrace_scope=0`; start a container with `--cap-add SYS_PTRACE`"
)
PY_SPY: Mapping[str, str] = {
    r"^Permission Denied: Try running|denied \(os error 13\)|not permitted \(os error 1\)": (
        f"py-spy is not permitted to read {{process}}: {_ALLOWED}"
    ),
    r"Check that the process is running|No such process \(os error 3\)": (
        "{process} does not exist: it has ended, or its number is wrong"
    ),
    r"^Error: Failed to find python version": (
        "{process} is not a Python program that py-spy supports: use `uses: perf` for other programs"
    ),
    r"^(?P<what>.{1,200} could not be started: .{1,80})$": "{what}",
}
"""Messages of py-spy 0.4."""
PYPERF: Mapping[str, str] = {
    r"No module named '?pyperf\b|pyperf is not installed": (
        "pyperf is not installed for this `python`: pip install pyperf"
    ),
    # The last line of a traceback.
    r"^(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)": "{what}",
}
PYTEST: Mapping[str, str] = {
    r"No module named '?pytest\b": "pytest is not installed for this `python`: pip install pytest",
    r"unrecognized arguments:.* --benchmark-only": (
        "pytest-benchmark is not installed for this `python`: pip install pytest-benchmark"
    ),
    r"Can't have both --benchmark-only and --benchmark-disable": (
        "benchmarks are disabled, for example by pytest-xdist: add `args: [-n0]`"
    ),
    r": error: (?P<what>\S.*)": "pytest did not start: {what}",
    r"^ERROR: (?P<what>\S.*)": "pytest did not start: {what}",
    r"no benchmarks have been run": "no benchmark ran: none matches, or all were skipped",
}
