"""Measurements of one launch by Nsight Compute, as perfflow's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from perfflow.model.errors import ToolOutputError
from perfflow.model.gpu.stalls import reason_of
from perfflow.model.kernels import GPU
from perfflow.tools.nvidia import ncu_table
from perfflow.tools.nvidia.ncu_metrics import BANDWIDTH, LIMITS, MORE, SOURCES, THREADS, Kind, Source
from perfflow.tools.nvidia.ncu_table import Cell, Launch, Rule, Table
from perfflow.tools.tool_files import clean_name

WARP = 32
"""Threads of a warp, on every architecture so far."""
METRICS = (*SOURCES, "warp_efficiency", "bandwidth", "flops")
_CYCLES = "smsp__cycles_elapsed.avg.per_second"
_OPERATIONS: Mapping[str, float] = {"add": 1.0, "mul": 1.0, "fma": 2.0}
_PRECISIONS: Mapping[str, str] = {"f64": "d", "f32": "f", "f16": "h"}
_STATES: Mapping[str, tuple[str, Kind, str]] = {
    "smsp__average_warps_issue_stalled_": ("_per_issue_active.ratio", "1", "cycles between two instructions"),
    "smsp__average_warp_latency_issue_stalled_": (".ratio", "1", "cycles of a warp"),
    "smsp__warp_issue_stalled_": ("_per_warp_active.pct", "%", "of the active warps"),
    "smsp__pcsamp_warps_issue_stalled_": ("", "1", "samples"),
}
"""Prefix, suffix and unit of the metrics of warp states, the most informative first."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One launch in base units: ``figures`` by perfflow's metric, ``more`` by other names.

    ``limits`` are blocks that fit on a multiprocessor, by limit; ``states`` how much its warps were in each state, in
    ``states_unit``; ``flops`` FLOP/s by precision; ``peaks`` the GPU's peaks at its clocks during the launch, by
    ``bandwidth`` (B/s) and precision (FLOP/s); ``absent`` metrics that ncu could not collect; ``device`` ncu's
    description of the GPU, as text.
    """

    kernel: str
    rules: Sequence[Rule]
    device: Mapping[str, str]
    figures: Mapping[str, float]
    more: Mapping[str, float]
    limits: Mapping[str, float]
    flops: Mapping[str, float]
    peaks: Mapping[str, float]
    absent: frozenset[str]
    states: Mapping[str, float]
    states_unit: str

    @property
    def gpu(self) -> str:
        """Return the GPU's name as its driver reports it, else one from the compute capability."""
        name, capability = self.device.get("name"), self.device.get("compute_capability")
        return name or (f"{GPU} of compute capability {capability}" if capability else GPU)


def measure(table: Table) -> list[Measured]:
    """Read every launch of a table. Raises ToolOutputError for impossible values."""
    return [_Reader(launch, table.mark).measured() for launch in table.launches]


