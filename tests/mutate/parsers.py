"""Every parser of perfflow with real files for it, and what each is held against.

A new adapter of the registry, or a new format in ``perfflow.imports``, is refused here until it has a plain reader.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfflow.samples.readings import Parsed, Reading, Usage
from perfflow.samples.stacks import read_folded
from perfflow.testing import tool_of_file
from perfflow.tools import parsed_output, registry
from perfflow.tools import read_file as imports
from perfflow.tools.adapter import Adapter, Call
from perfflow.tools.nvidia.ncu_names import short_names
from perfflow.tools.result_set import label
from perfflow.tools.tool_files import clean_name
from tests.mutate import cuda_readers as cuda
from tests.mutate import in_program_readers as in_program
from tests.mutate import plain_readers as plain
from tests.mutate import printed_readers as printed
from tests.mutate import probe_readers as probes
from tests.mutate.ncu_reader import ncu_pages
from tests.mutate.plain_readers import Files, Key, Reader
from tests.mutate.trace_reader import torch_traces
from tests.tools.harness import REQUIRED

ROOT = Path(__file__).parents[1]
CAPTURED, IMPORTED = ROOT / "tools" / "data", ROOT / "imports" / "data"
LARGEST = 20_000
"""Bytes of a case; larger files say the same more slowly."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for the values of one metric of one benchmark, whether a parser keeps them all or folds them."""

    n: int
    low: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a parser made of the files, and what it said beside."""

    figures: Mapping[Key, Summary]
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser: real cases for it, how to ask it, the second opinion, and how names are shown.

    ``ends`` is whether its format says where it ends, so that a cut must be seen. ``skipped`` are files that it does
    not read.
    """

    name: str
    cases: Sequence[Files]
    read: Callable[[Path], Answer]
    plain: Reader
    shown: Callable[[str], str] = clean_name
    ends: bool = True
    skipped: Sequence[str] = ()


NO_FILES = {"command", "same-output", "compute-sanitizer"}
"""Adapters whose figures come from the kernel, or that have none: there is nothing to mutate."""
_READERS: Mapping[str, Reader] = {
    "hyperfine": partial(plain.hyperfine, named=False),
    "massif": plain.massif,
    "perf": plain.perf_script,
    "cargo-flamegraph": plain.perf_script,
    "heaptrack": plain.heaptrack,
    "perf-stat": plain.perf_stat,
    "simd-share": plain.hot_code,
    "py-spy": plain.py_spy,
    "py-spy-dump": plain.py_spy_dump,
    "scalene": plain.scalene,
    "cprofile": plain.cprofile,
    "line-profiler": in_program.line_profiler,
    "memory-profiler": in_program.memory_profiler,
    "memray": in_program.memray,
    "tracemalloc": in_program.tracemalloc,
    "callgrind": plain.callgrind,
    "cachegrind": plain.cachegrind,
    "dhat": plain.dhat,
    "pytest-benchmark": plain.pytest_benchmark,
    "google-benchmark": partial(plain.google_benchmark, key="name"),
    "torch-profiler": torch_traces,
    "strace": probes.strace,
    "iostat": probes.iostat,
    "nsys": probes.nsys,
    "nvidia-smi": probes.nvidia_smi,
    "stream": probes.stream,
    "ncu": ncu_pages,
    "slow-callbacks": probes.slow_callbacks,
    "sql-log": probes.sql_log,
    "timeit": plain.timeit,
    "pyperf": plain.pyperf,
    "asv": plain.asv,
    "cargo-build": printed.cargo_build,
    "cargo-bench": printed.cargo_bench,
    "nvcc": cuda.nvcc,
    "cuda-bench": cuda.cuda_bench,
    "triton-bench": cuda.triton_bench,
    "mojo-bench": printed.mojo_bench,
}
# massif's, py-spy's and mprof's text are records without an end, and so are the rows of nvidia-smi and ncu,
# and what a program of Mojo prints, one table or report after the other.
_ENDLESS = {"massif", "py-spy", "memory-profiler", "nvidia-smi", "ncu", "mojo-bench"}
_SHOWN: Mapping[str, Callable[[str], str]] = {"ncu": lambda name: short_names([name])[name]}
"""Where names are not shown as they are. The cases have no two kernels of one short name."""
_FORMATS: Mapping[str, Reader] = {
    "asv": plain.asv,
    "criterion": plain.criterion,
    "go": plain.go,
    "google-benchmark": partial(plain.google_benchmark, key="name"),
    "hyperfine": partial(plain.hyperfine, named=True),
    "pyperf": plain.pyperf,
    "pytest-benchmark": plain.pytest_benchmark,
}
_LINES = r"^(?P<benchmark>\S+) took (?P<time>\S+) ms, (?P<calls>\S+) calls"
_TOOL = f"""
perfflow-tool: 1
argv: [printer]
parse: {{regex: '{_LINES}', units: {{time: ms, calls: "1"}}}}
finished: '^done$'
failed: '^failed'
"""
_STACKS = """
perfflow-tool: 1
role: profile
argv: [sampler]
outputs: [a.folded]
stacks: a.folded
"""
_PRINTED = b"starting\ndecode took 12.5 ms, 1,200 calls\nencode took 0.75 ms, 3 calls\ndecode took 13 ms, 1,250 calls\n"


