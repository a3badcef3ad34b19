"""``nvidia-smi``: utilization, memory, clocks, power and throttling of NVIDIA GPUs, sampled while the command runs.

The figures are of the whole GPUs, including other programs. ``query`` samples several times per second and reports
throttling; ``dmon`` samples once per second. Columns are found by name, since their set and order depend on the driver.
Neither table has an end mark, so a truncated one is recognized by its last sample and by the time of the command.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, Seconds, leaves

_FILE = "nvidia-smi.txt"
_START_TIMEOUT = 5.0
# The column that `query` requests, then its names in other drivers and in dmon.
_COLUMNS: Mapping[str, Sequence[str]] = {
    "gpu_util": ("utilization.gpu", "sm"),
    "gpu_memory_util": ("utilization.memory", "mem"),
    "gpu_memory_peak": ("memory.used", "fb"),
    "gpu_clock": ("clocks.current.sm", "clocks.sm", "pclk"),
    "gpu_memory_clock": ("clocks.current.memory", "clocks.mem", "mclk"),
    "gpu_power_watts": ("power.draw", "pwr"),
}
_METRIC_OF = {column: metric for metric, columns in _COLUMNS.items() for column in columns}
# Newer drivers accept the old name of the reasons, and print the new one.
_REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
_VIOLATIONS = {"pviol": "the power limit", "tviol": "heat"}
_INDEX = ("index", "gpu")
_FIELDS = ",".join([_INDEX[0], *(columns[0] for columns in _COLUMNS.values()), _REASONS[0]])
# dmon's MB are nvidia-smi's MiB.
_UNITS: Mapping[str, float] = {"%": 0.01, "MiB": 1048576.0, "MB": 1048576.0, "MHz": 1e6, "W": 1.0}
_MISSING = {"-", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "ERR!"}
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html; idle and requested clocks are left out.
_THROTTLE_REASONS: Mapping[int, str] = {
    0x04: "the power limit",
    0x08: "a hardware slowdown",
    0x10: "sync boost with another GPU",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "the power brake",
}
_BAD_FIELD = re.compile(r'Field "(?P<name>[\w.]{1,80})" is not a valid field')
_NO_DRIVER = re.compile(r"couldn't (?:find|communicate)|Failed to initialize NVML|No devices were found", re.IGNORECASE)
_Columns = Sequence[tuple[str, str]]
"""Names and units."""


class NvidiaSmiOptions(CommandOptions):
    """``with`` keys of ``uses: nvidia-smi``."""

    mode: Literal["query", "dmon"] = Field(default="query", description="`query`, or `dmon` for one sample per second.")
    interval: Seconds = Field(
        default=0.2, ge=0.02, le=60, description="Time between samples of `query`, such as `200ms`."
    )
    gpu: str = Field(default="", description="Index or UUID of the GPU to sample. Default: all GPUs.")


class _NvidiaSmiRow(NamedTuple):
    """One sample of one GPU: values by metric in base units, and reasons of throttling, None if not reported."""

    gpu: str
    figures: Mapping[str, float]
    slowed: Sequence[str] | None


def invocations(call: Call[NvidiaSmiOptions]) -> tuple[Invocation, ...]:
    """Sample until the end of the command, beside it."""
    query = (f"--query-gpu={_FIELDS}", "--format=csv,nounits", "-lms", str(round(call.options.interval * 1000)))
    words = query if call.options.mode == "query" else ("dmon", "-s", "pucvm", "-d", "1")
    argv = (call.program or "nvidia-smi", *words, *(("-i", call.options.gpu) if call.options.gpu else ()))
    return (Invocation(argv, {"LC_ALL": "C"}, _FILE, beside=_START_TIMEOUT), Invocation(call.command))


def parse(call: Call[NvidiaSmiOptions], usage: Usage) -> Parsed:
    """Read the distribution of every metric over samples and GPUs, and the highest memory of any GPU.

    Raises ToolOutputError without a driver or GPU, or if the table is truncated or invalid.
    """
    text = tool_files.read_whole(call.folder / _FILE)
    if _NO_DRIVER.search(text):
        raise ToolOutputError("no NVIDIA GPU was found: " + tool_files.clean_name(text.strip().splitlines()[0])[:120])
    if match := _BAD_FIELD.search(text):
        raise ToolOutputError(f"this driver does not have the field {match['name']}: use `mode: dmon`")
    rows = [_row(columns, cells) for columns, cells in (_dmon if text.startswith("#") else _query)(text)]
    if not rows:
        raise ToolOutputError("the command ended before the first sample: give it more work")
    metrics = dict.fromkeys(metric for row in rows for metric in row.figures)
    series = {metric: [row.figures[metric] for row in rows if metric in row.figures] for metric in metrics}
    if "gpu_util" not in series:
        raise ToolOutputError("this GPU does not report its utilization")
    peaks = series.pop("gpu_memory_peak", [])
    readings = [reading_of_many(metric, values) for metric, values in series.items()]
    readings += [Reading("gpu_memory_peak", max(peaks))] if peaks else []
    throttled = [bool(row.slowed) for row in rows if row.slowed is not None]
    readings += [Reading("gpu_throttled", sum(throttled) / len(throttled))] if throttled else []
    every = 1.0 if text.startswith("#") else call.options.interval
    return Parsed(tuple(readings), warnings=tuple(_warnings(rows, every, usage.wall)))


def _query(text: str) -> Iterator[tuple[_Columns, list[str]]]:
    """Read ``index, utilization.gpu [%], ...`` and its rows."""
    head, *lines = csv.reader(text.splitlines(), skipinitialspace=True)
    columns = [(name, unit.rstrip("]")) for name, _, unit in (cell.strip().partition(" [") for cell in head)]
    yield from ((columns, cells) for cells in lines if cells)


def _dmon(text: str) -> Iterator[tuple[_Columns, list[str]]]:
    """Read the table below two lines of names and units, which are repeated at intervals."""
    head: list[list[str]] = []
    for line in filter(str.strip, text.splitlines()):
        words = line.lstrip("# ").split()
        if line.startswith("#"):
            head = [*head, words] if len(head) == 1 else [words]
        elif len(head) != 2 or len(head[0]) != len(head[1]):
            raise ToolOutputError(f"{_FILE} is damaged: the numbers of column names and of units differ")
        else:
            yield list(zip(*head, strict=True)), words


def _row(columns: _Columns, cells: Sequence[str]) -> _NvidiaSmiRow:
    if len(cells) != len(columns) or len(dict(columns)) != len(columns):
        raise ToolOutputError(f"{_FILE} is cut short or not a table: {' '.join(cells)[:80]!r}")
    figures: dict[str, float] = {}
    gpu, is_reported, slowed = "", False, list[str]()
    for (name, unit), cell in zip(columns, map(str.strip, cells), strict=True):
        if name in _INDEX:
            gpu = _matched(r"\d{1,4}", cell, "GPU's number")
        elif cell in _MISSING:
            continue
        elif name in _REASONS:
            bits, is_reported = int(_matched("0x[0-9A-Fa-f]{1,16}", cell, "mask of reasons"), 16), True
            slowed += [text for bit, text in _THROTTLE_REASONS.items() if bits & bit]
        elif name in _VIOLATIONS:
            slowed, is_reported = slowed + [_VIOLATIONS[name]] * bool(cell.strip("0")), True
        elif name in _METRIC_OF:
            figures[_METRIC_OF[name]] = _figure(name, unit, cell)
    if not gpu:
        raise ToolOutputError(f"{_FILE} has no column with the number of the GPU")
    return _NvidiaSmiRow(gpu, figures, slowed if is_reported else None)


def _figure(name: str, unit: str, cell: str) -> float:
    scale = tool_files.scale_of(unit, _UNITS, f"{_FILE}: {name}")
    value = tool_files.number(tool_files.number_in(cell, name) * scale, name)
    if unit == "%" and value > 1:
        raise ToolOutputError(f"{_FILE}: {name} is {cell[:20]}%, which is impossible")
    return value


def _matched(pattern: str, cell: str, what: str) -> str:
    if not re.fullmatch(pattern, cell, re.ASCII):
        raise ToolOutputError(f"{_FILE}: {cell[:40]!r} is not a {what}")
    return cell


def _warnings(rows: Sequence[_NvidiaSmiRow], every: float, seconds: float) -> Iterator[str]:
    """Yield warnings about throttling, about several GPUs together, and about missing samples."""
    reasons = Counter(reason for row in rows for reason in set(row.slowed or ()))
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        yield f"{reason} slowed the GPU down in {count:,} of {len(rows):,} samples"
    samples = Counter(row.gpu for row in rows)
    if len(samples) > 1:
        yield f"the figures are of {len(samples)} GPUs together: select one with `gpu`"
    most = max(samples.values())
    if fewer := sorted((gpu for gpu, count in samples.items() if count < most), key=int):
        yield f"GPU {', '.join(fewer)} has fewer samples than others: the last one is incomplete, or the table is cut"
    if most * every < (seconds - _START_TIMEOUT) / 2:
        yield f"{most:,} samples every {every:g} s do not cover the command's {seconds:.3g} s: the table may be cut"


ADAPTER = Adapter(
    name="nvidia-smi",
    role=Role.PROFILE,
    options=NvidiaSmiOptions,
    program=Program("nvidia-smi", "it comes with NVIDIA's driver"),
    metrics=builtin_metrics(*_COLUMNS, "gpu_throttled"),
    passes_stdout=True,
    conditions=True,
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
