"""The metrics of Nsight Compute that perfflow reads: the kind of each, its ids, and its labels on the details page.

Source of the ids: the section files of Nsight Compute, and its Kernel Profiling Guide ("Metrics Reference"). Labels are
distinguished by their unit: ``Memory Throughput`` is a share under "GPU Speed Of Light Throughput" and bytes per second
under "Memory Workload Analysis". Labels are from the section files of 2022.3, and for other versions from their
published output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["s", "B", "B/s", "1/s", "%", "1"]
"""The kind of a metric: its base unit, to which its own unit must convert."""
Source = tuple[Kind, str, *tuple[str, ...]]
"""The kind of a metric, its ids in the order of search, and its labels, which have capitals.

Some ids differ in newer architectures and versions. A label stands for the first id.
"""
_PCT = ".avg.pct_of_peak_sustained"
SOURCES: Mapping[str, Source] = {
    "kernel_time": ("s", "gpu__time_duration.sum", "gpu__time_duration.avg", "Duration"),
    "occupancy": ("%", f"sm__warps_active{_PCT}_active", "Achieved Occupancy"),
    "occupancy_theoretical": ("%", "sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"),
    "sm_share": (
        *("%", f"sm__throughput{_PCT}_elapsed"),
        *("Compute (SM) Throughput", "Compute (SM) [%]", "SM [%]", "SOL SM"),
    ),
    "memory_share": (
        *("%", f"gpu__compute_memory_throughput{_PCT}_elapsed"),
        *("Memory Throughput", "Memory [%]", "SOL Memory"),
    ),
    "dram_share": (
        *("%", f"gpu__dram_throughput{_PCT}_elapsed", f"dram__throughput{_PCT}_elapsed"),
        *("DRAM Throughput", "SOL DRAM"),
    ),
    "l1_share": (
        *("%", f"l1tex__throughput{_PCT}_active", f"l1tex__throughput{_PCT}_elapsed"),
        *("L1/TEX Cache Throughput", "SOL L1/TEX Cache"),
    ),
    "l2_share": ("%", f"lts__throughput{_PCT}_elapsed", "L2 Cache Throughput", "SOL L2 Cache"),
    "l1_hit_rate": ("%", "l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"),
    "l2_hit_rate": ("%", "lts__t_sector_hit_rate.pct", "L2 Hit Rate"),
    "tensor_share": (
        *("%", f"sm__pipe_tensor_cycles_active{_PCT}_active", f"sm__pipe_tensor_cycles_active{_PCT}_elapsed"),
        f"sm__inst_executed_pipe_tensor{_PCT}_active",
    ),
    "registers": ("1", "launch__registers_per_thread", "Registers Per Thread"),
    "waves": ("1", "launch__waves_per_multiprocessor", "Waves Per SM"),
    "eligible_warps": ("1", "smsp__warps_eligible.avg.per_cycle_active", "Eligible Warps Per Scheduler"),
}
"""perfflow's metrics that equal one of ncu's."""
MORE: Mapping[str, Source] = {
    "block_size": ("1", "launch__block_size", "Block Size"),
    "grid_size": ("1", "launch__grid_size", "Grid Size"),
    "shared_memory_static": ("B", "launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    "shared_memory_dynamic": ("B", "launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
    "active_warps": ("1", "smsp__warps_active.avg.per_cycle_active", "Active Warps Per Scheduler"),
    "issued_warps": ("1", "smsp__issue_active.avg.per_cycle_active", "Issued Warp Per Scheduler"),
    "no_eligible_share": ("%", f"smsp__issue_inst0{_PCT}_active", "No Eligible"),
    "issue_latency_cycles": (
        *("1", "smsp__average_warp_latency_per_inst_issued.ratio", "Warp Cycles Per Issued Instruction"),
    ),
    "sm_clock": ("1/s", "gpc__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second", "SM Frequency"),
    "dram_clock": ("1/s", "dram__cycles_elapsed.avg.per_second", "DRAM Frequency"),
    "dram_bytes": ("B", "dram__bytes.sum"),
    "shared_memory_setting": ("B", "launch__shared_mem_config_size", "Shared Memory Configuration Size"),
    "global_sectors": ("1", "memory_l2_theoretical_sectors_global"),
    "global_sectors_ideal": ("1", "memory_l2_theoretical_sectors_global_ideal"),
}
"""Values that are only in ``kernels.json``."""
LIMITS: Mapping[str, Source] = {
    "registers": ("1", "launch__occupancy_limit_registers", "Block Limit Registers"),
    "shared memory": ("1", "launch__occupancy_limit_shared_mem", "Block Limit Shared Mem"),
    "block size": ("1", "launch__occupancy_limit_warps", "Block Limit Warps"),
    "blocks": ("1", "launch__occupancy_limit_blocks", "Block Limit SM"),
    "barriers": ("1", "launch__occupancy_limit_barriers", "Block Limit Barriers"),
}
"""Limits of the blocks on a multiprocessor. ``block size`` is the limit when all of its warps are in use."""
BANDWIDTH: Source = ("B/s", "dram__bytes.sum.per_second", "Memory Throughput")
THREADS: Source = ("1", "smsp__thread_inst_executed_per_inst_executed.ratio", "Avg. Active Threads Per Warp")

BY_LABEL: Mapping[tuple[bool, str], str] = {
    (kind == "%", name): first
    for kind, first, *names in (*SOURCES.values(), *MORE.values(), *LIMITS.values(), BANDWIDTH, THREADS)
    for name in names
    if not name.islower()
}
"""The id of each label, by whether the label is a share and by its text."""
