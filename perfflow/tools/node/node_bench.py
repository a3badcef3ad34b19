"""``node-bench``: run the benchmarks of a Node.js file with tinybench or mitata, or those of ``vitest bench``.

They run for a fixed time, so their programs take as long whatever the code does: each benchmark's own samples count.
tinybench and mitata have neither a list nor a filter. ``drivers/node_bench.mjs``, imported before the file, adds both,
and sets the time. vitest has a filter; its list is that of a run, and its time is only in the source. Of a process, the
median of its samples counts: a mean contains the time slices of other programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_distribution
from perfflow.tools import adapter, parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, Effort, Invocation, Program, Role, Suite
from perfflow.tools.parsed_output import Json, Positive, Whole

NODE = Program("node", "apt-get install nodejs")
DRIVERS = Path(__file__).parent / "drivers"
HARNESS = r".*/node_modules/(?:tinybench|mitata|vitest|@vitest)/"
_DRIVER = str(DRIVERS / "node_bench.mjs")
_VITEST = "node_modules/vitest/vitest.mjs"
_SECONDS = {Effort.NORMAL: 0.5, Effort.BRIEF: 0.1, Effort.SAMPLED: 1.0}
_TOGETHER = 0.02
_NANO, _MILLI = 1e-9, 1e-3
_SPECIAL = re.compile(r"[.*+?^${}()|\[\]\\/]")
# Node prints the message of an error that nobody caught after the line of the source.
_ERROR = re.compile(r"^((?:\w*Error|Error \[\w+\]): .*)", re.MULTILINE)


class NodeBenchOptions(adapter.Options):
    """``with`` keys of ``uses: node-bench``."""

    file: list[str] | str = Field(
        default="", description="Files with benchmarks of tinybench or mitata (default: those of `vitest bench`)."
    )
    node_args: adapter.CommandText = Field(
        default="", description="Options of node, such as `--import tsx` for TypeScript, or `--expose-gc`."
    )
    args: adapter.CommandText = Field(default="", description="Further arguments of the file, or of `vitest bench`.")


class _NodeFigures(Json):
    """Figures of the samples of one iteration, in ns; ``n`` is their number."""

    min: Positive
    p50: Positive
    p99: Positive
    max: Positive
    mean: Positive
    n: Whole


class _NodeBenchmark(Json):
    name: Annotated[str, Field(min_length=1)]
    error: str = ""
    figures: _NodeFigures | None = None


class _NodeResults(Json):
    benchmarks: list[_NodeBenchmark]


class _VitestBenchmark(Json):
    """A benchmark, in ms. One that was skipped or failed has no samples."""

    name: str
    min: float | None = None
    median: float | None = None
    p99: float | None = None
    max: float | None = None
    mean: float | None = None
    count: int = Field(default=0, alias="sampleCount")


class _VitestGroup(Json):
    name: str = Field(alias="fullName")
    benchmarks: list[_VitestBenchmark]


class _VitestFile(Json):
    groups: list[_VitestGroup]


class _VitestResults(Json):
    files: list[_VitestFile]


def _files(options: NodeBenchOptions) -> list[str]:
    return options.file.split() if isinstance(options.file, str) else options.file


def _names_of(options: NodeBenchOptions, file: str, chosen: tuple[str, ...]) -> list[str]:
    """Return the chosen benchmarks of a file, without its prefix."""
    prefix = _prefix(options, file)
    return [name.removeprefix(prefix) for name in chosen if name.startswith(prefix)]


def _prefix(options: NodeBenchOptions, file: str) -> str:
    """Return how the names of a file's benchmarks begin, so that several files may have the same names."""
    return f"{file}/" if len(_files(options)) > 1 else ""


def invocations(call: Call[NodeBenchOptions]) -> tuple[Invocation, ...]:
    """Run the benchmarks of each file, or the chosen ones."""
    options = call.options
    if not _files(options):
        pattern = "|".join(f"^{_quoted(_of_vitest(name))}$" for name in call.chosen)
        return (_vitest(call, call.folder / "vitest.json", ("-t", pattern) if pattern else ()),)
    found = []
    for number, file in enumerate(_files(options)):
        only = _names_of(options, file, call.chosen)
        if only or not call.chosen:
            found.append(_driven(call, number, file, only, is_list=False))
    return tuple(found)


def _driven(call: Call[NodeBenchOptions], number: int, file: str, only: list[str], *, is_list: bool) -> Invocation:
    settings = {"out": str(call.folder / _result(number)), "list": is_list, "only": only}
    words = (*_node(call), "--import", _DRIVER, file, *adapter.words(call.options.args))
    env = {"PERFFLOW_BENCH": json.dumps({**settings, "seconds": _SECONDS[call.effort]})}
    return Invocation(words, env, stderr=f"node-{number}.stderr")


def _vitest(call: Call[NodeBenchOptions], out: Path, more: tuple[str, ...]) -> Invocation:
    words = (*_node(call), _VITEST, "bench", "--run", "--outputJson", str(out))
    return Invocation((*words, *more, *adapter.words(call.options.args)), {"CI": "1", "NO_COLOR": "1"})


