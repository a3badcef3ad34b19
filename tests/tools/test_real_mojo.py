"""``mojo-bench`` with a real compiler (700 MB): the one in PERFFLOW_MOJO, or the one on PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from tests.cli.shell import perfflow
from tests.tools.harness import PROGRAMS, parsed_of, run
from tests.tools.mojo_sources import OLD

MOJO = os.environ.get("PERFFLOW_MOJO") or shutil.which("mojo") or ""
PATH = f"{Path(MOJO).parent}:{os.environ['PATH']}"
SUMS, REPORTS = PROGRAMS / "mojo_sums.mojo", PROGRAMS / "mojo_reports.mojo"
RATES = ("bandwidth", "flops", "rate")

pytestmark = pytest.mark.skipif(
    not MOJO, reason="set PERFFLOW_MOJO to a mojo compiler (pip install mojo); captured output stands in"
)


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PATH)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the path of each program, built once, by the name of its source."""
    folder = tmp_path_factory.mktemp("mojo")
    for source in (SUMS, REPORTS):
        argv = [MOJO, "build", "-O3", "-o", str(folder / source.stem), str(source)]
        subprocess.run(argv, check=True, timeout=900, env={**os.environ, "PATH": PATH})
    return {source.stem: str(folder / source.stem) for source in (SUMS, REPORTS)}


def test_a_source_is_built_and_measured(tmp_path: Path) -> None:
    parsed = parsed_of(run("mojo-bench", tmp_path / "out", file=str(SUMS), repetitions=3))
    found = {(reading.benchmark, reading.metric): reading for reading in parsed.readings}
    assert found.keys() == {(name, metric) for name in ("sum/scalar", "sum/simd") for metric in ("time", *RATES)}
    assert not parsed.warnings
    for name in ("sum/scalar", "sum/simd"):
        # 4096 numbers of 4 B, which the program says: one figure tells the others, in decimal units.
        assert found[name, "rate"].value * found[name, "time"].value == pytest.approx(4096, rel=1e-3)
        assert found[name, "bandwidth"].value == pytest.approx(4 * found[name, "rate"].value, rel=1e-3)
        assert found[name, "flops"].value == pytest.approx(found[name, "rate"].value, rel=1e-3)
        assert found[name, "time"].inner["n"] == 3


def test_reports_and_a_single_one(tmp_path: Path, built: Mapping[str, str]) -> None:
    program = built[REPORTS.stem]
    both = parsed_of(run("mojo-bench", tmp_path / "both", program))
    assert [reading.benchmark for reading in both.readings] == ["scale", "scale, all batches"]
    alone = parsed_of(run("mojo-bench", tmp_path / "alone", program, args=["once"]))
    assert [reading.benchmark for reading in alone.readings] == [""]


@pytest.mark.parametrize("case", OLD)
def test_an_older_dialect_is_refused_with_what_helps(case: str, tmp_path: Path) -> None:
    source = tmp_path / "old.mojo"
    source.write_text(OLD[case][0])
    ran = run("mojo-bench", tmp_path / "out", file=str(source))
    assert ran.status
    with pytest.raises(ToolOutputError) as caught:
        ran.parse()
    assert OLD[case][1] in str(caught.value)


def test_variants_of_one_program_each_in_a_process_of_its_own(tmp_path: Path, built: Mapping[str, str]) -> None:
    step: dict[str, Any] = {"id": "sums", "uses": "mojo-bench"}
    step |= {"with": {"command": built[SUMS.stem], "list-with": "--list", "only-with": "--only"}}
    step |= {"variants": {"baseline": "*/scalar", "candidate": "*/simd"}, "benchmark": "*", "runs": 3}
    done, result = _run(tmp_path, [step])
    # Three pairs are too few for a result.
    assert done.returncode in {0, 4}, done.stderr
    rows = [row for row in result["benchmarks"] if row["metric"] == "time"]
    assert [(row["name"], row["pairs"]) for row in rows] == [("sum", 3)]
    assert not any("one process" in warning for row in result["steps"] for warning in row["warnings"])


def test_a_benchmark_of_a_source_is_profiled_as_it_was_built(tmp_path: Path) -> None:
    shutil.copy(SUMS, tmp_path)
    step = {"id": "sums", "uses": "mojo-bench", "with": {"file": SUMS.name, "repetitions": 100}, "runs": 1}
    done, result = _run(
        tmp_path, [step], [{"id": "cpu", "uses": "perf", "benchmark": "sum/sc*", "with": {"call-graph": "none"}}]
    )
    assert done.returncode == 0, done.stderr
    assert any("mojo_sums" in str(word) for item in result["steps"] for word in item["argv"] if item["id"] == "cpu")
    assert {spot["benchmark"] for spot in result["hotspots"]} == {"sum/scalar"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("fn main():\n    pass\n", "old.mojo:1:1: 'fn' has been removed"),
        ('def main() raises:\n    raise "no data"\n', "no data"),
        ("def main():\n    print(1)\n", "no table of a Bench"),
    ],
)
def test_a_program_that_cannot_be_measured(source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "old.mojo").write_text(source)
    done, result = _run(tmp_path, [{"id": "old", "uses": "mojo-bench", "with": {"file": "old.mojo"}, "runs": 1}])
    assert done.returncode == 3
    assert said in result["steps"][0]["reason"]


def _run(folder: Path, steps: list[Any], profiles: list[Any] | None = None) -> tuple[Any, Any]:
    stages = {"baseline": steps, **({"profile": profiles} if profiles else {})}
    (folder / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": stages}))
    out = folder / "out"
    done = perfflow("run", "flow.yaml", "--out", str(out), cwd=folder, path=PATH, measured=True)
    return done, json.loads((out / "result.json").read_text())
