"""A run that machines of several kinds measured is kept apart by kind."""

from __future__ import annotations

from perfflow.model.result import JobResult, NodeResult, Result
from perfflow.store.history.summary import summaries_of
from tests.verdict.records import ended, judged, pairs


def several() -> Result:
    """Return the result of a run with two benchmarks."""
    values = [1.0, 1.01, 0.99] * 5
    return judged(*pairs("b", values, values), ended("b"), *pairs("c", values, values), ended("c"))


def test_figures_of_two_kinds_of_machine_are_two_summaries() -> None:
    result = several()
    jobs = [JobResult(group="g1", id="1", attempt=1, state="done", seconds=1)]
    nodes = [NodeResult(name=f"n{kind}", identity=kind, machine={"identity": kind}, jobs=jobs) for kind in "ab"]
    rows = [row.model_copy(update={"node": f"n{'ab'[number % 2]}"}) for number, row in enumerate(result.benchmarks)]
    assert len(rows) > 1

    shared = result.model_copy(update={"nodes": nodes, "benchmarks": rows})
    found = list(summaries_of(shared))

    assert [summary.machine for summary in found] == ["a", "b"]
    assert len({summary.id for summary in found}) == 2
    kept = [{point.benchmark for point in summary.points} for summary in found]
    assert kept == [{row.name for row in rows[start::2] if row.baseline} for start in (0, 1)]


def test_figures_of_machines_of_one_kind_are_one_summary() -> None:
    result = several()
    nodes = [NodeResult(name=name, identity="a", machine={"identity": "a"}, jobs=[]) for name in ("n1", "n2")]
    rows = [row.model_copy(update={"node": f"n{1 + number % 2}"}) for number, row in enumerate(result.benchmarks)]

    (found,) = summaries_of(result.model_copy(update={"nodes": nodes, "benchmarks": rows}))

    assert (found.id, found.machine) == (result.run.id, "a")
    (alone,) = summaries_of(result)
    assert found.points == alone.points
