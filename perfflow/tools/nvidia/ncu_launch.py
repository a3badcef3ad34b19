"""What Nsight Compute measured of one launch, by perfflow's metrics: from the ids of ncu's metrics, never its labels.

Ids and what they mean: the section files of Nsight Compute, and its Kernel Profiling Guide ("Metrics Reference").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul

from perfflow.errors import ToolOutputError
from perfflow.samples.kernels import GPU
from perfflow.tools.nvidia import ncu_numbers
from perfflow.tools.nvidia.ncu_numbers import Kind
from perfflow.tools.nvidia.ncu_table import Launch, Rule, Table
from perfflow.tools.tool_files import clean_name

WARP = 32
"""Threads of a warp, on every architecture so far."""
_PCT = ".avg.pct_of_peak_sustained"
Source = tuple[Kind, *tuple[str, ...]]
"""What a metric is, and ids of it in the order in which they are looked for."""
# Of several ids the first that is there; newer architectures and versions call some otherwise.
SOURCES: Mapping[str, Source] = {
    "kernel_time": (Kind.TIME, "gpu__time_duration.sum", "gpu__time_duration.avg"),
    "occupancy": (Kind.SHARE, f"sm__warps_active{_PCT}_active"),
    "occupancy_theoretical": (Kind.SHARE, "sm__maximum_warps_per_active_cycle_pct"),
    "sm_share": (Kind.SHARE, f"sm__throughput{_PCT}_elapsed"),
    "memory_share": (Kind.SHARE, f"gpu__compute_memory_throughput{_PCT}_elapsed"),
    "dram_share": (Kind.SHARE, f"gpu__dram_throughput{_PCT}_elapsed", f"dram__throughput{_PCT}_elapsed"),
    "l1_share": (Kind.SHARE, f"l1tex__throughput{_PCT}_active", f"l1tex__throughput{_PCT}_elapsed"),
    "l2_share": (Kind.SHARE, f"lts__throughput{_PCT}_elapsed"),
    "l1_hit_rate": (Kind.SHARE, "l1tex__t_sector_hit_rate.pct"),
    "l2_hit_rate": (Kind.SHARE, "lts__t_sector_hit_rate.pct"),
    "tensor_share": (
        Kind.SHARE,
        f"sm__pipe_tensor_cycles_active{_PCT}_active",
        f"sm__pipe_tensor_cycles_active{_PCT}_elapsed",
        f"sm__inst_executed_pipe_tensor{_PCT}_active",
    ),
    "registers": (Kind.COUNT, "launch__registers_per_thread"),
    "waves": (Kind.COUNT, "launch__waves_per_multiprocessor"),
    "eligible_warps": (Kind.COUNT, "smsp__warps_eligible.avg.per_cycle_active"),
}
MORE: Mapping[str, Source] = {
    "block_size": (Kind.COUNT, "launch__block_size"),
    "grid_size": (Kind.COUNT, "launch__grid_size"),
    "shared_memory_static": (Kind.BYTES, "launch__shared_mem_per_block_static"),
    "shared_memory_dynamic": (Kind.BYTES, "launch__shared_mem_per_block_dynamic"),
    "active_warps": (Kind.COUNT, "smsp__warps_active.avg.per_cycle_active"),
    "issued_warps": (Kind.COUNT, "smsp__issue_active.avg.per_cycle_active"),
    "no_eligible_share": (Kind.SHARE, "smsp__issue_inst0.avg.pct_of_peak_sustained_active"),
    "issue_latency_cycles": (Kind.COUNT, "smsp__average_warp_latency_per_inst_issued.ratio"),
    "sm_clock": (Kind.FREQUENCY, "gpc__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second"),
    "dram_clock": (Kind.FREQUENCY, "dram__cycles_elapsed.avg.per_second"),
    "dram_bytes": (Kind.BYTES, "dram__bytes.sum"),
    "shared_memory_setting": (Kind.BYTES, "launch__shared_mem_config_size"),
    "global_sectors": (Kind.COUNT, "memory_l2_theoretical_sectors_global"),
    "global_sectors_ideal": (Kind.COUNT, "memory_l2_theoretical_sectors_global_ideal"),
}
"""What only ``kernels.json`` tells."""
METRICS = (*SOURCES, "warp_efficiency", "bandwidth", "flops")
_THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
_CYCLES = "smsp__cycles_elapsed.avg.per_second"
_OPERATIONS: Mapping[str, float] = {"add": 1.0, "mul": 1.0, "fma": 2.0}
_PRECISIONS: Mapping[str, str] = {"f64": "d", "f32": "f", "f16": "h"}
_LIMITS: Mapping[str, Source] = {
    "registers": (Kind.COUNT, "launch__occupancy_limit_registers"),
    "shared memory": (Kind.COUNT, "launch__occupancy_limit_shared_mem"),
    "block size": (Kind.COUNT, "launch__occupancy_limit_warps"),
    "blocks": (Kind.COUNT, "launch__occupancy_limit_blocks"),
    "barriers": (Kind.COUNT, "launch__occupancy_limit_barriers"),
}
"""What limits the blocks on a multiprocessor. With all of its warps in use, only larger blocks are in the way."""
_STALLS = {
    re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"): "cycles between two instructions",
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"): "cycles of a warp",
    re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active\.pct"): "of the active warps",
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(?<!_not_issued)"): "samples",
}
"""How the states of warps are called, and in what they are counted, the most telling first."""
NO_STALL = "selected"
"""The state of a warp that issues."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One launch in base units: ``figures`` by perfflow's metric, ``more`` what is kept beside them.

    ``limits`` are blocks that fit on a multiprocessor, by what limits them; ``states`` what its warps did by reason, in
    ``states_unit``; ``flops`` FLOP/s by precision; ``peaks`` what the GPU could have done at the clocks it ran at, by
    ``bandwidth`` (B/s) and precision (FLOP/s); ``absent`` metrics that ncu could not collect. ``device`` is what
    ncu says of the GPU, in words.
    """

    kernel: str
    device: Mapping[str, str]
    figures: Mapping[str, float]
    more: Mapping[str, float]
    limits: Mapping[str, float]
    states: Mapping[str, float]
    states_unit: str
    flops: Mapping[str, float]
    peaks: Mapping[str, float]
    rules: Sequence[Rule]
    absent: frozenset[str] = field(default_factory=frozenset)

    @property
    def gpu(self) -> str:
        """The GPU's name as its driver reports it; what else the page tells of it where it does not."""
        name, capability = self.device.get("name"), self.device.get("compute_capability")
        return name or (f"{GPU} of compute capability {capability}" if capability else GPU)


