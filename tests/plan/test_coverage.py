"""Targets that a plan cannot measure, and the lints about methodology."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.drafts import opened, said

STEP = "stages: {baseline: [{id: bench, uses: command, with: {command: x}%s}]}\n"


def texts(folder: Path, targets: str, more: str = "", top: str = "") -> list[str]:
    found = opened(folder, f"targets: {{{targets}}}\n{top}{STEP % more}")
    return [text.partition(" ")[2] for text in said(found)]


@pytest.mark.parametrize(
    ("targets", "more"),
    [
        ("bench: {time: <1s}", ""),
        ("bench: {p95: <1s}", ""),
        ("bench: {rss max: <1GiB}", ""),
        ("b*: {cpu: <1s}", ""),
        ("'**': {cpu: <1s}", ""),
        ("bench: {time: <1s/op}", ", ops: 10"),
        ("bench: {throughput: ≥1GB/s, rate: ≥1/s, flops: ≥1 GFLOP/s}", ", work: {bytes: 1, elements: 1, flops: 1}"),
        ("bench: {cpu: <1s}", ", matrix: {k: [1, 2]}"),
        ("'bench[k=2]': {cpu: <1s}", ", matrix: {k: [1, 2]}"),
        ("'core/x': {cpu: <1s}", ", benchmark: 'core/*'"),
        ("'core/*/y': {cpu: <1s}", ", benchmark: 'core/*'"),
        ("'core/x.py::y/z': {cpu: <1s}", ", benchmark: 'core/*'"),
        ("bench: {time: ≤nlogn}", ", matrix: {k: [1, 2, 3]}, scaling: k"),
        ("'b*': {time growth: <quadratic}", ", matrix: {k: [1, 2, 3], l: [a, b]}, scaling: k"),
        ("'bench[l=a]': {time: ≤cubic}", ", matrix: {k: [1, 2, 3], l: [a, b]}, scaling: k"),
        ("'core/*/y': {time: ≤cubic}", ", matrix: {k: [1, 2, 3]}, scaling: k, benchmark: 'core/${{ matrix.k }}/y'"),
        ("other: {time: <1s, zzz: 1}", ", allow: {target: it comes later}"),
    ],
)
def test_what_can_be_measured_is_not_complained_of(targets: str, more: str, tmp_path: Path) -> None:
    assert [text for text in texts(tmp_path, targets, more) if "zzz" not in text] == []


@pytest.mark.parametrize(
    ("targets", "more", "message"),
    [
        ("bnch: {time: <1s}", "", "no step measures `bnch`"),
        ("BENCH: {time: <1s}", "", "no step measures `BENCH`"),
        ("bench/*: {time: <1s}", "", "no step measures `bench/*`"),
        ("'bench[k=3]': {time: <1s}", ", matrix: {k: [1, 2]}", "no step measures `bench[k=3]`"),
        ("'x/*': {time: <1s}", ", benchmark: 'core/*'", "no step measures `x/*`"),
        ("bench: {heap_peak: <1MB}", "", "no step measures `heap_peak` of `bench`"),
        ("bench: {throughput: ≥1MB/s}", "", "no step measures `throughput` of `bench`"),
        ("bench: {time: <1s/op}", "", "`<1s/op` is per operation, but no step has `ops`"),
        ("bench: {throughput: ≥70% of peak}", ", work: {bytes: 1}", "no peak is known for `throughput`"),
        (
            "bench: {time: ≤linear}",
            "",
            "a target on growth needs `scaling`, the matrix key over which growth is fitted",
        ),
        (
            "'bench[k=2]': {time: ≤linear}",
            ", matrix: {k: [1, 2, 3]}, scaling: k",
            "`bench[k=2]` is a single size, but growth is fitted over all sizes",
        ),
    ],
)
def test_what_nothing_can_measure_is_an_error(targets: str, more: str, message: str, tmp_path: Path) -> None:
    assert texts(tmp_path, targets, more) == [message]


def test_a_known_peak_makes_a_share_of_it_a_target(tmp_path: Path) -> None:
    targets = "bench: {throughput: ≥70% of peak}"
    assert texts(tmp_path, targets, ", work: {bytes: 1}", "peaks: {throughput: 4 GB/s}\n") == []
    wrong = texts(tmp_path, targets, ", work: {bytes: 1}", "peaks: {throughput: 4 s}\n")
    assert wrong == ["'s' is a unit of time, but a throughput is needed"]


KERNELS = "{id: kernels, uses: ncu, with: {report: a.csv}}"
BENCH = "{id: bench, uses: command, with: {command: x}, work: {bytes: 1}}"
ROOF = "{id: roof, uses: stream}"


@pytest.mark.parametrize(
    ("targets", "steps", "said_of_it"),
    [
        ("'gemm': {bandwidth: ≥70% of peak}", [KERNELS], []),
        ("'gemm': {flops: ≥70% of peak}", [KERNELS], []),
        ("'gemm': {occupancy: ≥70% of peak}", [KERNELS], ["no peak is known for `occupancy`"]),
        ("bench: {throughput: ≥70% of peak}", [BENCH, ROOF], []),
        ("bench: {throughput: ≥70% of peak}", [BENCH, KERNELS], ["no peak is known for `throughput`"]),
    ],
)
def test_a_gpu_has_peaks_of_its_own(targets: str, steps: list[str], said_of_it: list[str], tmp_path: Path) -> None:
    found = opened(tmp_path, f"targets: {{{targets}}}\nstages: {{baseline: [{', '.join(steps)}]}}\n")
    assert [text.partition(" ")[2] for text in said(found)] == said_of_it


def test_the_peak_has_the_precision_of_the_work(tmp_path: Path) -> None:
    targets, work = "bench: {flops: ≥70% of peak}", ", work: {flops: 1, precision: f32}"
    assert texts(tmp_path, targets, work, "peaks: {flops f32: 4 GFLOP/s}\n") == []
    assert texts(tmp_path, targets, work, "peaks: {flops: 4 GFLOP/s}\n") == []
    assert texts(tmp_path, targets, work, "peaks: {flops f64: 4 GFLOP/s}\n") == ["no peak is known for `flops`"]
    wrong = texts(tmp_path, targets, work, "peaks: {bandwidth f32: 4 GB/s}\n")
    assert wrong == ["`bandwidth` has no precision"]
    wrong = texts(tmp_path, targets, work, "peaks: {flops f32: 0 FLOP/s}\n")
    assert wrong == ["a peak must be above 0, not 0 FLOP/s"]


def test_a_step_that_names_its_own_benchmarks_may_measure_any(tmp_path: Path) -> None:
    text = (
        "targets: {any/thing: {latency: <1s}, bench: {rss: <1GB}}\nstages:\n  baseline:\n"
        "    - {id: own, run: x, parse: {csv: {benchmark: b, latency: l}, units: {latency: ms}}}\n"
        "    - {id: not-own, run: x, parse: {regex: 'benchmark (?P<t>.)', units: {t: ms}}}\n"
    )
    assert [line.partition(" ")[2] for line in said(opened(tmp_path, text))] == ["no step measures `bench`"]


def test_a_target_on_time_needs_no_memory_metric(tmp_path: Path) -> None:
    run = "parse: {json: {time: t}, units: {time: ms}}"
    text = f"targets: {{a: {{time: <1s}}}}\nstages: {{baseline: [{{id: a, run: x, {run}%s}}]}}\n"
    assert said(opened(tmp_path, text % "")) == []
    refused = said(opened(tmp_path, text % ", allow: {no-memory-metric: there is none}"))
    assert [line.partition(" ")[2] for line in refused] == ["unknown rule `no-memory-metric` under `allow`"]


RULED_OUT = "algorithm: a, data-structure: b, io: c, memory: d, concurrency: e, vectorization: f"
OPTIMIZE = """\
stages:
  baseline: [{id: m, uses: command, with: {command: x}}]
  profile: [{id: p, uses: perf, benchmark: m}]
  optimize:
