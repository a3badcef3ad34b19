from __future__ import annotations

import pytest

from perfflow.model import metrics
from perfflow.model.metrics import COMPARED_STATISTICS, METRICS, QUANTILES, STATISTICS, TIMES, Better, Metric
from perfflow.model.units import Dimension

CONTRACT = {
    *("time", "cpu", "uncontended", "rss", "heap_peak", "alloc", "allocs", "instructions", "cache_misses"),
    *("branch_misses", "syscalls", "throughput", "rate", "flops", "bandwidth", "occupancy", "warp_efficiency"),
    *("dataloader_fraction", "gpu_util", "gpu_memory_peak", "binary_size"),
}
OF_THE_MACHINE = {"disk_read", "disk_write", "gpu_clock", "gpu_memory_clock"}


def test_every_promised_metric_exists_under_its_own_name() -> None:
    assert set(METRICS) >= CONTRACT
    assert all(metric.name == name for name, metric in METRICS.items())


def test_exact_metrics_are_those_that_repeat_to_the_digit() -> None:
    exact = {name for name, metric in METRICS.items() if metric.exact}
    assert exact == {
        *("heap_peak", "alloc", "allocs", "temporary_allocs", "leaked", "instructions", "binary_size"),
        *("file_size", "text_size", "rodata_size", "data_size", "bss_size", "unpacked_size"),
        *("ad_hoc_units", "ad_hoc_events"),
        *("sql_statements", "sql_repeated", "registers", "occupancy_theoretical", "waves"),
    }


def test_what_operations_divide_are_totals_and_never_peaks_or_rates() -> None:
    totals = {name for name, metric in METRICS.items() if metric.total}
    # The list of the contract, and further counts of a run.
    assert {"time", "cpu", "instructions", "alloc", "allocs", "syscalls"} <= totals
    assert totals.isdisjoint({"rss", "heap_peak", "gpu_memory_peak", "binary_size"})
    per_second = (Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS, Dimension.RATIO)
    assert all(METRICS[name].dimension not in per_second for name in totals)


def test_more_per_second_is_better_and_more_time_or_memory_never_is() -> None:
    for metric in METRICS.values():
        if metric.dimension in (Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS):
            # Rates of the machine beside a program are neither.
            assert metric.better is (Better.NONE if metric.name in OF_THE_MACHINE else Better.HIGHER), metric.name
        if metric.dimension in (Dimension.TIME, Dimension.BYTES, Dimension.COUNT):
            assert metric.better is not Better.HIGHER, metric.name
    assert METRICS["occupancy"].better is METRICS["gpu_util"].better is Better.HIGHER
    assert METRICS["dataloader_fraction"].better is Better.LOWER


def test_the_three_ways_to_time_a_run_are_comparable() -> None:
    ways = {(METRICS[name].dimension, METRICS[name].better, METRICS[name].exact) for name in TIMES}
    assert ways == {(Dimension.TIME, Better.LOWER, False)}


def test_a_target_without_a_statistic_is_about_the_value_or_the_median() -> None:
    asked = (METRICS["allocs"], METRICS["time"], Metric("queue_depth", Dimension.COUNT, Better.NONE))
    assert [metrics.default_statistic(metric) for metric in asked] == ["value", "p50", "p50"]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_comparisons_and_growth_are_plain_ratios(statistic: str) -> None:
    plain = statistic in {"change", "speedup", "growth", "efficiency"}
    assert metrics.statistic_dimension(METRICS["time"], statistic) is (Dimension.RATIO if plain else Dimension.TIME)


def test_statistics_fit_together() -> None:
    assert set(QUANTILES) | set(COMPARED_STATISTICS) <= set(STATISTICS)
    assert all(float(f"0.{name[1:]}") == q for name, q in QUANTILES.items())
    assert len(set(STATISTICS)) == len(STATISTICS)
