"""The peak among the tries of ``stream``, and warnings about it, on lines that the test wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.linux import stream
from tests.tools.harness import USAGE, call_of

MACHINE = {"kind": "machine", "cores": 4, "allowed": 4, "quota": None, "threads": 4}
MACHINE |= {"cache": 32 << 20, "available": 16 << 30, "hypervisor": False}
BUILT = {
    "kind": "built",
    "compiler": "gcc 12.2.0",
    "width": 32,
    "set": "AVX2",
    "fused": True,
    "chains": 12,
    "unused": "",
}
Lines = list[dict[str, Any]]


def moved(kernel: str, seconds: float, round: int = 1, array: int = 128 << 20, bytes: int = 3 << 30) -> dict[str, Any]:
    return {"kind": "bandwidth", "kernel": kernel, "array": array, "round": round, "bytes": bytes, "seconds": seconds}


def calculated(precision: str, seconds: float, round: int = 1, flops: float = 1e9) -> dict[str, Any]:
    return {"kind": "flops", "precision": precision, "round": round, "flops": flops, "seconds": seconds}


def parsed(folder: Path, tries: Sequence[dict[str, Any]], precisions: Sequence[str] = (), **machine: Any) -> Parsed:
    end = {"kind": "end", "tries": len(tries)}
    lines = [MACHINE | machine, BUILT | {key: machine[key] for key in BUILT if key in machine}, *tries, end]
    (folder / "tries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return stream.parse(call_of("stream", folder, precisions=list(precisions)), USAGE)


def peaks(found: Parsed) -> dict[str, float]:
    return {f"{peak.metric} {peak.precision}".strip(): peak.value for peak in found.peaks}


SECONDS = st.floats(1e-4, 10)
KERNELS, ARRAYS = st.sampled_from(get_args(stream.Kernel)), st.sampled_from([128 << 20, 256 << 20])
MOVED = st.builds(moved, KERNELS, SECONDS, st.integers(0, 9), ARRAYS, st.integers(1 << 20, 1 << 34))
CALCULATED = st.builds(
    calculated, st.sampled_from(get_args(stream.Precision)), SECONDS, st.integers(0, 9), st.integers(10**6, 10**12)
)


def _kinds(line: dict[str, Any]) -> tuple[Any, ...]:
    return (line["kind"], line.get("kernel"), line.get("precision"), line.get("array"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(MOVED, min_size=1, max_size=20), st.lists(CALCULATED, max_size=20), st.randoms())
def test_the_peak_is_the_best_try_and_never_more(tmp_path: Path, moves: Lines, sums: Lines, random: Any) -> None:
    # Everything that was tried was also tried after the warm-up.
    tries = [*moves, *sums]
    tries += [{**line, "round": 1} for line in tries]
    random.shuffle(tries)
    rates: dict[str, list[float]] = {}
    for line in (line for line in tries if line["round"]):
        if line["kind"] == "bandwidth":
            rates.setdefault("bandwidth", []).append(line["bytes"] / line["seconds"])
        else:
            rates.setdefault(f"flops {line['precision']}", []).append(line["flops"] / line["seconds"])
    assert peaks(parsed(tmp_path, tries)) == {name: max(values) for name, values in rates.items()}


def test_the_first_round_warms_up(tmp_path: Path) -> None:
    found = parsed(tmp_path, [moved("load", 0.01, round=0), moved("load", 0.02), moved("load", 0.021, round=2)])
    assert peaks(found) == {"bandwidth": (3 << 30) / 0.02}
    with pytest.raises(ToolOutputError, match="tried only once"):
        parsed(tmp_path, [moved("load", 0.01, round=0)])


def test_it_says_how_the_peak_was_found(tmp_path: Path) -> None:
    tries = [moved("triad", 0.02), moved("load", 0.01), moved("load", 0.0101), calculated("f32", 0.01)]
    bandwidth, flops = parsed(tmp_path, tries).peaks
    assert bandwidth.how == (
        "load (triad: 150 GiB/s), 3 arrays of 128 MiB (4 × the last-level cache of 32 MiB), 4 threads, best of 2, "
        "gcc 12.2.0; cache lines that are read only to be overwritten are not counted, as in STREAM"
    )
    assert flops.how == (
        "12 chains of fused multiply-adds per thread in vectors of 32 B (AVX2), 4 threads, best of 1, gcc 12.2.0"
    )
    unfused = parsed(tmp_path, tries, fused=False, set="", threads=1, cores=1).peaks[1].how
    assert unfused.startswith("12 chains of multiplications and additions per thread in vectors of 32 B, 1 thread,")


QUIET = [moved("triad", 0.01), moved("triad", 0.0102), calculated("f64", 0.01)]


def _doubtful() -> Iterator[Any]:
    yield pytest.param({}, QUIET, (), "", id="nothing")
    yield pytest.param(
        {"threads": 2, "allowed": 2}, QUIET, (), "2 of 4 cores were used, and the peaks are only of these", id="few"
    )
    yield pytest.param({"threads": 2, "quota": 1.5}, QUIET, (), "2 of 4 cores were used (the quota is 1.5)", id="quota")
    yield pytest.param({"quota": 3.5}, QUIET, (), "the quota of 3.5 cores throttles 4 threads", id="part of a core")
    yield pytest.param({"hypervisor": True}, QUIET, (), "this is a virtual machine", id="hypervisor")
    yield pytest.param({"cache": 0}, QUIET, (), "the size of the last-level cache is unknown", id="unknown cache")
    yield pytest.param(
        {"cache": 256 << 20}, QUIET, (), "arrays of 128 MiB are 0.5 × the last-level cache of 256 MiB", id="small"
    )
    yield pytest.param({"unused": "SVE"}, QUIET, (), "SVE, which may have wider vectors, was not used", id="wider")
    yield pytest.param({}, QUIET, ("f64", "f16"), "has no arithmetic in f16", id="no f16")
    busy = [*QUIET, moved("triad", 0.02), moved("triad", 0.02)]
    yield pytest.param({}, busy, (), "bandwidth: half of the tries were 26% or more below the best", id="busy")
    busy = [*QUIET, calculated("f64", 0.02), calculated("f64", 0.03)]
    yield pytest.param({}, busy, (), "flops f64: half of the tries were 50% or more below the best", id="busy cores")
    cached = [*QUIET, moved("triad", 0.02, array=256 << 20), moved("triad", 0.02, array=256 << 20)]
    yield pytest.param({}, cached, (), "arrays of 256 MiB were 50% slower than those of 128 MiB", id="cached")


@pytest.mark.parametrize(("machine", "tries", "precisions", "wanted"), list(_doubtful()))
def test_what_speaks_against_a_peak_is_said(
    machine: dict[str, Any], tries: Lines, precisions: tuple[str, ...], wanted: str, tmp_path: Path
) -> None:
    warnings = parsed(tmp_path, tries, precisions, **machine).warnings
    assert [wanted in warning for warning in warnings] == ([True] if wanted else [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"kernel": "swap"}, "kernel is 'swap', which is not valid"),
        ({"kernel": None}, "kernel is null, which is not valid"),
        ({"seconds": 0}, "seconds is 0, which is not valid"),
        ({"bytes": -1}, "bytes is -1, which is not valid"),
        ({"kind": "latency"}, "has a line that is not a try"),
        ({"kind": ["flops"]}, "has a line that is not a try"),
        ({"round": 0.5}, "round is 0.5, not a whole number"),
        ({"array": 0}, "array is 0"),
    ],
    ids=str,
)
def test_a_line_that_cannot_be_is_an_error(line: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        parsed(tmp_path, [*QUIET, moved("load", 0.01) | line])


@pytest.mark.parametrize(
    ("size", "reason"),
    [(5, "write a size with its unit"), ("5 apples", "unknown unit"), ("3s", "unit of time"), ("0B", "greater than")],
)
def test_a_size_has_a_unit(size: object, reason: str) -> None:
    assert stream.StreamOptions.model_validate({"size": "1.5KiB"}).size == 1536
    with pytest.raises(ValidationError, match=reason):
        stream.StreamOptions.model_validate({"size": size})


def test_tries_that_are_missing_are_missed(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="no try of the bandwidth"):
        parsed(tmp_path, [calculated("f32", 0.01)])
    parsed(tmp_path, QUIET)
    lines = (tmp_path / "tries.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "tries.jsonl").write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(ToolOutputError, match="has 2 tries instead of 3"):
        stream.parse(call_of("stream", tmp_path), USAGE)
    (tmp_path / "tries.jsonl").write_text("".join(lines[:-2]))
    with pytest.raises(ToolOutputError, match=r"it was killed before its last try.*smaller `size`"):
        stream.parse(call_of("stream", tmp_path), USAGE)
