"""Second opinions on what watches a program from beside or below: system calls, disks, GPUs, callbacks, SQL."""

from __future__ import annotations

import json
import re
from collections import Counter

from perfflow.testing.mutations import Figures, Files
from tests.mutate.plain_readers import json_of, only_file


def strace(files: Files) -> Figures:
    """Calls and errors of the line of totals, and the share of the most frequent call."""
    rows = [line.split() for line in only_file(files, "strace.txt").decode("utf-8", "replace").splitlines()]
    counted = [row for row in rows if len(row) in (5, 6) and row[3].isdecimal() and row[-1] != "total"]
    (total,) = [row for row in rows if row and row[-1] == "total"]
    calls = sum(int(row[3]) for row in counted)
    assert str(calls) in total[2:-1]  # behind an average, from version 5.8 on
    errors = sum(int(row[4]) for row in counted if len(row) == 6)
    return {
        ("", "syscalls"): [calls],
        ("", "syscall_errors"): [errors],
        ("", "top share"): [max(int(row[3]) for row in counted) / calls],
    }


def iostat(files: Files) -> Figures:
    """Every figure of every sample; of the disks the busiest, and the sum of what they moved."""
    found: Figures = {}
    for sample in json_of(files)["sysstat"]["hosts"][0]["statistics"]:
        shares = sample["avg-cpu"]
        disks = [disk for disk in sample["disk"] if re.match(r"[shv]d|nvme|mmc", disk["disk_device"])]
        for name in ("system", "iowait", "steal", "idle"):
            found.setdefault(("", f"cpu_{name}"), []).append(shares[name] / 100)
        found.setdefault(("", "cpu_user"), []).append((shares["user"] + shares["nice"]) / 100)
        if not disks:
            continue
        found.setdefault(("", "disk_util"), []).append(min(1.0, max(disk["util"] for disk in disks) / 100))
        found.setdefault(("", "disk_read"), []).append(sum(disk["rkB/s"] for disk in disks) * 1024)
        found.setdefault(("", "disk_write"), []).append(sum(disk["wkB/s"] for disk in disks) * 1024)
    return found


_GPU = {"utilization.gpu": "gpu_util", "sm": "gpu_util", "utilization.memory": "gpu_memory_util"}
_GPU |= {"mem": "gpu_memory_util", "memory.used": "gpu_memory_peak", "fb": "gpu_memory_peak"}
_GPU |= {
    "clocks.current.sm": "gpu_clock",
    "pclk": "gpu_clock",
    "clocks.current.memory": "gpu_memory_clock",
    "mclk": "gpu_memory_clock",
    "power.draw": "gpu_power_watts",
    "pwr": "gpu_power_watts",
}
_SCALE = {
    "gpu_util": 0.01,
    "gpu_memory_util": 0.01,
    "gpu_memory_peak": 1048576.0,
    "gpu_clock": 1e6,
    "gpu_memory_clock": 1e6,
}


def nvidia_smi(files: Files) -> Figures:
    """Every figure of every row, by the name of its column; of the memory the highest."""
    found: Figures = {}
    names: list[str] = []
    for line in filter(str.strip, only_file(files, "nvidia-smi.txt").decode("utf-8", "replace").splitlines()):
        cells = line.lstrip("# ").split() if "#" in line[:1] or "," not in line else line.split(",")
        cells = [cell.strip().partition(" [")[0] for cell in cells]
        if "index" in cells or "gpu" in cells:
            names = cells
        elif not line.startswith("#"):
            for name, cell in zip(names, cells, strict=True):
                if name in _GPU and re.match(r"-?[\d.]", cell):
                    found.setdefault(("", _GPU[name]), []).append(float(cell) * _SCALE.get(_GPU[name], 1.0))
    if ("", "gpu_memory_peak") in found:
        found["", "gpu_memory_peak"] = [max(found["", "gpu_memory_peak"])]
    return found


def stream(files: Files) -> Figures:
    """The fastest try of all that moved bytes, and of each precision; those of round 0 warmed up."""
    found: Figures = {}
    for line in map(json.loads, only_file(files, ".jsonl").decode("utf-8", "replace").splitlines()):
        if line["kind"] in ("bandwidth", "flops") and line["round"]:
            key = line.get("precision", ""), line["kind"]
            amount = line["bytes" if line["kind"] == "bandwidth" else "flops"]
            found[key] = [max(amount / line["seconds"], *found.get(key, [0.0]))]
    return found


def nsys(files: Files) -> Figures:
    """Sums of what the tables hold, and the share of the first kernel, else of the first call or range."""
    content = json_of(files)
    found: Figures = {}
    busy, span = (sum(device[key] for device in content["devices"]) for key in ("busy", "span"))
    if span:
        found |= {("", "gpu_time"): [busy / 1e9], ("", "gpu_idle"): [(span - busy) / span]}
    if kernels := content["kernels"]:
        found["", "kernel_time_sum"] = [sum(row["total"] for row in kernels) / 1e9]
        found["", "kernel_launches"] = [sum(row["calls"] for row in kernels)]
    if copies := [row for row in content["memory"] if "memcpy" in row["name"]]:
        took = sum(row["total"] for row in copies) / 1e9
        found["", "memcpy_time"] = [took]
        if not [row for row in copies if row["size"] is None]:
            found["", "memcpy_bytes"] = [sum(row["size"] for row in copies)]
            if took:
                found["", "memcpy_bandwidth"] = [sum(row["size"] for row in copies) / took]
    for metric, table in (("cuda_api_time", "api"), ("osrt_time", "os")):
        if content[table]:
            found["", metric] = [sum(row["own"] or 0 for row in content[table]) / 1e9]
    totals = [row["total"] for row in (*kernels, *content["memory"])]
    own = [row["own"] or 0 for row in (*content["api"], *content["ranges"])]
    if sum(totals):
        found["", "top share"] = [max(totals) / sum(totals)]
    elif any(own):
        found["", "top share"] = [max(own) / (content["threads"] or sum(own))]
    return found


def slow_callbacks(files: Files) -> Figures:
    """The longest callback, how many were slow, and the first place's share of the program's time."""
    content = json_of(files)
    assert content["status"] == 0
    spent = [place["seconds"] for place in content["slow"]]
    return {
        ("", "slow_callback_max"): [content["longest"]],
        ("", "slow_callbacks"): [sum(place["calls"] for place in content["slow"])],
        ("", "top share"): [max(spent) / max(content["seconds"], sum(spent))],
    }


def sql_log(files: Files) -> Figures:
    """Statements, and the most that are alike but for digits and texts."""
    lines = [json.loads(line) for line in only_file(files, ".jsonl").decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if isinstance(line, str)]
    (end,) = [line for line in lines if isinstance(line, dict)]
    assert end == lines[-1]
    assert end["status"] == 0
    assert end["statements"] == len(said)
    alike = Counter(re.sub(r"'(?:[^']|'')*'|-?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b", "?", text) for text in said)
    return {("", "sql_statements"): [len(said)], ("", "sql_repeated"): [max(alike.values())]}
