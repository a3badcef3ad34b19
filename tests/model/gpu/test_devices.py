"""The table of GPUs: consistent figures, sources for all of them, and no match with a similar GPU."""

from __future__ import annotations

import pytest

from perfflow.model.errors import UserError
from perfflow.model.gpu.devices import PRECISIONS, Device, device, devices, find
from perfflow.model.gpu.occupancy import limits_of

ALL = {entry.name: entry for entry in devices()}


def figure(entry: Device, *names: str) -> list[float]:
    """The values of these figures, or none if one is missing."""
    found = [entry.figures[name].value for name in names if name in entry.figures]
    return found if len(found) == len(names) else []


@pytest.mark.parametrize("name", ALL)
def test_the_peak_of_f32_is_what_cores_and_clock_make(name: str) -> None:
    entry = ALL[name]
    if found := figure(entry, "f32", "sms", "boost"):
        peak, sms, clock = found
        cores = limits_of(entry.capability).f32_cores
        assert peak == pytest.approx(2 * cores * sms * clock, rel=0.02)


@pytest.mark.parametrize("name", ALL)
def test_memory_bandwidth_is_what_its_pins_carry(name: str) -> None:
    if found := figure(ALL[name], "memory", "memory_bus", "memory_pin"):
        bandwidth, pins, rate = found
        assert bandwidth == pytest.approx(pins * rate / 8, rel=0.005)


def test_most_devices_have_what_these_checks_need() -> None:
    assert sum(bool(figure(entry, "f32", "sms", "boost")) for entry in ALL.values()) >= 18
    assert sum(bool(figure(entry, "memory", "memory_bus", "memory_pin")) for entry in ALL.values()) >= 16


@pytest.mark.parametrize("name", ALL)
def test_every_figure_has_a_known_name_a_sane_size_and_a_source(name: str) -> None:
    entry = ALL[name]
    sizes = {
        "sms": (10, 300),
        "boost": (1e9, 3e9),
        "memory": (2e11, 1e13),
        "memory_bus": (128, 8192),
        "memory_pin": (1e9, 4e10),
        "l2": (4 * 2**20, 2**27),
        **dict.fromkeys(PRECISIONS, (1e11, 1e16)),
    }
    assert {"memory"} <= entry.figures.keys() <= sizes.keys()
    for key, found in entry.figures.items():
        low, high = sizes[key]
        assert low <= found.value <= high, key
        assert "https://" in found.source
    assert limits_of(entry.capability).capability == entry.capability


@pytest.mark.parametrize("name", ALL)
def test_lower_precision_is_no_slower_on_tensor_cores(name: str) -> None:
    tensor = [ALL[name].figures[key].value for key in ("tf32", "bf16", "f8") if key in ALL[name].figures]
    assert tensor == sorted(tensor)


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("Tesla T4", "Tesla T4"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80 GB"),
        ("nvidia a100-sxm4-80gb", "A100 SXM4 80 GB"),
        ("A100-SXM4-80GB", "A100 SXM4 80 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA T4", "Tesla T4"),
        ("NVIDIA Tesla V100-SXM2-16GB", "Tesla V100 SXM2"),
        ("GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("  rtx  4090 ", "GeForce RTX 4090"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA(R) L40S", "L40S"),
        ("NVIDIA H200", "H200 SXM"),
    ],
)
def test_a_name_as_tools_report_it_finds_its_device(reported: str, name: str) -> None:
    assert device(reported).name == name


@pytest.mark.parametrize(
    "reported",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 2080",
        "NVIDIA A10G",
        "NVIDIA A100",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100X",
        "NVIDIA H100 NVL",
        "NVIDIA H200 NVL",
        "NVIDIA L40G",
        "Tesla V100S-PCIE-32GB",
        "NVIDIA",
        "",
    ],
)
def test_a_neighbour_is_not_taken_for_a_device_of_the_table(reported: str) -> None:
    assert find(reported) is None
    with pytest.raises(UserError, match="no peaks are known") as told:
        device(reported)
    assert "peaks:" in str(told.value)


def test_the_error_names_devices_of_a_name_like_it() -> None:
    with pytest.raises(UserError) as told:
        device("NVIDIA GeForce RTX 4090 Laptop GPU")
    assert "the table has NVIDIA GeForce RTX 4090" in str(told.value)


def test_no_two_devices_share_a_name() -> None:
    names = [name.lower() for entry in ALL.values() for name in {entry.name, *entry.reported}]
    assert len(names) == len(set(names))
    assert all(find(name) is not None for name in names)


def test_a_device_has_a_roof_in_the_precisions_that_are_known() -> None:
    entry = device("NVIDIA H100 80GB HBM3")
    roof = entry.roof("f32")
    assert roof is not None
    assert (roof.bandwidth, roof.flops) == (3.352e12, 6.69e13)
    assert entry.roof("boost") is None
    assert device("Tesla T4").roof("bf16") is None


def test_the_report_of_a_real_t4_has_the_figures_of_the_table() -> None:
    # What Nsight Systems 2025.3 wrote to TARGET_INFO_GPU: memoryBandwidth, clockRate, smCount, l2CacheSize.
    found = device("Tesla T4").figures
    assert [found[name].value for name in ("memory", "boost", "sms", "l2")] == [320.064e9, 1.59e9, 40, 4194304]


def test_the_peaks_of_a_device_name_metric_precision_and_source() -> None:
    peaks = {(metric, precision): (value, how) for metric, value, precision, how in device("Tesla T4").peaks()}
    assert {key: value for key, (value, _) in peaks.items()} == {
        ("bandwidth", ""): 320.064e9,
        ("flops", "f32"): 8.1e12,
        ("flops", "f16"): 65e12,
    }
    assert all("published for Tesla T4: " in how for _, how in peaks.values())
