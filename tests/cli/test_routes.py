"""Advice on what two real profilers find in programs of C."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.shell import perfflow, write

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
PERF = "- {{id: cpu, uses: perf, benchmark: tasks, with: {{command: ./tasks {}}}}}"
CALLGRIND = "- {id: count, uses: callgrind, benchmark: tasks, with: {command: ./tasks 20000}}"


def profiled(folder: Path, program: str, *steps: str) -> dict[str, Any]:
    """Return the result of a run of these profilers."""
    (folder / "tasks.c").write_text(program)
    subprocess.run(["gcc", "-O2", "-g", "-o", "tasks", "tasks.c"], cwd=folder, check=True)
    write(folder, "stages:\n  profile:\n" + "".join(f"    {step}\n" for step in steps))
    done = perfflow("run", "flow.yaml", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_malloc_in_a_loop_is_advised_on_with_what_two_profilers_measured(tmp_path: Path) -> None:
    result = profiled(tmp_path, HEAP, PERF.format(100_000_000), CALLGRIND)
    assert {spot["source"] for spot in result["hotspots"]} == {"perf", "callgrind"}
    (found,) = result["recommendations"]
    assert (found["rule"], found["benchmark"]) == ("allocation-in-hot-path", "tasks")
    perf, callgrind = found["evidence"].split("; callgrind: ")
    assert perf.startswith("perf: ")
    assert "dispatch (tasks.c:" in perf
    assert "of it allocating and freeing, by " in perf
    # callgrind counts instructions, so its shares do not depend on the machine.
    assert int(callgrind.partition("%")[0]) > 50
    assert "malloc" in callgrind


def test_a_program_that_only_computes_gets_no_advice(tmp_path: Path) -> None:
    result = profiled(tmp_path, FLAT, PERF.format(20_000_000), CALLGRIND)
    assert {spot["source"] for spot in result["hotspots"]} == {"perf", "callgrind"}
    assert result["recommendations"] == []


def test_a_profile_of_few_samples_gives_no_advice(tmp_path: Path) -> None:
    few = "- {id: cpu, uses: perf, with: {command: ./tasks 10000000, frequency: 199}}"
    result = profiled(tmp_path, HEAP, few)
    assert any("samples are few" in warning for step in result["steps"] for warning in step["warnings"])
    assert result["hotspots"]
    assert result["recommendations"] == []
