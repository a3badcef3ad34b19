"""What the recorder sees of benchmarks of pytest-benchmark: two trees, whose files differ in one way each."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.unchanged.model import BenchmarkTrace, Differs, Unchanged, compare
from perfflow.unchanged.python_traces import read_traces, write_settings
from tests.diffs import changes
from tests.tools.harness import PYTHON, call_of, tool

BENCHMARK = "import {name}\n\ndef test_{name}(benchmark):\n    assert benchmark({name}.run) is not None\n"
MODULES = changes(Path(__file__).with_name("modules.txt"))
pytestmark = pytest.mark.long
# Plugins of the tests' own environment, which take long to load.
OTHER_PLUGINS = ("hypothesispytest", "anyio", "xdist", "cov", "rerunfailures", "timeout")
CACHED = "import functools\n\n@functools.cache\ndef made():\n    return {}\n\ndef run():\n    return made()\n"


def write(folder: Path, side: int) -> list[str]:
    """Write the tree of a side; return the ids of its benchmarks."""
    folder.mkdir()
    for name, texts in MODULES.items():
        (folder / f"{name}.py").write_text(texts[side])
        (folder / f"test_{name}.py").write_text(BENCHMARK.format(name=name))
    (folder / "cached.py").write_text(CACHED.format(side))
    (folder / "test_cached.py").write_text(
        "import cached\n\ndef test_first(benchmark):\n    benchmark(cached.run)\n\n"
        "def test_second(benchmark):\n    benchmark(cached.run)\n\n"
        "def test_fails(benchmark):\n    benchmark(cached.run)\n    assert 0\n"
    )
    (folder / "reads.txt").write_text(str(side))
    (folder / "lists_it").mkdir()
    for name in ["looks.txt", "only_head.py", "lists_it/new", "not_looked_at.txt"] if side else []:
        (folder / name).touch()
    cached = [f"test_cached.py::test_{name}" for name in ("first", "second", "fails")]
    return [*(f"test_{name}.py::test_{name}" for name in MODULES), *cached]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, BenchmarkTrace]]:
    """The traces of both sides."""
    found = []
    for side in (0, 1):
        around = tmp_path_factory.mktemp("traced")
        tree = around / "tree"
        chosen = write(tree, side)
        args = ["-c", "none.ini", *(word for name in OTHER_PLUGINS for word in ("-p", f"no:{name}"))]
        call = call_of("pytest-benchmark", around / "out", python=PYTHON, args=args)
        call = replace(call, chosen=tuple(chosen), folder=around / "traces")
        write_settings(call, [tree])
        invocation = tool("pytest-benchmark").suite.tracing(call)
        assert invocation
        (tree / "none.ini").write_text("[pytest]\n")
        env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree)}
        done = subprocess.run(invocation.argv, cwd=tree, env=env, check=False, capture_output=True, text=True)
        found.append(read_traces(call.folder))
        assert found[-1], done.stdout + done.stderr
    return found


@pytest.mark.parametrize("name", MODULES)
def test_compare_settles_a_benchmark_only_if_nothing_that_it_executes_or_reads_changed(
    traces: list[dict[str, BenchmarkTrace]], name: str
) -> None:
    found = compare(*(side[f"test_{name}.py::test_{name}"] for side in traces))
    if MODULES[name][2] in ("files", "code"):
        assert isinstance(found, Unchanged), found
        assert found.by == MODULES[name][2]
    else:
        assert isinstance(found, Differs)
        assert " ".join(found.reasons) == MODULES[name][2]


def test_a_benchmark_does_not_hide_what_it_shares_with_the_next(traces: list[dict[str, BenchmarkTrace]]) -> None:
    for name in ("first", "second"):
        found = compare(*(side[f"test_cached.py::test_{name}"] for side in traces))
        assert found == Differs(("cached.py:made",)), name


def test_a_benchmark_that_fails_has_no_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    assert all("test_cached.py::test_fails" not in side for side in traces)


def test_code_of_libraries_is_not_part_of_a_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    trace = traces[0]["test_equal.py::test_equal"]
    assert set(trace.loaded) == {"equal.py", "test_equal.py"}
    assert {name.partition(":")[0] for name in trace.functions} <= {"equal.py", "test_equal.py", "<generated>"}