def all_parsers() -> list[Parser]:
    """Return every parser. Raises KeyError for an adapter or a format without a plain reader."""
    adapters = [_adapter(name) for name in registry.MODULES if name not in NO_FILES]
    tools = sorted(folder.name for folder in IMPORTED.iterdir() if folder.is_dir() and folder.name != "programs")
    return [*adapters, *map(_import, tools), *_printed(), *_tool_files()]


def files_of(folder: Path) -> Files:
    """Return the content of every file below a folder by its path."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if not path.name.startswith("parsed.")}


def _adapter(name: str) -> Parser:
    tool = registry.find(name)
    assert tool is not None
    folders = sorted(path for path in (CAPTURED / name).glob("*/*") if path.is_dir())
    cases = [{file: text for file, text in files_of(path).items() if file != "stacks.folded"} for path in folders]
    reader = _READERS[name]
    skipped = ("stderr", "pytest.out", "py-spy.out", "check.txt")
    shown = _SHOWN.get(name, str if name.startswith("cargo-") else clean_name)
    read, ends = partial(_of_tool, tool), name not in _ENDLESS
    return Parser(f"tool {name}", cases, read, reader, shown, ends=ends, skipped=skipped)


def _of_tool(tool: Adapter, folder: Path) -> Answer:
    command = ("/tmp/demo/hot",)
    takes = tool.takes_command
    keys: dict[str, object] = {"command": list(command)} if takes else dict(REQUIRED.get(tool.name, {}))
    # Of each tool's other keys, those without which a case is not read at all.
    keys |= {"pid": 4711} if tool.name == "py-spy-dump" else {}
    keys |= {"format": "speedscope"} if (folder / "py-spy.speedscope.json").exists() else {}
    keys |= {"report": "*.json"} if tool.name == "dhat" and (folder / "written-0.json").exists() else {}
    options = tool.options.model_validate(keys)
    call = Call(options, folder, "/usr/bin/true", command)
    parsed = tool.parse(call, Usage(wall=1.0))
    # What does work has no figures: each of its results is one that is there or not.
    if handed_on := tool.results(call):
        texts = [f"{name}={value}".replace(str(folder), "/tmp/out") for name, value in handed_on.items()]
        return Answer({(text, "result"): Summary(1, 1.0, 1.0, 1.0) for text in texts})
    return _of_parsed(parsed, folder)


def _of_parsed(parsed: Parsed, folder: Path) -> Answer:
    found = _of_readings(parsed.readings)
    found |= {(peak.precision, peak.metric): Summary(1, *[peak.value] * 3) for peak in parsed.peaks}
    if any(profile.path == "stacks.folded" for profile in parsed.profiles):
        total = sum(read_folded((folder / "stacks.folded").read_text(encoding="utf-8")).values())
        found["", "samples"] = Summary(1, total, total, total)
    elif parsed.hotspots:
        top = parsed.hotspots[0].share
        found["", "top share"] = Summary(1, top, top, top)
    return Answer(found, parsed.warnings)


def _of_readings(readings: Sequence[Reading]) -> dict[Key, Summary]:
    found: dict[Key, Summary] = {}
    for item in readings:
        inner = item.inner or {"n": 1, "min": item.value, "max": item.value, "mean": item.value}
        assert (item.benchmark, item.metric) not in found, f"two readings of {item.metric} of {item.benchmark}"
        assert inner["min"] <= item.value <= inner["max"], f"{item.metric} is not within its own values"
        found[item.benchmark, item.metric] = Summary(int(inner["n"]), inner["min"], inner["max"], inner["mean"])
    return found


def _import(name: str) -> Parser:
    folders = sorted(path for path in (IMPORTED / name).glob("*/*") if path.is_dir())
    cases = [
        {file: text for file, text in files_of(path).items() if "/" not in file or "/new/" in file} for path in folders
    ]
    reader, ends = _FORMATS[name], name != "go"
    return Parser(f"import {name}", cases, _of_import, reader, label, ends=ends)


def _of_import(folder: Path) -> Answer:
    (entry,) = folder.iterdir()
    found = imports.read(entry)
    return Answer({key: summary(values) for key, values in found.benchmarks.items()}, found.warnings)


def summary(values: Sequence[float]) -> Summary:
    """Fold values."""
    return Summary(len(values), min(values), max(values), sum(values) / len(values))


def _printed() -> list[Parser]:
    """The three ways of a step's ``parse``."""
    results = [{"name": f"decode/{size}", "mean": 12.5 + size, "size": size * 3} for size in (1, 20, 300)]
    document = {"log.json": json.dumps({"version": 3, "results": results}, indent=1).encode()}
    table = b"report of 3\n\nname, seconds, note\nfast,0.25,x\nslow,1.5,\nfast,0.26,y\n"
    paths = {"benchmark": "results[].name", "time": "results[].mean", "alloc": "results[].size"}
    of_json = partial(parsed_output.from_json, paths=paths, units={"time": "ms", "alloc": "KB"})
    of_lines = partial(parsed_output.from_regex, patterns=[_LINES], units={"time": "ms", "calls": "1"})
    of_csv = partial(parsed_output.from_csv, columns={"benchmark": "name", "time": "seconds"}, units={"time": "s"})
    parse = {
        "parse json": (of_json, document, printed.printed_json),
        "parse regex": (of_lines, {"stdout": _PRINTED}, printed.printed_lines),
        "parse csv": (of_csv, {"stdout": table}, printed.printed_csv),
    }
    return [
        Parser(name, [files], partial(_of_text, read), reader, str, ends=name == "parse json")
        for name, (read, files, reader) in parse.items()
    ]


def _tool_files() -> list[Parser]:
    """A tool file's own figures, with a line that marks their end, and its folded stacks."""
    folded = files_of(CAPTURED / "perf" / "6.1.192" / "dwarf")["stacks.folded"]
    figures = partial(_of_tool, _declared(_TOOL))
    stacks = partial(_of_tool, _declared(_STACKS))
    return [
        Parser("tool file", [{"stdout": _PRINTED + b"done\n"}], figures, printed.printed_lines, str),
        Parser("tool file stacks", [{"a.folded": folded}], stacks, printed.folded, ends=False),
    ]


def _declared(text: str) -> Adapter:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printer.yaml"
        path.write_text(text)
        return tool_of_file(path)


def _of_text(read: Callable[[str], Sequence[Reading]], folder: Path) -> Answer:
    (path,) = folder.iterdir()
    return Answer(_of_readings(read(path.read_bytes().decode("utf-8", "replace"))))