%s
  verify: [{id: v, run: x}]
"""


@pytest.mark.parametrize(
    ("optimize", "messages"),
    [
        ("    - {id: a, technique: memory, ref: x}", []),
        ("    - {id: a, technique: configuration, env: {A: 1}}", []),
        ("    - {id: a, technique: magic, ref: x}", ["unknown technique 'magic'"]),
        ("    - {id: a, ref: x}", ["the candidate `a` has no `technique`"]),
        ("    - {id: a, technique: memory}", ["step `a` does nothing"]),
        ("    - {id: a, technique: compute, ref: x}", ["`compute` comes before cheaper techniques"]),
        ("    - {id: a, technique: compute, ref: x, allow: {compute-first: it is}}", []),
        (f"    ruled-out: {{{RULED_OUT}}}\n    steps: [{{id: a, technique: compute, ref: x}}]", []),
        ("    ruled-out: {magic: a}\n    steps: []", ["unknown technique `magic`"]),
        (
            """\
    - {id: a, technique: memory, ref: x}
    - {id: b, technique: configuration, env: {A: 1}}
    - {id: c, technique: io, ref: x}
    - {id: d, technique: memory, ref: x}""",
            ["`c` (io) comes after `a` (memory), a costlier technique"],
        ),
        (
            """\
    - {id: a, technique: memory, ref: x}
    - {id: c, technique: io, ref: x, allow: {hierarchy-order: the profile says so}}""",
            [],
        ),
        ("    - {id: a, technique: io, ref: x}\n    - {id: b, technique: memory, ref: x}", []),
    ],
)
def test_the_optimization_hierarchy_is_kept(optimize: str, messages: list[str], tmp_path: Path) -> None:
    found = said(opened(tmp_path, OPTIMIZE % optimize))
    assert [text.partition(" ")[2] for text in found] == messages


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("  baseline: [{id: m, uses: command, with: {command: x}}]\n", "the optimize stage needs a baseline stage"),
        ("  profile: [{id: p, uses: perf, benchmark: m}]\n", "the optimize stage needs a profile stage"),
        ("  verify: [{id: v, run: x}]\n", "the optimize stage needs a correctness step"),
    ],
)
def test_a_change_needs_a_baseline_a_profile_and_a_check(left_out: str, message: str, tmp_path: Path) -> None:
    text = (OPTIMIZE % "    - {id: a, technique: memory, ref: x}").replace(left_out, "")
    assert [found.partition(" ")[2] for found in said(opened(tmp_path, text)) if "optimize" in found] == [message]
    lint = message.replace("the optimize stage needs a ", "optimize-without-").split(" ")[0]
    allowed = text.replace("ref: x}", f"ref: x, allow: {{{lint}: there is a reason}}}}")
    assert [found for found in said(opened(tmp_path, allowed)) if "optimize" in found] == []


def test_a_comparison_is_no_correctness_step(tmp_path: Path) -> None:
    text = (OPTIMIZE % "    - {id: a, technique: memory, ref: x}").replace("run: x", "compare: baseline")
    assert [found.partition(" ")[2] for found in said(opened(tmp_path, text))] == [
        "the optimize stage needs a correctness step"
    ]


def test_a_target_is_not_told_to_be_called_as_it_is(tmp_path: Path) -> None:
    suite = "stages: {baseline: [{id: count, uses: ncu, with: {command: x}}]}\n"
    found = opened(tmp_path, f"targets: {{count: {{cpu: <1s}}}}\n{suite}").problems
    hints = {item.message: item.hint for item in found}

    assert hints["no step measures `count`"] == "add a step that measures it"
