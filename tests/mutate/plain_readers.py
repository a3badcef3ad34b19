"""Second opinions: each format read in a few lines that share nothing with perfflow's parser and check nothing.

A reader takes the files of one run by name and returns the values of each (benchmark, metric) in base units. It says
where the figures stand in the bytes and no more, so that what a parser answers to damaged bytes can be held against
something. It may raise whatever it likes: a file that it cannot read has no right answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from math import isnan
from typing import Any

from perfflow.testing.mutations import Figures, Files

_UNIT = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9, "byte": 1.0}
_UNIT |= {"kilobyte": 1e3, "megabyte": 1e6, "kibibyte": 1024.0, "mebibyte": 1048576.0}
_SHORT = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "msec": 1e-3, "sec": 1.0, "": 1.0}
_HYPERFINE_2 = {"time_wall_clock": "time", "time_cpu": "cpu", "memory_peak_resident": "rss"}
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
_GOOGLE = {"bytes_per_second": "throughput", "items_per_second": "rate"}
_GO = {"ns/op": ("time", 1e-9), "MB/s": ("throughput", 1e6), "B/op": ("alloc", 1.0), "allocs/op": ("allocs", 1.0)}
_PERF_STAT = {
    "duration_time": "time",
    "task-clock": "cpu",
    "cycles": "cycles",
    "instructions": "instructions",
    "page-faults": "page_faults",
    "cache-misses": "cache_misses",
    "branch-misses": "branch_misses",
}
_CACHE_LINE = 3, 6, 9
"""Where cachegrind's summary has the misses of the last level: after Ir I1mr ILmr, Dr D1mr DLmr, Dw D1mw DLmw."""


def only_file(files: Files, ending: str) -> bytes:
    """Return the content of the one file whose name ends so."""
    (found,) = (content for name, content in files.items() if name.endswith(ending))
    return found


def json_of(files: Files, ending: str = ".json") -> Any:
    """Return what the one file of JSON holds."""
    return json.loads(only_file(files, ending).decode("utf-8-sig", "replace"))


def hyperfine(files: Files, *, named: bool) -> Figures:
    """Times of each run; of 1.x the mean of user and system time."""
    results = json_of(files)["results"]
    names = [_name(result) if named else "" for result in results]
    often = Counter(names)
    found: Figures = {}
    failed = set()
    for name, result in zip(names, results, strict=True):
        given = result.get("parameters") or {} if often[name] > 1 else {}
        told = ", ".join(f"{key} = {value}" for key, value in given.items() if isinstance(value, str))
        shown = f"{name} ({told})" if told else name
        runs: list[Any] = result.get("measurements") or []
        codes = [run.get("exit_code", 0) for run in runs] if runs else result.get("exit_codes") or []
        if any(code != 0 for code in codes) or (not runs and 0 in result["times"]):
            failed.add(shown)
        for run in runs:
            for theirs, metric in _HYPERFINE_2.items():
                if theirs in run:
                    value = run[theirs]["value"] * _UNIT[run[theirs]["unit"]]
                    found.setdefault((shown, metric), []).append(value)
        if not runs:
            found.setdefault((shown, "time"), []).extend(result["times"])
            if None not in (result.get("user"), result.get("system")):
                found.setdefault((shown, "cpu"), []).append(result["user"] + result["system"])
            if memory := result.get("memory_usage_byte"):
                found.setdefault((shown, "rss"), []).extend(memory)
    return {key: values for key, values in found.items() if key[0] not in failed}


def _name(result: Any) -> str:
    """The first of name and command that is a text."""
    found = (result.get("name"), result.get("command"))
    return next(text for text in found if isinstance(text, str) and text.strip())


def pytest_benchmark(files: Files) -> Figures:
    """The rounds of each benchmark; of a timer of CPU time as ``cpu``."""
    found: Figures = {}
    for benchmark in json_of(files, "json")["benchmarks"]:
        timer = str((benchmark.get("options") or {}).get("timer"))
        metric = "cpu" if timer.endswith(("process_time", "thread_time")) else "time"
        names = (benchmark.get("fullname"), benchmark.get("name"))
        name = next(name for name in names if isinstance(name, str) and name.strip())
        stats = benchmark["stats"]
        found.setdefault((name, metric), []).extend(stats.get("data") or [stats["mean"]])
    return found


