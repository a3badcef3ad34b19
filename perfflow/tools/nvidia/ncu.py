"""``ncu``: counters of each launch of a CUDA kernel from NVIDIA's Nsight Compute, or from an existing report.

ncu replays each launch once per pass, with flushed caches: its times are those of a kernel alone. ncu itself converts
its report to CSV, which needs no GPU. The raw page has the figures, by the ids of ncu's metrics, and the details page
has the advice of its rules.

- ``measure_launch`` reads the measurements of each launch of a table as perfflow's metrics.
- ``short_names`` shortens names of kernels: ``gemm`` for ``void gemm<float, 128>(float*, int)``, longer if two would be
  the same. Demangled names are those of C++; Numba writes ``copy[abi:v1](Array<...>)``, Triton and CUTLASS plain
  identifiers.
- ``gather_kernels`` groups launches by kernel, for readings, hotspots, facts, and ``kernels.json``.
- ``ADAPTER`` profiles a command, or reads an existing report.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.gpu.stalls import ranked, reason_of
from perfflow.model.kernels import GPU, KernelResult, Stall, ToolAdvice, together
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import MOST_HOTSPOTS, Hotspot, Parsed, Peak, Profile, Reading, Usage, reading_of_many
from perfflow.model.units import Dimension, format_quantity
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, Suite, leaves
from perfflow.tools.nvidia import ncu_table
from perfflow.tools.nvidia.ncu_metrics import BANDWIDTH, LIMITS, MORE, SOURCES, THREADS, Kind, Source
from perfflow.tools.nvidia.ncu_table import Cell, NcuLaunch, NcuRule, NcuTable
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
class MeasuredLaunch:
    """One launch in base units: ``figures`` by perfflow's metric, ``more`` by other names.

    ``limits`` are blocks that fit on a multiprocessor, by limit; ``states`` how much its warps were in each state, in
    ``states_unit``; ``flops`` FLOP/s by precision; ``peaks`` the GPU's peaks at its clocks during the launch, by
    ``bandwidth`` (B/s) and precision (FLOP/s); ``absent`` metrics that ncu could not collect; ``device`` ncu's
    description of the GPU, as text.
    """

    kernel: str
    rules: Sequence[NcuRule]
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


def measure_launch(table: NcuTable) -> list[MeasuredLaunch]:
    """Read every launch of a table. Raises ToolOutputError for impossible values."""
    return [_NcuReader(launch, table.mark).measured() for launch in table.launches]


class _NcuReader:
    """Looks up the metrics of one launch."""

    def __init__(self, launch: NcuLaunch, mark: str) -> None:
        self._launch, self._mark = launch, mark

    def measured(self) -> MeasuredLaunch:
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
        collected = {name for name, (_, *ids) in SOURCES.items() if launch.cells.keys() & set(ids)}
        absent = frozenset(collected - figures.keys())
        return MeasuredLaunch(
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


LONGEST = 120
"""The most characters of a short name."""
_OPENING: Mapping[str, str] = {")": "(", ">": "<", "]": "["}
_QUALIFIERS = re.compile(r"(?:\s+(?:const|volatile|&+|\[clone [^\]]*\]))+\Z")


def short_names(kernels: Iterable[str]) -> dict[str, str]:
    """Return a unique short name for each full name: its function, with template arguments and parameters if needed."""
    forms = {name: _forms(name) for name in kernels}
    chosen = {name: shortest for name, (shortest, *_) in forms.items()}
    for level in (1, 2):
        used = Counter(chosen.values())
        chosen = {name: forms[name][level] if used[form] > 1 else form for name, form in chosen.items()}
    taken: Counter[str] = Counter()
    for name, form in chosen.items():
        taken[form] += 1
        chosen[name] = form if taken[form] == 1 else f"{form} #{taken[form]}"
    return chosen


def _forms(name: str) -> list[str]:
    """Return three forms of a name, the shortest first."""
    whole = _QUALIFIERS.sub("", name.strip())
    called = _without(whole, ")")
    bare = _without(_without(called, ">"), "]")
    return [_tidy(_without_type(bare)), _tidy(_without_type(called)), _tidy(whole)]


def _without(name: str, closing: str) -> str:
    """Return the name without a pair of brackets at its end, unless nothing is before it."""
    depth, opening = 0, _OPENING[closing]
    for index in range(len(name) - 1, 0, -1) if name.endswith(closing) else ():
        depth += (name[index] == closing) - (name[index] == opening)
        if depth == 0:
            before = name[:index].rstrip()
            return before if before and not before.endswith("::") else name
    return name


def _without_type(name: str) -> str:
    """Return the name without the type of the result, which is before the last space outside of all brackets."""
    rounds, angles, last = 0, 0, -1
    for index, letter in enumerate(name):
        rounds += (letter in "([{") - (letter in ")]}")
        # Within parentheses, ``>`` is a comparison.
        angles += ((letter == "<") - (letter == ">")) * (rounds == 0)
        if letter == " " and rounds == angles == 0:
            last = index
    return name if "operator" in name else name[last + 1 :] or name


def _tidy(name: str) -> str:
    """Return a printable name without spaces after commas, of at most LONGEST characters."""
    text = clean_name(re.sub(r",\s+", ",", name))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


SOURCE = "ncu"
_FULL = 0.999
"""A theoretical occupancy without a limit, allowing for rounding."""
_OF_ONE_KERNEL = {"kernel_time", "registers", "waves", "occupancy_theoretical"}
"""Metrics that have no meaning for several kernels together."""
_EXACT = {"registers", "waves", "occupancy_theoretical", "warp_efficiency"}
"""Metrics that depend only on the launch and the program, not on other work of the GPU."""
_ISSUES = "selected"
"""The state of a warp that issues an instruction."""
_LONGEST_TEXT, _LONGEST_KERNEL, _LONGEST_ADVICE = 2000, 4000, 1000
_FIGURES = ("occupancy", "occupancy_theoretical", "sm_share", "memory_share", "waves")
_COUNTS = {"grid": "grid_size", "threads": "block_size", "registers": "registers", "barrier_blocks": "barriers"}
_COUNTS |= {"shared_static": "shared_memory_static", "shared_dynamic": "shared_memory_dynamic"}
_COUNTS |= {"carveout": "shared_memory_setting"}
_ADVISING = ("OPT", "WRN")
"""Kinds of rules that give advice: OPT since 2023; before that, only WRN."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """All launches of one kernel; ``share`` (0..1) of the time of all launches, None if no time was measured."""

    name: str
    launches: Sequence[MeasuredLaunch]
    share: float | None

    def values(self, metric: str) -> list[float]:
        """Return a metric of every launch that has it, in the order in which they ran."""
        return [item.figures[metric] for item in self.launches if metric in item.figures]

    def medians(self) -> dict[str, float]:
        """Return the median over the launches of every metric."""
        return {metric: median(values) for metric in METRICS if (values := self.values(metric))}

    @property
    def longest(self) -> MeasuredLaunch:
        """Return the longest launch; the first if no time was measured."""
        return max(self.launches, key=lambda item: item.figures.get("kernel_time", 0.0))

    @property
    def limiters(self) -> tuple[str, ...]:
        """Return what limits the blocks per multiprocessor; () if all warps are in use or ncu does not report it."""
        limits = self.longest.limits
        is_full = self.longest.figures.get("occupancy_theoretical", 0.0) >= _FULL
        return () if is_full else tuple(what for what, blocks in limits.items() if blocks == min(limits.values()))


def gather_kernels(launches: Sequence[MeasuredLaunch]) -> list[Kernel]:
    """Group launches by kernel, the kernel with the most time first."""
    names = short_names(item.kernel for item in launches)
    by_name: dict[str, list[MeasuredLaunch]] = {}
    for item in launches:
        by_name.setdefault(names[item.kernel], []).append(item)
    sums = {name: math.fsum(item.figures.get("kernel_time", 0.0) for item in own) for name, own in by_name.items()}
    whole = math.fsum(sums.values()) if all("kernel_time" in item.figures for item in launches) else 0.0
    kernels = [Kernel(name, own, sums[name] / whole if whole else None) for name, own in by_name.items()]
    return sorted(kernels, key=lambda kernel: -(kernel.share or 0.0))


def kernel_readings(kernels: Sequence[Kernel], *, whole: bool) -> Iterator[Reading]:
    """Yield every metric of every kernel, each with its distribution over the launches.

    ``whole``: all kernels are one benchmark; metrics of several kernels are weighted by the time of each launch.
    """
    if whole and len(kernels) > 1:
        yield from _weighted([item.figures for kernel in kernels for item in kernel.launches])
        return
    for kernel in kernels:
        benchmark = "" if whole else kernel.name
        for metric, middle in kernel.medians().items():
            values, is_exact = kernel.values(metric), metric in _EXACT
            if is_exact or len(values) == 1:
                yield Reading(metric, middle, benchmark, exact=is_exact)
            else:
                yield reading_of_many(metric, values, benchmark)


def _weighted(launches: Sequence[Mapping[str, float]]) -> Iterator[Reading]:
    for metric in METRICS:
        timed = [(each[metric], each.get("kernel_time", 0.0)) for each in launches if metric in each]
        if metric not in _OF_ONE_KERNEL and (whole := math.fsum(time for _, time in timed)) > 0:
            yield Reading(metric, math.fsum(value * time for value, time in timed) / whole)


def kernel_hotspots(kernels: Sequence[Kernel]) -> Iterator[Hotspot]:
    """Yield kernels by their share of device time, and the stall reasons of the hottest kernel."""
    for kernel in kernels[:MOST_HOTSPOTS]:
        if kernel.share:
            cause = "measured: " + ", ".join(_summary(kernel))
            yield Hotspot(kernel.name, kernel.share, "device time", SOURCE, cause=cause)
    hottest = kernels[0]
    # The share of each reason in all states of the warps.
    states, unit = hottest.longest.states, hottest.longest.states_unit
    for row in sorted(ranked(states), key=lambda row: -row.share):
        if row.stall.name != _ISSUES:
            place = f"{hottest.name}: {row.stall.name.replace('_', ' ')}"
            cause = f"measured: {row.cycles:.3g} of {math.fsum(states.values()):.3g} {unit}; {row.stall.means}"
            yield Hotspot(place, row.share, "stalls", SOURCE, cause=clean_name(cause))


def _summary(kernel: Kernel) -> Iterator[str]:
    """Yield the number of launches and the most important metrics of a kernel."""
    count, figures, more = len(kernel.launches), kernel.medians(), kernel.longest.more
    time = f" of {format_quantity(figures['kernel_time'], Dimension.TIME)}" if "kernel_time" in figures else ""
    yield f"{count:,} launch{'' if count == 1 else 'es'}{time}"
    if {"grid_size", "block_size"} <= more.keys():
        yield f"{more['grid_size']:.0f} blocks of {more['block_size']:.0f} threads"
    for metric, text in (("memory_share", "memory"), ("sm_share", "compute")):
        if metric in figures:
            yield f"{text} at {figures[metric]:.0%} of its peak"
    if "occupancy" in figures:
        possible = figures.get("occupancy_theoretical")
        most = f" of {possible:.0%} possible" if possible is not None else ""
        limits = f" (limit: {' and '.join(kernel.limiters)})" if kernel.limiters else ""
        yield f"occupancy {figures['occupancy']:.0%}{most}{limits}"


def write_kernels(path: Path, kernels: Sequence[Kernel]) -> None:
    """Write all data of every kernel, in base units."""
    path.write_text(json.dumps({"kernels": [_shown(kernel) for kernel in kernels]}, indent=1) + "\n", encoding="utf-8")


def _shown(kernel: Kernel) -> dict[str, Any]:
    longest = kernel.longest
    states = math.fsum(longest.states.values())
    ranked = sorted(longest.states.items(), key=lambda item: (-item[1], item[0]))
    flops, bandwidth = longest.figures.get("flops"), longest.figures.get("bandwidth")
    intensity = flops / bandwidth if flops and bandwidth else None
    return {
        "name": kernel.name,
        "kernel": _clean(longest.kernel, _LONGEST_KERNEL),
        "launches": len(kernel.launches),
        "share": kernel.share,
        "figures": kernel.medians(),
        "longest launch": {**longest.more, **longest.device, "intensity": intensity, "flops": dict(longest.flops)},
        "occupancy limits": dict(longest.limits),
        "limited by": list(kernel.limiters),
        "states": {reason: value / states for reason, value in ranked},
        "rules": [
            {"rule": rule.name, "type": rule.kind, "says": _clean(rule.text, _LONGEST_TEXT), "speedup": rule.speedup}
            for rule in longest.rules
        ],
    }


def _clean(text: str, longest: int) -> str:
    """Return at most ``longest`` characters of a text, with spaces for unprintable ones."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:longest])


