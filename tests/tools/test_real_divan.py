"""divan's benchmarks, end to end: listed, measured whole and alone, and counted. The first build takes a minute."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Reading
from perfflow.tools import adapter
from perfflow.tools.adapter import Call, Effort
from tests.kept import kept
from tests.rust import needs_cargo
from tests.tools.harness import SORTS, Ran, call_of, parsed_of, run_call, start, tool

pytestmark = needs_cargo
BENCH = tool("cargo-bench")
CLOCK = Path(adapter.__file__).parent / "drivers" / "stepping_clock.c"
NAMES = {"plain", "own", "sizes/text/a b", "sizes/text/(c) │ d", "sizes/each/1000", "sizes/each/4000"}
GENERIC = {"made/Vec<u64>", "made/String"}


@pytest.fixture
def sorts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the crate, always in the same folder: cargo would reuse the build of a copy in another folder."""
    with kept("divan") as place:
        monkeypatch.setenv("CARGO_TARGET_DIR", str(place / "target"))
        shutil.rmtree(place / "crate", ignore_errors=True)
        yield Path(shutil.copytree(SORTS, place / "crate"))


def _built(crate: Path, folder: Path, **options: Any) -> Call:
    call = call_of("cargo-bench", folder, crate=str(crate), locked=True, **options)
    call.folder.mkdir(exist_ok=True)
    for step in BENCH.build.preparations(call):
        assert start(step, call.folder) == 0, (call.folder / step.stderr).read_text()
    return replace(call, effort=Effort.BRIEF, kept=call.folder)


def _names(call: Call) -> set[str]:
    listing = BENCH.suite.listing(call)
    assert listing
    assert start(replace(listing, stdout="ids"), call.folder) == 0
    return {*(call.folder / "ids").read_text().splitlines()}


def _measured(call: Call, env: dict[str, str] | None = None) -> dict[tuple[str, str], Reading]:
    for path in BENCH.outputs(call):
        path.unlink()
    status = max(start(step, call.folder, env) for step in BENCH.invocations(call))
    return {(item.benchmark, item.metric): item for item in parsed_of(Ran(status, call, BENCH)).readings}


def test_divan_by_cpu_time(sorts: Path, tmp_path: Path, cpu_clock_library: Path) -> None:
    found = _measured(replace(_built(sorts, tmp_path), cpu_clock=cpu_clock_library))
    assert {name for name, _ in found} == NAMES | GENERIC
    assert all(0 < found[name, "cpu"].value <= found[name, "time"].value for name in NAMES | GENERIC)
    assert found["own", "throughput"].value == pytest.approx(4096 / found["own", "time"].value, rel=0.01)


def test_all_together_and_each_alone(sorts: Path, tmp_path: Path) -> None:
    call = _built(sorts, tmp_path)
    assert _names(call) == NAMES | GENERIC
    found = _measured(call)
    assert {name for name, _ in found} == NAMES | GENERIC
    own, each = found["own", "time"], found["sizes/each/4000", "time"]
    assert found["own", "throughput"].value == pytest.approx(4096 / own.value, rel=0.01)
    assert found["sizes/each/4000", "rate"].value == pytest.approx(4000 / each.value, rel=0.01)
    for name in ("own", "sizes/text/(c) │ d", "sizes/each/1000", "made/Vec<u64>"):
        assert {measured for measured, _ in _measured(replace(call, chosen=(name,)))} == {name}


def test_several_of_them(sorts: Path, tmp_path: Path) -> None:
    chosen = ("made/Vec<u64>", "sizes/text/(c) │ d", "own")
    found = _measured(replace(_built(sorts, tmp_path), chosen=chosen))
    assert {name for name, _ in found} == set(chosen)


def test_a_filter_is_a_regular_expression(sorts: Path, tmp_path: Path) -> None:
    call = replace(_built(sorts, tmp_path, filter="each::[14]0+$"), effort=Effort.NORMAL)
    assert _names(call) == {"sizes/each/1000", "sizes/each/4000"}
    assert {name for name, _ in _measured(call)} == _names(call)


def test_several_numbers_of_threads(sorts: Path, tmp_path: Path) -> None:
    call = replace(_built(sorts, tmp_path, filter="plain"), chosen=("plain",))
    with pytest.raises(ToolOutputError, match=r"by_size::plain runs with several .* `env: \{DIVAN_THREADS: 1\}`"):
        _measured(call, {"DIVAN_THREADS": "1,2"})
    assert set(_measured(call, {"DIVAN_THREADS": "2"})) == {("plain", "time")}


def _counted(call: Call, profiler: str, iterations: int, folder: Path) -> float:
    """Return what a whole process with so many iterations costs, without divan itself."""
    one = replace(call, iterations=iterations, folder=folder)
    folder.mkdir()
    (step,) = BENCH.invocations(one)
    ran = run_call(
        profiler, replace(call_of(profiler, folder, *step.argv), harness=BENCH.suite.harness), dict(step.env)
    )
    found = {reading.metric: reading.value for reading in parsed_of(ran).readings if not reading.benchmark}
    assert BENCH.suite.iterated(one)
    return found["instructions" if profiler == "callgrind" else "allocs"]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH")
@pytest.mark.parametrize(
    ("name", "profiler", "least", "most"),
    [("plain", "callgrind", 3000, 15_000), ("sizes/text/a b", "dhat", 1, 1), ("own", "dhat", 2, 2)],
)
def test_the_cost_of_one_iteration(
    name: str, profiler: str, least: float, most: float, sorts: Path, tmp_path: Path
) -> None:
    clock = tmp_path / "stepping_clock.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", clock, CLOCK], check=True)
    call = replace(_built(sorts, tmp_path / "built"), clock=clock, chosen=(name,))
    few, many = BENCH.suite.iteration_counts(call, 1e-6)
    less, more = (_counted(call, profiler, number, tmp_path / str(number)) for number in (few, many))
    assert least <= (more - less) / (many - few) <= most