def google_benchmark(files: Files, *, key: str) -> Figures:
    """Every repetition's real and CPU time and its rates, named by ``key``; what failed in one has no figures."""
    found: Figures = {}
    failed = set()
    for run in json_of(files)["benchmarks"]:
        by_name = "run_type" not in run and str(run.get("name")).endswith(_AGGREGATES)
        if run.get("run_type", "iteration") != "iteration" or by_name or run.get("skipped"):
            continue
        name = run[key] if key in run else run["name"]
        if run.get("error_occurred"):
            failed.add(name)
            continue
        scale = _SHORT[run.get("time_unit", "ns")]
        found.setdefault((name, "time"), []).append(run["real_time"] * scale)
        found.setdefault((name, "cpu"), []).append(run["cpu_time"] * scale)
        for theirs, metric in _GOOGLE.items():
            if theirs in run:
                found.setdefault((name, metric), []).append(run[theirs])
    return {key: values for key, values in found.items() if key[0] not in failed}


def pyperf(files: Files) -> Figures:
    """The values of every run."""
    content = json_of(files)
    found: Figures = {}
    for benchmark in content["benchmarks"]:
        known = {**content.get("metadata", {}), **benchmark.get("metadata", {})}
        metric = {"second": "time", "byte": "rss", "integer": "count"}[known.get("unit", "second")]
        for run in benchmark["runs"]:
            found.setdefault((known["name"], metric), []).extend(run.get("values", []))
    return found


def timeit(files: Files) -> Figures:
    """Every repeat over the number of loops."""
    content = json_of(files)
    return {("", "time"): [seconds / content["number"] for seconds in content["seconds"]]}


def asv(files: Files) -> Figures:
    """The samples where there are some, else the result, of each combination of parameters; types by the names."""
    content = json_of(files)
    found: Figures = {}
    for name, row in content["results"].items():
        told = dict(zip(content["result_columns"], row, strict=False))
        cells = list(product(*told["params"]))
        for at, cell in enumerate(cells):
            value = told["result"][at] if told["result"] else None
            if value is not None and not isnan(value):
                word = re.match(r"(time|peakmem|mem|track)", name.rpartition(".")[2].lower())
                assert word
                unit = content.get("benchmarks.json", {}).get(name, {}).get("unit", "unit")
                metric = {"time": "time", "peakmem": "rss", "mem": "object_size", "track": unit}[word[1]]
                taken = told["samples"][at] if told.get("samples") else None
                shown = f"{name}({', '.join(map(str, cell))})" if cell else name
                found.setdefault((shown, metric), []).extend(taken or [value])
    return found


def _go_texts(text: str) -> list[tuple[str, str]]:
    """Packages, and what go test printed of each, where it is taken apart into events."""
    packages: dict[str, str] = {}
    if '"Action"' in text.lstrip().partition("\n")[0]:
        for event in (json.loads(line) for line in text.split("\n") if line.startswith("{")):
            if event.get("Action") == "output":
                name = str(event.get("Package") or "")
                packages[name] = packages.get(name, "") + str(event.get("Output", ""))
    return list(packages.items()) or [("", text)]


def go(files: Files) -> Figures:
    """Every line ``BenchmarkX-2 100 12.5 ns/op ...``; names without the number of processors that all share."""
    rows: list[tuple[str, str, list[str]]] = []
    failed = set()
    for outer, part in _go_texts(b"".join(files.values()).decode("utf-8-sig", "replace")):
        package = outer
        for line in part.splitlines():
            if match := re.match(r"pkg:[ \t]*(\S.*)", line):
                package = match[1].rstrip()
            elif match := re.match(r"\s*--- FAIL: (Benchmark\S*)", line):
                failed.add(f"{package}." * bool(package) + match[1])
            elif match := re.match(r"(Benchmark(?![a-z])\S*)\s+\d+\s+((?:[-+]?[\d.]|[-+]?Inf|NaN).*)", line):
                rows.append((package, match[1], match[2].split()))
    ends = {match[0] if (match := re.search(r"-\d+$", name)) else "" for _, name, _ in rows}
    end = ends.pop() if len(ends) == 1 else ""
    found: Figures = {}
    for package, name, words in rows:
        shown = f"{package}." * bool(package) + name.removesuffix(end)
        for value, unit in zip(words[::2], words[1::2], strict=True):
            if unit in _GO:
                metric, scale = _GO[unit]
                found.setdefault((shown, metric), []).append(float(value) * scale)
    return {key: values for key, values in found.items() if key[0] not in failed}


def criterion(files: Files) -> Figures:
    """Time over iterations of every sample in a folder ``new``."""
    found: Figures = {}
    for name, content in files.items():
        if name.endswith("new/benchmark.json"):
            about = json.loads(content.decode("utf-8", "replace"))
            sample = json.loads(files[name.replace("benchmark.json", "sample.json")].decode("utf-8", "replace"))
            pairs = zip(sample["times"], sample["iters"], strict=True)
            found[about["full_id"], "time"] = [time / count * 1e-9 for time, count in pairs]
    return found


