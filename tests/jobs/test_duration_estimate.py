"""The expected duration of a run before it starts, and the progress of a suite while it runs."""

from __future__ import annotations

import math
import shutil
from typing import Any

import pytest

from perfflow.cli.step_text import taken_text
from perfflow.jobs.catalog.descriptions import expected_durations, in_all
from perfflow.machine.facts import facts
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Reading, Side
from perfflow.report.expected import ExpectedTime, StoredNoise, span, total_of
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, SamplingProgress
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import StopRule
from perfflow.session.open_workflow import Opened
from perfflow.store.history.connections import SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.history.summary import Point
from perfflow.store.run_folder import HISTORY, HOME
from tests.session.project import Project, flow, step
from tests.store.history.summaries import summary

FLOW = flow(
    "params: {time: 5s}",
    build=["{id: make, run: sleep 0.2}", "{id: tidy, run: 'true', timeout: 90s, retries: 1}"],
    baseline=[
        "{id: usual, uses: command, with: {command: 'true'}}",
        "{id: asked, uses: command, budget: \"${{ params.time }}\", with: {command: 'true'}}",
        "{id: counted, uses: command, runs: 3, with: {command: 'true'}}",
        "{id: suite, uses: google-benchmark, with: {command: ./none}}",
        "{id: named, uses: google-benchmark, budget: 1m, with: {command: ./none}, expect: [named/a, named/b, named/c]}",
        "{id: globbed, uses: google-benchmark, with: {command: ./none}, expect: ['a/*']}",
        "{id: cells, matrix: {n: [1, 2]}, uses: command, with: {command: 'true'}}",
    ],
)
NAP = "{id: nap, uses: command, with: {command: sleep 0.5}%s}"


def told(opened: Opened, *only: str, budget: float | None = None) -> dict[str, str]:
    ids = only or tuple(item.id for item in opened.plan.steps)
    return {name: item.text() for name, item in expected_durations(opened, ids, budget=budget).items() if item}


def test_before_a_first_run_the_limits_are_told_and_what_is_not_known_is_left_out(project: Project) -> None:
    opened = project.open(FLOW)
    assert told(opened) == {
        "tidy": "at most 3 min (timeout)",
        "usual": "at most 20 s",
        "asked": "at most 5 s",
        "suite": "at most 20 s per benchmark",
        "named": "at most 3 min: 3 benchmarks x 60 s",
        "globbed": "at most 20 s per benchmark",
        "cells[n=1]": "at most 20 s",
        "cells[n=2]": "at most 20 s",
    }
    ids = ["make", "usual", "asked"]
    said = in_all(opened.plan, expected_durations(opened, ids))
    assert said.text() == "at most 25 s, for usual, asked; unknown until the first run: make"
    assert said.to_json()["seconds"] == 25


@pytest.mark.long  # measures several times
def test_earlier_runs_of_the_same_workflow_tell_how_long_it_takes(project: Project) -> None:
    text = flow("params: {n: 1}", build="{id: make, run: sleep 0.2}", baseline=NAP % ", runs: 3")
    first = step(project.run(text), "nap").seconds
    opened = project.open(text)
    known = expected_durations(opened, ["nap"])["nap"]
    assert known == ExpectedTime(first, runs=1, benchmarks=1)
    assert told(opened)["nap"] == f"about {span(first)}, from the last run"
    second = step(project.run(text), "nap").seconds
    known = expected_durations(opened, ["nap"])["nap"]
    assert known
    assert known == ExpectedTime(known.seconds, runs=2, benchmarks=1)
    assert known.seconds == pytest.approx((first + second) / 2)
    in_turn = in_all(opened.plan, expected_durations(opened, ["make", "nap"]))
    assert in_turn.seconds > (first + second) / 2
    assert in_turn.text() == f"about {span(in_turn.seconds)}, from the last 2 runs"
    assert told(project.open(text, "n=2")) == {}, "of other parameters nothing is known"
    shutil.rmtree(project.folder / HOME / "runs")
    assert expected_durations(opened, ["nap"])["nap"] == known, "a clone that has only a history knows it as well"
    with_budget = told(opened, budget=60.0)
    assert with_budget["nap"].endswith(", from the last 2 runs with another budget")
    assert with_budget["make"].endswith(", from the last 2 runs"), "builds take as long with any budget"
    project.run(text, budget=60.0)
    assert told(opened, budget=60.0)["nap"].endswith(", from the last run"), "runs with this budget are better"
    assert told(opened)["nap"].endswith(", from the last 2 runs")


