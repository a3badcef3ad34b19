"""Running a prepared call under the tracer."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.execute.child import MARK, Spawner
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.readings import Side
from perfflow.tools.adapter import Call, CommandOptions
from perfflow.unchanged import native
from perfflow.unchanged.model import Unchanged, compare
from tests.execute.adapter import bash_tool
from tests.execute.plans import item
from tests.unchanged.traced import HERE

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


@pytest.fixture(scope="module")
def keeper() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def prepared(tree: Path, folder: Path, text: str) -> ReadyProcess:
    tree.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    tool = bash_tool(text)
    call = Call(CommandOptions(), folder)
    return ReadyProcess(
        replace(item("bench"), tool=tool), Side.BASELINE, (), {**os.environ, MARK: "x"}, tree, None, tool, call
    )


def test_trace_compares_what_the_processes_of_a_call_read(keeper: Spawner, tmp_path: Path, cache: Path) -> None:
    traces = []
    for side in ("a", "b"):
        ready = prepared(tmp_path / side, tmp_path / f"{side}-out", "wc -l < words > $FOLDER/figure")
        (tmp_path / side / "words").write_text("one\ntwo\n")
        traces.append(native.trace(keeper, ready, tmp_path / f"{side}-out"))
    assert isinstance(compare(*traces), Unchanged)
    assert traces[0].inputs["words"]
    assert list((cache / "perfflow" / "tracer").iterdir())


def test_trace_fails_if_the_benchmark_does_not_run(keeper: Spawner, tmp_path: Path, cache: Path) -> None:
    with pytest.raises(Failure, match="the tool left no figure"):
        native.trace(keeper, prepared(tmp_path / "a", tmp_path / "out", "true"), tmp_path / "out")


def test_trace_without_a_compiler_knows_nothing(keeper: Spawner, tmp_path: Path, cache: Path) -> None:
    ready = prepared(tmp_path / "a", tmp_path / "out", "echo 1 > $FOLDER/figure")
    found = native.trace(keeper, replace(ready, env={**ready.env, "PATH": str(tmp_path)}), tmp_path / "out")
    assert found.unknown == ("it cannot be traced: cc: not found or not executable",)


@pytest.mark.skipif(not shutil.which("addr2line"), reason="needs addr2line")
def test_executed_lines_are_those_of_entered_functions(keeper: Spawner, tmp_path: Path, cache: Path) -> None:
    ready = prepared(tmp_path / "a", tmp_path / "out", "./bench > $FOLDER/figure")
    shutil.copy(HERE / "data" / "programs" / "lines.c", tmp_path / "a" / "bench.c")
    subprocess.run(["cc", "-O2", "-g", "-o", "bench", "bench.c"], cwd=tmp_path / "a", check=True)
    native.trace(keeper, ready, tmp_path / "out")
    executed, known = (found["bench.c"] for found in native.executed_lines(keeper, ready, tmp_path / "out"))
    assert {3, 8, 9} <= executed
    assert not {5, 6, 7} & executed
    assert {3, 6, 8, 9} <= known
    subprocess.run(["strip", "--strip-debug", "bench"], cwd=tmp_path / "a", check=True)
    native.trace(keeper, ready, tmp_path / "out")
    assert native.executed_lines(keeper, ready, tmp_path / "out") == ({}, {})
