"""What an unknown name probably means: the word of another program, or the known name with the most similar letters.

There is one table for each kind of name: commands, tools, stages, keys and statistics.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from itertools import islice

COMMANDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("benchmark", "bench", "measure", "time", "perf", "profile", "record", "start"), ("run",)),
    **dict.fromkeys(("exec", "execute"), ("run",)),
    **dict.fromkeys(("criterion", "pytest", "google-benchmark", "new", "create", "install"), ("init",)),
    "setup": ("init", "doctor"),
    "hyperfine": ("compare",),
    **dict.fromkeys(("diff", "cmp", "vs", "benchstat"), ("compare",)),
    **dict.fromkeys(("test", "ci", "regression", "regressions"), ("gate",)),
    "check": ("gate", "validate"),
    "lint": ("validate",),
    "verify": ("gate", "receipt verify"),
    **dict.fromkeys(("trend", "trends", "log", "timeline", "continuous"), ("history",)),
    **dict.fromkeys(("stat", "stats", "summary", "html", "open"), ("report",)),
    **dict.fromkeys(("save", "snapshot"), ("baseline save",)),
    **dict.fromkeys(("format", "prettier"), ("fmt",)),
    **dict.fromkeys(("ls", "tools", "workflows"), ("list",)),
    **dict.fromkeys(("info", "explain", "describe", "man", "help"), ("show", "--help")),
    **dict.fromkeys(("gc", "prune", "rm", "remove", "cleanup", "purge"), ("clean",)),
    **dict.fromkeys(("comment", "upload", "push", "post"), ("publish",)),
    **dict.fromkeys(("noise", "tune", "system"), ("doctor", "calibrate")),
    "dry-run": ("plan",),
    "blame": ("bisect",),
    "version": ("--version",),
}
"""Commands of other programs -> commands of perfflow, with their arguments; the likeliest first."""

TOOLS: Mapping[str, str] = {
    **dict.fromkeys(("criterion", "bench", "benches", "cargo", "cargo bench", "divan", "libtest"), "cargo-bench"),
    **dict.fromkeys(("flamegraph", "flame-graph", "flame"), "cargo-flamegraph"),
    **dict.fromkeys(("gbench", "googlebenchmark", "google-bench", "benchmark"), "google-benchmark"),
    **dict.fromkeys(("pytest", "pytest-bench", "pytest-benchmarks"), "pytest-benchmark"),
    **dict.fromkeys(("time", "run", "shell", "bash", "sh", "cmd", "exec", "program", "binary", "timing"), "command"),
    **dict.fromkeys(("perf-record", "linux-perf", "perf record"), "perf"),
    **dict.fromkeys(("perf stat", "counters"), "perf-stat"),
    **dict.fromkeys(("valgrind", "kcachegrind"), "callgrind"),
    **dict.fromkeys(("heap", "memory", "ms-print"), "massif"),
    **dict.fromkeys(("nsight", "nsight-systems", "nvprof"), "nsys"),
    **dict.fromkeys(("nsight-compute",), "ncu"),
    "perf-bench": "pyperf",
    "diff": "same-output",
    "airspeed-velocity": "asv",
}
"""Programs and libraries, and other names of them -> the tool that runs them."""

STAGES: Mapping[str, str] = {
    **dict.fromkeys(("bench", "benches", "benchmark", "benchmarks", "benchmarking"), "baseline"),
    **dict.fromkeys(("measure", "measures", "measuring", "measurement", "measurements"), "baseline"),
    **dict.fromkeys(("timing", "timings", "perf", "performance"), "baseline"),
}
"""Names that mean a predefined stage, unless the stage has a role."""

KEYS: Mapping[str, str] = {
    **dict.fromkeys(("depends", "deps", "depends-on", "requires-steps", "after"), "needs"),
    **dict.fromkeys(("script", "cmd", "cmds", "command", "commands", "shell-command", "exec", "execute"), "run"),
    **dict.fromkeys(("inputs", "vars", "parameters"), "params"),
    **dict.fromkeys(("variables", "environment"), "env"),
    **dict.fromkeys(("dir", "cwd", "workdir"), "working-directory"),
    "timeout-minutes": "timeout",
    **dict.fromkeys(("allow-failure", "ignore-error"), "continue-on-error"),
    "retry": "retries",
    "version": "perfflow",
    **dict.fromkeys(("jobs", "tasks"), "stages"),
    "when": "if",
    "strategy": "matrix",
    **dict.fromkeys(("action", "tool"), "uses"),
    **dict.fromkeys(("args", "options"), "with"),
    "warm-up": "warmup",
    **dict.fromkeys(("benchmarks", "bench"), "benchmark"),
    **dict.fromkeys(("setup", "before", "before-each", "pre"), "prepare"),
    **dict.fromkeys(("iterations", "samples", "repeat", "repetitions", "min-runs"), "runs"),
    **dict.fromkeys(("warn", "warning", "warn-at"), "concern"),
    **dict.fromkeys(("fail", "failure", "error", "alert", "max-regression", "fail-at"), "action"),
    **dict.fromkeys(("noise", "min", "ignore-below"), "floor"),
    **dict.fromkeys(("skip", "exclude", "ignored"), "ignore"),
}
"""Keys of other programs, in kebab-case -> keys of perfflow. The first that the place of the key has is meant."""

STATISTICS: Mapping[str, str] = {"median": "p50"}
"""Other names of a statistic that are as good as perfflow's."""

