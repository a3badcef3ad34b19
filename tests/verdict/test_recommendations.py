"""Each rule, with evidence that must trigger it and a near miss that must not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.kernels import KernelResult
from perfflow.model.metrics import Better, Metric
from perfflow.model.result import Attribution, HotspotResult, Recommendation
from perfflow.model.targets import Use
from perfflow.model.units import Dimension
from perfflow.verdict.comparison import read_count
from perfflow.verdict.findings import Findings
from perfflow.verdict.judge import judge
from perfflow.verdict.routing import recommendations, rules
from tests.verdict.gpu_kernels import kernel, profiled
from tests.verdict.records import ended, pairs, planned, record

METRICS_OF_TOOLS = {
    name: Metric(name, Dimension.RATIO, Better.LOWER)
    for name in ("dataloader_fraction", "dataloader_wait", "allreduce_fraction", "gil_share")
}
"""Metrics that rules use and that tools declare themselves."""


Evidence = dict[str, Any]


def spot(location: str, share: float, cause: str = "", **keys: Any) -> HotspotResult:
    known: dict[str, Any] = {"rank": 1, "step": "cpu", "benchmark": "b", "tree": "candidate", "file": "", "line": 0}
    known |= {"unit": "time", "source": "perf", "impact": ""}
    return HotspotResult(**(known | {"location": location, "share": share, "cause": cause} | keys))


def spent(kind: str, percent: int, through: str) -> str:
    return f"measured: {percent}% of its samples are spent {kind}, through {through}"


def advised(
    spots: Sequence[HotspotResult] = (),
    metrics: Mapping[str, tuple[float, float]] | None = None,
    blamed: Sequence[Attribution] = (),
    kernels: Sequence[KernelResult] = (),
    *,
    few_samples: bool = False,
) -> list[Recommendation]:
    """Return the advice on hotspots, and on metrics with a value on the baseline and one on the candidate."""
    events = []
    for metric, (before, after) in (metrics or {}).items():
        events += pairs("b", [before] * 20, [after] * 20, metric)
    profiled = ended("cpu", few_samples=few_samples)
    criteria = Criteria(metrics=METRICS_OF_TOOLS)
    made = record(*events, ended("b"), profiled, steps=[planned("b"), planned("cpu", role="profile", benchmark="b")])
    result = judge(made, criteria)
    parts = Findings(made, criteria, str(result.verdict), result.benchmarks, [], [], blamed, spots, kernels=kernels)
    return list(recommendations(parts))


def of_kernel(**keys: Any) -> dict[str, Any]:
    """Return a kernel of benchmark ``b`` with half of the device's time; only ``keys`` may trigger advice."""
    known = {"benchmark": "b", "share": 0.5, "threads": 256, "registers": 32, "sm_share": 0.4, "memory_share": 0.5}
    return kernel(**(known | keys))


def gpus(*kernels: Mapping[str, Any]) -> Evidence:
    return {"kernels": profiled(*kernels).kernels}


def gpu(**keys: Any) -> Evidence:
    return gpus(of_kernel(**keys))


def line(function: str, share: float, cause: str, uses: Sequence[Use], **keys: Any) -> HotspotResult:
    """Return a hotspot of the project's own Python code, with the uses in its source."""
    known: dict[str, Any] = {"source": "line-profiler", "file": "own/p.py", "line": 9, "function": function}
    return spot(function, share, cause, **(known | {"uses": [str(use) for use in uses]} | keys))


def spots(*found: HotspotResult) -> Evidence:
    return {"spots": found}


def hot(location: str, share: float, cause: str = "", **keys: Any) -> Evidence:
    return spots(spot(location, share, cause, **keys))


def slow(function: str, share: float, cause: str, uses: Sequence[Use], **keys: Any) -> Evidence:
    return spots(line(function, share, cause, uses, **keys))


def metrics(**values: tuple[float, float]) -> Evidence:
    return {"metrics": values}


def hits(count: int) -> str:
    return f"measured: {count:,} hits, 78% of the function's time, 1.31e-06 s a hit"


def blocks(count: int) -> str:
    return f"measured: 800,000 B in {count:,} blocks at the time of the largest snapshot"


