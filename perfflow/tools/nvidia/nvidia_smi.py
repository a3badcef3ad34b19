"""``nvidia-smi``: how busy NVIDIA GPUs were while the command ran, sampled beside it; memory, clock, power, throttling.

The figures are the GPUs', whoever uses them. Two modes: ``query`` samples several times a second and names throttling,
``dmon`` once a second. Columns are found by name, since their set and order differ from driver to driver.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Reading, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, Seconds

_FILE = "nvidia-smi.txt"
_BEGINS = 5.0
_FIELDS = (
    "index",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "clocks.current.sm",
    "clocks.current.memory",
    "power.draw",
    "clocks_throttle_reasons.active",
)
# Newer drivers answer to the old name of the reasons, and write the new one.
_METRIC_OF: Mapping[str, str] = {
    "utilization.gpu": "gpu_util",
    "sm": "gpu_util",
    "utilization.memory": "gpu_memory_util",
    "mem": "gpu_memory_util",
    "memory.used": "gpu_memory_peak",
    "fb": "gpu_memory_peak",
    "clocks.current.sm": "gpu_clock",
    "clocks.sm": "gpu_clock",
    "pclk": "gpu_clock",
    "clocks.current.memory": "gpu_memory_clock",
    "clocks.mem": "gpu_memory_clock",
    "mclk": "gpu_memory_clock",
    "power.draw": "gpu_power_watts",
    "pwr": "gpu_power_watts",
}
_REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
_VIOLATIONS = ("pviol", "tviol")
_INDEX = ("index", "gpu")
# dmon's MB are nvidia-smi's MiB.
_UNITS: Mapping[str, float] = {"%": 0.01, "MiB": 1048576.0, "MB": 1048576.0, "MHz": 1e6, "W": 1.0}
_LACKING = {"-", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "ERR!"}
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html; idle and chosen clocks slow nothing down.
_SLOWED: Mapping[int, str] = {
    0x04: "the power limit",
    0x08: "a hardware slowdown",
    0x10: "sync boost with another GPU",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "the power brake",
}
_BAD_FIELD = re.compile(r'Field "(?P<name>[\w.]{1,80})" is not a valid field')
_NO_DRIVER = re.compile(r"couldn't (?:find|communicate)|Failed to initialize NVML|No devices were found", re.IGNORECASE)


class Mode(StrEnum):
    """How it is asked."""

    QUERY = "query"
    DMON = "dmon"


class Options(CommandOptions):
    """``with`` keys of ``uses: nvidia-smi``."""

    mode: Mode = Field(default=Mode.QUERY, description="`query`, or `dmon`, which samples once a second.")
    interval: Seconds = Field(
        default=0.2, ge=0.02, le=60, description="Time between samples of `query`, as in `200ms`."
    )
    gpu: str = Field(default="", description="Index or UUID of the GPU to watch; default all.")


@dataclass(frozen=True, slots=True)
class _Row:
    """One sample of one GPU: figures by metric in base units, and why it was slowed down."""

    gpu: str
    figures: Mapping[str, float]
    slowed: Sequence[str] | None
    """None where the table does not tell."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Sample without an end, beside the command."""
    options = cast(Options, call.options)
    program, chosen = call.program or "nvidia-smi", (("-i", options.gpu) if options.gpu else ())
    if options.mode is Mode.DMON:
        argv = (program, "dmon", "-s", "pucvm", "-d", "1", *chosen)
    else:
        query = f"--query-gpu={','.join(_FIELDS)}"
        argv = (program, query, "--format=csv,nounits", "-lms", str(round(options.interval * 1000)), *chosen)
    return (Invocation(argv, {"LC_ALL": "C"}, _FILE, beside=_BEGINS), Invocation(call.command))


