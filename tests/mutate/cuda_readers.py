"""Second opinions on what NVIDIA's compiler and programs of CUDA say (see plain_readers)."""

from __future__ import annotations

import json
import re
from collections import Counter

from perfflow.testing.mutations import Figures, Files
from perfflow.tools.tool_files import clean_name
from tests.mutate.plain_readers import json_of, only_file

_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0}


def nvcc(files: Files) -> Figures:
    """The outputs: of each entry the first sizes and registers after it, and of the program its size."""
    text = only_file(files, "ptxas.txt").decode("utf-8", "replace")
    parts = re.split(r"^ptxas info +: Compiling entry function ", text, flags=re.MULTILINE)[1:]
    names, registers, stacks, shared = set(), [0], [0], [0]
    spills: Counter[str] = Counter()
    for part in parts:
        # ptxas closes the name with a quote before the architecture; names of lambdas hold quotes, too.
        names.add(part.split("\n")[0].rpartition("' for '")[0])
        sizes = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        used = re.search(r"Used (\d+) registers(.*)", part)
        assert sizes
        assert used
        stacks.append(int(sizes[1]))
        spills[part.split("\n")[0].rpartition("' for '")[2]] += int(sizes[2]) + int(sizes[3])
        registers.append(int(used[1]))
        shared += [sum(map(int, re.findall(r"\d+", found))) for found in re.findall(r"([\d+]+) bytes smem", used[2])]
    outputs = {
        "path": "/tmp/out/crowded",
        "binary_size": len(files["crowded"]),
        "kernels": len(names),
        "registers": max(registers),
        "spills": max(spills.values(), default=0),
        "stack": max(stacks),
        "shared": max(shared),
    }
    return {(f"{name}={value}", "result"): [1.0] for name, value in outputs.items()}


def cuda_bench(files: Files) -> Figures:
    """Every line of a kernel that is no warm-up: its time, and what it moved and computed over that."""
    found: Figures = {}
    for line in only_file(files, "cuda-bench.txt").decode("utf-8", "replace").splitlines():
        words = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))
        if line.strip().startswith("{"):
            words = {key: str(value) for key, value in json.loads(line).items()}
        if "kernel" not in words or words.get("warmup") == "True" or float(words.get("warmup", 0)):
            continue
        name = words["kernel"].strip('"')
        ((unit, text),) = [(unit, words[unit]) for unit in _UNITS if unit in words]
        seconds = float(text) * _UNITS[unit]
        found.setdefault((name, "time"), []).append(seconds)
        for key, metric in (("bytes", "bandwidth"), ("flops", "flops"), ("elements", "rate")):
            if float(words.get(key, 0)):
                found.setdefault((name, metric), []).append(float(words[key]) / seconds)
    return found


def triton_bench(files: Files) -> Figures:
    """Every time of every benchmark."""
    rows = json_of(files)["benchmarks"]
    return {(clean_name(row["name"]), "time"): [time * 1e-3 for time in row["ms"]] for row in rows}
