"""The occupancy model: NVIDIA's cuda_occupancy.h and real reports of Nsight Compute as oracles, and invariants."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.model.gpu import occupancy as model
from perfflow.model.gpu.occupancy import ARCHITECTURES, LaunchShape, Limiter, lifts, limits_of, occupancy, waves

TABLE = Path(__file__).parent / "data" / "occupancy" / "launches.csv"
COLUMNS = {"by_warps": Limiter.WARPS, "by_registers": Limiter.REGISTERS, "by_shared": Limiter.SHARED_MEMORY} | {
    "by_blocks": Limiter.BLOCKS,
    "by_barriers": Limiter.BARRIERS,
}


def published() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def named(row: dict[str, str]) -> set[Limiter]:
    """The limiters of a row, whose bits are in the order of the columns."""
    return {limiter for bit, limiter in enumerate(COLUMNS.values()) if int(row["limiters"]) >> bit & 1}


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_every_launch_of_the_table_is_as_cuda_occupancy_h_says(capability: str) -> None:
    rows = [row for row in published() if row["capability"] == capability]
    assert len(rows) > 100
    for row in rows:
        numbers = {name: int(row[name]) for name in ("threads", "registers", "shared", "barriers", "carveout")}
        found = occupancy(LaunchShape(**numbers), limits_of(capability))
        allowed = {limiter: int(row[column]) for column, limiter in COLUMNS.items() if row[column]}
        assert dict(found.allowed) == allowed, row
        assert found.blocks == int(row["blocks"]), row
        # The header keeps the bits of what would be the limit without barriers; here only the least are named.
        assert set(found.limiters) == {limiter for limiter in named(row) if allowed[limiter] == found.blocks}, row


def test_the_table_reaches_every_limiter_and_launches_that_fail() -> None:
    assert set[Limiter]().union(*map(named, published())) == set(Limiter)
    assert any(row["blocks"] == "0" for row in published())


# Launches that Nsight Compute reported: device, what was launched, block limits (registers, shared memory, warps,
# blocks; barriers), theoretical occupancy in %, waves. The first two are of the reports that nsight-compute 2022.3
# ships as its example uncoalescedGlobalAccesses (NVIDIA RTX A2000); then a copy kernel on a Tesla T4, and a matrix
# kernel on sm_100.
COPY = LaunchShape(256, 16, 0, carveout=8192)
MATRIX = LaunchShape(384, 168, 205696, barriers=7, carveout=233472)
REPORTED = {
    "addConstDouble": ("8.6", COPY, 12288, 26, (16, 8, 6, 16), None, 100, 78.77),
    "addConstDouble3": ("8.6", COPY, 4096, 26, (16, 8, 6, 16), None, 100, 26.26),
    "copy on T4": ("7.5", LaunchShape(256, 32, 0, carveout=32768), 1024, 40, (8, None, 4, 16), None, 100, 6.40),
    "matrix product on sm_100": ("10.0", MATRIX, 288, 152, (1, 1, 5, 32), 9, 18.75, 1.89),
}


@pytest.mark.parametrize("name", REPORTED)
def test_launches_are_as_nsight_compute_reported_them(name: str) -> None:
    capability, launch, grid, sms, limits, barriers, percent, rounds = REPORTED[name]
    found = occupancy(launch, limits_of(capability))
    by = (Limiter.REGISTERS, Limiter.SHARED_MEMORY, Limiter.WARPS, Limiter.BLOCKS)
    assert tuple(found.allowed.get(limiter) for limiter in by) == limits
    assert found.share * 100 == percent
    assert waves(found, grid, sms).count == pytest.approx(rounds, abs=0.005)
    assert found.allowed.get(Limiter.BARRIERS) == barriers


launches = st.builds(
    LaunchShape,
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    shared=st.integers(0, 232448),
    barriers=st.integers(0, 16),
    carveout=st.none() | st.integers(0, 233472),
)
every_limits = st.sampled_from(sorted(ARCHITECTURES)).map(limits_of)


@given(launches, every_limits, st.sampled_from(["registers", "shared", "barriers"]), st.integers(1, 4096))
def test_asking_for_more_never_holds_more_blocks(
    launch: LaunchShape, limits: model.OccupancyLimits, name: str, more: int
) -> None:
    if name == "shared":
        # If a block exceeds the carveout, the driver takes the next size, which can hold more blocks.
        launch = replace(launch, carveout=None)
    greedier = replace(launch, **{name: getattr(launch, name) + more})
    assert occupancy(greedier, limits).blocks <= occupancy(launch, limits).blocks


@given(launches, every_limits)
def test_no_occupancy_is_above_what_an_sm_holds(launch: LaunchShape, limits: model.OccupancyLimits) -> None:
    found = occupancy(launch, limits)
    assert 0 <= found.share <= 1
    assert found.blocks <= limits.blocks
    assert found.blocks * launch.registers * 32 * launch.warps <= limits.registers
    assert found.blocks * (launch.shared + limits.reserved_shared) <= limits.shared
    assert found.limiters
    if limits.barriers is not None:
        assert found.blocks * launch.barriers <= limits.barriers


@given(launches, every_limits)
def test_a_lift_is_more_occupancy_by_the_least_change(launch: LaunchShape, limits: model.OccupancyLimits) -> None:
    found = occupancy(launch, limits)
    for lift in lifts(found):
        reached = lift.reached
        assert occupancy(reached.launch, limits) == reached
        assert reached.warps > found.warps
        assert {
            name
            for name in ("threads", "registers", "shared", "carveout")
            if getattr(reached.launch, name) != getattr(launch, name)
        } == set(lift.changed)
        for name in set(lift.changed) & {"registers", "shared"}:
            # With one more, the step is lost.
            over = replace(reached.launch, **{name: getattr(reached.launch, name) + 1})
            assert occupancy(over, limits).warps < reached.warps


@pytest.mark.parametrize(
    ("capability", "launch", "limiters", "share", "lifted"),
    [
        # 64 registers a thread make 2048 a warp: 32 warps, or 4 blocks of 8.
        (
            *("8.0", LaunchShape(256, 65), ["registers"], 0.375),
            ["at most 64 registers per thread: 50% occupancy", "224 threads per block: 44% occupancy"],
        ),
        # A fifth block: 12 warps a partition of 16384 registers are too few, 10 leave 1536; 164 KiB / 5 less 1 KiB.
        (
            *("8.0", LaunchShape(256, 64, 40 * 1024), ["registers", "shared memory"], 0.5),
            ["at most 48 registers per thread and at most 32512 B of shared memory per block: 62% occupancy"],
        ),
        (
            *("8.6", LaunchShape(128, 32, 7 * 1024, carveout=32 * 1024), ["shared memory"], 1 / 3),
            [
                "at most 5504 B of shared memory per block: 42% occupancy",
                *("shared memory set to 65536 B per SM: 67% occupancy", "160 threads per block: 42% occupancy"),
                "384 threads per block: 100% occupancy",
            ],
        ),
        # 48 slots and blocks of 20 warps: two blocks leave 8 slots empty.
        (
            *("8.9", LaunchShape(640, 16), ["warps"], 40 / 48),
            ["672 threads per block: 88% occupancy", "512 threads per block: 100% occupancy"],
        ),
        ("8.6", LaunchShape(256, 16), ["warps"], 1.0, []),
    ],
)
def test_what_limits_a_launch_and_what_would_lift_it(
    capability: str, launch: LaunchShape, limiters: list[str], share: float, lifted: list[str]
) -> None:
    found = occupancy(launch, limits_of(capability))
    assert ([str(limiter) for limiter in found.limiters], found.share) == (limiters, share)
    assert [lift.text for lift in lifts(found)] == lifted


@pytest.mark.parametrize(
    ("launch", "limiter"),
    [
        (LaunchShape(1025, 16), Limiter.WARPS),
        (LaunchShape(32, 256), Limiter.REGISTERS),
        (LaunchShape(1024, 72), Limiter.REGISTERS),
        (LaunchShape(32, 16, 101377), Limiter.SHARED_MEMORY),
    ],
)
def test_a_launch_that_asks_for_too_much_fails_by_name(launch: LaunchShape, limiter: Limiter) -> None:
    found = occupancy(launch, limits_of("8.6"))
    assert (found.blocks, found.limiters, found.share) == (0, (limiter,), 0)


def test_waves_and_the_tail_of_a_grid() -> None:
    found = occupancy(LaunchShape(256, 32), limits_of("7.5"))
    assert found.blocks == 4
    tail = waves(found, 1024, 40)
    assert (tail.full, tail.last_blocks, tail.last_share, tail.tail_share) == (6, 64, 0.4, 1 / 7)
    whole = waves(found, 320, 40)
    assert (whole.count, whole.last_blocks, whole.last_share, whole.tail_share) == (2.0, 0, 1.0, 0.0)


@pytest.mark.parametrize(("grid", "sms", "threads"), [(0, 40, 32), (1, 0, 32), (1, 40, 2000)])
def test_waves_of_nothing_or_of_a_launch_that_fails_are_refused(grid: int, sms: int, threads: int) -> None:
    with pytest.raises(UserError, match="no waves"):
        waves(occupancy(LaunchShape(threads, 32), limits_of("7.5")), grid, sms)


@pytest.mark.parametrize("changed", [{"threads": 0}, {"registers": -1}, {"shared": -1}, {"barriers": -1}])
def test_a_launch_that_cannot_be_is_refused(changed: dict[str, int]) -> None:
    with pytest.raises(UserError, match="a launch cannot have"):
        LaunchShape(**{"threads": 32, "registers": 16, **changed})


def test_a_capability_is_known_by_each_of_its_names() -> None:
    assert {limits_of(name).capability for name in ("8.6", "sm_86", "86", "compute_86", "SM_86")} == {"8.6"}
    assert (limits_of("sm_90a").capability, limits_of("sm_120").capability) == ("9.0", "12.0")


@pytest.mark.parametrize("name", ["6.1", "8.8", "sm_999", "", "x"])
def test_a_capability_outside_the_table_is_refused_rather_than_guessed(name: str) -> None:
    with pytest.raises(UserError, match="no limits are known"):
        limits_of(name)
