"""Division of a plan into groups, each of which runs in one job on one machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.plan.groups import Benchmarks, ConflictError, Durations, Group, Lengths, Shard, groups, sharded
from perfflow.session.open_workflow import Opened, open_workflow

HEAD = "perfflow: 1\nname: w\nstages:\n  build:\n    - {id: build, run: make}\n"
COMMAND = "uses: command, with: {command: 'true'}"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Opened]:
    monkeypatch.chdir(tmp_path)

    def of(text: str) -> Opened:
        (tmp_path / "w.yaml").write_text(HEAD + text)
        found = open_workflow("w.yaml")
        found.require_usable(to_run=True)
        return found

    return of


def shared(found: Opened, known: Durations | None = None, lengths: Lengths | None = None, **asked: bool) -> list[Group]:
    every = {item.id for item in found.plan.steps}
    return groups(found.plan, every, known or Durations(), lengths or Lengths(1, 60, lambda _: 9), **asked)


def steps(found: list[Group]) -> list[tuple[str, ...]]:
    return [group.steps for group in found]


def test_what_builds_goes_along_with_each_group(opened: Callable[[str], Opened]) -> None:
    found = opened(f"  baseline:\n    - {{id: a, {COMMAND}}}\n    - {{id: b, {COMMAND}}}\n")

    assert steps(shared(found)) == [("build", "a"), ("build", "b")]
    assert steps(shared(found, lengths=Lengths(600, 3600, lambda _: 9))) == [("build", "a", "b")]


def test_what_is_about_one_benchmark_stays_together(opened: Callable[[str], Opened]) -> None:
    found = opened(
        f"  baseline:\n    - {{id: a, {COMMAND}}}\n    - {{id: b, {COMMAND}}}\n"
        "    - {id: heap, uses: massif, benchmark: a, with: {command: 'true'}}\n"
        "  profile:\n    - {id: p, uses: callgrind, benchmark: b}\n"
        "  verify:\n    - {id: same, uses: same-output, benchmark: a, with: {command: 'true'}}\n"
        "    - {id: tests, run: make test}\n"
    )

    assert steps(shared(found)) == [("build", "a", "heap", "same", "tests"), ("build", "b", "p")]


def test_all_sizes_of_a_growth_are_measured_on_one_machine(opened: Callable[[str], Opened]) -> None:
    found = opened(f"  baseline:\n    - {{id: a, {COMMAND}, matrix: {{n: [1, 2, 3]}}, scaling: n}}\n")

    assert len(shared(found)) == 1


def test_candidates_need_all_that_was_measured(opened: Callable[[str], Opened]) -> None:
    found = opened(
        f"  baseline:\n    - {{id: a, {COMMAND}}}\n    - {{id: b, {COMMAND}}}\n"
        "  profile:\n    - {id: p, uses: callgrind, benchmark: a}\n"
        "  optimize:\n    objective: a\n    steps:\n      - {id: x, technique: algorithm, why: y, run: 'true'}\n"
        "  verify:\n    - {id: tests, run: make test}\n"
    )

    assert len(shared(found)) == 1


def test_a_profile_of_whatever_regressed_goes_along(
    opened: Callable[[str], Opened],
) -> None:
    found = opened(
        f"  baseline:\n    - {{id: a, {COMMAND}}}\n    - {{id: b, {COMMAND}}}\n"
        "  profile:\n    - {id: p, uses: perf, benchmark: '*'}\n"
    )

    assert steps(shared(found, in_trees=True)) == [("build", "a", "p"), ("build", "b", "p")]
    assert steps(shared(found)) == [("build", "a", "b", "p")]


def test_places_are_kept_apart_and_must_agree(opened: Callable[[str], Opened]) -> None:
    rows = f"  baseline:\n    - {{id: a, {COMMAND}, runs-on: x}}\n    - {{id: b, {COMMAND}, runs-on: [y, z]}}\n"
    found = shared(opened(rows), lengths=Lengths(600, 3600, lambda _: 9))

    assert [(group.steps[-1], group.place.labels) for group in found] == [("a", ("x",)), ("b", ("y", "z"))]
    heap = "    - {id: heap, uses: massif, benchmark: a, with: {command: 'true'}, runs-on: y}\n"
    with pytest.raises(ConflictError, match="`a` and `heap` handle the same benchmark, but run on x and y"):
        shared(opened(rows + heap))


def test_a_long_suite_is_shared_out_and_what_is_new_in_it_is_measured(opened: Callable[[str], Opened]) -> None:
    found = opened("  baseline:\n    - {id: s, uses: cargo-bench}\n")
    known = Durations({"build": 0, "s": 400}, {"s": dict.fromkeys("abcd", 1.0)})

    one, other = shared(found, known, Lengths(60, 200, lambda _: 2))

    assert one.parts["s"].named == ("a", "b")
    assert other.parts["s"].among(["a", "b", "c", "d", "new"]) == ["c", "d", "new"]
    assert not one.parts["s"].among(["new"])
    assert (one.seconds, other.seconds) == (200, 200)


@given(
    seconds=st.lists(st.floats(0.1, 5000), min_size=1, max_size=40),
    least=st.floats(1, 600),
    more=st.floats(0, 5000),
    machines=st.integers(1, 30),
)
def test_each_benchmark_is_in_one_group(seconds: list[float], least: float, more: float, machines: int) -> None:
    names = [f"b{number}" for number in range(len(seconds))]
    found = SUITE.plan
    known = Durations({"s": sum(seconds)}, {"s": dict(zip(names, seconds, strict=True))})

    parts = groups(found, {"s"}, known, Lengths(least, least + more, lambda _: machines))

    if parts[0].parts:
        for name in [*names, "new"]:
            assert sum(name in group.parts["s"].among([name]) for group in parts) == 1
        assert sum(group.seconds for group in parts) == pytest.approx(sum(seconds))


def _suite() -> Opened:
    import os
    import tempfile

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("w.yaml").write_text(HEAD + "  baseline:\n    - {id: s, uses: cargo-bench}\n")
            return open_workflow("w.yaml")
        finally:
            os.chdir(here)


SUITE = _suite()


def shards(found: Opened, count: int) -> list[Group]:
    every = {item.id for item in found.plan.steps}
    return [sharded(found.plan, every, Shard(number, count), in_trees=False) for number in range(1, count + 1)]


def test_shards_divide_suites_by_name_and_other_steps_by_order(opened: Callable[[str], Opened]) -> None:
    found = opened(
        "  baseline:\n    - {id: suite, uses: google-benchmark, with: {command: ./suite}}\n"
        f"    - {{id: a, {COMMAND}}}\n    - {{id: b, {COMMAND}}}\n    - {{id: c, {COMMAND}}}\n"
        "  profile:\n    - {id: p, uses: callgrind, benchmark: b}\n"
        "  verify:\n    - {id: tests, run: make test}\n"
    )
    first, second = shards(found, 2)
    assert first.steps == ("build", "suite", "b", "p", "tests")
    assert second.steps == ("build", "suite", "a", "c")
    parts = [group.parts["suite"].among(["z", "x", "y"]) for group in (first, second)]
    assert parts == [["x", "z"], ["y"]]


@given(st.sets(st.text(max_size=5)), st.integers(1, 9), st.integers(0, 8))
def test_shards_have_each_benchmark_once_and_about_as_many(names: set[str], count: int, first: int) -> None:
    parts = [Benchmarks(first=(first + number) % count, turns=count).among(names) for number in range(count)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_what_tries_candidates_cannot_be_divided(opened: Callable[[str], Opened]) -> None:
    found = opened(
        f"  baseline:\n    - {{id: a, {COMMAND}}}\n"
        "  profile:\n    - {id: p, uses: callgrind, benchmark: a}\n"
        "  optimize:\n    objective: a\n    steps:\n      - {id: x, technique: algorithm, why: y, run: 'true'}\n"
        "  verify:\n    - {id: tests, run: make test}\n"
    )
    with pytest.raises(UserError, match="cannot be divided"):
        shards(found, 2)