LOOP = [Use.ELEMENTS, Use.ARRAYS]
ALLOC, COPY, HASH = "allocating and freeing", "copying memory", "hashing"
RE = ("_parser", "_compiler")
MALLOCS = spots(*[spot(name, 0.06, unit="instructions", source="callgrind") for name in ("malloc", "_int_free")])
DEEPCOPY = hot("deepcopy", 0.3, source="cprofile", file="/opt/lib/python3.11/copy.py")
OPENED = hot("data/gauges.csv", 0.9, "measured: opened 4,000 times", unit="opens", source="strace")
CALLED = hot("<built-in method io.open>", 0.06, "measured: 1,000 calls, x", source="cprofile")
SGEMM = hot("ampere_sgemm_128x64_tn", 0.57, unit="device time", source="torch-profiler")
LOOPED = slow("smooth", 0.1, "", LOOP, source="py-spy")
RENDERED = slow("render", 0.2, hits(9), [Use.TEXT])
DECODED = hot("raw_decode", 0.2, source="cprofile", file="/usr/lib/python3.11/json/decoder.py", line=343)
CACHED = slow("parse", 0.5, blocks(1000), [Use.UNBOUNDED], unit="bytes", source="tracemalloc")
FILLED = slow("keep", 0.1, blocks(8000), [Use.CONTAINER], unit="bytes", source="tracemalloc")
FIRE: list[tuple[str, Evidence, str]] = [
    (
        "allocation-in-hot-path",
        hot("dispatch", 0.5, spent(ALLOC, 62, "malloc, _int_free"), file="src/q.rs", line=8),
        "perf: 31% of time (dispatch (src/q.rs:8) 50%, 62% of it allocating and freeing, by malloc, _int_free)",
    ),
    ("allocation-in-hot-path", MALLOCS, "callgrind: 12% of instructions (_int_free 6%; malloc 6%)"),
    ("allocation-in-hot-path", hot("operator new(unsigned long)", 0.1), "operator new"),
    ("allocation-in-hot-path", hot("runtime.mallocgc", 0.1), "runtime.mallocgc 10%"),
    ("allocation-in-hot-path", hot("__rust_alloc", 0.2), "20% of time"),
    ("allocation-in-hot-path", hot("malloc (vgpreload_dhat.so)", 0.2), "20% of time"),
    ("allocations-grew", metrics(allocs=(2, 5)), "allocs: 2 → 5 (+150.0%)"),
    ("allocations-grew", metrics(alloc=(0, 64)), "alloc: 0 B → 64.0 B"),
    ("copies-in-hot-path", hot("relay", 0.2, spent(COPY, 50, "__memcpy_avx")), "perf: 10% of time"),
    ("copies-in-hot-path", hot("__memmove_avx_unaligned_erms", 0.3), "30% of time"),
    ("copies-in-hot-path", hot("<alloc::vec::Vec<u8> as core::clone::Clone>::clone", 0.3), "30%"),
    ("copies-in-hot-path", DEEPCOPY, "cprofile: 30% of time"),
    ("hashing-in-hot-path", hot("count", 1.0, spent(HASH, 35, "make_hash")), "perf: 35% of time"),
    ("hashing-in-hot-path", hot("<core::hash::sip::Hasher<S> as core::hash::Hasher>::write", 0.2), "20%"),
    ("hashing-in-hot-path", hot("runtime.memhash64", 0.2), "20%"),
    ("lock-contention", hot("pthread_mutex_lock@@GLIBC_2.2.5", 0.2), "20% of time"),
    ("lock-contention", hot("sync.(*Mutex).lockSlow", 0.2), "20% of time"),
    ("lock-contention", hot("{method 'acquire' of '_thread.lock' objects}", 0.2), "20% of time"),
    ("io-in-a-loop", hot("emit", 0.9, spent("reading and writing", 90, "__GI___libc_write")), "81%"),
    ("io-in-a-loop", hot("{built-in method posix.write}", 0.4, source="cprofile"), "40% of time"),
    ("syscalls-grew", metrics(syscalls=(10, 20)), "syscalls: 10 → 20 (+100.0%)"),
    ("cache-misses", metrics(cache_miss_rate=(0.001, 0.04)), "cache_miss_rate: 4.00% (over 1.00%)"),
    ("cache-misses", metrics(cache_misses=(6, 6), instructions=(1000, 1000)), "6 to 1000 instructions"),
    ("cache-misses-grew", metrics(cache_misses=(100, 150)), "cache_misses: 100 → 150 (+50.0%)"),
    ("branch-misses", metrics(branch_miss_rate=(0.01, 0.09)), "branch_miss_rate: 9.00% (over 5.00%)"),
    ("branch-misses-grew", metrics(branch_misses=(100, 130)), "branch_misses: 100 → 130"),
    ("scalar-arithmetic", metrics(scalar_ops=(90, 90), packed_ops=(10, 10)), "scalar_ops: 90 to 10"),
    ("scalar-arithmetic", metrics(simd_share=(0.9, 0.1)), "simd_share: 10.0% (under 20.0%)"),
    ("repeated-opens", OPENED, "strace: data/gauges.csv: 90% of opens; 4,000 times"),
    ("repeated-opens", CALLED, "cprofile: <built-in method io.open>: 6% of time; 1,000 times"),
    ("repeated-sql", metrics(sql_repeated=(10, 10), sql_statements=(12, 12)), "sql_repeated: 10 to 12 sql_statements"),
    ("blocked-event-loop", metrics(slow_callbacks=(1, 1)), "slow_callbacks: 1 (over 0)"),
    ("loader-starves-training", metrics(dataloader_fraction=(0.9, 0.4)), "dataloader_fraction: 40.0% (over"),
    ("loader-starves-training", metrics(dataloader_wait=(0.35, 0.35)), "dataloader_wait: 35.0% (over 30.0%)"),
    ("single-precision-products", SGEMM, "torch-profiler: 57% of device time (ampere_sgemm_128x64_tn 57%)"),
    ("waiting-for-ranks", metrics(allreduce_fraction=(0.5, 0.5)), "allreduce_fraction: 50.0% (over 30.0%)"),
    (
        "python-loop-over-array",
        slow("smooth", 0.4, hits(10_000), [Use.IN_LOOP, *LOOP]),
        "line-profiler: smooth (own/p.py:9): 40% of time; 10,000 times; indexes by a loop's variable; its",
    ),
    ("python-loop-over-array", LOOPED, "py-spy: smooth (own/p.py:9): 10% of time; indexes"),
    ("text-added-in-a-loop", RENDERED, "20% of time; 9 times; adds to a text in a loop"),
    ("parsed-or-compiled-again", DECODED, "cprofile: 20% of time (raw_decode"),
    ("parsed-or-compiled-again", hot("<built-in method _pickle.loads>", 0.1), "10% of time"),
    (
        "parsed-or-compiled-again",
        spots(*[spot(name, 0.06, source="py-spy", file=f"/opt/lib/python3.12/re/{name}.py") for name in RE]),
        "py-spy: 12% of time",
    ),
    ("memory-kept-without-bound", CACHED, "50% of bytes; 1,000 times; in a function cached without bound"),
    ("memory-kept-without-bound", FILLED, "fills a container of its module"),
    ("many-small-allocations", metrics(allocs=(1e6, 1e6), alloc=(4e7, 4e7)), "allocs: 1.00M to 38.1 MiB alloc"),
    ("threads-take-turns", metrics(gil_share=(0.95, 0.95), main_share=(0.25, 0.25)), "gil_share: "),
    (
        "occupancy-limited-by-registers",
        gpu(registers=64),
        "67% occupancy possible, limited by registers, 70% achieved, SM 40% and memory 50% busy; at most 48 registers",
    ),
    ("occupancy-limited-by-shared-memory", gpu(shared_static=40_000), "33% occupancy possible, limited by"),
    ("occupancy-limited-by-block-size", gpu(threads=32), "50% occupancy possible, limited by blocks"),
    ("occupancy-limited-by-block-size", gpu(threads=1024), "67% occupancy possible, limited by warps"),
    ("uncoalesced-accesses", gpu(uncoalesced=0.21), "21% of the global memory sectors it moves are not needed"),
    ("divergent-warps", metrics(warp_efficiency=(0.9, 0.7)), "warp_efficiency: 70.0% (under 75.0%)"),
    (
        "warps-wait-for-memory",
        gpu(stalls={"long_scoreboard": 4.0, "wait": 6.0}),
        "40% of its warps' time is spent in long_scoreboard, schedulers issue in 20% of cycles",
    ),
    ("warps-wait-for-memory", gpu(stalls={"lg_throttle": 4.0, "wait": 6.0}), "lg_throttle"),
    ("warps-wait-for-shared-memory", gpu(stalls={"mio_throttle": 4.0, "wait": 6.0}), "mio_throttle"),
    ("warps-wait-at-barriers", gpu(stalls={"barrier": 4.0, "wait": 6.0}), "40% of its warps' time is spent in barrier"),
    ("gpu-idles", metrics(gpu_idle=(0.1, 0.4)), "gpu_idle: 40.0% (over 30.0%)"),
    ("gpu-throttled", metrics(gpu_throttled=(0.0, 0.2)), "gpu_throttled: 20.0% (over 10.0%)"),
]
MISS: list[tuple[str, Evidence]] = [
    ("allocation-in-hot-path", hot("dispatch", 0.5, spent(ALLOC, 19, "malloc"))),  # 9.5% of all
    ("allocation-in-hot-path", spots(spot("reallocate_team", 0.9), spot("free_list_walk", 0.1))),
    ("allocation-in-hot-path", hot("malloc", 0.9, unit="bytes")),  # every program has all of them somewhere
    ("allocation-in-hot-path", spots(spot("malloc", 0.9, tree="baseline"), spot("main", 0.9))),  # it was removed
    ("allocation-in-hot-path", hot("work", 0.9, "supposed: allocating and freeing, by the name")),
    ("allocations-grew", metrics(allocs=(100, 104))),
    ("allocations-grew", metrics(allocs=(5, 2))),
    ("copies-in-hot-path", spots(spot("copy_on_write_tree", 0.9), spot("memcpy", 0.09))),
    ("hashing-in-hot-path", spots(spot("hashtag_parse", 0.9), spot("rehash_policy", 0.1))),
    ("lock-contention", spots(spot("block_decode", 0.5), spot("clock_gettime", 0.4))),
    ("io-in-a-loop", spots(spot("read_header", 0.5), spot("writer::encode", 0.4))),
    ("io-in-a-loop", hot("write", 0.5, unit="instructions")),
    ("io-in-a-loop", hot("write", 0.5, file="src/encoder.rs")),  # a method of the project's own
    ("syscalls-grew", metrics(syscalls=(100, 102))),
    ("cache-misses-grew", metrics(cache_misses=(100, 105))),
    ("cache-misses", metrics(cache_miss_rate=(0.009, 0.009), cache_miss_rate_d1=(0.09, 0.09))),
    ("cache-misses", metrics(cache_misses=(4, 4), instructions=(1000, 1000))),
    ("branch-misses-grew", metrics(branch_misses=(100, 105))),
    ("branch-misses", metrics(branch_miss_rate=(0.04, 0.04))),
    ("scalar-arithmetic", metrics(scalar_ops=(30, 30), packed_ops=(10, 10))),
    ("scalar-arithmetic", metrics(scalar_ops=(30, 30))),
    ("scalar-arithmetic", metrics(simd_share=(0.0, 0.2))),  # the candidate's is what stands
    ("repeated-opens", hot("a.csv", 0.9, "measured: opened 99 times", unit="opens", source="strace")),
    ("repeated-opens", hot("a.csv", 0.9, "measured: opened once", unit="opens", source="strace")),
    ("repeated-opens", hot("<built-in method io.open>", 0.09, "measured: 999 calls", source="cprofile")),
    ("repeated-sql", metrics(sql_repeated=(9, 9), sql_statements=(9, 9))),
    ("repeated-sql", metrics(sql_repeated=(10, 10), sql_statements=(20, 20))),
    ("blocked-event-loop", metrics(slow_callbacks=(0, 0), slow_callback_max=(0.04, 0.04))),
    ("loader-starves-training", metrics(dataloader_fraction=(0.9, 0.3))),  # the candidate's is what stands
    ("single-precision-products", hot("ampere_s16816gemm_bf16_128x64_tn", 0.6, unit="device time")),
    ("single-precision-products", hot("ampere_sgemm_128x64_tn", 0.09, unit="device time")),
    ("waiting-for-ranks", metrics(allreduce_fraction=(0.29, 0.29))),
    ("python-loop-over-array", slow("smooth", 0.4, hits(9_999), LOOP)),
    ("python-loop-over-array", slow("smooth", 0.4, hits(10_000), [Use.IN_LOOP, Use.ARRAYS])),
    ("python-loop-over-array", slow("smooth", 0.4, hits(10_000), [Use.ELEMENTS])),  # a list's
    ("python-loop-over-array", slow("smooth", 0.09, hits(10_000), LOOP)),
    ("text-added-in-a-loop", slow("render", 0.09, hits(9), [Use.TEXT])),
    ("parsed-or-compiled-again", hot("raw_decode", 0.9, file="own/json/decoder.py", line=3)),
    ("parsed-or-compiled-again", hot("(anonymous)", 0.9, file="server.js", line=4)),
    ("parsed-or-compiled-again", hot("raw_decode", 0.09, file="/usr/lib/python3.11/json/decoder.py")),
    ("memory-kept-without-bound", slow("parse", 0.5, blocks(999), [Use.UNBOUNDED], unit="bytes", source="tracemalloc")),
    # Total allocations over the whole run may already be freed.
    ("memory-kept-without-bound", slow("parse", 0.5, blocks(9000), [Use.UNBOUNDED], unit="bytes", source="memray")),
    ("many-small-allocations", metrics(allocs=(1e6, 1e6), alloc=(7e7, 7e7))),
    ("many-small-allocations", metrics(allocs=(9e4, 9e4), alloc=(9e5, 9e5))),
    ("threads-take-turns", metrics(gil_share=(0.99, 0.99), main_share=(1.0, 1.0))),  # one thread
    ("threads-take-turns", metrics(gil_share=(0.7, 0.7), main_share=(0.25, 0.25))),
    ("occupancy-limited-by-registers", gpu(registers=48)),  # 83%
    ("occupancy-limited-by-registers", gpu(registers=64, memory_share=0.8)),  # memory is used up
    ("occupancy-limited-by-registers", gpu(registers=64, sm_share=None)),  # nobody looked
    ("occupancy-limited-by-registers", gpu(registers=64, share=0.09)),
    ("occupancy-limited-by-registers", gpu(registers=64, capability="")),  # no model
    # The candidate's is what stands.
    ("occupancy-limited-by-registers", gpus(of_kernel(registers=64), of_kernel(registers=32, tree="candidate"))),
    ("occupancy-limited-by-shared-memory", gpu(shared_static=19_000)),  # 83%
    ("occupancy-limited-by-block-size", gpu(threads=64)),
    ("uncoalesced-accesses", gpu(uncoalesced=0.2)),
    ("uncoalesced-accesses", gpu(uncoalesced=None)),
    ("divergent-warps", metrics(warp_efficiency=(0.7, 0.75))),
    ("divergent-warps", metrics(warp_efficiency=(0.7, 0.7)) | gpu(share=0.09)),
    ("warps-wait-for-memory", gpu(stalls={"long_scoreboard": 3.0, "wait": 7.0})),
    ("warps-wait-for-memory", gpu(stalls={"long_scoreboard": 9.0, "wait": 1.0}, issued=0.8)),
    ("warps-wait-for-shared-memory", gpu(stalls={"short_scoreboard": 2.9, "wait": 7.0})),
    ("warps-wait-at-barriers", gpu(stalls={"barrier": 9.0, "wait": 1.0}, share=0.09)),
    ("gpu-idles", metrics(gpu_idle=(0.9, 0.3))),
    ("gpu-throttled", metrics(gpu_throttled=(0.9, 0.1))),
]