def kernel_facts(kernels: Sequence[Kernel]) -> Iterator[KernelResult]:
    """Yield the facts of every kernel: those of its longest launch, with the median time of all launches."""
    for kernel in kernels:
        longest = kernel.longest
        figures, more = longest.figures, longest.more
        counts = {**more, **figures, "barriers": longest.limits.get("barriers")}
        common: dict[str, Any] = {key: figures.get(key) for key in _FIGURES}
        common |= {key: round(value) for key, source in _COUNTS.items() if (value := counts.get(source)) is not None}
        moved, ideal = more.get("global_sectors"), more.get("global_sectors_ideal")
        # Informational rules (INF) and rules without text are left out.
        rules = [rule for rule in longest.rules if rule.kind in _ADVISING and rule.text]
        yield KernelResult(
            name=kernel.name,
            source=SOURCE,
            device=longest.gpu,
            capability=longest.device.get("compute_capability", ""),
            launches=len(kernel.launches),
            seconds=kernel.medians().get("kernel_time"),
            share=kernel.share,
            limiters=list(kernel.limiters),
            issued=_issued(more),
            **common,
            uncoalesced=max(0.0, 1 - ideal / moved) if moved and ideal is not None else None,
            precision=max(longest.flops, key=lambda name: longest.flops[name]) if figures.get("flops") else "",
            stalls=[Stall(reason=reason, cycles=cycles) for reason, cycles in longest.states.items()],
            advice=[
                ToolAdvice(
                    rule=clean_name(rule.name), text=_clean(rule.text, _LONGEST_ADVICE), gain=_gain(rule.speedup)
                )
                for rule in rules
            ],
        )


