"""A self-test of a gate: head is slowed down on purpose, and the gate must find it. The slowdown is large here."""

from __future__ import annotations

import shutil
import sys

import pytest

from perfflow.jobs.gate.self_test import outcome
from perfflow.model.result import Result
from perfflow.session import planted_slowdown
from tests.session.project import Project, change_of, flow
from tests.verdict.records import ended, judged, pairs, planned

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")


@pytest.fixture
def explains() -> bool:
    return True


@pytest.fixture
def tested(tree: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository of a Python function with a suite, in which a slowdown is so large that no load hides it."""
    monkeypatch.setattr(planted_slowdown, "PLANTED", 4.0)
    work = "def fold():\n    return sum(i * i for i in range(20_000))\n\n\nfor _ in range(20):\n    fold()\n"
    suite = "from work import fold\n\n\ndef test_fold(benchmark):\n    benchmark(fold)\n"
    ignored = ".perfflow\nflow.yaml\n__pycache__\n.pytest_cache\n.benchmarks\n"
    tree.commit({".gitignore": ignored, "work.py": work, "test_work.py": suite})
    return tree


def self_test(project: Project, measuring: str) -> Result:
    text = flow("name: tested", baseline=measuring, profile="{uses: auto}")
    return project.run(text, base="HEAD", head="HEAD", self_test=True)


@needs_cc
def test_slowdown_planted_in_a_program_is_found_and_is_not_explained(tested: Project) -> None:
    result = self_test(tested, f"{{id: work, runs: 8, run: {sys.executable} work.py}}")
    assert (outcome(result).found, outcome(result).missed) == (("work",), ())
    assert result.attributions == []
    assert not (tested.folder / ".perfflow/history.sqlite").exists()


@pytest.mark.long
@needs_cc
def test_slowdown_is_planted_in_what_a_suite_times(tested: Project) -> None:
    options = f"{{python: {sys.executable}, paths: test_work.py}}"
    # So few pairs prove nothing, but a time that is five times as long shows in each of them.
    result = self_test(tested, f"{{id: suite, uses: pytest-benchmark, runs: 2, with: {options}}}")
    assert change_of(next(row for row in result.benchmarks if row.metric == "cpu")) > 1


@pytest.mark.long  # counts under Valgrind what is never timed
@needs_cc
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_benchmark_without_a_time_cannot_be_tested(tested: Project) -> None:
    found = outcome(self_test(tested, "{id: counted, uses: callgrind, with: {command: seq 1000}}"))
    assert found.found == ()
    assert found.missed == (("counted", "its metrics are no times, so nothing is planted in them"),)


def test_outcome_names_what_the_gate_did_not_find() -> None:
    slow, same = ([*pairs(name, [1.0] * 20, [time] * 20), ended(name)] for name, time in (("slow", 1.3), ("same", 1.0)))
    tested = outcome(judged(*slow, *same, steps=[planned("slow"), planned("same")]))
    assert (tested.found, tested.missed) == (("slow",), (("same", "time: same"),))
