"""Every workflow of the library, run in a tiny separate project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfflow.library import search_path
from tests.cli.shell import ROOT, perfflow, write
from tests.examples.mojo import MOJO, copy_example, needs_mojo
from tests.repositories import git
from tests.toolchains import needs_cargo
from tests.tools.crates.hot_workspace import hot_workspace
from tests.tools.harness import PROGRAMS, compiler

SHIPPED = sorted(path.stem for path in search_path.SHIPPED.glob("*.yaml"))
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
# Less work for the same output, so that the result does not depend on luck.
LOOP = "import sys\nfor _ in range(int(sys.argv[1])): pass\nprint('done')\n"
SUITE = "import shapes\n\ndef test_area(benchmark):\n    assert benchmark(shapes.area) == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "loop.py").write_text(LOOP)
    for folder, work in (("before", 20_000), ("now", 10)):
        (tmp_path / folder).mkdir()
        body = f"def area():\n    for _ in range({work}): pass\n    return 3\n"
        (tmp_path / folder / "shapes.py").write_text(body)
    # A copy in the current folder, which `python -m pytest` would import first.
    (tmp_path / "shapes.py").write_text("raise ImportError('the wrong copy')\n")
    (tmp_path / "test_shapes.py").write_text(SUITE)
    return tmp_path


def build(source: str, project: Path) -> None:
    subprocess.run(compiler(PROGRAMS / source, project / Path(source).stem), check=True)


def started(project: Path, *words: str, measured: bool = False) -> subprocess.CompletedProcess[str]:
    places = {"PERFFLOW_LOCK_FILE": str(project / "lock"), "XDG_CACHE_HOME": str(project.parent / "cache")}
    return perfflow("run", *words, "--progress", "off", cwd=project, measured=measured, env=places)


def settings_of(settings: dict[str, str]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def run(name: str, project: Path, total: str = "120s", **settings: str) -> dict[str, Any]:
    """``total``: the budget of the whole run."""
    words = [name, *settings_of(settings), "--budget", total, "--unproven=pass", "--json"]
    done = started(project, *words, measured=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout)
    assert all(step["status"] == "done" for step in result["steps"]), result["steps"]
    assert all(check["status"] == "passed" for check in result["verification"])
    return result


def rows(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["name"], row["metric"]): row for row in result["benchmarks"]}


def sources(result: dict[str, Any]) -> set[str]:
    return {spot["source"] for spot in result["hotspots"]}


@pytest.mark.long  # a whole workflow; docs/reference/result.md has runs of it
def test_two_commands(project: Path) -> None:
    command = f"{sys.executable} -S loop.py"
    result = run("two-commands", project, baseline=f"{command} 200000", candidate=f"{command} 10")
    found = rows(result)
    assert found["program", "cpu"]["decision"] == "improved"
    assert found["program", "heap_peak"]["candidate"]["value"] > 0
    assert sources(result) >= {"perf", "massif"}
    assert len(result["verification"]) == 1


@pytest.mark.long  # a whole workflow; other tests run its tools
def test_two_commands_without_profile_and_with_other_output(project: Path) -> None:
    settings = settings_of({"baseline": "echo a", "candidate": "echo b", "profile": "false"})
    done = started(project, "two-commands", *settings, "--budget", "60s", "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert {step["id"] for step in result["steps"] if step["status"] == "skipped"} == {"hotspots", "heap"}
    assert "line 1" in result["verification"][0]["detail"]


def test_python_cpu(project: Path) -> None:
    result = run("python-cpu", project, command=f"{sys.executable} loop.py 4000000", rate="1000")
    assert rows(result)["program", "cpu"]["baseline"]["value"] > 0
    assert sources(result) == {"py-spy", "cprofile"}


@pytest.mark.long  # a whole workflow; other tests run its tools
def test_python_optimize(project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "test_loop.py").write_text("def test_loop(): assert True\n")
    (project / "speed.py").write_text("def test_speed(benchmark): benchmark(sum, range(1000))\n")
    # Something to count for memray, which fails on a program that allocates nothing.
    (project / "loop.py").write_text(LOOP + "kept = [bytes(100_000) for _ in range(100)]\n")
    parts = {"command": f"{sys.executable} loop.py 4000000", "suite": "speed.py", "tests": "tests", "heap": "true"}
    result = run("python-optimize", project, **parts, python=sys.executable, rate="1000", budget="2s")
    found = rows(result)
    assert {found["program", metric]["baseline"]["value"] > 0 for metric in ("time", "rss", "heap_peak")} == {True}
    assert sources(result) >= {"py-spy", "cprofile", "line-profiler", "memray"}
    assert len(result["verification"]) == 2


CANDIDATES = f"""
extends: lib:python-optimize
params: {{command: "{sys.executable} -S loop.py 3000000", budget: 60s}}
stages:
  profile: {{if: false}}
  optimize:
    objective: program time
    steps: [{{id: less, technique: algorithm, why: count less, run: "sed -i 's/range.*:/range(9):/' loop.py"}}]
  verify: [{{id: after, compare: baseline}}]
