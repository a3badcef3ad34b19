"""Rebuilding a record from a result: judging it again gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Accepted, Criteria, criteria_from_json
from perfflow.model.metrics import Better, Metric
from perfflow.model.readings import Design
from perfflow.model.result import Result
from perfflow.model.units import Dimension
from perfflow.store.record import Record, record_of
from perfflow.store.result_file import read, to_text
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.results import everything
from tests.verdict.comparisons import known
from tests.verdict.gpu_kernels import kernel
from tests.verdict.records import END, MACHINE, beside, criteria, ended, opening, pairs, planned, reading, record, row

SIDES = ("baseline", "candidate")
METRICS = ("time", "cpu", "uncontended", "rss", "allocs", "throughput", "flops", "frames", "unknown")
WANTED = criteria(
    {
        "b*": {"time": "<2s", "time p95": "<3s", "speedup": "≥1.1x"},
        "core/**": {"allocs": "0/op", "throughput": "≥1% of peak"},
        "gone": {"rss": "<1MB"},
    },
    metrics=[Metric("frames", Dimension.COUNT, Better.HIGHER)],
    accepted=[Accepted("b1", 0.5, "new format", "2026-06-01"), Accepted("b2", 0.5, "old", "2025-01-01")],
    per_glob={"core/**": {"action": 0.05}},
    concern=0.03,
)

values = st.floats(0.5, 2.0) | st.sampled_from([0.0, 1.0])
readings = st.builds(
    lambda metric, value, benchmark, inner, marks: reading(metric, value, **benchmark, **inner, **marks),
    st.sampled_from(METRICS),
    values,
    st.sampled_from([{}, {}, {"benchmark": "b1"}, {"benchmark": "core/x"}]),
    st.sampled_from([{}, {}, {"inner": {"p50": 1.0, "p99": 2.5, "n": 10.0}}]),
    st.sampled_from([{}, {}, {}, {"at_most": True}, {"exact": True}, {"tick": 0.5}, {"statistic": "capped mean"}]),
)
few_readings = st.lists(readings, max_size=4, unique_by=lambda item: (item.get("benchmark"), item["metric"]))

kernels = st.builds(
    lambda share, **keys: kernel(registers=64, occupancy_theoretical=share, sm_share=share, memory_share=0.5, **keys),
    benchmark=st.sampled_from(["b1", "core/x"]),
    tree=st.sampled_from(SIDES),
    device=st.sampled_from(["NVIDIA L4", "GPU"]),
    stalls=st.dictionaries(st.sampled_from(["wait", "barrier", "selected", "new_reason"]), st.floats(0.0, 9.0)),
    share=st.sampled_from([0.5, 0.66, 0.9, None]),
    advice=st.sampled_from([[], [{"rule": "CPIStall", "text": "wait less", "gain": 0.25}]]),
)
hotspots = st.builds(
    lambda place, tree: {"location": place, "share": 0.5, "unit": "time", "source": "perf", "tree": tree},
    st.sampled_from("fgh"),
    st.sampled_from(SIDES),
)


@st.composite
def blocks(draw: st.DrawFn, step: str) -> list[dict[str, Any]]:
    """Samples of one step: the same readings repeated with a little noise, some of them missing."""
    # Code layouts follow samples of the programs as built; other tests cover them.
    single = [[design.value] for design in Design if "layouts" not in design.value]
    designs = draw(st.sampled_from([*single, ["looks", "confirm"], []]))
    chosen = {side: draw(few_readings) for side in draw(st.sampled_from([SIDES, SIDES, SIDES[:1], SIDES[1:]]))}
    found = []
    for design in designs:
        for number in range(draw(st.integers(1, 12))):
            event: dict[str, Any] = {"event": "sample", "step": step, "design": design, "pair": number}
            taken = {
                side: [noisy(item, draw) for item in items if draw(st.integers(0, 9))] for side, items in chosen.items()
            }
            event |= {"confirmation": 1, "many": draw(st.booleans())} if design == "confirm" else {}
            alone = [{side: items} for side, items in taken.items()] if design == "few" else [taken]
            found += [event | part for part in alone]
    return found


def noisy(item: dict[str, Any], draw: st.DrawFn) -> dict[str, Any]:
    return item | {"value": item["value"] * draw(st.sampled_from([1.0, 1.01, 1.3]))}


@st.composite
def endings(draw: st.DrawFn, step: str) -> dict[str, Any]:
    status = draw(st.sampled_from(["done", "done", "failed", "skipped", "timeout", "cached"]))
    more: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "identical": st.booleans(),
                "not_started": st.booleans(),
                "detail": st.sampled_from(["", "all the same", "line 3 differs"]),
                "outputs": st.just({"key": "value"}),
                "tail": st.just(["last words"]),
                "warnings": st.just(["busy"]),
                "readings": st.fixed_dictionaries({"baseline": few_readings}, optional={"candidate": few_readings}),
                "profiles": st.just([{"tree": "candidate", "path": "steps/p/x", "kind": "perf", "sha256": "0" * 64}]),
                "devices": st.sampled_from([["NVIDIA L4"], ["GPU"], ["NVIDIA L4", "Tesla T4"]]),
                "kernels": st.lists(kernels, max_size=2),
                "peaks": st.just([{"metric": "bandwidth", "value": 2e11, "how": "by its clock", "device": "GPU"}]),
                "hotspots": st.lists(hotspots, max_size=3),
            },
        )
    )
    return ended(step, status, "" if status == "done" else f"it {status}", time=END["time"]) | more


@st.composite
def records(draw: st.DrawFn) -> Record:
    names = ["b1", "b2", "core/x"]
    steps = [
        planned(
            name,
            role=draw(st.sampled_from(["measure", "measure", "profile", "check", "work"])),
            metric=draw(st.sampled_from([None, "auto", "cpu"])),
            expect=draw(st.sampled_from([[], [], ["b*"], ["missing"]])),
            allowed=draw(st.booleans()),
            selected=draw(st.booleans()),
        )
        for name in names
    ]
    events: list[dict[str, Any]] = []
    for name in draw(st.permutations(names)):
        samples = draw(blocks(name))
        events += samples
        if draw(st.booleans()):
            benchmark = draw(st.sampled_from(["", "b1"]))
            events.append({"event": "stopped", "step": name, "benchmark": benchmark, "reason": "budget"})
        if draw(st.integers(0, 3)):
            end_of_step = draw(endings(name))
            # A sampling step has no readings in its final event; only profiles have.
            events.append({key: value for key, value in end_of_step.items() if key != "readings" or not samples})
    end = draw(st.sampled_from([[END], [END], [], [{"event": "interrupted", "time": END["time"]}]]))
    params = {"limit": float("inf"), "names": ["a", 1]}
    return record_of([opening(steps, WANTED, params=params), *events, *end])


@given(records())
def test_any_record_judged_from_its_result_alone_gives_the_same_bytes(found: Record) -> None:
    result = judge(found, WANTED)
    text = to_text(result)
    assert to_text(judge(record_of_result(result), WANTED)) == text
    stored = Result.model_validate_json(text)
    assert to_text(judge(record_of_result(stored), criteria_from_json(stored.criteria))) == text


def test_everything_a_report_shows_comes_back(tmp_path: Path) -> None:
    result = everything()
    (tmp_path / "result.json").write_text(to_text(result))
    stored = read(tmp_path / "result.json")
    assert to_text(judge(record_of_result(stored), criteria_from_json(stored.criteria))) == to_text(result)


def test_what_both_sides_have_and_no_pair_does_is_not_measured_in_either() -> None:
    events = [event | {"baseline": [], "candidate": []} for event in pairs("b", [1.0, 1.0], None)]
    beside(events[:1], "time", 1.0, None, benchmark="b/x")
    beside(events[1:], "time", None, 1.0, benchmark="b/x")
    wanted = criteria({"b*": {"time": "<2s"}})
    result = judge(record(*events, ended("b")), wanted)
    assert to_text(judge(record_of_result(result), wanted)) == to_text(result)
    assert result.targets[0].detail == "no step measured this"


def test_other_criteria_on_the_same_samples_are_those_criteria() -> None:
    base = [1.0 + 0.001 * number for number in range(14)]
    strict = criteria(action=0.05, concern=0.03)
    first = record(*pairs("b", base, [1.07 * value for value in base]), ended("b"))
    assert judge(first, Criteria()).verdict == "pass"
    again = record_of_result(judge(first, Criteria()))
    assert judge(again, strict).verdict == judge(first, strict).verdict == "fail"


def test_an_exact_figure_that_one_side_alone_has_stays_exact() -> None:
    events = pairs("b", [5.0], [5.0], "cache_misses", exact=True)
    beside(events, "branch_misses", None, 7.0, exact=True)
    found = row(judge(record(*events, ended("b")), Criteria()), "branch_misses")
    assert (found.statistic, found.decision) == ("value", "new")
    assert (known(found.candidate).low, known(found.candidate).high) == (7.0, 7.0)


def test_the_machine_of_the_record_is_that_of_the_result() -> None:
    assert record_of_result(everything()).machine == MACHINE


CONFIRMING: dict[str, Any] = {"design": "confirm", "confirmation": 1}
LOOKS: dict[str, Any] = {"design": "looks", "many": True}
LAYOUTS: list[dict[str, Any]] = [{"design": "layouts", "layout": number} for number in range(1, 21)]


@pytest.mark.parametrize(
    "designs",
    [
        [*[LOOKS] * 11, *[CONFIRMING] * 6],
        [*[LOOKS] * 11, *[CONFIRMING] * 6, *LAYOUTS],
        [*[LOOKS] * 11, *LAYOUTS, *[CONFIRMING] * 6],
    ],
    ids=["alone", "before layouts", "after layouts"],
)
def test_fresh_pairs_that_confirmed_a_change_come_back(designs: list[dict[str, Any]]) -> None:
    events: list[dict[str, Any]] = []
    for number, how in enumerate(designs):
        (event,) = pairs("b", [1 + 0.001 * (number * 7 % 5)], [1.2 * (1 + 0.001 * (number * 3 % 5))])
        events.append(event | {"pair": number} | how)
    result = judge(record(*events, ended("b")), Criteria())
    (found,) = result.benchmarks
    of_sides = [side.confirming for side in (found.baseline, found.layouts and found.layouts.built.baseline) if side]
    assert max(map(sum, of_sides)) == 6
    assert to_text(judge(record_of_result(result), Criteria())) == to_text(result)
