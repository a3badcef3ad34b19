"""Folding events into a record, also those of jobs on other machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Hotspot, Reading, Side
from perfflow.store.record import GroupJob, merged, reading_from_json, reading_to_json
from perfflow.store.run_facts import FoundHotspot, StepRecord
from perfflow.store.run_folder import events
from tests.verdict.records import END, ended, pairs, planned, reading, record

BASELINE, CANDIDATE = Side.BASELINE, Side.CANDIDATE


def values(found: list[Reading]) -> list[float]:
    return [item.value for item in found]


@pytest.mark.parametrize(
    ("candidate", "paired"), [([3.0, 4.0], True), (None, False)], ids=["pairs", "the baseline alone"]
)
def test_samples_are_a_series_of_one_or_two_sides(candidate: list[float] | None, paired: bool) -> None:
    series = record(*pairs("b", [1, 2], candidate)).series["b", "time"]
    assert (values(series.readings(BASELINE)), values(series.readings(CANDIDATE))) == ([1, 2], candidate or [])
    assert (series.paired, series.two_sided, series.one_sided()) == (paired, paired, None)


def test_a_reading_without_its_partner_is_no_pair() -> None:
    events = pairs("b", [1, 2, 3], [4, 5, 6])
    events[1]["candidate"] = []
    series = record(*events).series["b", "time"]
    assert (values(series.readings(BASELINE)), values(series.readings(CANDIDATE))) == ([1, 3], [4, 6])


def test_what_one_side_alone_has_is_kept_as_its_own() -> None:
    for side, other in ((BASELINE, CANDIDATE), (CANDIDATE, BASELINE)):
        events = pairs("b", [1, 2], [1, 2])
        for event in events:
            event[side.value].append(reading("rss", 7.0))
        series = record(*events).series["b", "rss"]
        assert series.one_sided() is side
        assert values(series.readings(side)) == [7, 7]
        assert series.readings(other) == []


@pytest.mark.parametrize(("layouts", "as_built"), [(10, True), (11, False)])
def test_too_few_pairs_with_code_layouts_leave_the_decision_to_what_was_built(layouts: int, *, as_built: bool) -> None:
    drawn = pairs("b", [1.0] * layouts, [3.0] * layouts)
    drawn = [event | {"design": "layouts", "layout": number} for number, event in enumerate(drawn, 1)]
    told = {"event": "layouts", "step": "b", "benchmark": "", "reason": "time was over"}
    series = record(*pairs("b", [1.0] * 20, [2.0] * 20), *drawn, told).series["b", "time"]
    assert (series.built is None, set(values(series.readings(CANDIDATE)))) == (as_built, {2.0 if as_built else 3.0})


def test_a_profile_of_two_sides_of_which_one_has_nothing() -> None:
    events = [ended("p", readings={"baseline": [reading("heap_peak", 5.0)], "candidate": []})]
    series = record(*events, steps=[planned("p", role="profile", benchmark="b")]).series["b", "heap_peak"]
    assert series.one_sided() is BASELINE


def test_figures_of_profiles_of_what_was_kept_stand_beside_those_of_the_baseline() -> None:
    steps = [planned("p", role="profile", benchmark="b"), planned("m")]
    first = [ended("p", readings={"baseline": [reading("simd_share", 0.1)]}), *pairs("m", [8], None)]
    again = [ended("p", readings={"baseline": [reading("simd_share", 0.9)]}), *pairs("m", [7], None)]
    kept = [*({**event, "trial": "simd"} for event in again), {"event": "kept", "id": "simd", "revision": "1"}]
    found = record(*first, *kept, steps=steps).concluded().series
    share = found["b", "simd_share"]
    assert (values(share.readings(BASELINE)), values(share.readings(CANDIDATE))) == ([0.1], [0.9])
    assert values(found["m", "time"].readings(CANDIDATE)) == []


def _profile(tree: str, path: str) -> dict[str, str]:
    return {"tree": tree, "path": path, "kind": "folded", "sha256": ""}


@pytest.mark.parametrize(
    ("of_trial", "after"),
    [
        ([("baseline", "trial/only")], "trial/only"),
        # The trial compared: its baseline is the state accepted before it, which is neither side of the run.
        ([("baseline", "trial/before"), ("candidate", "trial/after")], "trial/after"),
    ],
)
def test_profiles_of_what_was_kept_are_those_of_the_last_candidate(of_trial: list[tuple[str, str]], after: str) -> None:
    first = ended("p", profiles=[_profile("baseline", "original")])
    again = {**ended("p", profiles=[_profile(*item) for item in of_trial]), "trial": "second"}
    kept = {"event": "kept", "id": "second", "revision": "1"}
    steps = [planned("p", role="profile", benchmark="b")]
    found = record(first, again, kept, steps=steps).concluded().steps["p"].profiles
    assert [(item.tree, item.path) for item in found] == [(BASELINE, "original"), (CANDIDATE, after)]


def test_the_first_step_owns_a_metric_and_a_second_is_told_once() -> None:
    steps = [planned("one", benchmark="b"), planned("two", benchmark="b")]
    found = record(*pairs("one", [1, 2], None), *pairs("two", [8, 9], None), steps=steps)
    assert values(found.series["b", "time"].readings(BASELINE)) == [1, 2]
    assert found.warnings == {"two": ["measured twice: `time` of `b` was already measured by step `one`"]}


def test_ends_and_events_of_a_later_version() -> None:
    assert record().ended
    # Events of a later version are left alone.
    assert record({"event": "weather", "x": 1}).series == {}
    assert not record(end=None).ended
    stopped = record(end={"event": "interrupted", "time": END["time"]})
    assert (stopped.ended, stopped.interrupted, stopped.run.finished) == (False, True, END["time"])


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.text(), NUMBERS, st.text(), st.dictionaries(st.text(), NUMBERS, max_size=3), st.booleans())
def test_readings_round_trip(metric: str, value: float, benchmark: str, inner: dict[str, float], at_most: bool) -> None:
    made = Reading(metric, value, benchmark, inner, at_most)
    assert reading_from_json(reading_to_json(made)) == made


@given(st.text(), NUMBERS, st.text(), st.text(), st.text(), st.integers(), st.text(), st.sampled_from(Side))
def test_hotspots_round_trip(
    location: str, share: float, unit: str, source: str, file: str, line: int, cause: str, side: Side
) -> None:
    made = Hotspot(location, share, unit, source, file, line, cause)
    found = FoundHotspot(made, side)
    assert from_json(FoundHotspot, to_json(found)) == found


# ---- the events of jobs on other machines, as part of their run ----


def write(folder: Path, *lines: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))


def job(attempt: int, group: str = "g1") -> dict[str, Any]:
    return GroupJob(group, attempt, f"groups/{group}/{attempt}/run", "done", "n1").event()


def test_a_job_counts_once_by_its_last_attempt(tmp_path: Path) -> None:
    for attempt in (1, 2):
        place = tmp_path / "groups" / "g1" / str(attempt) / "run"
        write(place, {"event": "run"}, {"event": "sample", "n": attempt}, {"event": "end"})
    # The second job was collected twice: the collecting process may be stopped between two events.
    write(tmp_path, {"event": "run"}, job(1), {"event": "resumed"}, job(2), job(2), {"event": "end"})

    found = list(events(tmp_path))

    assert [event["event"] for event in found] == ["run", "resumed", "group", "sample", "end"]
    assert [(event["n"], event["group"]) for event in found if event["event"] == "sample"] == [(2, "g1")]


def test_files_of_a_job_are_found_from_the_run(tmp_path: Path) -> None:
    done = {"event": "step", "status": "done"}
    step = done | {"id": "a", "log": "steps/a/stderr", "profiles": [{"path": "steps/a/out"}]}
    tried = done | {"id": "b", "optimizations": [{"log": "x", "diff_file": ""}]}
    write(tmp_path / "groups" / "g1" / "1" / "run", step, tried)
    write(tmp_path, job(1))

    _, one, other = events(tmp_path)

    assert one["log"] == "groups/g1/1/run/steps/a/stderr"
    assert one["profiles"] == [{"path": "groups/g1/1/run/steps/a/out"}]
    assert other["optimizations"] == [{"log": "groups/g1/1/run/x", "diff_file": ""}]


def test_a_step_that_two_groups_performed_is_as_good_as_its_worse_part() -> None:
    done = StepRecord("s", "done", seconds=1, warnings=("w",), identical=True)
    failed = StepRecord("s", "failed", "broke", seconds=2, warnings=("w", "v"))
    cached = StepRecord("s", "cached", "built by another job")

    both = merged(done, failed)
    assert (both.status, both.reason, both.seconds, both.warnings) == ("failed", "broke", 3, ("w", "v"))
    assert not both.identical
    assert merged(failed, done).status == "failed"
    assert (merged(cached, done).status, merged(cached, done).reason) == ("done", "")
