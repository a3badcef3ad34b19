"""A second opinion on the raw and details pages of Nsight Compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from statistics import median

from perfflow.testing.mutations import Figures, Files
from tests.mutate.plain_readers import only_file

_IDS = {
    "gpu__time_duration.sum": "kernel_time",
    "Duration": "kernel_time",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
    "Achieved Occupancy": "occupancy",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_share",
    "Compute (SM) Throughput": "sm_share",
    "Compute (SM) [%]": "sm_share",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "dram_share",
    "DRAM Throughput": "dram_share",
    "launch__registers_per_thread": "registers",
    "Registers Per Thread": "registers",
}
_UNITS = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "%": 0.01, "register/thread": 1.0, "": 1.0}
_STATE = r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"
_ONE = {"registers"}
"""Of these one figure stands for all launches of a kernel."""


def ncu_pages(files: Files) -> Figures:
    """Some figures of every launch by the whole name of its kernel, and the share of the kernel with the most time."""
    lines = only_file(files, "ncu.csv").decode("utf-8", "replace").splitlines()
    rows = list(csv.reader(line for line in lines[_start(lines) :] if line.strip() and not line.startswith("==")))
    header = rows[0]
    cells = _details(header, rows[1:]) if "Metric Name" in header else _raw(header, rows)
    found: Figures = {}
    launches: dict[str, dict[str, float]] = {}
    states: dict[str, float] = {}
    for launch, kernel, metric, unit, text in cells:
        figures = launches.setdefault(f"{launch} {kernel}", {})
        if (state := re.fullmatch(_STATE, metric)) and re.match(r"[-\d.]", text):
            states[state[1]] = _number(text)
        if metric in _IDS and re.match(r"[-\d.]", text):
            figures[_IDS[metric]] = _number(text) * _UNITS[unit]
    for key, figures in launches.items():
        for metric, value in figures.items():
            found.setdefault((key.partition(" ")[2], metric), []).append(value)
    times = [sum(values) for (_, metric), values in found.items() if metric == "kernel_time"]
    if times and all("kernel_time" in figures for figures in launches.values()):
        found["", "top share"] = [max(times) / sum(times)]
    elif not times and (stalls := {value for name, value in states.items() if name != "selected"}):
        found["", "top share"] = [max(stalls) / sum(states.values())]
    return {key: [median(values)] if key[1] in _ONE else values for key, values in found.items()}


def _start(lines: list[str]) -> int:
    return next(number for number, line in enumerate(lines) if line.startswith('"ID"'))


def _raw(header: list[str], rows: list[list[str]]) -> Iterator[tuple[str, ...]]:
    kernel = header.index("Kernel Name")
    for number, row in enumerate(rows[2:]):
        for metric, unit, text in zip(header, rows[1], row, strict=True):
            yield str(number), row[kernel], metric, unit, text


def _details(header: list[str], rows: list[list[str]]) -> Iterator[tuple[str, ...]]:
    kernel, label = header.index("Kernel Name"), header.index("Metric Name")
    for row in rows:
        yield row[0], row[kernel], row[label], row[label + 1], row[label + 2]


def _number(text: str) -> float:
    """Of ``27.595.520``, ``65,77`` and ``1,234.5``; what one mark alone means, the fixtures do not leave open."""
    if re.fullmatch(r"\d+,(\d{1,2}|\d{4,})|\d{1,3}(\.\d{3}){2,}", text):
        text = text.replace(".", "").replace(",", ".")
    return float(text.replace(",", ""))
