"""A second opinion on traces of torch.profiler: figures by sweeping over every point of time at which one changes."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any

Files = Mapping[str, bytes]
_DEVICE_TYPES = {True: "tensor_memory_peak", False: "gpu_memory_peak"}


def torch_traces(files: Files) -> dict[tuple[str, str], list[float]]:
    """The figures of one trace; of several ranks only the loader's."""
    names = [file["copy"] for file in json.loads(files["written.json"].decode("utf-8", "replace"))["files"]]
    (name,) = names
    content = gzip.decompress(files[name]) if files[name][:2] == b"\x1f\x8b" else files[name]
    events = [
        event
        for event in json.loads(content.decode("utf-8", "replace"))["traceEvents"]
        if isinstance(event.get("name"), str) and isinstance(event.get("cat"), str)
    ]
    spans = [event for event in events if event.get("ph") == "X"]
    for event in reversed(spans):
        event["ts"] -= spans[0]["ts"]
    regions = [event for event in spans if event["cat"] == "user_annotation"]
    steps = {
        int(match[1]): event for event in regions if (match := re.match(r"ProfilerStep#([0-9]{1,9})\Z", event["name"]))
    }
    loads = [event for event in regions if re.match(r"enumerate\(DataLoader\)#.*__next__\Z", event["name"])]
    kernels = [event for event in spans if event["cat"] == "kernel"]
    windows = _ends(list(steps.values()))
    found: dict[str, float] = {}
    if steps and loads:
        found["dataloader_wait"] = _covered(_ends(loads), windows) / _covered(windows, windows)
    if 0 in steps and len(steps) > 2:
        own = {key: step["dur"] - _covered(_ends(loads), _ends([step])) for key, step in steps.items()}
        found["compile_time"] = max(0.0, own.pop(0) - median(own.values())) * 1e-6
    devices = {str(_device(event)) for event in spans if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")}
    shares = []
    for device in devices:
        spots = _ends([event for event in kernels if str(_device(event)) == device])
        outer = windows or spots
        if spots:
            around = [(min(start for start, _ in outer), max(end for _, end in outer))]
            whole = _covered(around, around)
            shares.append(_covered(spots, around) / whole if whole else 0.0)
        else:
            shares.append(0.0)
    if shares:
        found["gpu_util"] = sum(shares) / len(shares)
    reduces = [event for event in kernels if re.search(r"ccl.*all_?reduce", event["name"], re.IGNORECASE)]
    if reduces and steps:
        found["allreduce_fraction"] = _covered(_ends(reduces), windows) / _covered(windows, windows)
    for event in events:
        if event.get("ph") == "i" and event["name"] == "[memory]":
            metric = _DEVICE_TYPES[event["args"].get("Device Type", 0) == 0]
            found[metric] = max(found.get(metric, 0.0), event["args"]["Total Allocated"])
    return {("", metric): [float(value)] for metric, value in found.items()}


def _device(event: Any) -> Any:
    return event["args"].get("device", event.get("pid")) if "args" in event else event.get("pid")


def _ends(events: list[Any]) -> list[tuple[float, float]]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in events]


def _covered(spans: list[tuple[float, float]], windows: list[tuple[float, float]]) -> float:
    """Length of the time that lies in some span and in some window."""
    moments = sorted({moment for span in [*spans, *windows] for moment in span})
    return sum(
        after - before
        for before, after in pairwise(moments)
        if any(start <= before and after <= end for start, end in spans)
        and any(start <= before and after <= end for start, end in windows)
    )