def massif(files: Files) -> Figures:
    """The largest sum of heap, overhead and stacks of any snapshot of any process."""
    text = "\n".join(content.decode("utf-8", "replace") for name, content in files.items() if name.endswith(".out"))
    snapshots = re.findall(r"mem_heap_B=(\d+)\nmem_heap_extra_B=(\d+)\nmem_stacks_B=(\d+)", text, re.ASCII)
    return {("", "heap_peak"): [float(max(sum(map(int, sizes)) for sizes in snapshots))]}


def dhat(files: Files) -> Figures:
    """Bytes and blocks of all places of all processes, and the largest of their peaks."""
    texts = [content for name, content in files.items() if ".out" in name or name.startswith("written-")]
    processes = [json.loads(content.decode("utf-8", "replace")) for content in texts]
    points = [process["pps"] for process in processes]
    size, blocks = (float(sum(point[key] for process in points for point in process)) for key in ("tb", "tbk"))
    if processes[0]["mode"] == "rust-ad-hoc":
        return {("", "ad_hoc_units"): [size], ("", "ad_hoc_events"): [blocks]}
    peak = float(max(sum(point["gb"] for point in process) for process in points))
    return {("", "alloc"): [size], ("", "allocs"): [blocks], ("", "heap_peak"): [peak]}


def callgrind(files: Files) -> Figures:
    """The first number of every part's ``totals:``."""
    return {("", "instructions"): [float(sum(int(words[0]) for words in _lines(files, b"totals:")))]}


def cachegrind(files: Files) -> Figures:
    """The events of every process's ``summary:``, and the misses per access where caches were simulated."""
    rows = [[float(word) for word in words] for words in _lines(files, b"summary:")]
    sums = [sum(row[at] for row in rows) for at in range(min(map(len, rows)))]
    found: Figures = {("", "instructions"): [sums[0]]}
    if len(sums) >= max(_CACHE_LINE):
        last = sum(sums[at - 1] for at in _CACHE_LINE)
        first = sums[4] + sums[7]
        found |= {("", "cache_misses"): [last], ("", "cache_misses_i1"): [sums[1]], ("", "cache_misses_d1"): [first]}
        found["", "cache_miss_rate"] = [last / (sums[0] + sums[3] + sums[6])]
        if sums[3] + sums[6]:
            found["", "cache_miss_rate_d1"] = [first / (sums[3] + sums[6])]
    return found


def heaptrack(files: Files) -> Figures:
    """The totals of calls below the stacks, and the sums of the folded bytes."""
    text = only_file(files, ".txt").decode("utf-8", "replace")
    found: Figures = {}
    totals = {"allocs": "calls to allocation functions", "temporary_allocs": "temporary memory allocations"}
    for metric, words in totals.items():
        found["", metric] = [float(re.findall(rf"^{words}: (\d+) \(", text, re.MULTILINE | re.ASCII)[-1])]
    for metric, name in {"heap_peak": "peak", "leaked": "leaked"}.items():
        lines = only_file(files, f"{name}.folded").decode("utf-8", "replace").split("\n")
        found["", metric] = [float(sum(int(line.rpartition(" ")[2]) for line in lines if line.strip()))]
    return found


def _lines(files: Files, start: bytes) -> Iterator[list[bytes]]:
    for name, content in files.items():
        if ".out" in name:
            yield from (line[len(start) :].split() for line in content.split(b"\n") if line.startswith(start))


def perf_stat(files: Files) -> Figures:
    """Every counter with a value; several lines of one event are summed, as a processor of two kinds of core has."""
    found: Figures = {}
    for line in only_file(files, ".jsonl").decode("utf-8", "replace").split("\n"):
        if '"counter-value"' in line:
            mended = re.sub(r"(?<=\d),(?=\d)", ".", re.sub(r":\s*-?(?:nan|inf)\b", ": null", line))
            row = json.loads(line) if '"event"' not in mended else json.loads(mended)
            event = re.split(r"[:/]", re.sub(r"^\w+/", "", row["event"]))[0]
            if event in _PERF_STAT and not str(row["counter-value"]).strip().startswith("<"):
                value = float(str(row["counter-value"]).replace(",", ".")) * _SHORT[row.get("unit", "")]
                key = ("", _PERF_STAT[event])
                found[key] = [found.get(key, [0.0])[0] + value]
    return found


def perf_script(files: Files) -> Figures:
    """The periods of the first event's samples: lines with a time and an event that do not start with a tab."""
    lines = only_file(files, "perf.script").decode("utf-8", "replace").split("\n")
    head = re.compile(r" \d+\.\d+:\s+(?:(\d+)\s+)?(\S+):(?:\s|\Z)")
    found = [match.groups() for line in lines if not line.startswith("\t") and (match := head.search(line))]
    periods = [max(1, int(period or 1)) for period, event in found if event == found[0][1]]
    return {("", "samples"): [float(sum(periods))]}