def _issued(more: Mapping[str, float]) -> float | None:
    """Return the share of cycles in which a scheduler issued. It equals instructions per cycle, which are at most 1."""
    if "no_eligible_share" in more:
        return max(0.0, 1 - more["no_eligible_share"])
    return min(1.0, more["issued_warps"]) if "issued_warps" in more else None


def _gain(text: str) -> float | None:
    """Return an estimated speedup in percent as a share; None for any other text."""
    found = re.fullmatch(r"(\d{1,9}(?:[.,]\d{1,9})?)%?", text.strip(), re.ASCII)
    return float(found[1].replace(",", ".")) / 100 if found else None


def kernel_peaks(kernels: Sequence[Kernel]) -> Iterator[Peak]:
    """Yield the peaks of the GPU that ncu reports, at the clocks of the longest launch.

    Peaks of arithmetic are only those of precisions that a kernel uses. Several GPUs have no peaks.
    """
    longest = kernels[0].longest
    used = {name for kernel in kernels for item in kernel.launches for name, value in item.flops.items() if value > 0}
    for name, value in longest.peaks.items() if len(_devices(kernels)) <= 1 else ():
        how = f"ncu's sustained peak of {longest.gpu} at the clock during the profile"
        if name == "bandwidth":
            yield Peak("bandwidth", value, how=how, device=longest.gpu)
        elif name in used:
            yield Peak("flops", value, name, how, longest.gpu)


