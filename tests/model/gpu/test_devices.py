"""The table of GPUs: consistent figures, sources for all, no match with a similar GPU, the same on the page."""

from __future__ import annotations

import pytest

from perfflow.model.errors import UserError
from perfflow.model.gpu.devices import PRECISIONS, device, devices, find
from perfflow.model.gpu.occupancy import limits_of

ALL = {entry.name: entry for entry in devices()}


def figures(*names: str) -> dict[str, list[float]]:
    """The values of these figures of each device that has all of them."""
    found = {name: [entry.figures[key].value for key in names if key in entry.figures] for name, entry in ALL.items()}
    return {name: values for name, values in found.items() if len(values) == len(names)}


def test_the_peak_of_f32_is_what_cores_and_clock_make() -> None:
    known = figures("f32", "sms", "boost")
    assert len(known) >= 18
    for name, (peak, sms, clock) in known.items():
        assert peak == pytest.approx(2 * limits_of(ALL[name].capability).f32_cores * sms * clock, rel=0.02), name


def test_memory_bandwidth_is_what_its_pins_carry() -> None:
    known = figures("memory", "memory_bus", "memory_pin")
    assert len(known) >= 16
    for name, (bandwidth, pins, rate) in known.items():
        assert bandwidth == pytest.approx(pins * rate / 8, rel=0.005), name


@pytest.mark.parametrize("name", ALL)
def test_every_figure_has_a_known_name_a_sane_size_and_a_source(name: str) -> None:
    entry = ALL[name]
    sizes = dict.fromkeys(PRECISIONS, (1e11, 1e16))
    sizes |= {"sms": (10, 300), "boost": (1e9, 3e9), "memory": (2e11, 1e13), "l2": (4 * 2**20, 2**27)}
    sizes |= {"memory_bus": (128, 8192), "memory_pin": (1e9, 4e10)}
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
    ("name", "reported"),
    [
        ("H100 SXM5", ["NVIDIA H100 80GB HBM3"]),
        ("H200 SXM", ["NVIDIA H200"]),
        ("Tesla T4", ["Tesla T4", "NVIDIA T4"]),
        ("A100 SXM4 80 GB", ["NVIDIA A100-SXM4-80GB", "nvidia a100-sxm4-80gb", "A100-SXM4-80GB"]),
        ("A100 PCIe 80 GB", ["NVIDIA A100 80GB PCIe"]),
        ("Tesla V100 SXM2", ["NVIDIA Tesla V100-SXM2-16GB"]),
        ("GeForce RTX 4090", ["GeForce RTX 4090", "NVIDIA GeForce RTX 4090", "  rtx  4090 "]),
        ("A10", ["NVIDIA A10"]),
        ("L40S", ["NVIDIA(R) L40S"]),
    ],
)
def test_a_name_as_tools_report_it_finds_its_device(name: str, reported: list[str]) -> None:
    assert {device(each).name for each in reported} == {name}


@pytest.mark.parametrize(
    "reported",
    [
        *("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti"),
        *("NVIDIA GeForce RTX 2080", "NVIDIA A10G", "NVIDIA A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100X"),
        *("NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA L40G", "Tesla V100S-PCIE-32GB", "NVIDIA", ""),
    ],
)
def test_a_neighbour_is_not_taken_for_a_device_of_the_table(reported: str) -> None:
    assert find(reported) is None
    with pytest.raises(UserError, match="no peaks are known") as told:
        device(reported)
    assert "peaks:" in str(told.value)
    assert ("the table has NVIDIA GeForce RTX 4090" in str(told.value)) == ("4090" in reported)


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
