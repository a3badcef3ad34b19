"""``pyperf``: the benchmarks of a script that uses pyperf's Runner, or one statement.

perfflow takes the fresh processes itself and in turns of the two sides, so that a call of a comparison has one worker
of short values. The workers are given the whole environment (``--copy-env``), without which the variables of a
candidate would not reach what is measured.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

from pydantic import Field, model_validator

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import BATCH, Parsed, Reading, Usage, reading_of_undisturbed
from perfflow.tools import protocol, tool_files
from perfflow.tools.protocol import Call, CommandText, Effort, Invocation, Role

NAME = "pyperf"
ROLE = Role.MEASURE
DETERMINISTIC = False
SUITE = True
PROGRAM = ""
VERSION_ARGV: tuple[str, ...] = ()
INSTALL = ""
METRICS = frozenset({"time", "rss"})
INTERPRETER = ""

_FILE = "pyperf.json"
_LIST = "benchmarks.txt"
_CHECKED = "check.txt"
_DRIVER = Path(__file__).with_name("drivers") / "pyperf_script.py"
_ONLY = "--perfflow-only="
# One worker, and twenty values of 5 ms, the better ones of which are undisturbed.
_BRIEF = ("--processes=1", "--values=20", "--warmups=1", "--min-time=0.005")
_UNITS: Mapping[str, str] = {"second": "time", "byte": "rss"}
_NOT_INSTALLED = re.compile(r"No module named '?pyperf\b|pyperf is not installed")
_WORKER_FAILED = re.compile(r"failed with exit code")
# How Python ends a traceback.
_RAISED = re.compile(r"^(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)", re.MULTILINE)


class Options(protocol.Options):
    """``with`` keys of ``uses: pyperf``: a script or a statement."""

    script: str = Field(default="", description="A Python script with a pyperf.Runner.")
    stmt: str = Field(default="", description="A Python statement, as for `pyperf timeit`.")
    setup: list[str] | str = Field(default="", description="With `stmt`: what runs before, untimed.")
    python: str = Field(default="python3", min_length=1, description="The interpreter that has pyperf.")
    args: CommandText = Field(default="", description="Further arguments of pyperf or of the script.")
    memory: bool = Field(default=False, description="Track the memory of the process instead of time.")

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if bool(self.script) == bool(self.stmt):
            raise ValueError("name either a `script` or a `stmt`")
        return self


OPTIONS = Options


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the script, ``only`` one of its benchmarks, or time the statement; of a whole run pyperf tells its doubts."""
    options = cast(Options, call.options)
    brief = call.effort is Effort.BRIEF or not options.script
    common = (
        *("--quiet", "--copy-env", f"--output={call.folder / _FILE}"),
        *(_BRIEF if brief else ()),
        *(("--track-memory",) if options.memory else ()),
        *_words(options.args),
    )
    if options.stmt:
        setup = [options.setup] if isinstance(options.setup, str) else options.setup
        lines = (f"--setup={line}" for line in setup if line)
        return (Invocation((options.python, "-m", "pyperf", "timeit", *common, *lines, "--", options.stmt)),)
    only = (f"{_ONLY}{call.only}",) if call.only else ()
    run = Invocation((options.python, str(_DRIVER), "run", options.script, *common, *only))
    if brief:
        return (run,)
    check = (options.python, "-m", "pyperf", "check", str(call.folder / _FILE))
    return (run, Invocation(check, stdout=_CHECKED))


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON file if it is there; ``parse`` says why it is not."""
    return tool_files.left(call.folder / _FILE)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the values of every worker, in s per loop or bytes; those of warm-ups and calibration are left aside.

    Raises ToolOutputError if a worker failed, or if the file is missing or nonsense or a benchmark has no value.
    """
    said = tool_files.last_bytes(call.folder)
    if _WORKER_FAILED.search(said):
        raise ToolOutputError(_reason(call.folder, said))
    content = tool_files.read_json(call.folder / _FILE, _reason(call.folder, said))
    benchmarks = content.get("benchmarks") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(benchmarks, list) or not benchmarks:
        raise ToolOutputError(f"{_FILE} holds no benchmark")
    named = bool(cast(Options, call.options).script)
    readings = [_reading(benchmark, _map(content, "metadata"), named=named) for benchmark in benchmarks]
    names = [reading.benchmark for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)[:80]!r}")
    return Parsed(tuple(readings), warnings=tuple(_doubts(call.folder)))