class _Reader:
    """Looks up the metrics of one launch."""

    def __init__(self, launch: Launch, mark: str) -> None:
        self._launch, self._mark = launch, mark

    def measured(self) -> Measured:
        launch, figures = self._launch, self._collected(SOURCES)
        if (seconds := figures.get("kernel_time")) == 0:
            raise ToolOutputError(f"a launch of {launch.kernel[:80]!r} took 0 s, which is impossible")
        flops = dict(self._flops(seconds))
        if (operations := sum(flops.values())) > 0:
            figures["flops"] = operations
        if (threads := self._first(*THREADS)) is not None:
            if threads > WARP:
                raise ToolOutputError(f"{THREADS[1]} is {threads:g}, but a warp has {WARP} threads")
            figures["warp_efficiency"] = threads / WARP
        if (bandwidth := self._bandwidth(seconds)) is not None:
            figures["bandwidth"] = bandwidth
        more, limits, peaks = self._collected(MORE), self._collected(LIMITS), dict(self._peaks())
        asked = {name for name, (_, *ids) in SOURCES.items() if launch.cells.keys() & set(ids)}
        absent = frozenset(asked - figures.keys())
        return Measured(
            launch.kernel, launch.rules, self._device(), figures, more, limits, flops, peaks, absent, *self._states()
        )

    def _first(self, kind: Kind, *ids: str) -> float | None:
        """Return the value of the first of these metrics that was collected, None if none was."""
        cells = self._launch.cells
        found = (ncu_table.figure(cells[metric], self._mark, kind, metric) for metric in ids if metric in cells)
        return next((value for value in found if value is not None), None)

    def _collected(self, sources: Mapping[str, Source]) -> dict[str, float]:
        return {name: value for name, source in sources.items() if (value := self._first(*source)) is not None}

    def _all(self, kind: Kind, ids: Iterable[str]) -> list[float]:
        """Return the values of several metrics, [] if one of them was not collected."""
        found = [self._first(kind, metric) for metric in ids]
        return [] if None in found else [value or 0.0 for value in found]

    def _bandwidth(self, seconds: float | None) -> float | None:
        """Return bytes per second to and from device memory, from one metric or one per direction."""
        whole = self._first(*BANDWIDTH)
        if whole is not None:
            return whole
        if parts := self._all("B/s", (f"dram__bytes_{way}.sum.per_second" for way in ("read", "write"))):
            return sum(parts)
        moved = self._first("B", "dram__bytes.sum")
        return moved / seconds if moved is not None and seconds else None

    def _flops(self, seconds: float | None) -> Iterator[tuple[str, float]]:
        """Yield operations per second by precision, as in ncu's roofline: a fused multiply-add counts as two."""
        cycles = self._first("1/s", _CYCLES)
        for precision, letter in _PRECISIONS.items():
            ids = [f"smsp__sass_thread_inst_executed_op_{letter}{name}_pred_on.sum" for name in _OPERATIONS]
            each, factor = self._all("1", (f"{metric}.per_cycle_elapsed" for metric in ids)), cycles
            if not each or factor is None:
                each, factor = self._all("1", ids), 1 / seconds if seconds else None
            if each and factor is not None:
                yield precision, factor * sum(map(mul, each, _OPERATIONS.values()))

    def _peaks(self) -> Iterator[tuple[str, float]]:
        """Yield peak rates: the most work per cycle of the memory and the multiprocessors, times cycles per second."""
        memory = self._first("1/s", "dram__cycles_elapsed.avg.per_second")
        moved = self._first("1", "dram__bytes.sum.peak_sustained")
        if memory and moved:
            yield "bandwidth", memory * moved
        clock = self._first("1/s", "sm__cycles_elapsed.avg.per_second", _CYCLES)
        for precision, letter in _PRECISIONS.items():
            fused = self._first("1", f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained")
            if clock and fused:
                yield precision, clock * fused * _OPERATIONS["fma"]

    def _device(self) -> dict[str, str]:
        """Return the GPU's index, name and compute capability, and the sizes of the launch, as far as known."""
        columns, cells = self._launch.columns, self._launch.cells
        named = {"device": "Device", "compute_capability": "CC", "grid": "Grid Size", "block": "Block Size"}
        found = {key: columns.get(column, "") for key, column in named.items()}
        found["name"] = cells.get("device__attribute_display_name", Cell("")).text
        parts = [cells.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")]
        found["compute_capability"] = found["compute_capability"] or ".".join(part.text for part in parts if part)
        return {key: clean_name(text) for key, text in found.items() if text}

    def _states(self) -> tuple[Mapping[str, float], str]:
        """Return the states of the warps between two instructions, in the first unit that ncu collected."""
        for prefix, (ending, kind, unit) in _STATES.items():
            names = [name for name in self._launch.cells if name.startswith(prefix) and name.endswith(ending)]
            found = self._collected({reason: (kind, name) for name in names if (reason := reason_of(name))})
            if states := {reason: value for reason, value in found.items() if value}:
                return states, unit
        return {}, ""
