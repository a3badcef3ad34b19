"""Attribution of regressions to functions, with made-up costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.plain_data import from_json
from perfflow.model.result import Benchmark, Bounds, PlannedStep, Sample
from perfflow.store.record import Record
from perfflow.store.run_facts import BenchmarkCosts, StepRecord
from perfflow.verdict.attribution import attributions, loss_share_text


def side(value: float) -> Sample:
    return Sample(value=value, low=value, high=value, n=1, samples=[value])


def row(metric: str, baseline: float, candidate: float, **changed: Any) -> Benchmark:
    change = candidate / baseline - 1
    fields: dict[str, Any] = {
        "name": "one",
        "step": "measure",
        "tool": "command",
        "metric": metric,
        "statistic": "p50",
        "unit": "s",
        "better": "lower",
        "confidence": 0.95,
        "baseline": side(baseline),
        "candidate": side(candidate),
        "change": Bounds(value=change, low=change - 0.01, high=change + 0.01),
        "speedup": None,
        "decision": "regressed",
        "level": "action",
        "gating": True,
        "pairs": 20,
        "more": None,
        "warnings": [],
    }
    return Benchmark(**{**fields, **changed})


def cost(name: str, before: float, after: float, totals: tuple[float, float], **more: Any) -> dict[str, Any]:
    """Return a function's samples on both sides, with the noise of that number of samples."""
    found: dict[str, Any] = {"function": name, "file": "a.c", "line": 3, "crate": "", "region": ""}
    for tree, count, total in zip(("baseline", "candidate"), (before, after), totals, strict=True):
        share = count / total
        found[tree] = {"count": count, "share": share, "variance": max(share, 1 / total) * (1 - share) / total}
    return {**found, **more}


def record_with(kind: str, metric: str, functions: dict[str, tuple[float, float]], **more: Any) -> Record:
    totals = (sum(item[0] for item in functions.values()), sum(item[1] for item in functions.values()))
    entry = {
        "benchmark": "one",
        "metric": metric,
        "tool": "perf",
        "kind": kind,
        "ops": None,
        "note": "",
        "calls": dict.fromkeys(("baseline", "candidate"), 3 if kind == "sampled" else 1),
        "totals": {"baseline": totals[0], "candidate": totals[1]},
        "functions": [cost(name, *counts, totals) for name, counts in functions.items()],
    }
    return Record(
        planned={"look": PlannedStep(id="look", stage="", tool="run", role="profile")},
        steps={"look": StepRecord("look", "done", costs=(from_json(BenchmarkCosts, entry | more),))},
    )


def named(record: Record, *rows: Benchmark) -> list[str]:
    return [item.function for item in attributions(record, rows)]


def test_times_are_compared_for_each_operation_and_not_by_share() -> None:
    # 10 + 10 ms became 15 + 10 ms: `same` has a smaller share of the samples, but the same cost.
    record = record_with("sampled", "time", {"slower": (1000, 1200), "same": (1000, 800)})
    (found,) = attributions(record, [row("cpu", 0.020, 0.025)])
    assert found.function == "slower"
    assert found.baseline == pytest.approx(0.010)
    assert found.candidate == pytest.approx(0.015)
    assert found.share == pytest.approx(1.0)
    assert found.samples == [2000, 2000]
    assert found.note == ""


def test_a_difference_within_its_noise_names_nobody() -> None:
    record = record_with("sampled", "time", {"slower": (10, 12), "same": (10, 8)})
    assert named(record, row("cpu", 0.020, 0.025)) == []


def test_few_samples_that_tell_all_the_same_are_said_to_be_few() -> None:
    record = record_with("sampled", "time", {"slower": (100, 300), "same": (100, 100)})
    (found,) = attributions(record, [row("cpu", 0.020, 0.040)])
    assert found.note == "only 200 and 400 samples"


def test_a_function_that_was_not_there_is_told_as_such() -> None:
    record = record_with("counted", "instructions", {"fresh": (0, 500), "same": (1000, 1000)})
    (found,) = attributions(record, [row("instructions", 1000, 1500)])
    assert (found.function, found.baseline, found.candidate, found.change) == ("fresh", 0.0, 500.0, None)
    assert found.note.startswith("not seen before")


def test_counts_are_for_each_operation() -> None:
    record = record_with("counted", "alloc", {"grab": (1000, 1250), "hold": (1000, 1000)}, ops=10)
    (found,) = attributions(record, [row("alloc", 200, 225)])
    assert (found.function, found.baseline, found.candidate, found.share) == ("grab", 100.0, 125.0, 1.0)


@pytest.mark.parametrize(
    "other",
    [
        row("cpu", 0.020, 0.025, decision="same", level="ok"),
        row("cpu", 0.020, 0.025, decision="regressed", level="ok"),
        row("cpu", 0.020, 0.025, name="two"),
        row("rss", 0.020, 0.025),
        row("time", 0.020, 0.025, gating=False),
    ],
)
def test_what_did_not_regress_or_was_not_profiled_has_no_function(other: Benchmark) -> None:
    assert named(record_with("sampled", "time", {"slower": (1000, 1200), "same": (1000, 800)}), other) == []


def test_commits_are_those_that_were_stored() -> None:
    record = record_with("sampled", "time", {"slower": (1000, 1200), "same": (1000, 800)})
    commit = {"revision": "a" * 40, "subject": "s", "author": "A"}
    event = {"event": "blamed", "benchmark": "one", "function": "slower", "file": "a.c", "note": "n"}
    record.fold({**event, "commits": [commit]})
    (found,) = attributions(record, [row("cpu", 0.020, 0.025)])
    assert [each.model_dump() for each in found.commits] == [commit]
    assert found.note == "n"


def test_the_functions_of_a_region_are_added_up() -> None:
    record = record_with("counted", "instructions", {"a": (100, 200), "b": (100, 150), "c": (100, 100)})
    step = record.steps["look"]
    (costs,) = step.costs
    functions = tuple(replace(item, region="decode" if item.function != "c" else "") for item in costs.functions)
    record.steps["look"] = replace(step, costs=(replace(costs, functions=functions),))
    found = list(attributions(record, [row("instructions", 300, 450)]))
    assert [(item.function, item.region_share) for item in found] == [("a", 1.0), ("b", 1.0)]


def test_a_part_that_is_more_than_all_is_not_told_as_a_figure() -> None:
    assert [loss_share_text(share) for share in (0.614, 1.0, 1.004, 1.48)] == ["61%", "100%", "100%", ">100%"]


def test_what_a_rate_lost_is_told_by_the_time_of_each_unit() -> None:
    record = record_with("sampled", "time", {"parse": (5000, 8000), "fold": (3000, 3000)})
    # 1.375 times as long is 0.727 of the rate.
    (found,) = attributions(record, [row("rate", 1e6, 1e6 * 8 / 11, unit="1/s", better="higher")])
    assert (found.function, found.metric, found.unit) == ("parse", "rate", "s")
    assert found.baseline == pytest.approx(1e-6 * 5 / 8)
    assert found.candidate == pytest.approx(1.375e-6 * 8 / 11)
    assert found.share == pytest.approx(1.0)
    assert found.note == "time per unit of `rate`"
    assert not named(record, row("score", 100.0, 70.0, unit="1", better="higher"))
    assert not named(record, row("rate", 1e6, 0.0, unit="1/s", better="higher"))
