"""The labels of Nsight Compute's details page, as ids of metrics.

Labels differ between versions and are told apart by their unit: ``Memory Throughput`` is a share under "GPU Speed Of
Light Throughput" and bytes per second under "Memory Workload Analysis". From the section files of 2022.3, and of the
versions before and after it what their public output shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perfflow.errors import ToolOutputError

_ID = re.compile(r"[a-z0-9_]+__[a-zA-Z0-9_.]+", re.ASCII)
_PEAK = "avg.pct_of_peak_sustained"


def _by_label(labels: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {label: metric for metric, known in labels.items() for label in known}


_SHARES = _by_label({
    f"sm__throughput.{_PEAK}_elapsed": ("Compute (SM) Throughput", "Compute (SM) [%]", "SM [%]", "SOL SM"),
    f"gpu__compute_memory_throughput.{_PEAK}_elapsed": ("Memory Throughput", "Memory [%]", "SOL Memory"),
    f"gpu__dram_throughput.{_PEAK}_elapsed": ("DRAM Throughput", "SOL DRAM"),
    f"l1tex__throughput.{_PEAK}_active": ("L1/TEX Cache Throughput", "SOL L1/TEX Cache"),
    f"lts__throughput.{_PEAK}_elapsed": ("L2 Cache Throughput", "SOL L2 Cache"),
    f"sm__warps_active.{_PEAK}_active": ("Achieved Occupancy",),
    "sm__maximum_warps_per_active_cycle_pct": ("Theoretical Occupancy",),
    "l1tex__t_sector_hit_rate.pct": ("L1/TEX Hit Rate",),
    "lts__t_sector_hit_rate.pct": ("L2 Hit Rate",),
    f"smsp__issue_inst0.{_PEAK}_active": ("No Eligible",),
    f"smsp__issue_active.{_PEAK}_active": ("One or More Eligible",),
})  # fmt: skip
_OTHERS: Mapping[str, str] = {
    "Duration": "gpu__time_duration.sum",
    "Memory Throughput": "dram__bytes.sum.per_second",
    "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
    "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
    "Registers Per Thread": "launch__registers_per_thread",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Shared Memory Configuration Size": "launch__shared_mem_config_size",
    "Block Size": "launch__block_size",
    "Grid Size": "launch__grid_size",
    "Waves Per SM": "launch__waves_per_multiprocessor",
    "Block Limit SM": "launch__occupancy_limit_blocks",
    "Block Limit Registers": "launch__occupancy_limit_registers",
    "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
    "Block Limit Warps": "launch__occupancy_limit_warps",
    "Block Limit Barriers": "launch__occupancy_limit_barriers",
    "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
    "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
    "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
    "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
}


def id_of(label: str, unit: str) -> str:
    """Return the id behind a label and its unit, a metric's own id as it is, '' for one that perfflow does not read.

    Raises ToolOutputError for a label that is known with another unit only.
    """
    if _ID.fullmatch(label):
        return label
    found = (_SHARES if unit.strip() == "%" else _OTHERS).get(label, "")
    if not found and label in {*_SHARES, *_OTHERS}:
        raise ToolOutputError(f"{label} has the unit {ascii(unit)[:30]}, which perfflow does not know for it")
    return found
