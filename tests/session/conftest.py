from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfflow.execute.child import MARK
from perfflow.jobs.gate import base_and_head
from perfflow.machine import lock
from perfflow.session.attribution import profiler_calls
from tests.cli.fork_server import USUAL_SAMPLES, USUAL_SECONDS
from tests.session.project import Project

SUITE = r"""
#include <benchmark/benchmark.h>
#include <cstdlib>
static void spin(benchmark::State& state) {
  const bool slowed = std::getenv("SLOWED") != nullptr && state.range(0) == 3;
  const long count = slowed ? 30000 : 15000;
  for (auto _ : state)
    for (long number = 0; number < count; ++number) benchmark::DoNotOptimize(number);
}
BENCHMARK(spin)->DenseRange(0, 12);
BENCHMARK_MAIN();
"""


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Google Benchmark program with thirteen benchmarks. If SLOWED is set, one of them takes twice as long."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "suite.cc").write_text(SUITE)
    subprocess.run(["c++", "-O1", "suite.cc", "-o", "suite", "-lbenchmark", "-lpthread"], cwd=folder, check=True)
    return folder / "suite"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project without git, with its own measuring lock."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv(lock.HELD, raising=False)
    monkeypatch.delenv(MARK, raising=False)
    return Project(folder)


@pytest.fixture
def explains() -> bool:
    """Whether a gate that fails in ``tree`` is profiled, which takes longer than the rest of most gates.

    The tests of profiles have a fixture of this name instead.
    """
    return False


@pytest.fixture
def tree(
    project: Project, explains: bool, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """A project with git, on the branch ``main`` without a commit, and with its own cache of trees."""
    if explains:
        monkeypatch.setattr(profiler_calls, "SAMPLES", USUAL_SAMPLES)
        monkeypatch.setattr(profiler_calls, "PROFILING_SECONDS", USUAL_SECONDS)
    else:
        monkeypatch.setattr(base_and_head, "explain_failure", lambda _: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    project.git("init", "-q", "-b", "main")
    project.write(".gitignore", ".perfflow\nflow.yaml\nbuilt\nsuite\n*.patch\n__pycache__\n")
    return project