def enumerate(call: Call) -> Invocation | None:
    """Return the process that prints the names of a script's benchmarks; a statement is one benchmark."""
    options = cast(Options, call.options)
    if not options.script:
        return None
    argv = (options.python, str(_DRIVER), "list", options.script, *_words(options.args))
    return Invocation(argv, stdout=_LIST)


def _words(text: str | Sequence[str]) -> Sequence[str]:
    return shlex.split(text) if isinstance(text, str) else text


def _reason(folder: Path, said: str) -> str:
    """Return why there is no whole file: what a worker raised first, else pyperf's last line."""
    if _NOT_INSTALLED.search(said):
        return "pyperf is not installed for this `python`: pip install pyperf"
    if raised := _RAISED.search(said):
        return tool_files.clean_name(raised["what"])[:200]
    return tool_files.last_words(folder) or "the script did not finish"


def _reading(benchmark: object, common: Mapping[str, object], *, named: bool) -> Reading:
    """Read one benchmark. Metadata are those of the suite, the benchmark and a run; the inner ones win."""
    runs = benchmark.get("runs") if isinstance(benchmark, dict) else None
    if not isinstance(benchmark, dict) or not isinstance(runs, list):
        raise ToolOutputError(f"{_FILE} holds a benchmark without runs")
    known = {**common, **_map(benchmark, "metadata")}
    name = known.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolOutputError(f"{_FILE} holds a benchmark without a name")
    shown = tool_files.clean_name(name)
    unit = known.get("unit", "second")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise ToolOutputError(f"the unit of {shown[:80]} is {ascii(unit)[:20]}, neither second nor byte")
    values, loops = _values(runs, known, shown)
    if not values:
        raise ToolOutputError(f"{_FILE} holds no value of {shown[:80]}")
    reading = reading_of_undisturbed(_UNITS[unit], values, shown if named else "")
    if loops > 1 and unit == "second":
        return replace(reading, inner={**reading.inner, BATCH: loops})
    return reading


def _values(runs: Sequence[object], known: Mapping[str, object], name: str) -> tuple[list[float], float]:
    """Return the values of all runs, and how many loops one of them is the mean of."""
    values: list[float] = []
    loops = 1.0
    for run in runs:
        found = run.get("values", []) if isinstance(run, dict) else None
        if not isinstance(run, dict) or not isinstance(found, list):
            raise ToolOutputError(f"{_FILE} holds a run of {name[:80]} that is none")
        values += [tool_files.positive(value, f"value of {name[:80]}") for value in found]
        facts = {**known, **_map(run, "metadata")}
        outer, inner = (tool_files.positive(facts.get(key, 1), key) for key in ("loops", "inner_loops"))
        loops = max(loops, outer * inner)
    return values, loops


def _map(content: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise ToolOutputError(f"{_FILE}: {key} is no object")
    return found


def _doubts(folder: Path) -> Iterator[str]:
    """Return what ``pyperf check`` finds unstable: points below the benchmark's name, which is underlined."""
    path = folder / _CHECKED
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    name = ""
    for before, line in zip(["", *lines], lines, strict=False):
        if line and not line.strip("-="):
            name = tool_files.clean_name(before)[:80]
        elif line.startswith("* "):
            yield tool_files.clean_name(f"pyperf finds {name or 'it'} unstable: {line[2:]}")[:300]
