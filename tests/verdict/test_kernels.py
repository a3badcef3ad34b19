"""Kernels of GPUs: occupancy by the model beside the tool's, what bounds them, and which peaks are their roof."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.kernels import KernelResult
from perfflow.model.result import TargetResult
from tests.verdict.comparisons import known
from tests.verdict.gpu_kernels import L4, kernel, only, profiled
from tests.verdict.records import criteria, ended, judged, pairs, planned
from tests.verdict.test_roofs import point

# L4: 300 GB/s, 30.3 TFLOP/s in f32 (docs/reference/gpu.md), so the ridge is at 101 FLOP/B.
PUBLISHED = "published for L4"


def one(**keys: Any) -> KernelResult:
    return only(profiled(kernel(**keys)))


# -- occupancy


def test_the_model_works_the_launch_out_and_says_what_would_lift_it() -> None:
    model = known(one().model)
    assert (model.blocks, model.limiters, one().warnings) == (5, ["registers"], [])
    assert model.occupancy == pytest.approx(40 / 48)
    assert model.lifts[0] == "at most 40 registers per thread: 100% occupancy"


def test_barriers_follow_from_the_blocks_that_they_allow() -> None:
    # On 9.0 an SM has 64 barriers: 9 blocks of 7 fit, as ncu said of a matrix product.
    model = known(one(capability="9.0", threads=32, registers=16, barrier_blocks=9).model)
    assert (model.blocks, model.limiters) == (9, ["barriers"])


DIFFERS = "the theoretical occupancy is 83.3% by the model, {} by ncu"


@pytest.mark.parametrize(
    ("keys", "modelled", "said"),
    [
        # A model that does not agree with the tool is said.
        ({"occupancy_theoretical": 0.82}, True, ""),
        ({"occupancy_theoretical": 0.81}, True, DIFFERS.format("81.0%")),
        ({"occupancy_theoretical": 0.86}, True, DIFFERS.format("86.0%")),
        ({"occupancy_theoretical": None}, True, ""),
        # Without launch or architecture the tool's figures stand alone.
        ({"capability": ""}, False, "no occupancy model: ncu does not report the compute capability"),
        ({"threads": None}, False, "no occupancy model: ncu does not report the threads"),
        ({"capability": "6.1"}, False, "no occupancy model: no limits are known for compute capability 6.1"),
        ({"threads": 0}, False, "no occupancy model: a launch cannot have 0 threads"),
        # A tool that tells no launch is not blamed for it.
        ({"threads": None, "registers": None}, False, ""),
        (
            {"threads": 1024, "registers": 128},
            *(None, "according to the model, no block of this launch fits an SM of compute capability 8.9"),
        ),
    ],
)
def test_what_is_said_of_the_model(keys: dict[str, Any], said: str, *, modelled: bool | None) -> None:
    found = one(**keys)
    assert modelled in (None, found.model is not None)
    assert [text[: len(said)] for text in found.warnings] == ([said] if said else [])
    assert found.occupancy_theoretical == keys.get("occupancy_theoretical", 40 / 48)


# -- what binds


def test_it_stands_under_the_published_roof_of_its_gpu() -> None:
    found = point(profiled(kernel()))
    assert (found.device, found.precision, found.bound, found.note) == (L4, "f32", "memory", "")
    assert (found.attainable, found.share) == pytest.approx((5 * 300e9, 2 / 3))


ROOF = "5 FLOP/B, where the ridge is at 101"
LIGHT = "SM {}% and memory {}% of their speed of light"
IDLE = LIGHT.format(20, 30) + ", both under 60%: the grid fills 0.5 of a wave"
UNKNOWN = "GPU of compute capability 8.9"


@pytest.mark.parametrize(
    ("keys", "bound", "because"),
    [
        ({}, "memory", f"{ROOF}; {LIGHT.format(30, 80)}"),
        ({"sm_share": 0.9}, "memory", f"{ROOF}; {LIGHT.format(90, 80)}, which suggests compute"),
        # Where neither unit is busy it is latency that binds.
        ({"sm_share": 0.2, "memory_share": 0.3, "waves": 0.5}, "latency", IDLE),
        # Without a roof the speed of light tells the bound.
        ({"device": UNKNOWN}, "memory", LIGHT.format(30, 80)),
        ({"device": "GPU", "sm_share": None}, None, None),
    ],
)
def test_what_tells_a_bound_is_named(keys: dict[str, Any], bound: str | None, because: str | None) -> None:
    result = profiled(kernel(**keys))
    found = only(result)
    assert found.bound == bound
    assert because in (None, found.because)
    if bound == "latency":
        assert (point(result).bound, point(result).note) == (bound, because)


def test_an_unknown_gpu_has_no_peak() -> None:
    found = point(profiled(kernel(device=UNKNOWN)))
    assert (found.attainable, found.note) == (None, f"no peak is known for bandwidth of {UNKNOWN}")


def test_several_kernels_of_one_benchmark_have_no_place_of_their_own() -> None:
    two = [kernel(name="a", benchmark="all"), kernel(name="b", benchmark="all", precision="f64")]
    result = profiled(*two, flops=1e12)
    assert [item.because for item in result.kernels] == [LIGHT.format(30, 80)] * 2
    assert point(result).precision == ""


def test_stalls_are_ranked_and_those_worth_acting_on_are_marked() -> None:
    stalls = {"long_scoreboard": 6.0, "wait": 2.0, "selected": 1.0, "not_selected": 1.0}
    found = one(stalls=stalls).stalls
    shares = {"long_scoreboard": 0.6, "wait": 0.2, "not_selected": 0.1, "selected": 0.1}
    assert [(item.reason, item.share) for item in found] == list(shares.items())
    assert [item.pressing for item in found] == [True, False, False, False]
    assert found[0].means.startswith("it waits for data from global")
    assert not any(item.pressing for item in one(stalls=stalls, issued=0.8).stalls)


# -- peaks

SIXTY = {"bandwidth": "≥60% of peak"}
NCU = planned("ncu", role="profile", tool="ncu", benchmark="*")
GEMM = {"baseline": [{"metric": "bandwidth", "value": 2e11, "benchmark": "gemm"}]}
PROFILE = ended("ncu", readings=GEMM, kernels=[kernel()], devices=[L4])
STREAM = planned("roof", role="machine", tool="stream", benchmark="")
ROOF_OF_CPU = ended("roof", peaks=[{"metric": "bandwidth", "value": 4e10, "how": "the best of 25"}])
PEAK = {"metric": "bandwidth", "value": 250e9, "how": "at the clock during the profile", "device": L4}


@pytest.mark.parametrize(
    ("peaks", "own", "value", "source"),
    [
        # What the tool knows comes before what is published, and the workflow before both.
        ([], {}, 300e9, PUBLISHED),
        ([PEAK], {}, 250e9, "found by step ncu"),
        ([PEAK], {"bandwidth": 100e9}, 100e9, "said by the workflow"),
    ],
)
def test_the_peak_of_a_gpu(peaks: list[dict[str, Any]], own: dict[str, float], value: float, source: str) -> None:
    (target,) = judged(PROFILE | {"peaks": peaks}, steps=[NCU], wanted=criteria({"gemm": SIXTY}, peaks=own)).targets
    assert (target.peak, target.peak_source) == (value, source)
    assert peaks or target.status == "unproven"


def test_a_processor_is_never_held_against_a_gpu_nor_the_other_way_round() -> None:
    copy = [*pairs("copy", [3e10 * (1 + 0.001 * number) for number in range(14)], None, "bandwidth"), ended("copy")]

    def found(*events: dict[str, Any]) -> dict[str, TargetResult]:
        wanted = criteria({"gemm": SIXTY, "copy": SIXTY})
        result = judged(*events, *copy, steps=[NCU, STREAM, planned("copy")], wanted=wanted)
        return {target.benchmark: target for target in result.targets}

    both, without = found(PROFILE, ROOF_OF_CPU), found(PROFILE)
    assert (both["gemm"].peak, both["copy"].peak) == (300e9, 4e10)
    assert (without["copy"].status, without["copy"].detail) == ("not measured", "no peak is known for bandwidth")


def test_a_gpu_that_nobody_names_has_no_peak_and_not_the_processors() -> None:
    steps = [planned("bench", tool="cuda-bench", benchmark="copy"), STREAM]
    bench = pairs("bench", [3e10] * 14, None, "bandwidth", benchmark="copy")
    events = [*bench, ended("bench", devices=["GPU"]), ROOF_OF_CPU]
    (target,) = judged(*events, steps=steps, wanted=criteria({"copy": SIXTY})).targets
    assert (target.status, target.detail) == ("not measured", "no peak is known for bandwidth of GPU")


def test_published_peaks_are_listed_with_their_document() -> None:
    listed = {(item.metric, item.precision): item for item in profiled(kernel()).peaks}
    assert listed["bandwidth", ""].value == 300e9
    assert listed["flops", "f32"].how.startswith(f"{PUBLISHED}: NVIDIA L4 Tensor Core GPU datasheet")
    assert {(item.device, item.step) for item in listed.values()} == {(L4, "")}


# -- two GPUs

H200 = "NVIDIA H200"


def test_a_kernel_on_two_gpus_is_lined_up_by_its_roofs_and_nothing_is_decided() -> None:
    result = profiled(kernel(), kernel(tree="candidate", device=H200, capability="9.0", seconds=5e-4))
    assert [(item.tree, item.device) for item in result.roofline] == [("baseline", L4), ("candidate", H200)]
    assert [item.attainable for item in result.roofline] == pytest.approx([1.5e12, 24e12])
    assert [(line.device, line.slower) for line in result.across_gpus] == [(L4, 2.0), (H200, 1.0)]
    # 1 of 1.5 TFLOP/s at 5 FLOP/B and 300 GB/s, and of 24 at 4.8 TB/s.
    assert [line.share for line in result.across_gpus] == pytest.approx([2 / 3, 1 / 24])
    assert {row.decision for row in result.benchmarks} == {None}
    assert all(row.warnings[-1].startswith("across GPUs: NVIDIA L4 and NVIDIA H200") for row in result.benchmarks)
    assert profiled(kernel(), kernel(tree="candidate")).across_gpus == []


def test_a_copy_is_lined_up_by_its_bandwidth() -> None:
    other = kernel(tree="candidate", device=H200, capability="9.0", precision="")
    result = profiled(kernel(precision=""), other, flops=0.0)
    assert [line.share for line in result.across_gpus] == pytest.approx([2 / 3, 2e11 / 4.8e12])
