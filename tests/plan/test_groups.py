"""Division of a plan into groups, each of which runs in one job on one machine."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.plan.groups import Benchmarks, ConflictError, Durations, Group, Lengths, Shard, groups, sharded
from perfflow.session.open_workflow import Opened, open_workflow

STEPS = {
    "build": "{id: build, run: make}",
    "a": "{id: a, uses: command, with: {command: 'true'}}",
    "b": "{id: b, uses: command, with: {command: 'true'}}",
    "c": "{id: c, uses: command, with: {command: 'true'}}",
    "heap": "{id: heap, uses: massif, benchmark: a, with: {command: 'true'}}",
    "sizes": "{id: sizes, uses: command, with: {command: 'true'}, matrix: {n: [1, 2, 3]}, scaling: n}",
    "on x": "{id: a, uses: command, with: {command: 'true'}, runs-on: x}",
    "on y and z": "{id: b, uses: command, with: {command: 'true'}, runs-on: [y, z]}",
    "heap on y": "{id: heap, uses: massif, benchmark: a, with: {command: 'true'}, runs-on: y}",
    "suite": "{id: s, uses: cargo-bench}",
    "calls of b": "{id: p, uses: callgrind, benchmark: b}",
    "any profile": "{id: p, uses: perf, benchmark: '*'}",
    "same": "{id: same, uses: same-output, benchmark: a, with: {command: 'true'}}",
    "tests": "{id: tests, run: make test}",
    "candidate": "{id: x, technique: algorithm, why: y, run: 'true'}",
}
LARGE = Lengths(600, 3600, lambda _: 9)


def opened(**stages: list[str]) -> Opened:
    """Open a workflow that builds, and has some of the steps in these stages."""
    stages = {"build": ["build"], **stages}
    lines = [f"  {stage}:\n" + "".join(f"    - {STEPS[step]}\n" for step in steps) for stage, steps in stages.items()]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("w.yaml").write_text("perfflow: 1\nname: w\nstages:\n" + "".join(lines))
        found = open_workflow("w.yaml")
    found.require_usable(to_run=True)
    return found


def shared(found: Opened, known: Durations | None = None, lengths: Lengths | None = None, **asked: bool) -> list[Group]:
    every = {item.id for item in found.plan.steps}
    return groups(found.plan, every, known or Durations(), lengths or Lengths(1, 60, lambda _: 9), **asked)


def steps(found: list[Group]) -> list[str]:
    return [" ".join(group.steps) for group in found]


TRYING = {"baseline": ["a", "b"], "profile": ["calls of b"], "optimize": ["candidate"], "verify": ["tests"]}


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ({"baseline": ["a", "b"]}, ["build a", "build b"]),
        (
            {"baseline": ["a", "b", "heap"], "profile": ["calls of b"], "verify": ["same", "tests"]},
            ["build a heap same tests", "build b p"],
        ),
        ({"baseline": ["sizes"]}, ["build sizes[n=1] sizes[n=2] sizes[n=3]"]),
        (TRYING, ["build a b p x tests"]),
        ({"baseline": ["a", "b"], "profile": ["any profile"]}, ["build a b p"]),
    ],
    ids=[
        *("what builds goes along with each group", "what is about one benchmark stays together"),
        *("all sizes of a growth are measured on one machine", "candidates need all that was measured"),
        "a profile of any benchmark needs them all",
    ],
)
def test_steps_that_need_each_other_are_in_one_group(stages: dict[str, list[str]], expected: list[str]) -> None:
    assert steps(shared(opened(**stages))) == expected


def test_short_steps_share_a_group() -> None:
    assert steps(shared(opened(baseline=["a", "b"]), lengths=LARGE)) == ["build a b"]


def test_a_profile_of_whatever_regressed_goes_along() -> None:
    found = opened(baseline=["a", "b"], profile=["any profile"])
    assert steps(shared(found, in_trees=True)) == ["build a p", "build b p"]


def test_places_are_kept_apart_and_must_agree() -> None:
    found = shared(opened(baseline=["on x", "on y and z"]), lengths=LARGE)
    assert [(group.steps[-1], group.place.labels) for group in found] == [("a", ("x",)), ("b", ("y", "z"))]
    with pytest.raises(ConflictError, match="`a` and `heap` handle the same benchmark, but run on x and y"):
        shared(opened(baseline=["on x", "on y and z", "heap on y"]))


def test_a_long_suite_is_shared_out_and_what_is_new_in_it_is_measured() -> None:
    known = Durations({"build": 0, "s": 400}, {"s": dict.fromkeys("abcd", 1.0)})
    one, other = shared(SUITE, known, Lengths(60, 200, lambda _: 2))
    assert one.parts["s"].named == ("a", "b")
    assert other.parts["s"].among(["a", "b", "c", "d", "new"]) == ["c", "d", "new"]
    assert not one.parts["s"].among(["new"])
    assert (one.seconds, other.seconds) == (200, 200)


SUITE = opened(baseline=["suite"])


@given(
    seconds=st.lists(st.floats(0.1, 5000), min_size=1, max_size=40),
    least=st.floats(1, 600),
    more=st.floats(0, 5000),
    machines=st.integers(1, 30),
)
def test_each_benchmark_is_in_one_group(seconds: list[float], least: float, more: float, machines: int) -> None:
    names = [f"b{number}" for number in range(len(seconds))]
    known = Durations({"s": sum(seconds)}, {"s": dict(zip(names, seconds, strict=True))})

    parts = groups(SUITE.plan, {"s"}, known, Lengths(least, least + more, lambda _: machines))

    if parts[0].parts:
        for name in [*names, "new"]:
            assert sum(name in group.parts["s"].among([name]) for group in parts) == 1
        assert sum(group.seconds for group in parts) == pytest.approx(sum(seconds))


def shards(found: Opened, count: int) -> list[Group]:
    every = {item.id for item in found.plan.steps}
    return [sharded(found.plan, every, Shard(number, count), in_trees=False) for number in range(1, count + 1)]


def test_shards_divide_suites_by_name_and_other_steps_by_order() -> None:
    found = opened(baseline=["suite", "a", "b", "c"], profile=["calls of b"], verify=["tests"])
    both = shards(found, 2)
    assert steps(both) == ["build s b p tests", "build s a c"]
    assert [group.parts["s"].among(["z", "x", "y"]) for group in both] == [["x", "z"], ["y"]]


@given(st.sets(st.text(max_size=5)), st.integers(1, 9), st.integers(0, 8))
def test_shards_have_each_benchmark_once_and_about_as_many(names: set[str], count: int, first: int) -> None:
    parts = [Benchmarks(first=(first + number) % count, turns=count).among(names) for number in range(count)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_what_tries_candidates_cannot_be_divided() -> None:
    with pytest.raises(UserError, match="cannot be divided"):
        shards(opened(**TRYING), 2)
