"""``pyperf``: the benchmarks of a script that uses pyperf's Runner, or one statement.

perfflow itself starts fresh processes and alternates between the two sides, so each call of a comparison takes short
values once: a script runs in one process, with a fork for each benchmark (see drivers/pyperf_script.py), a statement in
one worker. ``--copy-env`` gives the workers the whole environment; otherwise the variables of a candidate would not
reach the measured code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import adapter, pacing, tool_files
from perfflow.tools.adapter import TRACE, Adapter, Call, CommandText, Effort, Invocation, Role, may_leave, words
from perfflow.tools.python import failures
from perfflow.tools.python.pyperf_json import FORMAT

_FILE, _DOUBLED = "pyperf.json", "doubled.json"
_CHECKED = "check.txt"
_DRIVER = Path(__file__).with_name("drivers") / "pyperf_script.py"
# One worker, and values of 5 ms.
_BRIEF = ("--processes=1", "--warmups=1", "--min-time=0.005")
# For a profiler: a second in values of 0.1 s.
_SAMPLED = ("--quiet", "--copy-env", "--processes=1", "--warmups=0", "--min-time=0.1", "--values=10")
# What calls the benchmark, and what that is called in pyperf's timeit.
_HARNESS = r"(?:.*/)?pyperf/_(?:runner|timeit)\.py:(?:.*\.)?(?:task_func|main|time_func)\b|<timeit-src>:inner\b"
_FEWEST, _MOST = 3, 20
# Seconds.
_TOGETHER = 0.2
_METRICS = ("time", "cpu", "uncontended", "rss")


class Options(adapter.Options):
    """``with`` keys of ``uses: pyperf``: a script or a statement."""

    script: str = Field(default="", description="A Python script with a pyperf.Runner.")
    stmt: str = Field(default="", description="A Python statement, as for `pyperf timeit`.")
    setup: list[str] | str = Field(default="", description="With `stmt`: statements to run before, untimed.")
    python: str = Field(default="python3", min_length=1, description="Python interpreter with pyperf installed.")
    args: CommandText = Field(default="", description="Additional arguments for pyperf or the script.")
    memory: bool = Field(default=False, description="Measure the memory of the process instead of time.")

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if bool(self.script) == bool(self.stmt):
            raise ValueError("set either `script` or `stmt`")
        return self


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Run the script, some of its benchmarks, or time the statement. A whole run ends with ``pyperf check``."""
    options = call.options
    brief = call.effort is not Effort.NORMAL or not options.script
    common = (
        *("--quiet", "--copy-env", f"--output={call.folder / _FILE}"),
        *((*_BRIEF, f"--values={pacing.samples(call.pace, _FEWEST, _MOST)}") if brief else ()),
        *(("--track-memory",) if options.memory else ()),
        *words(options.args),
    )
    if options.stmt:
        setup = [options.setup] if isinstance(options.setup, str) else options.setup
        lines = (f"--setup={line}" for line in setup if line)
        return (Invocation((options.python, "-m", "pyperf", "timeit", *common, *lines, "--", options.stmt)),)
    if call.effort is Effort.SAMPLED:
        return (Invocation((*_driver(call, "sampled"), *_SAMPLED, *words(options.args), *_chosen(call))),)
    run = Invocation((*_driver(call, "brief" if brief else "run"), *common, *_chosen(call)))
    if brief:
        return (run,)
    check = (options.python, "-m", "pyperf", "check", str(call.folder / _FILE))
    return (run, Invocation(check, stdout=_CHECKED))


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Read the values of every worker, in s per loop or bytes, without those of warm-ups and calibration.

    Raises ToolOutputError if a worker failed, if the file is missing or invalid, or if a benchmark has no value.
    """
    said = tool_files.last_bytes(call.folder)
    reason = tool_files.why(said, failures.PYPERF) or tool_files.last_words(call.folder) or "the script did not finish"
    if "failed with exit code" in said:
        raise ToolOutputError(reason)
    found = FORMAT.read(call.folder / _FILE, reason)
    if other := [metric for _, metric in found.benchmarks if metric not in _METRICS]:
        raise ToolOutputError(f"{_FILE} contains values that are neither seconds nor bytes: {other[0]}")
    parsed = found.parsed(*_instabilities(call.folder), *_doubled(call.folder))
    if call.options.script:
        return parsed
    # pyperf calls a statement ``timeit``.
    return replace(parsed, readings=tuple(replace(reading, benchmark="") for reading in parsed.readings))


def listing(call: Call[Options]) -> Invocation | None:
    """Return the process that prints the names of a script's benchmarks; a statement is one benchmark."""
    if not call.options.script:
        return None
    return Invocation((*_driver(call, "list"), *words(call.options.args)))


def tracing(call: Call[Options]) -> Invocation:
    """Return the process that records what each benchmark of a script executes and reads."""
    settings = f"--perfflow-settings={call.folder / TRACE}"
    return Invocation((*_driver(call, "trace"), *words(call.options.args), settings))


def _chosen(call: Call) -> tuple[str, ...]:
    return (f"--perfflow-chosen={json.dumps(call.chosen)}",) if call.chosen else ()


def _driver(call: Call[Options], mode: str) -> tuple[str, ...]:
    return (call.options.python, str(_DRIVER), mode, call.options.script)


def _doubled(folder: Path) -> Iterator[str]:
    """Yield a warning about each name that two benchmarks of the script have."""
    for name in json.loads(tool_files.first_text(folder, _DOUBLED) or "[]"):
        yield f"the script has two benchmarks called {tool_files.clean_name(str(name))}; only the first is measured"


def _instabilities(folder: Path) -> Iterator[str]:
    """Yield what ``pyperf check`` finds unstable. It prints list items below the underlined name of a benchmark."""
    lines, name = tool_files.first_text(folder, _CHECKED).splitlines(), ""
    for before, line in zip(["", *lines], lines, strict=False):
        if line and not line.strip("-="):
            name = tool_files.clean_name(before)[:80]
        elif line.startswith("* "):
            yield tool_files.clean_name(f"pyperf finds {name or 'it'} unstable: {line[2:]}")[:300]


ADAPTER = Adapter(
    "pyperf",
    Role.MEASURE,
    invocations,
    parse,
    options=Options,
    metrics=builtin_metrics(*_METRICS),
    suite=True,
    together=_TOGETHER,
    harness=_HARNESS,
    listing=listing,
    tracing=tracing,
    outputs=may_leave(_FILE, _DOUBLED),
)
