"""Second opinions on what any program prints: a step's ``parse``, and a tool file's stacks (see plain_readers)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

from perfflow.testing.mutations import Figures, Files
from perfflow.tools.tool_files import clean_name
from tests.mutate.plain_readers import json_of, only_file

_OUTPUTS = {"bin": "", "bench": "bench-", "example": "example-", "test": "test-"}
_MOJO = {"throughput (GElems/s)": "rate", "DataMovement (GB/s)": "bandwidth", "Arithmetic (GFLOPS/s)": "flops"}
_AMOUNTS = {
    "Elements": ("rate", 1.0),
    "Bytes": ("throughput", 1.0),
    "BytesDecimal": ("throughput", 1.0),
    "Bits": ("throughput", 0.125),
}


def printed_json(files: Files) -> Figures:
    """``results[].name`` with ``results[].mean`` in ms and ``results[].size`` in KB."""
    found: Figures = {}
    for result in json_of(files)["results"]:
        found.setdefault((str(result["name"]), "time"), []).append(result["mean"] * 1e-3)
        found.setdefault((str(result["name"]), "alloc"), []).append(result["size"] * 1e3)
    return found


def printed_lines(files: Files) -> Figures:
    """``NAME took 12.5 ms, 3 calls`` on each line."""
    found: Figures = {}
    for line in only_file(files, "stdout").decode("utf-8", "replace").split("\n"):
        if match := re.match(r"(\S+) took (\S+) ms, (\S+) calls", line):
            found.setdefault((match[1], "time"), []).append(float(match[2].replace(",", "")) * 1e-3)
            found.setdefault((match[1], "calls"), []).append(float(match[3].replace(",", "")))
    return found


def printed_csv(files: Files) -> Figures:
    """Columns ``name`` and ``seconds`` below the first line that has both."""
    text = only_file(files, "stdout").decode("utf-8", "replace")
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text))]
    start = next(at for at, row in enumerate(rows) if {"name", "seconds"} <= {*row})
    name, seconds = rows[start].index("name"), rows[start].index("seconds")
    found: Figures = {}
    for row in rows[start + 1 :]:
        # Lines without a comma are prose, rows of empty cells none.
        if len(row) > 1 and any(row):
            found.setdefault((row[name], "time"), []).append(float(row[seconds].replace(",", "")))
    return found


def cargo_build(files: Files) -> Figures:
    """Every executable of a message: its output's name, also without hyphens, and its path.

    Where two have the same name, that of the package is before it.
    """
    rows: set[tuple[str, str, str, str]] = set()
    for line in only_file(files, "cargo.json").decode("utf-8", "replace").splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and isinstance(message.get("executable"), str):
            kind = message["target"]["kind"][0]
            rows.add((kind, message["target"]["name"], _package(message["package_id"]), message["executable"]))
    rows = {row for row in rows if row[0] in _OUTPUTS}
    often = Counter(row[:2] for row in rows)
    found: Figures = {}
    for kind, name, package, path in rows:
        whole = f"{_OUTPUTS[kind]}{f'{package}-' * (often[kind, name] > 1)}{name}"
        for each in (whole, whole.replace("-", "_")):
            found[f"{each}={Path(path)}", "result"] = [1.0]
    return found


def _package(identity: str) -> str:
    where, _, what = identity.partition("#")
    if not what:
        return identity.split(" ", maxsplit=1)[0]
    return what.split("@")[0] if "@" in what else where.split("?")[0].rstrip("/").split("/")[-1]


def cargo_bench(files: Files) -> Figures:
    """Of criterion time over iterations of every sample, and amounts over that; of others what a line says."""
    found: Figures = {}
    for number, bench in enumerate(json_of(files, "suite.json")["benches"]):
        if bench["harness"] == "libtest":
            text = files[f"libtest-{number}.txt"].decode("utf-8", "replace")
            read = {key: values for line in text.splitlines() for key, values in _bench_line(line).items()}
        elif bench["harness"] == "divan":
            read = _of_divan(files[f"divan-{number}.txt"].decode("utf-8", "replace"))
        else:
            read = _of_criterion({name: text for name, text in files.items() if f"criterion/{number}/" in name})
        shown = {clean_name(own): name for name, own in bench["ids"].items()}
        found |= {(shown[clean_name(name)], metric): values for (name, metric), values in read.items()}
    return found


def _bench_line(line: str) -> Figures:
    match = re.match(r"test (\S.*?) +\.\.\. bench: +(\S+) ns/iter \(.*?\)(?: = (\S+) MB/s)?", line)
    if not match:
        return {}
    name, time, rate = match.groups()
    found: Figures = {(name, "time"): [float(time.replace(",", "")) * 1e-9]}
    return found | ({(name, "throughput"): [float(rate.replace(",", "")) * 1e6]} if rate else {})


def _of_divan(text: str) -> Figures:
    """Each row with its depth, by the columns; a row of amounts belongs to the benchmark above it."""
    found: Figures = {}
    path: list[str] = []
    seconds = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    for line in text.splitlines():
        *rest, median, _mean, samples, _iterations = line.rsplit(" │", 5) if line.count(" │") >= 5 else [""] * 6
        if line and line[0] not in "│├╰ ":
            path = [line.split()[0]]
        elif match := re.match(r"((?:│  |   )*)[├╰]─ (.*?)(?:  +[\d.]+ \S+)? *$", rest[0]):
            path = [*path[: len(match[1]) // 3 + 1], match[2]]
            if samples.strip():
                value, unit = median.split()
                found["::".join(path), "time"] = [float(value) * seconds[unit]]
        elif match := re.match(r" ([\d.]+) (\w?)(B|item)/s", median):
            metric = "throughput" if match[3] == "B" else "rate"
            found["::".join(path), metric] = [float(match[1]) * 1000.0 ** " KMGTP".index(match[2] or " ")]
    return found


def _of_criterion(files: Files) -> Figures:
    found: Figures = {}
    for file, content in files.items():
        if not file.endswith("new/benchmark.json"):
            continue
        about = json.loads(content.decode("utf-8", "replace"))
        sample = json.loads(files[file.replace("benchmark.json", "sample.json")].decode("utf-8", "replace"))
        # The list has a long name as the title has it, which ends so.
        cut = isinstance(about.get("title"), str) and about["title"].endswith("...")
        name = about["title"] if cut else about["full_id"]
        times = [time / count * 1e-9 for time, count in zip(sample["times"], sample["iters"], strict=True)]
        found[name, "time"] = times
        for kind, amount in (about.get("throughput") or {}).items():
            metric, scale = _AMOUNTS[kind]
            found[name, metric] = [amount * scale / time for time in times]
    return found


def folded(files: Files) -> Figures:
    """The last number of each line; the share of the leaf with the most."""
    leaves: Counter[str] = Counter()
    for line in only_file(files, ".folded").decode("utf-8", "replace").splitlines():
        stack, _, count = line.rstrip().rpartition(" ")
        if line.strip():
            leaves[clean_name(stack.split(";")[-1])] += int(count)
    return {("", "top share"): [max(leaves.values()) / leaves.total()]}


def mojo_bench(files: Files) -> Figures:
    """Rows below each head, split at commas or bars, ``N/A`` aside; of reports the mean, named by the line before."""
    text = only_file(files, "printed.txt").decode("utf-8", "replace")
    found: Figures = {}
    columns: list[str] = []
    lines = text.split("\n")
    for at, line in enumerate(lines):
        bars = " | " in line
        # A name may hold what stands between cells.
        cells = line.strip("| " if bars else "").rsplit(" | " if bars else ",", len(columns) - 1 if columns else -1)
        cells = [cell.strip() for cell in cells]
        if cells[0].lstrip(".") == "name":
            columns = cells
        elif not line.strip():
            columns = []
        elif columns and cells[0].strip("-"):
            name, values = (
                clean_name(cells[0].removeprefix('"').removesuffix('"')),
                dict(zip(columns, cells, strict=True)),
            )
            found.setdefault((name, "time"), []).append(float(values["met (ms)"]) * 1e-3)
            for column, metric in _MOJO.items():
                if values.get(column, "N/A") != "N/A":
                    found.setdefault((name, metric), []).append(float(values[column]) * 1e9)
        elif match := re.fullmatch(r"Benchmark Report \((\w+)\)", line):
            name = lines[at - 2].strip().removesuffix(":").rstrip() if at > 1 else ""
            mean = next(line for line in lines[at:] if line.startswith("Mean: ")).removeprefix("Mean: ")
            seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[match[1]]
            found.setdefault((clean_name(name) if name else "", "time"), []).append(float(mean) * seconds)
    return found
