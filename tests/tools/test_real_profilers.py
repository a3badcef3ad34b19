"""Profilers on a Rust program with only inlined functions, and their messages without permission."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from tests.tools.harness import parsed_of, run, values_of


def test_perf_finds_what_rust_inlined(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("perf", tmp_path, built["tasks"], "1000000", frequency=4999))
    first = parsed.hotspots[0]
    assert first.location.startswith("tasks::table::words")
    assert (Path(first.file).name, first.line) == ("tasks.rs", 29)
    below = {spot.location.partition("::{{")[0]: spot for spot in parsed.hotspots}
    assert below["tasks::queue::Queue::submit"].cause.startswith("measured: ")
    assert "allocating" in below["tasks::queue::Queue::submit"].cause
    for spot in parsed.hotspots:
        assert spot.self_share is not None
        assert spot.inclusive_share is not None
        assert spot.self_share <= spot.share + 1e-9 <= spot.inclusive_share + 2e-9


def test_perf_goes_on_without_inlined_callers(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("perf", tmp_path, built["tasks"], "300000", inline_limit=0))
    assert parsed.hotspots[0].location == "tasks::main"
    assert any("inline-limit" in warning for warning in parsed.warnings)


def test_heaptrack_counts_as_dhat_does(built: Mapping[str, str], tmp_path: Path) -> None:
    seen = {
        rounds: values_of(parsed_of(run("heaptrack", tmp_path / rounds, built["tasks"], rounds)))
        for rounds in ("1000", "3000")
    }
    assert seen["3000"]["allocs"] - seen["1000"]["allocs"] == 2000
    assert seen["3000"]["temporary_allocs"] - seen["1000"]["temporary_allocs"] == 2000
    assert seen["3000"]["heap_peak"] == seen["1000"]["heap_peak"]


def test_heaptrack_names_who_asks(built: Mapping[str, str], tmp_path: Path) -> None:
    first = parsed_of(run("heaptrack", tmp_path, built["tasks"], "1000")).hotspots[0]
    assert (first.location, first.line) == ("tasks::queue::Queue::submit", 18)
    assert first.cause == "measured: 1,000 allocations, 1,000 of them temporary"


def test_heaptrack_refuses_what_it_would_wait_for(built: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="statically linked"):
        run("heaptrack", tmp_path, built["tiny"])


@pytest.mark.skipif(not shutil.which("flamegraph"), reason="cargo install flamegraph")
def test_flamegraph(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("cargo-flamegraph", tmp_path, built["tasks"], "1000000"))
    assert parsed.hotspots[0].location.startswith("tasks::table::words")
    assert [profile.kind for profile in parsed.profiles] == ["svg", "folded"]
