"""Attribution of regressions to functions, with made-up costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.plain_data import from_json
from perfflow.model.result import Benchmark, PlannedStep, Sample
from perfflow.store.record import Record
from perfflow.store.run_facts import BenchmarkCosts, StepRecord
from perfflow.verdict.attribution import attributions, loss_share_text
from tests.verdict.comparisons import shown_row


def row(metric: str, baseline: float, candidate: float, **changed: Any) -> Benchmark:
    """Return a proven regression of benchmark ``one``."""
    sides = (Sample(value=value, low=value, high=value, n=1, samples=[value]) for value in (baseline, candidate))
    change = candidate / baseline - 1
    keys: dict[str, Any] = dict(zip(("baseline", "candidate"), sides, strict=True)) | {"name": "one", "metric": metric}
    return shown_row("regressed", "action", change, change - 0.01, change + 0.01, **(keys | changed))


def cost(name: str, before: float, after: float, totals: tuple[float, float], **more: Any) -> dict[str, Any]:
    """Return a function's samples on both sides, with the noise of that number of samples."""
    found: dict[str, Any] = {"function": name, "file": "a.c", "line": 3, "crate": "", "region": ""}
    for tree, count, total in zip(("baseline", "candidate"), (before, after), totals, strict=True):
        share = count / total
        found[tree] = {"count": count, "share": share, "variance": max(share, 1 / total) * (1 - share) / total}
    return {**found, **more}


def record_with(kind: str, metric: str, functions: dict[str, tuple[float, float]], **more: Any) -> Record:
    totals = (sum(item[0] for item in functions.values()), sum(item[1] for item in functions.values()))
    entry: dict[str, Any] = {
        "benchmark": "one",
        "metric": metric,
        "tool": "perf",
        "kind": kind,
        "ops": None,
        "note": "",
    }
    entry["calls"] = dict.fromkeys(("baseline", "candidate"), 3 if kind == "sampled" else 1)
    entry["totals"] = {"baseline": totals[0], "candidate": totals[1]}
    entry["functions"] = [cost(name, *counts, totals) for name, counts in functions.items()]
    return Record(
        planned={"look": PlannedStep(id="look", stage="", tool="run", role="profile")},
        steps={"look": StepRecord("look", "done", costs=(from_json(BenchmarkCosts, entry | more),))},
    )


SAMPLED = record_with("sampled", "time", {"slower": (1000, 1200), "same": (1000, 800)})
CPU = row("cpu", 0.020, 0.025)
OF_RATE = record_with("sampled", "time", {"parse": (5000, 8000), "fold": (3000, 3000)})
RATE: dict[str, Any] = {"unit": "1/s", "better": "higher"}
LESS = row("rate", 1e6, 1e6 * 8 / 11, **RATE)


FEW = record_with("sampled", "time", {"slower": (100, 300), "same": (100, 100)})
NEW = record_with("counted", "instructions", {"fresh": (0, 500), "same": (1000, 1000)})
EACH = record_with("counted", "alloc", {"grab": (1000, 1250), "hold": (1000, 1000)}, ops=10)


@pytest.mark.parametrize(
    ("record", "regressed", "function", "costs", "note"),
    [
        # 10 + 10 ms became 15 + 10 ms: `same` has a smaller share of the samples, but the same cost.
        (SAMPLED, CPU, "slower", (0.010, 0.015), ""),
        (FEW, row("cpu", 0.020, 0.040), "slower", (0.010, 0.030), "only 200 and 400 samples"),
        (NEW, row("instructions", 1000, 1500), "fresh", (0.0, 500.0), "not seen before"),
        # Counts are for each operation.
        (EACH, row("alloc", 200, 225), "grab", (100.0, 125.0), ""),
        # What a rate lost is told by the time of each unit: 1.375 times as long is 0.727 of the rate.
        (OF_RATE, LESS, "parse", (1e-6 * 5 / 8, 1.375e-6 * 8 / 11), "time per unit of `rate`"),
    ],
)
def test_the_function_that_lost(record: Record, regressed: Benchmark, function: str, costs: Any, note: str) -> None:
    (found,) = attributions(record, [regressed])
    assert (found.function, found.note[: len(note)], bool(found.note)) == (function, note, bool(note))
    assert (found.baseline, found.candidate, found.share) == pytest.approx((*costs, 1.0))


def test_what_else_is_known_of_a_function() -> None:
    (sampled,), (fresh,) = attributions(SAMPLED, [CPU]), attributions(NEW, [row("instructions", 1000, 1500)])
    assert (sampled.samples, fresh.change) == ([2000, 2000], None)
    (rate,) = attributions(OF_RATE, [LESS])
    assert (rate.metric, rate.unit) == ("rate", "s")


@pytest.mark.parametrize(
    "other",
    [
        *[row("cpu", 0.020, 0.025, decision=decision, level="ok") for decision in ("same", "regressed")],
        *[row("cpu", 0.020, 0.025, name="two"), row("rss", 0.020, 0.025), row("time", 0.020, 0.025, gating=False)],
        *[row("score", 100.0, 70.0, unit="1", better="higher"), row("rate", 1e6, 0.0, **RATE)],
    ],
    ids=lambda other: f"{other.name} {other.metric} {other.decision}",
)
def test_what_did_not_regress_or_was_not_profiled_has_no_function(other: Benchmark) -> None:
    assert list(attributions(SAMPLED, [other])) == []


def test_a_difference_within_its_noise_names_nobody() -> None:
    record = record_with("sampled", "time", {"slower": (10, 12), "same": (10, 8)})
    assert list(attributions(record, [CPU])) == []


def test_commits_are_those_that_were_stored() -> None:
    record = record_with("sampled", "time", {"slower": (1000, 1200), "same": (1000, 800)})
    commit = {"revision": "a" * 40, "subject": "s", "author": "A"}
    event = {"event": "blamed", "benchmark": "one", "function": "slower", "file": "a.c", "note": "n"}
    record.fold({**event, "commits": [commit]})
    (found,) = attributions(record, [CPU])
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