def measure(table: Table) -> list[Measured]:
    """Read every launch of a table. Raises ToolOutputError for what cannot be."""
    return [_Reader(launch, table.mark).measured() for launch in table.launches]


class _Reader:
    """Looks the metrics of one launch up."""

    def __init__(self, launch: Launch, mark: str) -> None:
        self._launch, self._mark = launch, mark

    def measured(self) -> Measured:
        cells = self._launch.cells
        figures = self._there(SOURCES)
        seconds = figures.get("kernel_time")
        if seconds == 0:
            raise ToolOutputError(f"a launch of {self._launch.kernel[:80]!r} took no time, which cannot be")
        flops = dict(self._flops(seconds))
        if (operations := sum(flops.values())) > 0:
            figures["flops"] = operations
        if (threads := self._get(_THREADS, Kind.COUNT)) is not None:
            if threads > WARP:
                raise ToolOutputError(f"{_THREADS} is {threads:g}, and a warp has {WARP} threads")
            figures["warp_efficiency"] = threads / WARP
        if (bandwidth := self._bandwidth(seconds)) is not None:
            figures["bandwidth"] = bandwidth
        states_unit, states = self._states()
        return Measured(
            *(self._launch.kernel, self._device(), figures, self._there(MORE), self._there(_LIMITS), states),
            *(states_unit, flops, dict(self._peaks()), self._launch.rules),
            frozenset(name for name, (_, *ids) in SOURCES.items() if name not in figures and cells.keys() & set(ids)),
        )

    def _get(self, metric: str, kind: Kind) -> float | None:
        """A metric's figure, None where it was not collected."""
        cell = self._launch.cells.get(metric)
        if cell is None or ncu_numbers.is_missing(cell.text):
            return None
        return ncu_numbers.figure(cell, self._mark, kind, metric)

    def _first(self, kind: Kind, *ids: str) -> float | None:
        return next((value for name in ids if (value := self._get(name, kind)) is not None), None)

    def _there(self, sources: Mapping[str, Source]) -> dict[str, float]:
        return {name: value for name, source in sources.items() if (value := self._first(*source)) is not None}

    def _counts(self, ids: Iterable[str], kind: Kind = Kind.COUNT) -> list[float]:
        """The figures of several metrics, [] where one of them was not collected."""
        found = [self._get(metric, kind) for metric in ids]
        return [] if None in found else [value or 0.0 for value in found]

    def _bandwidth(self, seconds: float | None) -> float | None:
        """Bytes per second to and from the device's memory, in one figure or by direction."""
        whole = self._get("dram__bytes.sum.per_second", Kind.BANDWIDTH)
        if whole is not None:
            return whole
        if parts := self._counts((f"dram__bytes_{way}.sum.per_second" for way in ("read", "write")), Kind.BANDWIDTH):
            return sum(parts)
        moved = self._get("dram__bytes.sum", Kind.BYTES)
        return moved / seconds if moved is not None and seconds else None

    def _flops(self, seconds: float | None) -> Iterator[tuple[str, float]]:
        """Operations per second by precision, as the roofline of ncu counts them: a fused one is two."""
        cycles = self._get(_CYCLES, Kind.FREQUENCY)
        for precision, letter in _PRECISIONS.items():
            ids = [f"smsp__sass_thread_inst_executed_op_{letter}{name}_pred_on.sum" for name in _OPERATIONS]
            each, factor = self._counts(f"{metric}.per_cycle_elapsed" for metric in ids), cycles
            if not each or factor is None:
                each, factor = self._counts(ids), 1 / seconds if seconds else None
            if each and factor is not None:
                yield precision, factor * sum(map(mul, each, _OPERATIONS.values()))

    def _peaks(self) -> Iterator[tuple[str, float]]:
        """What a cycle of the memory and of the multiprocessors can do at most, by the cycles of a second."""
        memory = self._get("dram__cycles_elapsed.avg.per_second", Kind.FREQUENCY)
        moved = self._get("dram__bytes.sum.peak_sustained", Kind.COUNT)
        if memory and moved:
            yield "bandwidth", memory * moved
        clock = self._first(Kind.FREQUENCY, "sm__cycles_elapsed.avg.per_second", _CYCLES)
        for precision, letter in _PRECISIONS.items():
            fused = self._get(f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained", Kind.COUNT)
            if clock and fused:
                yield precision, clock * fused * _OPERATIONS["fma"]

    def _device(self) -> dict[str, str]:
        """The GPU's index, name and compute capability, as far as the page tells; the launch's shape on it."""
        columns, cells = self._launch.columns, self._launch.cells
        named = {"device": "Device", "compute_capability": "CC", "grid": "Grid Size", "block": "Block Size"}
        found = {key: columns.get(column, "") for key, column in named.items()}
        if name := cells.get("device__attribute_display_name"):
            found["name"] = name.text
        ids = [f"device__attribute_compute_capability_{part}" for part in ("major", "minor")]
        if not found["compute_capability"] and cells.keys() >= set(ids):
            found["compute_capability"] = ".".join(cells[metric].text for metric in ids)
        return {key: clean_name(text) for key, text in found.items() if text}

    def _states(self) -> tuple[str, dict[str, float]]:
        """What the warps did between two instructions, in the first unit in which ncu tells."""
        for pattern, unit in _STALLS.items():
            kind = Kind.SHARE if pattern.pattern.endswith("pct") else Kind.COUNT
            # ncu spells one state in two ways.
            ids = {match[1].replace("no_instructions", "no_instruction"): name for name in self._launch.cells
                   if (match := pattern.fullmatch(name))}  # fmt: skip
            if states := {reason: value for reason, name in ids.items() if (value := self._get(name, kind))}:
                return unit, states
        return "", {}
