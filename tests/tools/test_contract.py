"""What every adapter of the registry must keep, whatever its tool is."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import METRICS
from perfflow.testing import NONSENSE, OTHERS
from perfflow.tools.adapter import Adapter, CommandOptions, Effort, Options, Role
from perfflow.tools.registry import MODULES, find
from tests.mutate.parsers import NO_FILES
from tests.tools.harness import DATA, PYTHON, USAGE, call_of, tool, tools

TOOLS = tools()
# The tools whose figures come from files, each with a captured case that is parsed without an error.
GOOD = {
    "hyperfine": "1.15.0/plain",
    "massif": "3.19.0/c",
    "perf": "6.1.192/dwarf",
    "perf-stat": "6.1.192/no-pmu",
    "simd-share": "6.1.192/scalar",
    "py-spy": "0.4.3/plain",
    "py-spy-dump": "0.4.3/plain",
    "scalene": "2.4.0/plain",
    "cprofile": "3.11.2/plain",
    "line-profiler": "5.1.0/plain",
    "memory-profiler": "0.61.0/lines",
    "memray": "1.20.0/plain",
    "tracemalloc": "3.11.2/plain",
    "callgrind": "3.19.0/c",
    "cachegrind": "3.19.0/c",
    "dhat": "3.19.0/c",
    "pytest-benchmark": "5.3.1/plain",
    "google-benchmark": "1.7.1/plain",
    "timeit": "3.11.2/plain",
    "pyperf": "2.10.0/plain",
    "asv": "0.3.2/plain",
    "cargo-build": "1.95.0/plain",
    "cargo-bench": "0.8.2/plain",
    "heaptrack": "1.4.0/rust",
    "cargo-flamegraph": "0.6.15/rust",
    "torch-profiler": "2.15.0/small",
    "strace": "6.1/plain",
    "iostat": "12.6.1/plain",
    "nsys": "2022.4.2/ranges",
    "nvidia-smi": "595-synthetic/query",
    "ncu": "2022.3.0/selected",
    "slow-callbacks": "3.11.2/plain",
    "sql-log": "3.11.2/plain",
    "stream": "12.2.0/plain",
    "nvcc": "13.5/plain",
    "cuda-bench": "cpu/plain",
    "triton-bench": "3.9.0/cpu",
    "compute-sanitizer": "2026.4-documentation/clean",
    "mojo-bench": "1.2.0/plain",
}
SUITES = {"pytest-benchmark", "pyperf", "asv", "google-benchmark", "cargo-bench", "cuda-bench", "triton-bench"}
# What they run is only known when it is built: test_odd_cargo.py.
BUILT = {"cargo-bench"}
OPTIONS = {name: {"python": PYTHON} for name in ("pytest-benchmark", "timeit", "pyperf", "asv", "triton-bench")}
WRONG: dict[str, Any] = {
    "name": "Massif",
    "role": "profile",
    "parse": None,
    "outputs": (),
    "options": CommandOptions(),
    "program": "valgrind",
    "metrics": {"heap_peak": "B"},
    "deterministic": 1,
    "good_statuses": {0},
    "attaches": "pid",
    "interface": "1",
}
IMPURE = {"subprocess", "time", "datetime", "random", "socket", "os", "multiprocessing", "threading", "git"}

each_tool = pytest.mark.parametrize("adapter", TOOLS.values(), ids=TOOLS)
each_parser = pytest.mark.parametrize("name", GOOD)


@pytest.mark.parametrize("name", MODULES)
def test_an_adapter_is_found_by_its_name_and_names_its_program(name: str) -> None:
    adapter = tool(name)
    assert adapter.name == name
    assert METRICS.items() >= adapter.metrics.items()
    assert bool(adapter.program) == bool(adapter.program.install)


def test_every_adapter_with_files_has_a_good_case() -> None:
    assert GOOD.keys() | NO_FILES == TOOLS.keys() == MODULES.keys()


def test_unknown_name() -> None:
    assert find("no-such-tool") is None


def test_a_wrong_field_is_an_error_where_the_adapter_is_made() -> None:
    good = tool("massif")
    for field, value in WRONG.items():
        with pytest.raises(TypeError, match=rf"^Adapter.*\b{field}\b"):
            replace(good, **{field: value})
    with pytest.raises(TypeError, match="parse"):
        Adapter(name="x", role=Role.MEASURE, invocations=good.invocations)  # type: ignore[call-arg]


@each_tool
def test_options_have_a_schema_and_are_strict(adapter: Adapter) -> None:
    schema = adapter.options.model_json_schema()
    json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert issubclass(adapter.options, Options)
    common = CommandOptions.model_json_schema()["properties"].keys()
    own = schema["properties"].keys() - common
    if issubclass(adapter.options, CommandOptions):
        assert all(schema["properties"][name].get("description") for name in own)


@each_tool
def test_source_is_pure(adapter: Adapter) -> None:
    source = Path(inspect.getfile(inspect.getmodule(adapter.parse) or inspect)).read_text()
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {str(node.module).split(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names)}
    assert not imported & IMPURE
    assert not imported & set(MODULES.values())


@pytest.mark.parametrize("name", sorted(GOOD.keys() - BUILT))
def test_invocations_name_program_and_outputs(name: str, tmp_path: Path) -> None:
    call = call_of(name, tmp_path, PYTHON, "a b.py", "it's", **OPTIONS.get(name, {}))
    lists = TOOLS[name].listing(call)
    steps = (*TOOLS[name].invocations(call), *((lists,) if lists else ()))
    assert all(step.argv[0].startswith("/") for step in steps)
    assert not any(tmp_path.iterdir())
    assert all(path.parent == tmp_path for path in TOOLS[name].outputs(call))
    assert (lists is not None and bool(lists.stdout)) == (name in SUITES)


@pytest.mark.parametrize("name", sorted(SUITES - BUILT))
def test_a_suite_runs_one_benchmark_alone_and_briefly(name: str, tmp_path: Path) -> None:
    call = call_of(name, tmp_path, PYTHON)
    whole, alone, brief = (
        TOOLS[name].invocations(wanted)[0].argv
        for wanted in (call, replace(call, only="a::b[c]"), replace(call, effort=Effort.BRIEF))
    )
    assert len(alone) == len(whole) + 1
    assert len(brief) > len(whole)
    assert "a::b" in alone[-1]


@each_parser
def test_parse_yields_no_more_than_it_names(name: str, tmp_path: Path) -> None:
    folder = _copy(name, tmp_path)
    call = call_of(name, folder, PYTHON, "x.py")
    assert all(
        path.stat().st_size for path in TOOLS[name].outputs(call) if path.suffix not in {".data", ".prof", ".bin"}
    )
    parsed = TOOLS[name].parse(call, USAGE)
    assert TOOLS[name].counters or {reading.metric for reading in parsed.readings} <= TOOLS[name].metrics.keys()
    assert all(spot.source == name for spot in parsed.hotspots)
    made = {profile.path for profile in parsed.profiles} - {"cprofile.prof", "memray.bin"}
    assert all((folder / path).stat().st_size for path in made)


@each_parser
def test_same_files_parse_the_same(name: str, tmp_path: Path) -> None:
    call = call_of(name, _copy(name, tmp_path), PYTHON, "x.py")
    assert TOOLS[name].parse(call, USAGE) == TOOLS[name].parse(call, USAGE)


@each_parser
def test_missing_output_is_an_error(name: str, tmp_path: Path) -> None:
    _refuses(name, tmp_path)


@each_parser
@pytest.mark.parametrize("content", [*NONSENSE, *OTHERS])
def test_nonsense_is_an_error(name: str, content: bytes, tmp_path: Path) -> None:
    folder = _copy(name, tmp_path)
    for file in _needed(folder):
        kept = file.read_bytes()
        file.write_bytes(content)
        _refuses(name, folder)
        file.write_bytes(kept)


@each_parser
@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_truncated_output_is_an_error(name: str, share: float, tmp_path: Path) -> None:
    folder = _copy(name, tmp_path)
    for file in _needed(folder):
        content = file.read_bytes()
        # Folded and perf's text consist of whole records, so a cut is only seen inside one.
        cut = content[: max(1, int(len(content) * share))].rstrip(b"0123456789\n") + b" ("
        file.write_bytes(cut)
        _refuses(name, folder)
        file.write_bytes(content)


def _copy(name: str, target: Path) -> Path:
    ignored = shutil.ignore_patterns(
        "parsed.json*", "stacks.folded*", "stderr", "pytest.out", "py-spy.out", "check.txt"
    )
    return Path(shutil.copytree(DATA / name / GOOD[name], target / "out", ignore=ignored))


def _needed(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and file.name != "stacks.folded"]


def _refuses(name: str, folder: Path) -> None:
    with pytest.raises(ToolOutputError) as caught:
        TOOLS[name].parse(call_of(name, folder, PYTHON, "x.py"), USAGE)
    reason = str(caught.value)
    assert 10 < len(reason) < 400
    assert reason.isprintable()