def hot_code(files: Files) -> Figures:
    """The share of packed arithmetic within the nearest branch back over each address, by samples."""
    shares, weights = [], []
    for function in json_of(files, "hot-code.json")["functions"]:
        lines = [line.split(":", 1) for line in function["listing"]]
        code = {int(at, 16): text.split("<")[0].split("#")[0].strip() for at, text in lines}
        backs = [(int(text.split()[-1], 16), at) for at, text in code.items() if re.match(r"j\w+\s+[0-9a-f]+$", text)]
        for address, samples in function["addresses"].items():
            if int(address, 16) not in code:
                continue
            around = [back for back in backs if back[0] <= int(address, 16) <= back[1]]
            # Outside of loops the code between two jumps.
            ends = [-1, *(at for at, text in code.items() if re.match(r"j|ret", text)), 1 << 64]
            between = [(first + 1, last) for first, last in pairwise(ends) if first < int(address, 16) <= last]
            first, last = min(around or between, key=lambda back: back[1] - back[0])
            words = " ".join(f"{text.split()[0]} " for at, text in code.items() if first <= at <= last and text)
            packed, scalar = (len(re.findall(rf"\bv?(?:add|sub|mul|div|f\w+){kind}[sd]\b", words)) for kind in "ps")
            if packed + scalar:
                shares.append(packed / (packed + scalar) * samples)
                weights.append(samples)
    if sum(weights) < json_of(files, "hot-code.json")["samples"] / 10:
        return {}
    return {("", "simd_share"): [sum(shares) / sum(weights)]}


def py_spy(files: Files) -> Figures:
    """The sum of the counts of the stacks below the marker of the driver, or without the driver."""
    if any(name.endswith(".speedscope.json") for name in files):
        return {("", "samples"): [float(sum(map(_is_of_program, _speedscope(files))))]}
    total = 0
    text = only_file(files, ".raw").decode("utf-8", "replace")
    # A command line may hold any character.
    for line in re.sub(r'process \d+:"[\s\S]*?"(?=;| \d+$)', "\0", text, flags=re.MULTILINE).split("\n"):
        stack, _, count = line.rpartition(" ")
        body = stack.rpartition("python_run.py:")[2]
        own = ";perfflow_program (" in stack and ";" in body
        start_up = bool(re.match(r"(?:\0;)*[^;]*<frozen", stack))
        # A stack of processes alone was taken before there was a frame.
        if stack and not stack.endswith("\0") and (own or start_up or "/drivers/python_run.py:" not in stack):
            total += int(count)
    return {("", "samples"): [float(total)]}


def _speedscope(files: Files) -> Iterator[list[tuple[str, str]]]:
    """Functions and files of each sample, without the roots of its processes."""
    data = json_of(files, ".speedscope.json")
    frames = [(item["name"], item["file"]) for item in data["shared"]["frames"]]
    for profile in data["profiles"]:
        for sample in profile["samples"]:
            yield [frames[index] for index in sample if not re.match(r'process \d+:"', frames[index][0])]


def _is_of_program(stack: list[tuple[str, str]]) -> bool:
    drivers = [index for index, (_, file) in enumerate(stack) if file.endswith("/drivers/python_run.py")]
    if not drivers:
        return bool(stack)
    return stack[drivers[-1]][0] == "perfflow_program" and drivers[-1] + 1 < len(stack)


def py_spy_dump(files: Files) -> Figures:
    """The number of threads that have a frame."""
    return {("", "samples"): [float(sum(bool(thread["frames"]) for thread in json_of(files, "threads.json")))]}


def scalene(files: Files) -> Figures:
    """The largest share of a function: of the lines that are in the same."""
    shares: dict[tuple[str, int], float] = {}
    for file, content in json_of(files, "scalene.json")["files"].items():
        for row in content["lines"]:
            key = file, row["start_function_line"]
            shares[key] = shares.get(key, 0.0) + _percents(row)
    return {("", "top share"): [max(shares.values()) / 100]}


def _percents(row: Mapping[str, float]) -> float:
    return sum(row.get(f"n_{kind}", 0) for kind in ("cpu_percent_python", "cpu_percent_c", "sys_percent"))


def cprofile(files: Files) -> Figures:
    """The sum of the functions' own times, and the share of the largest."""
    own = [row["own"] for row in json_of(files)["rows"]]
    return {("", "top share"): [max(own) / sum(own)]}
