"""A self-test of a gate: head is slowed down on purpose, and the gate must find it. The slowdown is large here."""

from __future__ import annotations

import shutil
import sys

import pytest

from perfflow.jobs.gate.self_test import outcome
from perfflow.model.result import Result
from perfflow.session import planted_slowdown
from tests.repositories import git
from tests.session.project import Project
from tests.verdict.records import ended, judged, pairs, planned

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")


@pytest.fixture
def tested(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository of a Python function with a suite, in which a slowdown is so large that no load hides it."""
    monkeypatch.setattr(planted_slowdown, "PLANTED", 4.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", ".perfflow\nflow.yaml\n__pycache__\n.pytest_cache\n.benchmarks\n")
    project.write(
        "work.py", "def fold():\n    return sum(i * i for i in range(20_000))\n\n\nfor _ in range(20):\n    fold()\n"
    )
    project.write("test_work.py", "from work import fold\n\n\ndef test_fold(benchmark):\n    benchmark(fold)\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "base")
    return project


def self_test(project: Project, measuring: str) -> Result:
    text = f"name: tested\nstages:\n  baseline:\n    - {measuring}\n  profile:\n    - {{uses: auto}}\n"
    return project.run(text, base="HEAD", head="HEAD", self_test=True)


@needs_cc
def test_slowdown_planted_in_a_program_is_found_and_is_not_explained(tested: Project) -> None:
    result = self_test(tested, f"{{id: work, runs: 8, run: {sys.executable} work.py}}")
    assert outcome(result).found == ("work",)
    assert outcome(result).missed == ()
    assert result.attributions == []
    assert not (tested.folder / ".perfflow/history.sqlite").exists()


@pytest.mark.long
@needs_cc
def test_slowdown_is_planted_in_what_a_suite_times(tested: Project) -> None:
    options = f"{{python: {sys.executable}, paths: test_work.py}}"
    # So few pairs prove nothing, but a time that is five times as long shows in each of them.
    result = self_test(tested, f"{{id: suite, uses: pytest-benchmark, runs: 2, with: {options}}}")
    change = next(row.change for row in result.benchmarks if row.metric == "cpu")
    assert change is not None
    assert change.value is not None
    assert change.value > 1


@needs_cc
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_benchmark_without_a_time_cannot_be_tested(tested: Project) -> None:
    result = self_test(tested, "{id: counted, uses: callgrind, with: {command: seq 1000}}")
    assert outcome(result).found == ()
    ((name, why),) = outcome(result).missed
    assert (name, why) == ("counted", "its metrics are no times, so nothing is planted in them")


def test_outcome_names_what_the_gate_did_not_find() -> None:
    found = [
        *pairs("slow", [1.0] * 20, [1.3] * 20),
        ended("slow"),
        *pairs("same", [1.0] * 20, [1.0] * 20),
        ended("same"),
    ]
    tested = outcome(judged(*found, steps=[planned("slow"), planned("same")]))
    assert tested.found == ("slow",)
    assert tested.missed == (("same", "time: same"),)