def outputs(call: Call) -> tuple[Path, ...]:
    """The samples."""
    return (call.folder / _FILE,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every figure's distribution over samples and GPUs; of memory the highest of any GPU.

    Raises ToolOutputError without a driver or GPU, and if the table is cut or nonsense.
    """
    text = tool_files.read_whole(call.folder / _FILE)
    if _NO_DRIVER.search(text):
        raise ToolOutputError("it reaches no NVIDIA GPU: " + tool_files.clean_name(text.strip().splitlines()[0])[:120])
    if match := _BAD_FIELD.search(text):
        raise ToolOutputError(f"this driver does not know the field {match['name']}: use `mode: dmon`")
    rows = list(_dmon(text) if text.startswith("#") else _query(text))
    if not rows:
        raise ToolOutputError("the command ended before the first sample: give it more work")
    series: dict[str, list[float]] = {}
    for row in rows:
        for metric, value in row.figures.items():
            series.setdefault(metric, []).append(value)
    if "gpu_util" not in series:
        raise ToolOutputError("this GPU does not tell how busy it is")
    peaks = series.pop("gpu_memory_peak", [])
    readings = [reading_of_many(metric, values) for metric, values in series.items()]
    readings += [Reading("gpu_memory_peak", max(peaks))] if peaks else []
    told = [bool(row.slowed) for row in rows if row.slowed is not None]
    readings += [Reading("gpu_throttled", sum(told) / len(told))] if told else []
    return Parsed(tuple(readings), warnings=tuple(_warnings(rows)))


def _query(text: str) -> Iterator[_Row]:
    """Read ``index, utilization.gpu [%], ...`` and its rows."""
    lines = list(csv.reader(text.splitlines(), skipinitialspace=True))
    columns = [_column(cell) for cell in lines[0]]
    yield from (_row(columns, cells) for cells in lines[1:] if cells)


def _column(cell: str) -> tuple[str, str]:
    """Name and unit of ``memory.used [MiB]``."""
    name, _, unit = cell.strip().partition(" [")
    return name, unit.rstrip("]")


def _dmon(text: str) -> Iterator[_Row]:
    """Read the table under two lines of names and units, which are repeated every so many rows."""
    columns: list[tuple[str, str]] = []
    names: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        words = line.lstrip("# ").split()
        if not line.startswith("#"):
            if names:
                raise ToolOutputError(f"{_FILE} is damaged: names of columns without their units")
            yield _row(columns, words)
        elif not names:
            names = words
        elif len(words) != len(names):
            raise ToolOutputError(f"{_FILE} is damaged: {len(names)} columns have {len(words)} units")
        else:
            columns, names = list(zip(names, words, strict=True)), []


def _row(columns: Sequence[tuple[str, str]], cells: Sequence[str]) -> _Row:
    if len(cells) != len(columns) or len(dict(columns)) != len(columns):
        raise ToolOutputError(f"{_FILE} is cut short or no table: {' '.join(cells)[:80]!r}")
    figures: dict[str, float] = {}
    gpu = ""
    slowed: list[str] | None = None
    for (name, unit), cell in zip(columns, (cell.strip() for cell in cells), strict=True):
        if name in _INDEX:
            gpu = _whole(cell)
        elif name in _REASONS and cell not in _LACKING:
            slowed = [text for bit, text in _SLOWED.items() if _bits(cell) & bit]
        elif name in _VIOLATIONS and cell not in _LACKING:
            slowed = slowed or []
            slowed += ["the power limit" if name == "pviol" else "heat"] if cell.strip("0") else []
        elif name in _METRIC_OF and cell not in _LACKING:
            if unit not in _UNITS:
                raise ToolOutputError(f"{_FILE}: {name} has the unit {unit[:20]!r}, which perfflow does not know")
            value = tool_files.number_in(cell, name) * _UNITS[unit]
            if unit == "%" and value > 1:
                raise ToolOutputError(f"{_FILE}: {name} is {cell[:20]}%, which cannot be")
            figures[_METRIC_OF[name]] = value
    if not gpu:
        raise ToolOutputError(f"{_FILE} does not say which GPU its rows are of")
    return _Row(gpu, figures, slowed)


def _whole(cell: str) -> str:
    if not cell.isascii() or not cell.isdecimal() or len(cell) > 4:
        raise ToolOutputError(f"{_FILE}: {cell[:40]!r} is no GPU's number")
    return cell


def _bits(cell: str) -> int:
    if not re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
        raise ToolOutputError(f"{_FILE}: {cell[:40]!r} is no mask of reasons")
    return int(cell, 16)


def _warnings(rows: Sequence[_Row]) -> Iterator[str]:
    """Say what slowed the GPUs down, and that several are put together."""
    reasons = Counter(reason for row in rows for reason in set(row.slowed or ()))
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        yield f"{reason} slowed the GPU down in {count:,} of {len(rows):,} samples"
    gpus = sorted({row.gpu for row in rows}, key=int)
    if len(gpus) > 1:
        yield f"the figures are of {len(gpus)} GPUs together; `gpu:` chooses one"


ADAPTER = Adapter(
    name="nvidia-smi",
    role=Role.PROFILE,
    options=Options,
    program=Program("nvidia-smi", "it comes with NVIDIA's driver"),
    metrics=of_perfflow(
        "gpu_util",
        "gpu_memory_peak",
        "gpu_memory_util",
        "gpu_clock",
        "gpu_memory_clock",
        "gpu_power_watts",
        "gpu_throttled",
    ),
    passes_stdout=True,
    conditions=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