@pytest.mark.parametrize(("rule", "case", "evidence"), FIRE)
def test_the_rule_fires_and_quotes_what_was_found(rule: str, case: Evidence, evidence: str) -> None:
    (found,) = advised(**case)
    assert (found.rule, found.benchmark) == (rule, "b")
    assert evidence in found.evidence
    assert found.advice
    assert found.finding


@pytest.mark.parametrize(("rule", "case"), MISS)
def test_a_near_miss_gives_no_advice(rule: str, case: Evidence) -> None:
    assert [found.rule for found in advised(**case)] == []


def test_every_rule_has_evidence_a_near_miss_and_a_reason() -> None:
    every = {rule.id for rule in rules()}
    assert {rule for rule, _, _ in FIRE} == {rule for rule, _ in MISS} == every
    assert all(rule.reason and rule.conditions for rule in rules())


def test_without_evidence_there_is_no_advice() -> None:
    assert advised() == []
    assert advised(metrics={"time": (1.0, 1.5)}) == []


def test_a_function_that_lost_is_evidence_of_a_gate() -> None:
    known: dict[str, Any] = {"benchmark": "b", "metric": "instructions", "step": "cg", "tool": "callgrind", "unit": "1"}
    known |= {"baseline": 10.0, "candidate": 90.0, "change": 8.0}
    metrics = {"instructions": (100.0, 200.0)}
    (found,) = advised(metrics=metrics, blamed=[Attribution(**known, function="malloc", share=0.8)])
    assert found.rule == "allocation-in-hot-path"
    assert found.evidence == "callgrind: malloc accounts for 80% of the regression of b instructions"
    assert advised(metrics=metrics, blamed=[Attribution(**known, function="malloc", share=0.05)]) == []


