"""Second opinions on what the profilers say that run inside a Python program (see plain_readers)."""

from __future__ import annotations

import json
import re
from collections import Counter

from perfflow.testing.mutations import Figures, Files
from tests.mutate.plain_readers import json_of, only_file

_SHARE = ("", "top share")


def line_profiler(files: Files) -> Figures:
    """The share of the line with the most time of its own."""
    content = json_of(files)
    return {_SHARE: [max(row["own"] for row in content["rows"]) / content["total"]]}


def tracemalloc(files: Files) -> Figures:
    """The peak, and the share of the line that held the most."""
    content = json_of(files)
    sizes = [row["size"] for row in content["rows"]]
    found: Figures = {("", "heap_peak"): [content["peak"]]}
    return found | ({_SHARE: [max(sizes) / (sum(sizes) + content["other"])]} if any(sizes) else {})


def memory_profiler(files: Files) -> Figures:
    """The highest sample after the last line that is none, and the share of the line that grew most."""
    text = only_file(files, ".dat").decode("utf-8", "replace")
    sizes = [float(size) for size in re.findall(r"^MEM ([0-9.]+) [0-9.]+$", text, re.MULTILINE)]
    found: Figures = {("", "rss_sampled"): [max(sizes) * 1024 * 1024]}
    grown = [max(0, row["grown"]) for row in json_of(files)["rows"]]
    return found | ({_SHARE: [max(grown) / sum(grown)]} if any(grown) else {})


def memray(files: Files) -> Figures:
    """Sums over the processes, the highest peak, and the share of the place that asked for most."""
    found = [json.loads(text.decode("utf-8-sig", "replace")) for name, text in files.items() if "stats." in name]
    places: Counter[str] = Counter()
    for row in (row for content in found for row in content["top_allocations_by_size"]):
        if not re.search(r"/drivers/(memray_run|python_run|own_modules)\.py:\d+$", row["location"]):
            places[row["location"]] += row["size"]
    size = sum(content["total_bytes_allocated"] for content in found)
    return {
        ("", "alloc"): [size],
        ("", "allocs"): [sum(content["total_num_allocations"] for content in found)],
        ("", "heap_peak"): [max(content["metadata"]["peak_memory"] for content in found)],
        _SHARE: [max(places.values()) / size],
    }
