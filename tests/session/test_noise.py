"""A run checks the machine's noise before it measures, and reports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.compare.compare_stored import Question, as_run
from perfflow.jobs.run.run import RunRequest, run
from perfflow.machine import noise
from perfflow.machine.facts import facts
from perfflow.machine.noise import MachineNoise, NoiseClass, NoiseSelfTest
from perfflow.machine.noise_findings import FindingState, NoiseFinding
from perfflow.model.result import Result
from perfflow.report.markdown import render
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session import bench
from perfflow.session.perform import result_of_events
from perfflow.store.result_file import to_text
from tests.session.project import Project, step

TWO_STEPS = """
stages:
  baseline:
    - {id: one, uses: command, runs: 2, with: {command: "true"}}
    - {id: two, uses: command, runs: 2, with: {command: "true"}}
"""
SLOW = "slow runs of the same work take 2.00x as long as usual; it has a core 60% of the time"
STAMP = f"measured on a hostile machine: {SLOW}"
HOSTILE = MachineNoise(
    NoiseSelfTest(2.0, 0.6),
    (NoiseFinding("steal", "30.0%", FindingState.BAD), NoiseFinding("swap", "unknown", FindingState.UNKNOWN)),
)
BUSY = MachineNoise(NoiseSelfTest(1.2, 0.9), ())


def looks(project: Project) -> int:
    return sum(event["event"] == "noise" for event in project.events())


def environment(result: Result) -> str:
    return next(line for line in render(result).splitlines() if line.startswith("- noise:"))


def test_the_machine_is_looked_at_once_before_the_first_measuring(project: Project) -> None:
    result = project.run(TWO_STEPS)
    names = [event["event"] for event in project.events()]
    assert names.count("noise") == 1
    assert names.index("noise") < names.index("sample")
    seen = result.machine["noise"]
    assert seen["class"] in list(NoiseClass)
    assert seen["self_test"]["spread"] >= 1
    assert {item["name"] for item in seen["findings"]} >= {"other load", "steal"}
    assert seen["class"] in environment(result)


@pytest.mark.parametrize(
    "steps",
    [
        "build: [{id: make, run: 'true'}]",
        "baseline: [{id: count, uses: cachegrind, with: {command: /bin/true}}]",
        "profile: [{id: calls, uses: callgrind, with: {command: /bin/true}}]",
    ],
)
def test_it_is_not_looked_at_where_nothing_has_noise(project: Project, steps: str) -> None:
    result = project.run(f"stages: {{{steps}}}")
    assert looks(project) == 0
    assert "noise" not in result.machine
    assert "- noise:" not in render(result)


def test_a_quick_comparison_does_not_wait_for_it(project: Project) -> None:
    question = Question("true", "true", runs=2)
    found = run(*as_run(question, RunRequest(seed=1, out=Path("out"))), project.told)
    assert "noise" not in found.result.machine


def test_the_class_is_no_part_of_the_identity(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "quick_check", lambda: HOSTILE)
    assert project.run(TWO_STEPS).machine["identity"] == facts()["identity"]


def test_a_hostile_machine_is_stamped_once_and_judged_again_with_the_same_bytes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "quick_check", lambda: HOSTILE)
    finished = project.finish(TWO_STEPS)
    warnings = step(finished.result, "one").warnings
    assert [text for text in warnings if text.startswith(f"{STAMP}; steal 30.0%")] == warnings
    assert step(finished.result, "two").warnings == []
    text = render(finished.result).replace("\\", "")
    assert f"- noise: {STAMP}; steal 30.0%; unknown: swap" in text
    assert f"step one: {STAMP}" in text
    monkeypatch.setattr(noise, "quick_check", lambda: BUSY)
    before = [(finished.folder / name).read_bytes() for name in ("result.json", "report.md")]
    assert to_text(result_of_events(finished.folder)) == to_text(finished.result)
    assert [(finished.folder / name).read_bytes() for name in ("result.json", "report.md")] == before


def test_a_busy_machine_is_said_to_be_busy_without_a_warning(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "quick_check", lambda: BUSY)
    result = project.run(TWO_STEPS)
    assert environment(result).startswith("- noise: busy: slow runs of the same work take 1.20x as long")
    assert step(result, "one").warnings == []


@pytest.mark.parametrize(
    ("seen", "written", "budget"),
    [(HOSTILE, "", 2 * BUDGET), (HOSTILE, ", budget: 3s", 3.0), (BUSY, "", BUDGET)],
)
def test_a_hostile_machine_gets_twice_the_budget_unless_the_author_wrote_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, seen: MachineNoise, written: str, budget: float
) -> None:
    given = []

    class Watched(StopRule):
        def __init__(self, criteria: Any, planned: Any, budget: float, *others: Any, **more: Any) -> None:
            given.append(budget)
            super().__init__(criteria, planned, budget, *others, **more)

    monkeypatch.setattr(bench, "StopRule", Watched)
    monkeypatch.setattr(noise, "quick_check", lambda: seen)
    project.run(f"stages: {{baseline: [{{id: one, uses: command, with: {{command: 'true'}}{written}}}]}}")
    assert given == [budget]