def _node(call: Call[NodeBenchOptions]) -> tuple[str, ...]:
    return (call.program or NODE.name, *adapter.words(call.options.node_args))


def _quoted(name: str) -> str:
    return _SPECIAL.sub(lambda special: f"\\{special[0]}", name)


def _of_vitest(name: str) -> str:
    """Return the name by which vitest selects a benchmark: its describe blocks and itself, without the file."""
    return " ".join(name.split(" > ")[1:])


def listing(call: Call[NodeBenchOptions]) -> Invocation:
    """Return the process that prints the names of all benchmarks."""
    files = _files(call.options)
    lists = [_driven(call, number, file, [], is_list=True) for number, file in enumerate(files)]
    processes = lists or [_vitest(call, call.folder / "vitest.json", ())]
    settings = [
        {
            "argv": process.argv,
            "env": dict(process.env),
            "out": str(call.folder / (_result(number) if lists else "vitest.json")),
            "prefix": _prefix(call.options, files[number]) if lists else "",
        }
        for number, process in enumerate(processes)
    ]
    return Invocation((call.program or NODE.name, str(DRIVERS / "node_list.mjs"), json.dumps(settings)))


def outputs(call: Call) -> tuple[Path, ...]:
    """Return the results that the processes left; ``parse`` reports missing ones."""
    files = (*call.folder.glob(_result("*")), call.folder / "vitest.json")
    return tuple(sorted(path for path in files if tool_files.left(path)))


def parse(call: Call[NodeBenchOptions], _usage: Usage) -> Parsed:
    """Read the median of each benchmark's samples.

    Raises ToolOutputError if a file left no results, or if two benchmarks have the same name.
    """
    options, readings, failed = call.options, list[Reading](), dict[str, str]()
    if not _files(options):
        readings += _vitest_readings(call, failed)
    for number, file in enumerate(_files(options)):
        if call.chosen and not _names_of(options, file, call.chosen):
            continue
        said = _ERROR.search(tool_files.first_text(call.folder, f"node-{number}.stderr"))
        reason = tool_files.clean_name(said[1])[:200] if said else "node ended early"
        results = parsed_output.read_json(_NodeResults, call.folder / _result(number), f"{file}: {reason}")
        if said and not results.benchmarks:
            raise ToolOutputError(f"{file}: {reason}")
        for benchmark in results.benchmarks:
            name = tool_files.clean_name(_prefix(options, file) + benchmark.name)
            if benchmark.figures is None:
                failed[name] = f"failed: {tool_files.clean_name(benchmark.error or reason)[:200]}"
                continue
            figures = {key: value * _NANO if key != "n" else value for key, value in benchmark.figures}
            readings.append(reading_of_distribution("time", figures, name))
    names = [reading.benchmark for reading in readings]
    if len(set(names)) < len(names):
        raise ToolOutputError(f"two benchmarks are called {max(names, key=names.count)!r}")
    if missing := [name for name in call.chosen if tool_files.clean_name(name) not in {*names, *failed}]:
        raise ToolOutputError(f"the benchmark {missing[0][:80]} left no result")
    if not readings:
        name, reason = next(iter(failed.items()), ("", "no benchmark ran: the file uses neither tinybench nor mitata"))
        raise ToolOutputError(f"{name} {reason}".strip())
    return Parsed(tuple(readings), failed=failed)


def _vitest_readings(call: Call[NodeBenchOptions], failed: dict[str, str]) -> Iterator[Reading]:
    said = tool_files.last_words(call.folder)
    results = parsed_output.read_json(_VitestResults, call.folder / "vitest.json", said or "vitest found no benchmark")
    chosen = {_of_vitest(name) for name in call.chosen}
    for group in (group for file in results.files for group in file.groups):
        for benchmark in group.benchmarks:
            name = tool_files.clean_name(f"{group.name} > {benchmark.name}")
            if chosen and _of_vitest(name) not in chosen:
                continue
            figures = {
                "min": benchmark.min,
                "p50": benchmark.median,
                "p99": benchmark.p99,
                "max": benchmark.max,
                "mean": benchmark.mean,
            }
            known = {key: tool_files.positive(ms * _MILLI, f"{key} of {name}") for key, ms in figures.items() if ms}
            if benchmark.count and "p50" in known:
                yield reading_of_distribution("time", {**known, "n": benchmark.count}, name)
            else:
                failed[name] = "failed: it has no samples"


def _result(number: int | str) -> str:
    return f"node-{number}.json"


ADAPTER = Adapter(
    "node-bench",
    Role.MEASURE,
    invocations,
    parse,
    options=NodeBenchOptions,
    program=NODE,
    metrics=builtin_metrics("time"),
    suite=Suite(listing=listing, together=_TOGETHER, harness=HARNESS, profilers=("node-profile",)),
    outputs=outputs,
    good_statuses=frozenset({0, 1}),
)