def _devices(kernels: Sequence[Kernel]) -> set[str]:
    """Return the indices of the GPUs, as far as ncu reports them."""
    return {item.device.get("device", "") for kernel in kernels for item in kernel.launches} - {""}


def kernel_warnings(kernels: Sequence[Kernel]) -> Iterator[str]:
    """Yield warnings about missing or incomplete metrics."""
    launches = [item for kernel in kernels for item in kernel.launches]
    absent = Counter(metric for item in launches for metric in item.absent)
    for metric, count in sorted(absent.items()):
        yield f"ncu could not collect {metric} of {count:,} of {len(launches):,} launches"
    if 0 < (timed := sum("kernel_time" in item.figures for item in launches)) < len(launches):
        yield f"only {timed:,} of {len(launches):,} launches have a time, so shares of device time are missing"
    if any(item.figures.get("tensor_share") and "flops" in item.figures for item in launches):
        yield "flops count scalar instructions only, without the work of tensor cores"
    if (devices := len(_devices(kernels))) > 1:
        yield f"the launches ran on {devices} GPUs; a kernel's figures are of all of them together"


_TABLE, _DETAILS, _KERNELS = "ncu.csv", "ncu-details.csv", "kernels.json"
_REPORT, _LOG = "report.ncu-rep", "ncu.log"
_REPORTS = (".ncu-rep", ".nsight-cuprof-report")
# The same sections in every version. Newer versions call this set `basic`, older ones `default`.
_BASIC = ("LaunchStats", "Occupancy", "SpeedOfLight")