"""


@pytest.mark.long  # a whole workflow; docs/reference/result.md has runs of it
def test_python_optimize_takes_candidates(project: Path) -> None:
    """The minimal workflow of a user: candidates and a comparison."""
    write(project, CANDIDATES, "own.yaml")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "A loop")):
        git(project, *words)
    done = started(project, "own.yaml", "--json", measured=True)
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["reasons"]
    assert [item["decision"] for item in result["optimizations"]] == ["accepted"]


@pytest.mark.long  # as the workflow of CPU time
def test_native_memory(project: Path) -> None:
    build("allocs.cpp", project)
    result = run("native-memory", project, command="./allocs")
    found = rows(result)
    assert {metric for name, metric in found if name == "program"} == {"instructions", "alloc", "allocs", "heap_peak"}
    assert found["heap", "heap_peak"]["baseline"]["value"] > 0
    assert sources(result) >= {"massif"}


@pytest.mark.skipif(not os.environ.get("PERFFLOW_TORCH"), reason="set PERFFLOW_TORCH to an interpreter with PyTorch")
def test_torch_training(project: Path) -> None:
    given = os.environ["PERFFLOW_TORCH"]
    python = "python3" if given == "1" else given
    for source in ("train.py", "records.py"):
        shutil.copy(ROOT / "examples" / "torch-training" / source, project)
    train = f"{python} train.py --records 64 --epochs 1 --batch 8"
    traced = f"{train} --show loss --profile trace.json.gz --profile-steps 4"
    result = run("torch-training", project, python=python, train=train, traced=traced)
    assert {"rate", "dataloader_wait", "compile_time"} <= {metric for _, metric in rows(result)}
    assert sources(result) == {"torch-profiler"}


def test_torch_training_says_that_pytorch_is_missing(project: Path) -> None:
    bare = project / "bare"
    bare.write_text('#!/bin/sh\nexec python3 -I -S "$@"\n')
    bare.chmod(0o755)
    settings = settings_of({"python": "./bare", "train": "./bare train.py", "traced": "./bare train.py"})
    done = perfflow("run", "torch-training", *settings, "--progress", "plain", cwd=project)
    assert done.returncode == 3
    assert "skipped: torch: PyTorch is not installed for this interpreter: pip install torch" in done.stdout


@pytest.mark.long  # a whole workflow; other tests run its tools
def test_pytest_benchmark_suite(project: Path) -> None:
    sides = {"base": "before", "head": "now"}
    result = run("pytest-benchmark-suite", project, module="shapes", python=sys.executable, **sides)
    found = rows(result)["test_shapes.py::test_area", "time"]
    assert found["change"]["value"] < -0.9
    assert found["decision"] in ("improved", "unproven")


def test_pytest_benchmark_suite_refuses_a_module_from_elsewhere(project: Path) -> None:
    settings = settings_of({"module": "json", "base": "before", "python": sys.executable})
    done = started(project, "pytest-benchmark-suite", *settings)
    assert (done.returncode, "suite" in done.stdout) == (3, True)
    assert "json is not imported from" in (project / ".perfflow/runs/latest/steps/origin/stderr").read_text()


@pytest.mark.long  # a whole workflow; other tests run its tools
def test_google_benchmark_suite(project: Path) -> None:
    build("gbench.cpp", project)
    first, *_ = subprocess.check_output([project / "gbench", "--benchmark_list_tests=true"], text=True).split()
    sides = {"baseline": "./gbench", "candidate": "./gbench"}
    assert (first, "time") in rows(run("google-benchmark-suite", project, **sides, filter=f"^{first}$"))


@needs_cargo
@pytest.mark.long
def test_rust_hotpath(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_workspace(monkeypatch) as crate:
        settings = {"crate": str(crate), "bench": "lies", "filter": "truth|beauty"}
        result = run("rust-hotpath", project, **settings)
    names = {name for name, metric in rows(result) if metric == "time"}
    assert names == {"truth", "beauty"}
    assert any("mix" in spot["location"] for spot in result["hotspots"])
    assert len(result["verification"]) == 1


@needs_cargo
@pytest.mark.long
def test_regression_gate(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One crate in two feature sets. A long test runs a similar workflow with all crates of the example."""
    chosen = {"packages": "second", "features": "none,default", "filter": "second", "budget": "2s"}
    with hot_workspace(monkeypatch) as workspace:
        result = run("regression-gate", project, workspace=str(workspace), **chosen)
    names = {name for name, metric in rows(result) if metric == "time"}
    assert names == {"second/none/second", "second/default/second"}
    assert len(result["verification"]) == 2


