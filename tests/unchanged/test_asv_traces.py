"""What the recorder sees of benchmarks of asv: two trees that differ in one function each benchmark may call."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from perfflow.unchanged.model import BenchmarkTrace, Differs, Unchanged, compare
from perfflow.unchanged.python_traces import read_traces, write_settings
from tests.tools.harness import PYTHON, call_of, tool

SUBJECT = '''"""A subject."""

def changed(n):
    return n + 1

def same(n):
    """Return it."""
    return n
'''
SUITE = """
import os, subprocess, sys, time
import subject

calls = []

class Cached:
    def setup_cache(self):
        return {"n": subject.changed(1)}

    def time_of_cache(self, cache):
        subject.same(cache["n"])

class Sizes:
    params = [1, 2]

    def setup(self, n):
        if n == 2:
            raise NotImplementedError
        self.n = n

    def time_same(self, n):
        subject.same(self.n)

def time_changed():
    subject.changed(1)

def time_same():
    subject.same(1)

def track_same():
    return subject.same(1)

def mem_same():
    return [subject.same(1)]

def time_rare():
    calls.append(1)
    if len(calls) < 4:
        # As on a busy machine.
        time.sleep(0.2)
    return same_later() if len(calls) > 8 else 1

def same_later():
    return 1

def time_program():
    subprocess.run([sys.executable, "-c", ""])

def appended(name):
    path = os.path.join(os.path.dirname(subject.__file__), name)
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    return path

def time_reads_what_it_changed():
    open(appended("state")).read()

def time_reads_what_it_made():
    appended("made")
    open(appended("made")).read()

def timeraw_same():
    return "import json"

def time_fails():
    raise LookupError("no such thing")
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, BenchmarkTrace]]:
    """Return the traces of both trees."""
    found = []
    for side, subject in (("a", SUBJECT), ("b", "# A remark.\n" + SUBJECT.replace("n + 1", "n + 2"))):
        root = tmp_path_factory.mktemp(side)
        (root / "tree/benchmarks").mkdir(parents=True)
        (root / "tree/benchmarks/__init__.py").touch()
        (root / "tree/benchmarks/speed.py").write_text(SUITE)
        (root / "tree/subject.py").write_text(subject)
        (root / "tree/state").write_text(side)
        (root / "tree/asv.conf.json").write_text('{"version": 1, "benchmark_dir": "benchmarks"}')
        env = {**os.environ, "PYTHONPATH": str(root / "tree"), "PYTHONHASHSEED": "0"}
        listed = tool("asv").suite.listing(call_of("asv", root / "listing", python=PYTHON))
        assert listed
        done = subprocess.run(listed.argv, cwd=root / "tree", env=env, capture_output=True, text=True, check=True)
        call = replace(call_of("asv", root / "trace", python=PYTHON), chosen=tuple(done.stdout.splitlines()))
        write_settings(call, [root / "tree"])
        invocation = tool("asv").suite.tracing(call)
        assert invocation
        subprocess.run(invocation.argv, cwd=root / "tree", env=env, check=True, capture_output=True)
        found.append(read_traces(call.folder))
    return found


@pytest.mark.parametrize(
    "name", ["Sizes.time_same(1)", "time_same", "track_same", "mem_same", "time_reads_what_it_made"]
)
def test_a_benchmark_that_does_not_call_what_changed_is_settled(
    name: str, traces: list[dict[str, BenchmarkTrace]]
) -> None:
    found = compare(*(side[f"speed.{name}"] for side in traces))
    assert isinstance(found, Unchanged)
    assert found.by == "code"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("time_changed", "subject.py:changed"),
        ("Cached.time_of_cache", "subject.py:changed"),
        ("time_rare", "later iterations run further functions: same_later"),
        ("time_program", "it starts programs: python"),
        ("time_reads_what_it_changed", "it changes state"),
        ("timeraw_same", "it starts programs: python"),
    ],
)
def test_a_benchmark_that_may_have_changed_is_not(
    name: str, reason: str, traces: list[dict[str, BenchmarkTrace]]
) -> None:
    found = compare(*(side[f"speed.{name}"] for side in traces))
    assert isinstance(found, Differs)
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_a_benchmark_that_fails_has_no_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    assert all("speed.time_fails" not in side and "speed.time_same" in side for side in traces)


def test_one_function_that_differs_is_all_that_differs(traces: list[dict[str, BenchmarkTrace]]) -> None:
    assert compare(*(side["speed.time_changed"] for side in traces)) == Differs(("subject.py:changed",))
