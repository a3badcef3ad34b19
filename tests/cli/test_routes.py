"""Routes and advice in real repositories with real programs."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

OWN = """
routes:
  - {if: 'regressions.action.in("io/**")', to: io-team}
  - {if: 'regressions.action.in("core/**")', to: core-team, why: the core has its own people}
"""
STEPS = """
stages:
  build:
    - {id: make, run: cp costs built}
  baseline:
    - {id: count, benchmark: core/parse, run: cat built, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'},
       better: {cost: lower}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, STEPS)
    commit(root, 100)
    git(root, "tag", "base")
    return root


def commit(root: Path, cost: int) -> str:
    (root / "costs").write_text(f"{cost}\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "--allow-empty", "-m", f"cost {cost}")
    return git(root, "rev-parse", "HEAD").strip()


def gate(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow("gate", "flow.yaml", "--base", "base", *words, "--json", cwd=root)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    (route,) = result["routes"]
    return done.returncode, route


def test_a_gate_is_routed_and_its_commands_repeat_it(project: Path) -> None:
    base, head = git(project, "rev-parse", "base").strip(), commit(project, 125)
    code, route = gate(project)
    assert (code, route["rule"], route["to"]) == (1, "regression-spread", "profile-more")
    brief = route["brief"]
    assert brief["regressed"] == ["core/parse cost: +25.0%, over the action threshold of 10%"]
    assert brief["thresholds"] == ["core/parse: concern 5%, action 10%, floor 2%"]
    assert brief["commands"] == [
        f"perfflow gate flow.yaml --base {base} --only make --only count",
        f"perfflow bisect flow.yaml --good {base} --bad {head} --only count",
    ]
    again = perfflow(*shlex.split(brief["commands"][0])[1:], "--json", cwd=project)
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["routes"][0]["rule"] == "regression-spread"


@pytest.mark.parametrize(
    ("cost", "code", "rule", "to"),
    [
        (100, 0, "all-passed", "merge"),
        (107, 0, "within-threshold", "merge-and-watch"),
        (125, 1, 'routes: regressions.action.in("core/**")', "core-team"),
    ],
)
def test_the_workflows_own_routes_come_before_the_built_in_ones(
    project: Path, cost: int, code: int, rule: str, to: str
) -> None:
    write(project, OWN + STEPS)
    commit(project, cost)
    found, route = gate(project)
    assert (found, route["rule"], route["to"]) == (code, rule, to)


def test_a_stored_run_keeps_its_route_without_the_workflow(project: Path, tmp_path: Path) -> None:
    write(project, OWN + STEPS)
    commit(project, 125)
    _, route = gate(project)
    (project / "flow.yaml").unlink()
    stored = project / ".perfflow/runs/latest/result.json"
    before = stored.read_bytes()
    perfflow("report", ".perfflow/runs/latest", cwd=project)
    assert stored.read_bytes() == before
    perfflow("report", str(stored), "--thresholds", "action=30%", "--out", str(tmp_path / "again"), cwd=project)
    (again,) = json.loads((tmp_path / "again" / "result.json").read_text())["routes"]
    assert (route["to"], again["to"]) == ("core-team", "merge-and-watch")


def test_an_accepted_trade_off_and_a_new_benchmark_go_elsewhere(project: Path) -> None:
    accepted = "accepted: [{benchmark: core/**, change: 30%, why: correct now, until: '2999-01-01'}]\n"
    write(project, accepted + STEPS)
    commit(project, 125)
    code, route = gate(project)
    assert (code, route["rule"], route["to"]) == (0, "trade-off-accepted", "confirm-trade-off")
    done = perfflow("run", "flow.yaml", "--json", cwd=project)
    assert json.loads(done.stdout)["routes"] == []
    write(project, "routes: [{if: not baseline.missing, to: nobody}]\n" + STEPS)
    done = perfflow("run", "flow.yaml", "--json", cwd=project)
    assert json.loads(done.stdout)["routes"][0]["to"] == "record-baseline"


def test_a_route_over_an_unknown_fact_runs_nothing(project: Path) -> None:
    write(project, "routes: [{if: regresions.action, to: x}]\n" + STEPS)
    done = perfflow("gate", "flow.yaml", "--base", "base", cwd=project)
    assert done.returncode == 2
    assert "flow.yaml:2:15: error: unknown fact `regresions.action`" in done.stderr
    assert "did you mean `regressions.action`?" in done.stderr


HEAP = """
#include <stdlib.h>
struct task { int id; char name[56]; };
static struct task *ring[64];
__attribute__((noinline)) static long dispatch(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        struct task *made = malloc(sizeof *made + i % 7 * 200);
        made->id = (int)i; sum += made->id & 3;
        free(ring[i % 64]); ring[i % 64] = made;
    }
    return sum;
}
int main(int count, char **words) { return dispatch(atol(words[1])) == 1; }
"""
FLAT = """
#include <stdlib.h>
__attribute__((noinline)) static double dispatch(long n) {
    double x = 1;
    for (long i = 0; i < n; i++) x = x * 1.0000001 + 0.5 / (x + (double)i);
    return x;
}
int main(int count, char **words) { return dispatch(atol(words[1])) == 1; }
"""
PROFILES = """
stages:
  profile:
    - {{id: cpu, uses: perf, benchmark: tasks, with: {{command: ./tasks {many}}}}}
    - {{id: count, uses: callgrind, benchmark: tasks, with: {{command: ./tasks 20000}}}}
"""


def advice(folder: Path, program: str, many: int) -> list[dict[str, Any]]:
    (folder / "tasks.c").write_text(program)
    subprocess.run(["gcc", "-O2", "-g", "-o", "tasks", "tasks.c"], cwd=folder, check=True)
    write(folder, PROFILES.format(many=many))
    done = perfflow("run", "flow.yaml", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {spot["source"] for spot in result["hotspots"]} == {"perf", "callgrind"}
    found: list[dict[str, Any]] = result["recommendations"]
    return found


def test_malloc_in_a_loop_is_advised_on_with_what_two_profilers_measured(tmp_path: Path) -> None:
    (found,) = advice(tmp_path, HEAP, 100_000_000)
    assert (found["rule"], found["benchmark"]) == ("allocation-in-hot-path", "tasks")
    perf, callgrind = found["evidence"].split("; callgrind: ")
    assert perf.startswith("perf: ")
    assert "dispatch (tasks.c:" in perf
    assert "of it allocating and freeing, by " in perf
    # callgrind counts instructions, so its shares do not depend on the machine.
    assert int(callgrind.partition("%")[0]) > 50
    assert "malloc" in callgrind


def test_a_program_that_only_computes_gets_no_advice(tmp_path: Path) -> None:
    assert advice(tmp_path, FLAT, 20_000_000) == []


def test_a_profile_of_few_samples_gives_no_advice(tmp_path: Path) -> None:
    (tmp_path / "tasks.c").write_text(HEAP)
    subprocess.run(["gcc", "-O2", "-g", "-o", "tasks", "tasks.c"], cwd=tmp_path, check=True)
    write(tmp_path, "stages: {profile: [{id: cpu, uses: perf, with: {command: ./tasks 10000000, frequency: 199}}]}\n")
    result = json.loads(perfflow("run", "flow.yaml", "--json", cwd=tmp_path).stdout)
    (step,) = result["steps"]
    assert any("samples are few" in warning for warning in step["warnings"])
    assert result["hotspots"]
    assert result["recommendations"] == []
