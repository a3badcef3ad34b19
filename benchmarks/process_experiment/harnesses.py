"""Three real harnesses, each with one benchmark whose calls can be made slower: built, run briefly, and read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.tools.rust import cargo_bench

SOURCES = Path(__file__).with_name("benches")
Samples = tuple[Sequence[float], Sequence[float]]
"""Seconds per iteration and iterations of each sample of one process."""


@dataclass(frozen=True, slots=True)
class Harness:
    """``argv`` of one process without the path of its result file; ``read`` takes what it left in its folder."""

    name: str
    argv: Callable[[Path], Sequence[str]]
    read: Callable[[Path], Samples]
    units: Mapping[str, float]
    """Work of a call, by the name of the size."""


def run(harness: Harness, size: str, slow: tuple[int, float]) -> Samples:
    """Start one process in which every ``slow[0]``-th call does ``slow[1]`` times the work."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        own = {"UNITS": harness.units[size], "EVERY": slow[0], "FACTOR": slow[1], "CRITERION_HOME": folder}
        # Other plugins of this environment only make pytest start slowly.
        own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = 1
        environment = os.environ | {name: str(value) for name, value in own.items()}
        null = subprocess.DEVNULL
        subprocess.run(harness.argv(folder), env=environment, cwd=folder, check=True, stdout=null, stderr=null)
        return harness.read(folder)


def built(folder: Path) -> list[Harness]:
    """Compile the benchmarks with cargo and c++, and return the three harnesses."""
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    bench = ["cargo", "bench", "--no-run", "--message-format=json"]
    said = subprocess.run(bench, cwd=folder, check=True, capture_output=True, text=True).stdout
    messages = (json.loads(line) for line in said.splitlines())
    rust = next(item["executable"] for item in messages if item.get("target", {}).get("kind") == ["bench"])
    google = folder / "google"
    subprocess.run(["c++", "-O2", "-o", google, "work.cpp", "-lbenchmark", "-lpthread"], cwd=folder, check=True)
    criterion = [rust, "--bench", "--noplot", "--warm-up-time=0.1", "--measurement-time=0.1", "--nresamples=1001"]
    short = ["--benchmark_min_time=0.001", "--benchmark_repetitions=20", "--benchmark_out_format=json"]
    pytest = [sys.executable, "-m", "pytest", str(folder / "test_work.py"), "-q", "-p", "pytest_benchmark.plugin"]
    brief = ["--benchmark-max-time=0.1", "--benchmark-min-time=0.0005", "--benchmark-min-rounds=5"]
    exact = ["--benchmark-calibration-precision=100"]
    return [
        Harness("criterion", lambda _: criterion, _of_criterion, {"short": 1.7e4, "long": 1.3e6}),
        Harness(
            "pytest-benchmark",
            lambda out: [*pytest, *brief, *exact, f"--benchmark-json={out / 'out'}"],
            _of_pytest,
            {"short": 900, "long": 9e4},
        ),
        Harness(
            "Google Benchmark",
            lambda out: [str(google), *short, f"--benchmark_out={out / 'out'}"],
            _of_google,
            {"short": 1.7e4, "long": 2e6},
        ),
    ]


def _of_criterion(folder: Path) -> Samples:
    found = cargo_bench.read_criterion(folder / "work" / "new")
    return found.seconds, found.iterations


def _json(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "out").read_text(encoding="utf-8"))["benchmarks"]
    return found


def _of_pytest(folder: Path) -> Samples:
    stats = _json(folder)[0]["stats"]
    return stats["data"], [stats["iterations"]] * len(stats["data"])


def _of_google(folder: Path) -> Samples:
    runs = [item for item in _json(folder) if item["run_type"] == "iteration"]
    return [item["real_time"] * 1e-9 for item in runs], [item["iterations"] for item in runs]