_SHOWN = 14
_SEARCHED = 1000
"""Most names that are compared with a misspelt one; each comparison takes about 20 μs."""
_LONGEST = 300
"""Longest name, in characters, that is compared."""


def nearest(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """Return the known name that is most similar to ``name``, or '' if none is similar enough.

    cutoff: the least similarity, 0 to 1.
    """
    return next(iter(nearest_of(name, known, 1, cutoff)), "")


def nearest_of(name: str, known: Collection[str], most: int, cutoff: float = 0.5) -> list[str]:
    """Return at most ``most`` known names that are similar to ``name``, the most similar one first."""
    if len(name) > _LONGEST:
        return []
    return difflib.get_close_matches(name, list(islice(known, _SEARCHED)), n=most, cutoff=cutoff)


def did_you_mean(name: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a hint with the most similar known name, else with all of them after ``otherwise``."""
    near = nearest(name, known)
    shown = ", ".join(islice(known, _SHOWN)) + (", ..." if len(known) > _SHOWN else "")
    return f"did you mean `{near}`?" if near else f"{otherwise}: {shown or 'none'}" if otherwise else ""


def command_meant(name: str, known: Collection[str]) -> list[str]:
    """Return the commands that an unknown one probably means, with their arguments; the likeliest first."""
    near = nearest(name, known)
    return list(COMMANDS.get(name.lower(), ())) or ([near] if near else [])


def tool_meant(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """Return the tool that an unknown one probably means, or ''. cutoff: the least similarity, 0 to 1."""
    found = TOOLS.get(name.lower().replace("_", "-"), "")
    return found or nearest(name, known, cutoff)


def key_meant(key: str, known: Collection[str]) -> str:
    """Return the key that was probably meant: another program's word, another spelling, or similar letters; else ''."""
    spelled = {squeezed(name): name for name in known}
    meant = KEYS.get(key.lower().replace("_", "-"), "")
    return spelled.get(squeezed(key), "") or (meant if meant in known else "") or nearest(key, known, 0.6)


def is_habit(key: str, meant: str) -> bool:
    """Return whether ``key`` is another program's word or another spelling of ``meant``, not only similar."""
    return KEYS.get(key.lower().replace("_", "-")) == meant or squeezed(key) == squeezed(meant)


def kebab(name: str) -> str:
    """Return the key in YAML of a field: ``sample-size`` for ``sample_size``, ``if`` for ``if_``."""
    return name.rstrip("_").replace("_", "-")


def squeezed(key: str) -> str:
    """Return a key without what differs between spellings."""
    return key.replace("_", "").replace("-", "").lower()