@needs_mojo
@pytest.mark.long
def test_mojo_kernel(project: Path) -> None:
    kernels = copy_example(project).relative_to(project)
    settings = {"file": f"{kernels}/bench.mojo", "check": f"{kernels}/check.mojo", "budget": "3s"}
    settings |= {"compiler": str(MOJO), "list_with": "--list", "only_with": "--only"}
    result = run("mojo-kernel", project, **settings)
    found = rows(result)
    assert found["matmul", "time"]["decision"] == "improved"
    assert {name for name, metric in found if metric == "flops"} == {"add", "saxpy", "matmul"}
    assert {peak["metric"] for peak in result["peaks"]} == {"bandwidth", "flops"}
    assert sources(result) == {"perf", "simd-share"}
    assert any(spot["location"] == "kernels::matmul::matmul_scalar" for spot in result["hotspots"])
    assert len(result["verification"]) == 1


@pytest.mark.long  # a whole workflow; other tests run its tools
@pytest.mark.skipif(
    os.geteuid() != 0 and SCOPE.exists() and SCOPE.read_text().strip() != "0",
    reason="only root may attach to processes here (kernel.yama.ptrace_scope)",
)
def test_python_service(project: Path) -> None:
    shutil.copytree(ROOT / "examples" / "python-service", project / "service")
    server, load = (f"{sys.executable} service/{name}.py --port $PERFFLOW_PORT" for name in ("server", "load"))
    result = run("python-service", project, server=server, load=f"{load} --requests 40")
    found = rows(result)
    assert {metric for name, metric in found if name == "service"} == {"time", "rate", "rss", "service_cpu"}
    assert found["service", "rss"]["baseline"]["value"] > 1e6
    assert sources(result) == {"py-spy"}
    assert any("best_discount" in spot["location"] for spot in result["hotspots"])


def test_all_of_them_are_run_here() -> None:
    """GPU workflows are tested in their own file."""
    here = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert SHIPPED
    assert all(re.search(rf'"{name}",\s+(?:project|\*SMALL|"--base")', here) for name in SHIPPED)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what `list` prints for each workflow. It also queries the versions of all programs."""
    done = perfflow("list", "--json", cwd=tmp_path_factory.mktemp("listed"))
    return {row["name"]: row for row in json.loads(done.stdout)["workflows"]}


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_listed_explained_and_free_of_paths(name: str, listed: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    assert listed[name]["origin"] == f"lib:{name}"
    assert listed[name]["description"].endswith(("?", "."))
    shown = json.loads(perfflow("show", name, "--json", cwd=tmp_path).stdout)
    assert all(param["help"] for param in shown["params"])
    assert not [param for param in shown["params"] if "/" in str(param["default"])]


def test_one_can_be_extended(project: Path) -> None:
    text = "extends: lib:two-commands\nparams: {baseline: echo a, candidate: echo a}\n"
    write(project, text + "stages: {profile: {if: false}, verify: [{id: own, run: 'true'}]}\n", "own.yaml")
    shown = json.loads(perfflow("show", "own.yaml", "--json", cwd=project).stdout)
    assert shown["extends"] == "lib:two-commands"
    assert [step["id"] for step in shown["steps"]] == ["program", "hotspots", "heap", "same-output", "own"]
    assert not any(param["required"] for param in shown["params"])


def test_a_project_may_have_a_workflow_of_the_same_name(project: Path) -> None:
    (project / "workflows").mkdir()
    write(project / "workflows", "stages: {baseline: [{id: own, run: echo own}]}\n", "python-cpu.yaml")
    own, shipped = (
        json.loads(perfflow("show", name, "--json", cwd=project).stdout) for name in ("python-cpu", "lib:python-cpu")
    )
    assert [step["id"] for step in own["steps"]] == ["own"]
    assert shipped["origin"] == "lib:python-cpu"