def test_the_runs_budget_is_the_limit_of_all_steps_together() -> None:
    steps = {
        "build": ExpectedTime(30.0, runs=2),
        "a": ExpectedTime(40.0, benchmarks=2, each=20.0),
        "b": ExpectedTime(None, each=20.0),
    }
    measuring = frozenset({"a", "b"})
    assert total_of(steps, measuring).unknown == ("b",)
    with_budget = total_of(steps, measuring, 35.0)
    assert (with_budget.seconds, with_budget.unknown) == (35.0, ())
    assert with_budget.text() == "at most 35 s, partly from the last 2 runs"
    assert total_of(steps, measuring, 20.0).seconds == 30.0, "builds are not cut short"
    assert total_of({"a": steps["a"]}, measuring, 100.0).seconds == 40.0
    assert total_of({}, frozenset()).text() == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "under 1 s"), (12.4, "12 s"), (89, "89 s"), (240, "4 min"), (9000, "2.5 h")]
)
def test_times_are_told_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_suite_says_how_many_of_its_benchmarks_had_their_turn(project: Project) -> None:
    text = flow(baseline="{id: suite, run: 'true', parse: {regex: '(?P<time>.)', units: {time: s}}}")
    suite = project.open(text).plan.steps[0]

    def progress(*names: str) -> list[SamplingProgress]:
        def taker(name: str) -> BenchmarkToSample:
            return BenchmarkToSample(name, (Side.BASELINE,), lambda _: (Reading("time", 1.0, name),))

        said: list[SamplingProgress] = []
        stop_rule = StopRule(Criteria(), suite, math.inf)
        sampling = StepSampling(suite.id, PairScheduler(1), stop_rule, lambda _: None, {}, said.append)
        sampling.take_until_decided([taker(name) for name in names], math.inf, math.inf)
        return said

    said = progress(*(f"b{number}" for number in range(64)))
    # Warming up takes long, too.
    for count, part in ((0, said[:64]), (1, said[64:128])):
        assert [taken.turn for taken in part] == [(number, 64) for number in range(1, 65)]
        assert {taken.count for taken in part} == {count}
    alone = progress("b")
    assert {taken.turn for taken in alone} == {(1, 1)}
    assert min(taken.count for taken in alone) == 1


def test_a_plan_starts_nothing_to_tell_the_time(project: Project) -> None:
    """Listing a suite's benchmarks would start the project's own program."""
    program = project.write("suite", "#!/bin/sh\ntouch was-run\n", executable=True)
    opened = project.open(flow(baseline=f"{{id: s, uses: google-benchmark, with: {{command: {program}}}}}"))
    assert told(opened) == {"s": "at most 20 s per benchmark"}
    assert not (project.folder / "was-run").exists()


def _stored(opened: Opened, half: float, **changed: Any) -> None:
    """Add a run of the benchmark nap: 25 samples, median 1 s, and an interval of ``half`` s on either side."""
    plan = opened.plan
    point = Point("baseline", "nap", "time", "p50", "s", "lower", 1.0, 1.0 - half, 1.0 + half, 25)
    fields = {"machine": str(facts()["identity"]), "workflow": plan.workflow.name, **changed}
    made = summary(len(changed), points=(point,), **fields)
    (opened.root / HOME).mkdir(exist_ok=True)
    history = History(SqliteConnection(opened.root / HOME / HISTORY))
    assert history.add([made]) == 1
    history.close()


@pytest.mark.parametrize(
    ("noise", "told"),
    [
        (StoredNoise(0.012, 40, 0.05), "noise 1.2%, about 40 pairs to detect 5%"),
        (StoredNoise(0.9, 5_001, 0.05), "noise 90.0%, too much to detect 5%"),
        (StoredNoise(37.47, 6_778_161, 0.05), "noise over 100%, too much to detect 5%"),
    ],
)
def test_noise_is_told_in_numbers_that_mean_something(noise: StoredNoise, told: str) -> None:
    assert noise.text() == told
    taken = SamplingProgress("nap", 34, "pair", (1, 1))
    expected_text = "34 of about 40 pairs" if noise.is_affordable else "34 pairs"
    assert taken_text(taken, ExpectedTime(20.0, noise=noise)) == expected_text


def test_the_history_tells_the_noise_and_how_many_pairs_it_takes(project: Project) -> None:
    opened = project.open(flow(baseline=NAP % ""))
    _stored(opened, 0.3, machine="another")
    assert told(opened)["nap"] == "at most 20 s", "of another machine nothing follows"
    _stored(opened, 0.097)
    known = expected_durations(opened, ["nap"])["nap"]
    assert known
    # Two medians of 25 samples differ by ±9.7% * sqrt(2); 7.53 times as many samples reduce this to 5%.
    assert known.noise
    assert known.noise.share == pytest.approx(0.097 * 5 / 1.96 / 1.2533)
    assert known.text() == "at most 20 s; noise 19.7%, about 189 pairs to detect 5%"
    assert known.to_json()["spread"]["pairs"] == 189
    assert taken_text(SamplingProgress("nap", 34, "pair", (1, 1)), known) == "34 of about 189 pairs"
    (opened.root / HOME / HISTORY).write_bytes(b"no database")
    assert told(opened)["nap"] == "at most 20 s"
