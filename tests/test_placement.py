"""The simulation of a night on a cluster: small cases by hand, what always holds, and the figures of the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.placement import Costs, Job, Placed, recorded, shared_out, simulate
from perfflow.plan.groups import Lengths
from tests.modules import run_module

COSTS = Costs(start=1.0, build=5.0, again=2.0)
FREE = Costs(0.0, 0.0, 0.0)


def times(placed: list[Placed]) -> list[tuple[int, float, float]]:
    return [(each.node[1], each.began, each.ended) for each in placed]


def test_a_third_job_waits_for_the_node_that_is_free_first() -> None:
    jobs = [Job("a", 10.0, 0.0), Job("a", 4.0, 0.0), Job("a", 10.0, 0.0)]
    placed = simulate(jobs, {"a": 2}, COSTS)
    # The first starts and builds until 6; what it built is with the second at 8, and with the third at 12 + 1 + 2.
    assert times(placed) == [(0, 0.0, 16.0), (1, 0.0, 12.0), (1, 12.0, 25.0)]
    assert [each.overhead for each in placed] == [6.0, 8.0, 3.0]


def test_a_job_does_not_start_before_it_is_submitted() -> None:
    placed = simulate([Job("a", 1.0, 30.0), Job("a", 1.0, 0.0)], {"a": 1}, FREE)
    assert times(placed) == [(0, 0.0, 1.0), (0, 30.0, 31.0)]


def test_a_kind_of_node_does_not_wait_for_another() -> None:
    jobs = [Job("a", 100.0, 0.0), Job("a", 100.0, 0.0), Job("b", 1.0, 0.0)]
    assert simulate(jobs, {"a": 1, "b": 1}, FREE)[-1].ended == 1.0


@given(
    st.lists(
        st.builds(Job, st.sampled_from("ab"), st.integers(1, 50).map(float), st.integers(0, 60).map(float)), max_size=30
    ),
    st.integers(1, 4),
    st.sampled_from([COSTS, FREE]),
)
def test_all_work_is_done_by_nodes_that_do_one_thing_at_a_time(jobs: list[Job], nodes: int, costs: Costs) -> None:
    placed = simulate(jobs, {"a": nodes, "b": nodes}, costs)
    assert Counter(each.job for each in placed) == Counter(jobs)
    by_node = defaultdict[tuple[str, int], list[Placed]](list)
    for each in placed:
        assert each.node[0] == each.job.kind
        assert each.node[1] < nodes
        by_node[each.node].append(each)
    ends = {each.ended for each in placed}
    for own in by_node.values():
        own.sort(key=lambda each: each.began)
        assert all(one.ended <= other.began for one, other in pairwise(own))
    for kind in {job.kind for job in jobs}:
        first, *others = (each for each in placed if each.job.kind == kind)
        assert first.overhead == costs.start + costs.build
        for each in others:
            waited = each.overhead - costs.start - costs.again
            assert waited == max(0.0, first.began + costs.build - each.began)
    # Nothing waits for anything but a node.
    assert all(each.began == each.job.submitted or each.began in ends for each in placed)
    for each in placed:
        waits = each.job.submitted < each.began
        busy = [other for other in placed if other.job.kind == each.job.kind and other.began < each.began < other.ended]
        at_end = [other for other in placed if other.job.kind == each.job.kind and other.ended == each.began]
        assert not waits or len(busy) + len(at_end) >= nodes


def test_each_benchmark_is_in_one_group_of_each_kind_of_node() -> None:
    seconds = {"x86": [30.0] * 40, "arm": [60.0] * 40}
    found = shared_out(4, seconds, Lengths(60.0, 300.0, machines=lambda _: 6))
    for kind, each in (("x86", 30.0), ("arm", 60.0)):
        own = [group for group in found if group.place.labels == (kind,)]
        assert sum(group.seconds for group in own) == pytest.approx(40 * each)
        for number in range(40):
            step, name = f"s{number % 4}[node={kind}]", f"b{number}"
            having = [group for group in own if step in group.steps and group.parts[step].among([name])]
            assert len(having) == 1


def test_the_night_is_simulated_with_recorded_durations() -> None:
    assert len(recorded()) == 2180
    words = ["--benchmarks", "60", "--suites", "3", "--kinds", "2", "--nodes", "1", "2", "--group", "100-200"]
    done = run_module("benchmarks.placement", *words)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[:2] for row in rows[1:3]] == [["| 1", "100 s to 200 s"], ["| 2", "100 s to 200 s"]]
    assert "120 rows of reports" in done.stdout
