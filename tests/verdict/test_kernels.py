"""Kernels of GPUs: occupancy by the model beside the tool's, what bounds them, and which peaks are their roof."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.result import Result, RooflinePoint
from tests.verdict.gpu_kernels import L4, kernel, only, profiled
from tests.verdict.records import criteria, ended, judged, pairs, planned

# L4: 300 GB/s, 30.3 TFLOP/s in f32 (docs/gpu.md), so the ridge is at 101 FLOP/B.
PUBLISHED = "published for L4"


def point(result: Result) -> RooflinePoint:
    (found,) = result.roofline
    return found


def test_the_model_works_the_launch_out_and_says_what_would_lift_it() -> None:
    found = only(profiled(kernel()))
    assert found.model is not None
    assert (found.model.blocks, found.model.limiters) == (5, ["registers"])
    assert found.model.occupancy == pytest.approx(40 / 48)
    assert found.model.lifts[0] == "at most 40 registers per thread: 100% occupancy"
    assert found.warnings == []


@pytest.mark.parametrize(("told", "is_said"), [(0.82, False), (0.81, True), (0.86, True), (None, False)])
def test_a_model_that_does_not_agree_with_the_tool_is_said(told: float | None, is_said: bool) -> None:
    warnings = only(profiled(kernel(occupancy_theoretical=told))).warnings
    expected = f"the theoretical occupancy is 83.3% by the model, {told or 0:.1%} by ncu"
    assert warnings == ([expected] if is_said else [])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"capability": ""}, "ncu does not report the compute capability"),
        ({"threads": None}, "ncu does not report the threads"),
        ({"capability": "6.1"}, "no limits are known for compute capability 6.1"),
        ({"threads": 0}, "a launch cannot have 0 threads"),
    ],
)
def test_without_launch_or_architecture_the_tools_figures_stand_alone(keys: dict[str, Any], said: str) -> None:
    found = only(profiled(kernel(**keys)))
    assert found.model is None
    assert found.occupancy_theoretical == 40 / 48
    (warning,) = found.warnings
    assert warning.startswith(f"no occupancy model: {said}")


def test_a_tool_that_tells_no_launch_is_not_blamed_for_it() -> None:
    found = only(profiled(kernel(threads=None, registers=None)))
    assert (found.model, found.warnings) == (None, [])


def test_a_launch_that_fits_no_multiprocessor_is_said() -> None:
    found = only(profiled(kernel(threads=1024, registers=128)))
    assert found.warnings == ["according to the model, no block of this launch fits an SM of compute capability 8.9"]


def test_barriers_follow_from_the_blocks_that_they_allow() -> None:
    # On 9.0 an SM has 64 barriers: 9 blocks of 7 fit, as ncu said of a matrix product.
    found = only(profiled(kernel(capability="9.0", threads=32, registers=16, barrier_blocks=9)))
    assert found.model is not None
    assert (found.model.blocks, found.model.limiters) == (9, ["barriers"])


def test_it_stands_under_the_published_roof_of_its_gpu() -> None:
    found = point(profiled(kernel()))
    assert (found.device, found.precision, found.bound, found.note) == (L4, "f32", "memory", "")
    assert found.attainable == pytest.approx(5 * 300e9)
    assert found.share == pytest.approx(2 / 3)


def test_where_neither_unit_is_busy_it_is_latency_that_binds() -> None:
    result = profiled(kernel(sm_share=0.2, memory_share=0.3, waves=0.5))
    assert point(result).bound == only(result).bound == "latency"
    because = "SM 20% and memory 30% of their speed of light, both under 60%: the grid fills 0.5 of a wave"
    assert point(result).note == only(result).because == because


def test_what_tells_a_bound_is_named_with_its_figures() -> None:
    assert only(profiled(kernel())).because == (
        "5 FLOP/B, where the ridge is at 101; SM 30% and memory 80% of their speed of light"
    )
    busy = only(profiled(kernel(sm_share=0.9)))
    assert busy.bound == "memory"
    assert busy.because.endswith("SM 90% and memory 80% of their speed of light, which suggests compute")


def test_without_a_roof_the_speed_of_light_tells_the_bound() -> None:
    unknown = only(profiled(kernel(device="GPU of compute capability 8.9")))
    assert (unknown.bound, unknown.because) == ("memory", "SM 30% and memory 80% of their speed of light")
    assert only(profiled(kernel(device="GPU", sm_share=None))).bound is None


def test_an_unknown_gpu_has_no_peak() -> None:
    found = point(profiled(kernel(device="GPU of compute capability 8.9")))
    assert (found.attainable, found.note) == (
        None,
        "no peak is known for bandwidth of GPU of compute capability 8.9",
    )


def test_several_kernels_of_one_benchmark_have_no_place_of_their_own() -> None:
    two = [kernel(name="a", benchmark="all"), kernel(name="b", benchmark="all", precision="f64")]
    result = profiled(*two, flops=1e12)
    assert [item.because for item in result.kernels] == ["SM 30% and memory 80% of their speed of light"] * 2
    assert point(result).precision == ""


def test_stalls_are_ranked_and_those_worth_acting_on_are_marked() -> None:
    stalls = {"long_scoreboard": 6.0, "wait": 2.0, "selected": 1.0, "not_selected": 1.0}
    found = only(profiled(kernel(stalls=stalls)))
    assert [(item.reason, item.share, item.pressing) for item in found.stalls] == [
        ("long_scoreboard", 0.6, True),
        ("wait", 0.2, False),
        ("not_selected", 0.1, False),
        ("selected", 0.1, False),
    ]
    assert found.stalls[0].means.startswith("it waits for data from global")
    busy = only(profiled(kernel(stalls=stalls, issued=0.8)))
    assert not any(item.pressing for item in busy.stalls)


TARGET = {"gemm": {"bandwidth": "≥60% of peak"}}


def test_a_target_of_peak_is_held_against_the_peak_of_its_gpu() -> None:
    (target,) = profiled(kernel(), targets=TARGET).targets
    assert (target.status, target.peak) == ("unproven", 300e9)
    assert target.peak_source == PUBLISHED


def test_what_the_tool_knows_comes_before_what_is_published_and_the_workflow_before_both() -> None:
    peak = {"metric": "bandwidth", "value": 250e9, "how": "at the clock during the profile", "device": L4}
    event = ended("ncu", readings=_readings(), kernels=[kernel()], devices=[L4], peaks=[peak])
    steps = [planned("ncu", role="profile", tool="ncu", benchmark="*")]
    (target,) = judged(event, steps=steps, wanted=criteria(TARGET)).targets
    assert (target.peak, target.peak_source) == (250e9, "found by step ncu")
    (target,) = judged(event, steps=steps, wanted=criteria(TARGET, peaks={"bandwidth": 100e9})).targets
    assert (target.peak, target.peak_source) == (100e9, "said by the workflow")


def _readings() -> dict[str, Any]:
    return {"baseline": [{"metric": "bandwidth", "value": 2e11, "benchmark": "gemm"}]}


def test_a_processor_is_never_held_against_a_gpu_nor_the_other_way_round() -> None:
    steps = [
        planned("ncu", role="profile", tool="ncu", benchmark="*"),
        planned("roof", role="machine", tool="stream", benchmark=""),
        planned("copy"),
    ]
    events = [
        ended("ncu", readings=_readings(), kernels=[kernel()], devices=[L4]),
        ended("roof", peaks=[{"metric": "bandwidth", "value": 4e10, "how": "the best of 25"}]),
        *pairs("copy", [3e10 * (1 + 0.001 * number) for number in range(14)], None, "bandwidth"),
        ended("copy"),
    ]
    wanted = criteria({"gemm": {"bandwidth": "≥60% of peak"}, "copy": {"bandwidth": "≥60% of peak"}})
    found = {target.benchmark: target for target in judged(*events, steps=steps, wanted=wanted).targets}
    assert (found["gemm"].peak, found["copy"].peak) == (300e9, 4e10)
    without = {t.benchmark: t for t in judged(events[0], *events[2:], steps=steps, wanted=wanted).targets}
    assert (without["copy"].status, without["copy"].detail) == ("not measured", "no peak is known for bandwidth")


def test_a_gpu_that_nobody_names_has_no_peak_and_not_the_processors() -> None:
    steps = [planned("bench", tool="cuda-bench", benchmark="copy"), planned("roof", role="machine", tool="stream")]
    events = [
        *pairs("bench", [3e10] * 14, None, "bandwidth", benchmark="copy"),
        ended("bench", devices=["GPU"]),
        ended("roof", peaks=[{"metric": "bandwidth", "value": 4e10, "how": "the best of 25"}]),
    ]
    (target,) = judged(*events, steps=steps, wanted=criteria({"copy": {"bandwidth": "≥60% of peak"}})).targets
    assert (target.status, target.detail) == ("not measured", "no peak is known for bandwidth of GPU")


def test_published_peaks_are_listed_with_their_document() -> None:
    listed = {(item.metric, item.precision): item for item in profiled(kernel()).peaks}
    assert listed["bandwidth", ""].value == 300e9
    assert listed["flops", "f32"].how.startswith(f"{PUBLISHED}: NVIDIA L4 Tensor Core GPU datasheet")
    assert {item.device for item in listed.values()} == {L4}
    assert {item.step for item in listed.values()} == {""}


def test_each_side_has_its_own_gpu() -> None:
    other = kernel(tree="candidate", device="NVIDIA H200", capability="9.0")
    result = profiled(kernel(), other)
    assert [(item.tree, item.device) for item in result.roofline] == [("baseline", L4), ("candidate", "NVIDIA H200")]
    assert [item.attainable for item in result.roofline] == pytest.approx([1.5e12, 24e12])


def test_a_kernel_on_two_gpus_is_lined_up_by_its_roofs_and_nothing_is_decided() -> None:
    other = kernel(tree="candidate", device="NVIDIA H200", capability="9.0", seconds=5e-4)
    result = profiled(kernel(), other)
    assert [(line.device, line.slower) for line in result.across_gpus] == [(L4, 2.0), ("NVIDIA H200", 1.0)]
    # 1 of 1.5 TFLOP/s at 5 FLOP/B and 300 GB/s, and of 24 at 4.8 TB/s.
    assert [line.share for line in result.across_gpus] == pytest.approx([2 / 3, 1 / 24])
    assert {row.decision for row in result.benchmarks} == {None}
    assert all(row.warnings[-1].startswith("across GPUs: NVIDIA L4 and NVIDIA H200") for row in result.benchmarks)


def test_a_copy_is_lined_up_by_its_bandwidth() -> None:
    other = kernel(tree="candidate", device="NVIDIA H200", capability="9.0")
    result = profiled(kernel(precision=""), other | {"precision": ""}, flops=0.0)
    assert [line.share for line in result.across_gpus] == pytest.approx([2 / 3, 2e11 / 4.8e12])


def test_on_one_gpu_there_is_nothing_to_line_up() -> None:
    assert profiled(kernel(), kernel(tree="candidate")).across_gpus == []
