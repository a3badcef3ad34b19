"""Order of steps, and reasons for skipped steps, with a fake performer."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.execute.schedule import Schedule, StepStatus
from perfflow.plan.plan import Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.expression_text import ExpressionError
from tests.execute.plans import Fake, allows, item, plan, statuses, walk

FAILED, DONE, TIMEOUT, SKIPPED = StepStatus.FAILED, StepStatus.DONE, StepStatus.TIMEOUT, StepStatus.SKIPPED


BOTH = pytest.mark.parametrize("jobs", [1, 3])


def numbered(count: int) -> list[Planned]:
    return [item(f"s{number}") for number in range(count)]


def chain(count: int) -> list[Planned]:
    """Return steps of which each waits for the one before."""
    return [item("s0"), *(item(f"s{number}", f"s{number - 1}") for number in range(1, count))]


@BOTH
def test_steps_run_after_what_they_wait_for(jobs: int) -> None:
    fake = Fake()
    walk(fake, item("a"), item("b", "a"), item("c", needs=("a",)), item("d", "b", "c"), jobs=jobs)
    assert sorted(fake.order) == ["a", "b", "c", "d"]
    assert (fake.order[0], fake.order[-1]) == ("a", "d")


def test_free_steps_keep_the_order_of_the_file_and_only_selected_steps_run() -> None:
    fake = Fake()
    walk(fake, item("b"), item("a"), item("d", "b"), item("c"))
    assert fake.order == ["b", "a", "d", "c"]
    fake = Fake()
    walk(fake, item("a"), item("b", needs=("a",)), item("c", "b"), selected=["b", "c"])
    assert fake.order == ["b", "c"]


@BOTH
def test_a_watching_step_waits_for_the_step_it_watches(jobs: int) -> None:
    """A check with `needs: []` runs a command that the build creates, so it must run after the build."""
    fake = Fake()
    walk(fake, item("build"), item("bench", "build", alone=True), item("check", watches="bench"), jobs=jobs)
    assert fake.order == ["build", "bench", "check"]


@BOTH
@pytest.mark.parametrize("end", [FAILED, TIMEOUT])
def test_a_failure_blocks_all_that_comes_after_it(jobs: int, end: StepStatus) -> None:
    fake = Fake(a=end)
    runs = walk(fake, item("a"), item("b", "a"), item("c", needs=("b",)), jobs=jobs)
    assert statuses(runs) == {"a": end.value, "b": "skipped", "c": "skipped"}
    how = "failed" if end is FAILED else "ran into its time limit"
    assert (runs["b"].reason, runs["c"].reason) == (f"`a` {how}",) * 2


def test_after_a_failure_free_steps_are_not_started_either_unless_told_to_keep_going() -> None:
    items = item("a"), item("free"), item("b", "a")
    runs = walk(Fake(a=FAILED), *items)
    assert runs["free"].reason == "stopped after `a` failed"
    runs = walk(Fake(a=FAILED), *items, keep_going=True)
    assert statuses(runs) == {"a": "failed", "free": "done", "b": "skipped"}


@BOTH
@pytest.mark.parametrize(
    ("first", "end", "named"),
    [
        (item("a", role=Role.PROFILE), FAILED, "skipped"),
        (item("a", step={"continue-on-error": True}), FAILED, "done"),
        (item("a"), StepStatus.CACHED, "done"),
        (item("a"), SKIPPED, "skipped"),
    ],
    ids=["failed profile", "allowed failure", "cached", "skipped requirement"],
)
def test_what_holds_up_at_most_who_names_it(jobs: int, first: Planned, end: StepStatus, named: str) -> None:
    runs = walk(Fake(a=end), first, item("next", "a"), item("names-it", needs=("a",)), jobs=jobs)
    assert statuses(runs) == {"a": end.value, "next": "done", "names-it": named}
    if end is SKIPPED:
        assert runs["names-it"].reason == "`a` was skipped"


@pytest.mark.parametrize(("end", "salvage", "after"), [(DONE, "skipped", "done"), (FAILED, "done", "skipped")])
def test_conditions(end: StepStatus, salvage: str, after: str) -> None:
    steps = [item(name, "a", step={"if": text}) for name, text in CONDITIONS.items()]
    runs = walk(Fake(a=end), item("a"), *steps, item("after", "clean-up"))
    assert statuses(runs) == {
        "a": end.value,
        "salvage": salvage,
        "clean-up": "done",
        "never": "skipped",
        "after": after,
    }
    if end is FAILED:
        assert runs["after"].reason == "stopped after `a` failed"


CONDITIONS = {"salvage": "failure()", "clean-up": "always()", "never": "false"}


def test_a_false_condition_blocks_nothing() -> None:
    runs = walk(Fake(), item("a", step={"if": "false"}), item("b", "a"))
    assert runs["a"].reason == "`if: false` is false"
    assert runs["b"].status is DONE


@BOTH
def test_a_condition_that_cannot_be_read_fails_its_step_and_not_the_run(jobs: int) -> None:
    def unreadable(planned: Planned, blocked: bool) -> bool:
        if planned.id == "s1":
            raise ExpressionError("steps.s0.outputs has no x")
        return allows(planned, blocked)

    schedule = Schedule(plan(*chain(3)), Fake(), unreadable, selected=["s0", "s1", "s2"], jobs=jobs)
    runs = {run.planned.id: run for run in schedule}
    assert statuses(runs) == {"s0": "done", "s1": "failed", "s2": "skipped"}
    assert runs["s1"].reason == "`if`: steps.s0.outputs has no x"


def test_free_steps_run_at_the_same_time_and_never_more_than_asked() -> None:
    barrier = threading.Barrier(3)
    fake = Fake(**{f"s{number}": lambda: void(barrier.wait(timeout=20)) for number in range(3)})
    walk(fake, *numbered(3), jobs=3)
    assert fake.most == 3
    fake = Fake()
    walk(fake, *numbered(50), jobs=4)
    assert fake.most <= 4


def void(_: object) -> None:
    """Drop the number that a barrier's wait returns: the end of a fake returns None."""


