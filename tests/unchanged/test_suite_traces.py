"""What the recorder sees of benchmarks of asv and pyperf: two trees that differ in one function each may call."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from perfflow.unchanged.model import BenchmarkTrace, Differs, Unchanged, compare
from perfflow.unchanged.python_traces import read_traces, write_settings
from tests.long import rest_long
from tests.tools.harness import PYTHON, call_of, tool
from tests.unchanged.traced import HERE

OF_PYPERF = [
    *("same", "changed", "fills a cache", "reads the cache", "text", "awaited", "loops itself", "rare", "program"),
    "of a worker",
]
Traces = Callable[[str], list[dict[str, BenchmarkTrace]]]


def traced(suite: str, side: str, root: Path) -> dict[str, BenchmarkTrace]:
    """Return the traces of a suite in the tree of a side."""
    tree = root / "tree"
    shutil.copytree(HERE / "data" / suite / "tree", tree)
    if side == "b":
        subject = (tree / "subject.py").read_text()
        (tree / "subject.py").write_text("# A remark.\n" + subject.replace("n + 1", "n + 2"))
    (tree / "state").write_text(side)
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    if suite == "asv":
        env["PYTHONPATH"] = str(tree)
        listed = tool("asv").suite.listing(call_of("asv", root / "listing", python=PYTHON))
        assert listed
        done = subprocess.run(listed.argv, cwd=tree, env=env, capture_output=True, text=True, check=True)
        call = replace(call_of("asv", root / "trace", python=PYTHON), chosen=tuple(done.stdout.splitlines()))
    else:
        call = call_of("pyperf", root / "trace", script="bench.py", python=PYTHON)
        call = replace(call, chosen=(*OF_PYPERF, "fails"))
    write_settings(call, [tree])
    invocation = tool(suite).suite.tracing(call)
    assert invocation
    subprocess.run(invocation.argv, cwd=tree, env=env, check=True, capture_output=True)
    return read_traces(call.folder)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """Return the traces of both trees for a suite."""
    return cache(lambda suite: [traced(suite, side, tmp_path_factory.mktemp(f"{suite}-{side}")) for side in "ab"])


@pytest.mark.long  # tests/jobs/test_unchanged_benchmarks.py records a suite in CI
@pytest.mark.parametrize(
    ("suite", "name"),
    [
        *(("asv", f"speed.{name}") for name in ("Sizes.time_same(1)", "time_same", "track_same", "mem_same")),
        ("asv", "speed.time_reads_what_it_made"),
        *(("pyperf", name) for name in ("same", "text", "awaited", "loops itself", "of a worker")),
    ],
)
def test_a_benchmark_that_does_not_call_what_changed_is_settled(suite: str, name: str, traces: Traces) -> None:
    found = compare(*(side[name] for side in traces(suite)))
    assert isinstance(found, Unchanged)
    assert found.by == "code"


# asv starts several processes for each benchmark, which takes half a minute.
@pytest.mark.parametrize(
    ("suite", "name", "reason"),
    rest_long(
        [
            ("pyperf", "changed", "subject.py:changed"),
            ("pyperf", "fills a cache", "subject.py:changed"),
            ("pyperf", "reads the cache", "subject.py:changed"),
            ("pyperf", "rare", "later iterations run further functions: same_later"),
            ("pyperf", "program", "it starts programs: "),
            ("asv", "speed.time_changed", "subject.py:changed"),
            ("asv", "speed.Cached.time_of_cache", "subject.py:changed"),
            ("asv", "speed.time_rare", "later iterations run further functions: same_later"),
            ("asv", "speed.time_program", "it starts programs: python"),
            ("asv", "speed.time_reads_what_it_changed", "it changes state"),
            ("asv", "speed.timeraw_same", "it starts programs: python"),
        ],
        keep=5,
    ),
)
def test_a_benchmark_that_may_have_changed_is_not(suite: str, name: str, reason: str, traces: Traces) -> None:
    found = compare(*(side[name] for side in traces(suite)))
    assert isinstance(found, Differs)
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_what_ran_has_a_trace_and_what_fails_has_none(traces: Traces) -> None:
    assert [set(side) for side in traces("pyperf")] == [set(OF_PYPERF)] * 2


@pytest.mark.long  # records asv, as above
def test_what_ran_in_asv_has_a_trace_and_what_fails_has_none(traces: Traces) -> None:
    assert all("speed.time_fails" not in side and "speed.time_same" in side for side in traces("asv"))


@pytest.mark.long  # records asv, as above
def test_one_function_that_differs_is_all_that_differs(traces: Traces) -> None:
    assert compare(*(side["speed.time_changed"] for side in traces("asv"))) == Differs(("subject.py:changed",))
