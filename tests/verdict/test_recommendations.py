"""Each rule on evidence that must fire it and on a near miss that must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from perfflow.result import Attribution, HotspotResult, Recommendation
from perfflow.samples.criteria import Criteria
from perfflow.verdict.findings import Findings
from perfflow.verdict.judge import judge
from perfflow.verdict.recommendations import recommendations, rules
from tests.verdict.records import ended, pairs, planned, record


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
    warnings: Sequence[str] = (),
) -> list[Recommendation]:
    """What is advised of hotspots, and of metrics with a value on the baseline and one on the candidate."""
    events = [
        event
        for metric, (before, after) in (metrics or {}).items()
        for event in pairs("b", [before] * 20, [after] * 20, metric)
    ]
    profiled = ended("cpu", warnings=list(warnings))
    made = record(*events, ended("b"), profiled, steps=[planned("b"), planned("cpu", role="profile", benchmark="b")])
    result = judge(made, Criteria())
    return list(recommendations(Findings(made, Criteria(), result.verdict, result.benchmarks, [], [], blamed, spots)))


ALLOC, COPY, HASH = "allocating and freeing", "copying memory", "hashing"
Evidence = dict[str, Any]
FIRE: list[tuple[str, Evidence, str]] = [
    (
        "allocation-in-hot-path",
        {"spots": [spot("dispatch", 0.5, spent(ALLOC, 62, "malloc, _int_free"), file="src/q.rs", line=8)]},
        "perf: 31% of time (dispatch (src/q.rs:8) 50%, 62% of it allocating and freeing, by malloc, _int_free)",
    ),
    (
        "allocation-in-hot-path",
        {"spots": [spot(name, 0.06, unit="instructions", source="callgrind") for name in ("malloc", "_int_free")]},
        "callgrind: 12% of instructions (_int_free 6%; malloc 6%)",
    ),
    ("allocation-in-hot-path", {"spots": [spot("operator new(unsigned long)", 0.1)]}, "operator new"),
    ("allocation-in-hot-path", {"spots": [spot("runtime.mallocgc", 0.1)]}, "runtime.mallocgc 10%"),
    ("allocation-in-hot-path", {"spots": [spot("__rust_alloc", 0.2)]}, "20% of time"),
    ("allocation-in-hot-path", {"spots": [spot("malloc (vgpreload_dhat.so)", 0.2)]}, "20% of time"),
    ("allocations-grew", {"metrics": {"allocs": (2, 5)}}, "allocs: 2 → 5 (+150.0%)"),
    ("allocations-grew", {"metrics": {"alloc": (0, 64)}}, "alloc: 0 B → 64.0 B"),
    ("copies-in-hot-path", {"spots": [spot("relay", 0.2, spent(COPY, 50, "__memcpy_avx"))]}, "perf: 10% of time"),
    ("copies-in-hot-path", {"spots": [spot("__memmove_avx_unaligned_erms", 0.3)]}, "30% of time"),
    ("copies-in-hot-path", {"spots": [spot("<alloc::vec::Vec<u8> as core::clone::Clone>::clone", 0.3)]}, "30%"),
    (
        "copies-in-hot-path",
        {"spots": [spot("deepcopy", 0.3, source="cprofile", file="/opt/lib/python3.11/copy.py")]},
        "cprofile: 30% of time",
    ),
    ("hashing-in-hot-path", {"spots": [spot("count", 1.0, spent(HASH, 35, "make_hash"))]}, "perf: 35% of time"),
    ("hashing-in-hot-path", {"spots": [spot("<core::hash::sip::Hasher<S> as core::hash::Hasher>::write", 0.2)]}, "20%"),
    ("hashing-in-hot-path", {"spots": [spot("runtime.memhash64", 0.2)]}, "20%"),
    ("lock-contention", {"spots": [spot("pthread_mutex_lock@@GLIBC_2.2.5", 0.2)]}, "20% of time"),
    ("lock-contention", {"spots": [spot("sync.(*Mutex).lockSlow", 0.2)]}, "20% of time"),
    ("lock-contention", {"spots": [spot("{method 'acquire' of '_thread.lock' objects}", 0.2)]}, "20% of time"),
    ("io-in-a-loop", {"spots": [spot("emit", 0.9, spent("reading and writing", 90, "__GI___libc_write"))]}, "81%"),
    ("io-in-a-loop", {"spots": [spot("{built-in method posix.write}", 0.4, source="cprofile")]}, "40% of time"),
    ("syscalls-grew", {"metrics": {"syscalls": (10, 20)}}, "syscalls: 10 → 20 (+100.0%)"),
    ("cache-misses", {"metrics": {"cache_miss_rate": (0.001, 0.04)}}, "cache_miss_rate: 4.00% (over 1.00%)"),
    ("cache-misses", {"metrics": {"cache_misses": (6, 6), "instructions": (1000, 1000)}}, "6 to 1000 instructions"),
    ("cache-misses-grew", {"metrics": {"cache_misses": (100, 150)}}, "cache_misses: 100 → 150 (+50.0%)"),
    ("branch-misses", {"metrics": {"branch_miss_rate": (0.01, 0.09)}}, "branch_miss_rate: 9.00% (over 5.00%)"),
    ("branch-misses-grew", {"metrics": {"branch_misses": (100, 130)}}, "branch_misses: 100 → 130"),
    ("scalar-arithmetic", {"metrics": {"scalar_ops": (90, 90), "packed_ops": (10, 10)}}, "scalar_ops: 90 to 10"),
]
MISS: list[tuple[str, Evidence]] = [
    ("allocation-in-hot-path", {"spots": [spot("dispatch", 0.5, spent(ALLOC, 19, "malloc"))]}),  # 9.5% of all
    ("allocation-in-hot-path", {"spots": [spot("reallocate_team", 0.9), spot("free_list_walk", 0.1)]}),
    (
        "allocation-in-hot-path",
        {"spots": [spot("malloc", 0.9, unit="bytes")]},
    ),  # every program has all of them somewhere
    ("allocation-in-hot-path", {"spots": [spot("malloc", 0.9, tree="baseline"), spot("main", 0.9)]}),  # it was removed
    ("allocation-in-hot-path", {"spots": [spot("work", 0.9, "supposed: allocating and freeing, by the name")]}),
    ("allocations-grew", {"metrics": {"allocs": (100, 104)}}),
    ("allocations-grew", {"metrics": {"allocs": (5, 2)}}),
    ("copies-in-hot-path", {"spots": [spot("copy_on_write_tree", 0.9), spot("memcpy", 0.09)]}),
    ("hashing-in-hot-path", {"spots": [spot("hashtag_parse", 0.9), spot("rehash_policy", 0.1)]}),
    ("lock-contention", {"spots": [spot("block_decode", 0.5), spot("clock_gettime", 0.4)]}),
    ("io-in-a-loop", {"spots": [spot("read_header", 0.5), spot("writer::encode", 0.4)]}),
    ("io-in-a-loop", {"spots": [spot("write", 0.5, unit="instructions")]}),
    ("io-in-a-loop", {"spots": [spot("write", 0.5, file="src/encoder.rs")]}),  # a method of the project's own
    ("syscalls-grew", {"metrics": {"syscalls": (100, 102)}}),
    ("cache-misses-grew", {"metrics": {"cache_misses": (100, 105)}}),
    ("cache-misses", {"metrics": {"cache_miss_rate": (0.009, 0.009), "cache_miss_rate_d1": (0.09, 0.09)}}),
    ("cache-misses", {"metrics": {"cache_misses": (4, 4), "instructions": (1000, 1000)}}),
    ("branch-misses-grew", {"metrics": {"branch_misses": (100, 105)}}),
    ("branch-misses", {"metrics": {"branch_miss_rate": (0.04, 0.04)}}),
    ("scalar-arithmetic", {"metrics": {"scalar_ops": (30, 30), "packed_ops": (10, 10)}}),
    ("scalar-arithmetic", {"metrics": {"scalar_ops": (30, 30)}}),
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
    assert found.evidence == "callgrind: malloc holds 80% of what b lost in instructions"
    assert advised(metrics=metrics, blamed=[Attribution(**known, function="malloc", share=0.05)]) == []


def test_a_profile_of_few_samples_is_no_evidence() -> None:
    few = "baseline: 18 samples are few: give the program more work, or a higher `frequency`, for shares to mean much"
    assert advised([spot("malloc", 0.3)], warnings=[few]) == []
    assert len(advised([spot("malloc", 0.3)], warnings=["baseline: sampled by the timer cpu-clock"])) == 1


def test_several_profiles_of_one_benchmark_are_one_recommendation() -> None:
    spots = [spot("malloc", 0.3), spot("malloc", 0.4, step="cg", source="callgrind", unit="instructions")]
    (found,) = advised(spots)
    assert found.evidence == "perf: 30% of time (malloc 30%); callgrind: 40% of instructions (malloc 40%)"