def test_a_profile_of_few_samples_is_no_evidence() -> None:
    assert advised([spot("malloc", 0.3)], few_samples=True) == []
    assert len(advised([spot("malloc", 0.3)])) == 1


def test_several_profiles_of_one_benchmark_are_one_recommendation() -> None:
    spots = [spot("malloc", 0.3), spot("malloc", 0.4, step="cg", source="callgrind", unit="instructions")]
    (found,) = advised(spots)
    assert found.evidence == "perf: 30% of time (malloc 30%); callgrind: 40% of instructions (malloc 40%)"


@pytest.mark.parametrize("name", ["cprofile", "line-profiler", "tracemalloc"])
def test_counts_are_read_from_what_adapters_say(name: str) -> None:
    goldens = (Path(__file__).parents[1] / "tools" / "data" / name).glob("*/*/parsed.json")
    causes = [spot["cause"] for path in goldens for spot in json.loads(path.read_text()).get("hotspots", [])]
    assert causes
    assert [cause for cause in causes if not read_count(cause)] == []


@pytest.mark.parametrize("cause", ["", "measured: 62% of its samples are spent", "measured: , calls", "7 hits"])
def test_other_causes_hold_no_count(cause: str) -> None:
    assert read_count(cause) == 0


def advice(gain: float | None, rule: str, text: str = "do so") -> dict[str, Any]:
    return {"rule": rule, "text": text, "gain": gain}


def test_a_tools_own_advice_stands_behind_by_its_gain_and_in_its_words() -> None:
    said = [advice(None, "A"), advice(0.1, "B"), advice(0.3, "C", "wait less"), advice(0.2, "D"), advice(None, "E")]
    found = profiled(of_kernel(registers=64, advice=said)).recommendations
    assert [(item.source, item.rule, item.gain) for item in found] == [
        ("", "occupancy-limited-by-registers", None),
        ("ncu", "C", 0.3),
        ("ncu", "D", 0.2),
        ("ncu", "B", 0.1),
    ]
    assert (found[1].advice, found[1].evidence, found[1].benchmark) == ("wait less", "", "b")


def test_a_kernel_that_takes_no_time_gets_none_of_it_nor_does_what_is_no_longer_so() -> None:
    small = of_kernel(share=0.04, advice=[advice(0.9, "A")])
    before = of_kernel(advice=[advice(0.9, "B")])
    after = of_kernel(tree="candidate", advice=[advice(0.1, "C")])
    assert [item.rule for item in profiled(small).recommendations] == []
    assert [item.rule for item in profiled(before, after).recommendations] == ["C"]