_REASONS: Mapping[str, str] = {
    "ERR_NVGPUCTRPERM": "only administrators can read the counters of the GPU (ERR_NVGPUCTRPERM): run as root or with "
    "CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    r"failed to connect to the CUDA driver|no CUDA-capable device|CUDA driver could not be|libcuda\.so": "no NVIDIA "
    "GPU was found: ncu cannot connect to the CUDA driver",
    "driver is not compatible|driver (?:version )?is (?:insufficient|too old)|not supported on": "this version of ncu "
    "does not support the GPU or its driver: {text}",
    "driver resource was unavailable|concurrently collecting|another (?:tool|profiler)|DCGM": "another profiler uses "
    "the counters of the GPU: stop it, or pause DCGM with `dcgmi profile --pause`",
    "Could not open report": "the report does not exist: {text}",
    "Failed to (?:load|open) report": "ncu cannot read the report: it is damaged, cut short or of a newer version",
    r"application returned an error code \((?P<code>-?\d{1,10})\)": "the program exited with {code} under ncu",
    "^==ERROR== ": "ncu failed: {text}",
    "No kernels were profiled": "no kernel was profiled: the program launched no kernel on a GPU, or `kernel`, `skip` "
    "and `nvtx` excluded all of them",
}
"""ncu's messages when it measured nothing, and the reason for each, the most specific first."""


