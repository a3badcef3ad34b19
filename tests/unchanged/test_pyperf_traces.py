"""What the recorder sees of benchmarks of a pyperf script: two trees that differ in one function each may call."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from perfflow.unchanged.model import BenchmarkTrace, Differs, Unchanged, compare
from perfflow.unchanged.python_traces import read_traces, write_settings
from tests.tools.harness import PYTHON, call_of, tool

SUBJECT = """
def changed(n):
    return n + 1

def same(n):
    return n
"""
SCRIPT = """
import functools
import pyperf
import subject

runner = pyperf.Runner()
calls = []

async def awaited():
    subject.same(1)

@functools.lru_cache(None)
def cached(n):
    return subject.changed(n)

def rare():
    calls.append(1)
    return same_later() if len(calls) > 8 else 1

def same_later():
    return 1

def loops_itself(loops):
    for _ in range(loops):
        subject.same(1)
    return 1.0

def fails():
    raise LookupError("no such thing")

runner.bench_func("same", subject.same, 1)
runner.bench_func("changed", subject.changed, 1)
runner.bench_func("fills a cache", cached, 1)
runner.bench_func("reads the cache", cached, 1)
runner.timeit("text", "subject.same(1)", globals={"subject": subject})
runner.bench_async_func("awaited", awaited)
runner.bench_time_func("loops itself", loops_itself)
runner.bench_func("rare", rare)
runner.bench_command("program", ["true"])
runner.bench_func("fails", fails)
if runner.is_worker():
    runner.bench_func("of a worker", subject.same, 1)
"""
NAMES = ("same", "changed", "fills a cache", "reads the cache", "text", "awaited", "loops itself", "rare", "program")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, BenchmarkTrace]]:
    """Return the traces of both trees."""
    found = []
    for side, subject in (("a", SUBJECT), ("b", "# A remark.\n" + SUBJECT.replace("n + 1", "n + 2"))):
        root = tmp_path_factory.mktemp(side)
        (root / "tree").mkdir()
        (root / "tree/bench.py").write_text(SCRIPT)
        (root / "tree/subject.py").write_text(subject)
        call = call_of("pyperf", root / "trace", script="bench.py", python=PYTHON)
        call = replace(call, chosen=(*NAMES, "fails", "of a worker"))
        write_settings(call, [root / "tree"])
        invocation = tool("pyperf").suite.tracing(call)
        assert invocation
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(invocation.argv, cwd=root / "tree", env=env, check=True, capture_output=True)
        found.append(read_traces(call.folder))
    return found


def test_what_ran_has_a_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    assert [set(side) for side in traces] == [{*NAMES, "of a worker"}] * 2


@pytest.mark.parametrize("name", ["same", "text", "awaited", "loops itself", "of a worker"])
def test_a_benchmark_that_does_not_call_what_changed_is_settled(
    name: str, traces: list[dict[str, BenchmarkTrace]]
) -> None:
    found = compare(*(side[name] for side in traces))
    assert isinstance(found, Unchanged)
    assert found.by == "code"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("changed", "subject.py:changed"),
        ("fills a cache", "subject.py:changed"),
        ("reads the cache", "subject.py:changed"),
        ("rare", "later iterations run further functions: same_later"),
        ("program", "it starts programs: "),
    ],
)
def test_a_benchmark_that_may_have_changed_is_not(
    name: str, reason: str, traces: list[dict[str, BenchmarkTrace]]
) -> None:
    found = compare(*(side[name] for side in traces))
    assert isinstance(found, Differs)
    assert any(text.startswith(reason) for text in found.reasons), found.reasons