@given(
    graph=st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 11), max_size=3), st.booleans()), min_size=1, max_size=12
    ),
    jobs=st.integers(1, 5),
    keep_going=st.booleans(),
)
def test_any_graph_runs_each_step_once_in_order_and_alone_means_alone(
    graph: list[tuple[bool, set[int], bool]], jobs: int, keep_going: bool
) -> None:
    items = [
        item(f"s{number}", *(f"s{other}" for other in sorted(before) if other < number), alone=alone)
        for number, (alone, before, _) in enumerate(graph)
    ]
    fake = Fake(**{f"s{number}": FAILED for number, (_, _, fails) in enumerate(graph) if fails})
    runs = walk(fake, *items, jobs=jobs, keep_going=keep_going)
    assert set(runs) == {found.id for found in items}
    assert len(fake.order) == len(set(fake.order))
    position = {name: number for number, name in enumerate(fake.order)}
    for found in items:
        if found.alone:
            assert not fake.beside.get(found.id)
        for before in found.after:
            if runs[found.id].status is not SKIPPED:
                assert position[before] < position[found.id]
                assert runs[before].status is DONE
    if jobs == 1:
        assert fake.most == 1


def test_threads_are_as_many_as_steps_at_a_time_and_not_as_many_as_steps() -> None:
    seen: set[int] = set()
    fake = Fake(**{f"s{number}": lambda: seen.add(threading.get_ident()) for number in range(40)})
    walk(fake, *numbered(40), jobs=2)
    assert len(fake.order) == 40
    assert 1 <= len(seen) <= 2


def test_steps_beside_a_machine_alone_step_wait_for_it_and_go_on_after_it() -> None:
    fake = Fake()
    items = item("a"), item("b"), item("bench", alone=True), item("c"), item("d")
    walk(fake, *items, jobs=4)
    assert set(fake.order[:2]) == {"a", "b"}
    assert fake.order[2] == "bench"
    assert fake.beside["bench"] == set()


@BOTH
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a defect")])
def test_an_exception_in_a_step_ends_the_walk_and_stops_the_others(jobs: int, error: BaseException) -> None:
    halted = threading.Event()
    stops: list[bool] = []

    def stop() -> None:
        stops.append(True)
        halted.set()

    fake = Fake(a=error, b=lambda: void(halted.wait(20)))
    before = threading.active_count()
    with pytest.raises(type(error)):
        walk(fake, item("a"), item("b"), item("c", "a", "b"), jobs=jobs, stop=stop)
    assert "c" not in fake.order
    assert threading.active_count() == before
    if jobs > 1:
        assert stops == [True]


def test_leaving_the_walk_early_stops_what_runs() -> None:
    halted = threading.Event()
    fake = Fake(slow=lambda: void(halted.wait(20)))
    names = ["quick", "slow"]
    walking = iter(Schedule(plan(*map(item, names)), fake, allows, selected=names, jobs=2, stop=halted.set))
    assert next(walking).planned.id == "quick"
    assert isinstance(walking, Generator)
    walking.close()
    assert halted.is_set()
    assert not fake.running


@BOTH
def test_a_chain_of_5000_and_a_fan_of_500(jobs: int) -> None:
    fake = Fake()
    walk(fake, *chain(5000), jobs=jobs)
    assert fake.order == [f"s{number}" for number in range(5000)]
    fake = Fake()
    leaves = [f"leaf{number}" for number in range(500)]
    walk(fake, item("root"), *(item(leaf, "root") for leaf in leaves), item("end", *leaves), jobs=jobs)
    assert (fake.order[0], fake.order[-1], len(fake.order)) == ("root", "end", 502)


def test_a_failure_at_the_head_of_a_chain_of_5000_skips_the_rest() -> None:
    runs = walk(Fake(s0=FAILED), *chain(5000))
    assert {run.status for name, run in runs.items() if name != "s0"} == {SKIPPED}