class NcuOptions(CommandOptions):
    """``with`` keys of ``uses: ncu``."""

    report: str = Field(
        default="",
        description="Read this report instead of profiling: a .ncu-rep, or the output of `ncu --csv --page raw` or "
        "`--page details`.",
    )
    kernel: str = Field(
        default="", description="Only profile kernels whose function name matches this regular expression."
    )
    skip: int = Field(default=0, ge=0, description="Number of launches of these kernels to skip at the start.")
    launches: int = Field(default=100, ge=0, description="Profile at most this many launches; 0 means all.")
    set: Literal["basic", "detailed", "full"] = Field(
        default="detailed",
        description="Set of metrics: `basic` (throughput, occupancy), `detailed` (also warp states, caches, roofline) "
        "or `full`.",
    )
    sections: list[str] = Field(default=[], description="Sections of ncu to collect instead of a set.")
    metrics: list[str] = Field(default=[], description="Additional metrics of ncu to collect, by their ids.")
    replay: Literal["kernel", "application", "range"] = Field(
        default="kernel", description="What to run again for each pass: `kernel`, `application` or `range`."
    )
    nvtx: str = Field(default="", description="Only profile launches in this NVTX range, as with `--nvtx-include`.")
    clock_control: Literal["none", "base"] = Field(
        default="none",
        description="`base` locks the clocks of the GPU while it is profiled, which needs permission.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> NcuOptions:
        if self.report and self.command is not None:
            raise ValueError("set either `report`, which is read, or `command`, which is run")
        return self


def needs_program(values: Mapping[str, object]) -> bool:
    """Return whether a step with these keys needs ncu: a report in CSV is read without it."""
    report = values.get("report")
    return not (isinstance(report, str) and report and not report.endswith(_REPORTS))


def invocations(call: Call[NcuOptions]) -> tuple[Invocation, ...]:
    """Profile into a report and let ncu print both pages of it, or read an existing report.

    Raises ToolOutputError if launches are to be selected from a report in CSV, which ncu does not read.
    """
    options, program = call.options, call.program or "ncu"
    if not options.report:
        return (Invocation(_profiling(call, program, options)), *_printing(program, str(call.folder / _REPORT), ()))
    if options.report.endswith(_REPORTS):
        return _printing(program, options.report, _chosen(options))
    if options.kernel or options.skip:
        raise ToolOutputError("`kernel` and `skip` select launches of a .ncu-rep, not of a report in CSV")
    return (Invocation(("/bin/cat", "--", options.report), stdout=_TABLE),)


def _profiling(call: Call, program: str, options: NcuOptions) -> tuple[str, ...]:
    sections = options.sections or (_BASIC if options.set == "basic" else ())
    collected = [word for name in sections for word in ("--section", name)] or ["--set", options.set]
    return (
        *(program, "--log-file", str(call.folder / _LOG), "--force-overwrite", "--export", str(call.folder / _REPORT)),
        *("--target-processes", "all", "--replay-mode", options.replay),
        *("--clock-control", options.clock_control, *collected),
        *(("--metrics", ",".join(options.metrics)) if options.metrics else ()),
        *(("--nvtx", "--nvtx-include", options.nvtx) if options.nvtx else ()),
        *(*_chosen(options), *call.command),
    )


def _chosen(options: NcuOptions) -> tuple[str, ...]:
    """Return the arguments that select launches."""
    return (
        *(("--kernel-name", f"regex:{options.kernel}") if options.kernel else ()),
        *(("--launch-skip", str(options.skip)) if options.skip else ()),
        *(("--launch-count", str(options.launches)) if options.launches else ()),
    )


def _printing(program: str, report: str, chosen: tuple[str, ...]) -> tuple[Invocation, ...]:
    """Return the processes that print both pages of a report, in one notation for every locale."""
    argv = (program, "--import", report, "--csv", "--print-units", "base", *chosen)
    pages = {"raw": _TABLE, "details": _DETAILS}
    return tuple(Invocation((*argv, "--page", page), {"LC_ALL": "C"}, file) for page, file in pages.items())


def parse(call: Call[NcuOptions], usage: Usage) -> Parsed:
    """Read the figures of every kernel, one benchmark per kernel unless the step names one, and write kernels.json.

    Raises ToolOutputError with a remedy if nothing was profiled, or if a page is truncated or damaged.
    """
    options, folder = call.options, call.folder
    if why := reason(*(tool_files.last_bytes(folder, file) for file in (_LOG, "stderr", _TABLE, _DETAILS))):
        raise ToolOutputError(why)
    missing = f"check that {options.report[:100]!r} exists" if options.report else "ncu printed no page of its report"
    text = tool_files.read_text(folder / _TABLE, tool_files.clean_name(missing))
    table = ncu_table.read(_TABLE, text)
    warnings = list(table.warnings)
    if (folder / _DETAILS).exists():
        details = ncu_table.read(_DETAILS, tool_files.read_text(folder / _DETAILS))
        _add_rules(table, details)
        warnings += details.warnings
        if len(details.launches) < len(table.launches):
            part = f"{len(details.launches):,} of {len(table.launches):,} launches"
            warnings.append(f"{_DETAILS} contains {part}: it may be cut short, so advice may be missing")
    if not table.launches:
        raise ToolOutputError(f"{_TABLE} contains no launch: `kernel`, `skip` and `nvtx` may exclude all of them")
    kernels = gather_kernels(measure_launch(table))
    whole = bool(call.benchmark) and "*" not in call.benchmark
    readings = tuple(kernel_readings(kernels, whole=whole))
    if not readings:
        raise ToolOutputError(f"{_TABLE} contains no metric that perfflow reads: collect a `set`, or more `sections`")
    write_kernels(folder / _KERNELS, kernels)
    warnings += kernel_warnings(kernels)
    if whole and len(kernels) > 1:
        warnings.append(
            f"the figures are of {len(kernels)} kernels together, weighted by time: select one with `kernel`"
        )
    if len(table.launches) == options.launches and not options.report:
        warnings.append(f"profiling stopped after {options.launches:,} launches: set `launches` to profile more")
    facts = tuple(kernel_facts(kernels))
    made = [Profile(_REPORT, "ncu-report")] if tool_files.left(folder / _REPORT) else []
    return Parsed(
        readings,
        tuple(kernel_hotspots(kernels)),
        (*made, Profile(_KERNELS, "ncu-kernels")),
        tuple(warnings),
        peaks=tuple(kernel_peaks(kernels)),
        device=together(item.device for item in facts),
        kernels=facts,
    )


def reason(*texts: str) -> str:
    """Return why nothing was measured, from ncu's messages, with a remedy; '' if none is known.

    Only lines that begin with ``==ERROR==`` or ``==WARNING==`` are ncu's: a program may print the same words.
    """
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    first = next((line.removeprefix("==ERROR== ") for line in lines if line.startswith("==ERROR== ")), "")
    return tool_files.why("\n".join(lines), _REASONS, re.IGNORECASE | re.MULTILINE, text=first)


def _add_rules(table: ncu_table.NcuTable, details: ncu_table.NcuTable) -> None:
    """Add the rules' advice to each launch. Raises ToolOutputError if the pages are of different reports."""
    by_id = {launch.id: launch for launch in table.launches}
    for item in details.launches:
        launch = by_id.get(item.id)
        if launch is None or launch.kernel != item.kernel:
            raise ToolOutputError(f"{_DETAILS} and {_TABLE} are not of the same launches: one is cut or damaged")
        launch.rules.extend(item.rules)


ADAPTER = Adapter(
    name="ncu",
    role=Role.PROFILE,
    options=NcuOptions,
    program=Program(
        "ncu",
        "apt-get install nsight-compute",
        instead="it is in Debian's non-free section and in NVIDIA's CUDA toolkit",
    ),
    metrics=builtin_metrics(*METRICS),
    attaches=("report",),
    needs_program=needs_program,
    suite=Suite(),
    gpu=True,
    finds_peaks=True,
    invocations=invocations,
    outputs=leaves(_TABLE),
    parse=parse,
)
