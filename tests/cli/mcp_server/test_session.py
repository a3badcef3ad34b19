"""A session of an agent from the first call to an accepted change, checked step by step."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.mcp_server.agent import Agent, talk
from tests.repositories import git
from tests.toolchains import needs_cargo

ROOT = Path(__file__).parents[3]
FLOW = """\
perfflow: 1
name: tune
description: How fast is the sum, and is it right?
targets:
  sum: {cpu speedup: ≥1.5x}
stages:
  baseline:
    - {id: sum, uses: command, with: {command: python3 sum.py}, metric: cpu, budget: 5s}
  profile:
    - {id: where, uses: cprofile, benchmark: sum}
  optimize:
    accept: 10%
    forbid: [sum.expected, workflows/**]
  verify:
    - {id: right, uses: same-output, benchmark: sum, with: {expected: sum.expected}}
    - {id: after, compare: baseline}
"""
SUM = """\
def total(count):
    found = 0
    for number in range(count):
        found += number * number
    return found


print(total(400_000))
"""

CRATE = """\
perfflow: 1
name: dispatch
description: How long does the conductor take for a task?
stages:
  build:
    - {id: bins, uses: cargo-build, with: {crate: examples/rust-hotpath}}
  baseline:
    - id: bench
      uses: cargo-bench
      with: {crate: examples/rust-hotpath, bench: conductor, filter: conductor/overhead}
  profile:
    - id: hot
      uses: perf
      benchmark: conductor/overhead
      with: {command: "${{ steps.bins.outputs.hotloop }} --ops 20000000"}
  optimize:
    accept: 10%
    forbid: [examples/rust-hotpath/tests/**, examples/rust-hotpath/benches/**]
  verify:
    - {id: tests, run: cargo test --release, working-directory: examples/rust-hotpath}
"""
"""A workflow with one benchmark, so that effects of code layout on others do not matter."""


@pytest.mark.long
def test_an_agent_finds_the_hotspot_and_only_the_good_patch_is_kept(project: Path) -> None:
    (project / "workflows" / "tune.yaml").write_text(FLOW)
    (project / "sum.py").write_text(SUM)
    (project / "sum.expected").write_text(f"{sum(n * n for n in range(400_000))}\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "sum")

    async def script(agent: Agent) -> None:
        listed = (await agent.call("list_workflows")).data["workflows"]
        assert "tune" in [item["name"] for item in listed if item["origin"] == "project"]
        run = (await agent.call("run", workflow="tune", stages=["baseline", "profile"])).data
        hottest = (await agent.call("hotspots", run=run["id"], limit=1, context=4)).data["hotspots"][0]
        assert (hottest["file"], hottest["function"]) == ("sum.py", "total")
        assert hottest["share"] > 0.5
        assert "    for number in range(count):" in hottest["lines"]

        wrong = changed(project, "sum.py", lambda text: text.replace("range(count)", "range(count // 2)"))
        judged = (await agent.call("judge_patch", workflow="tune", patch=wrong, why="half of the work")).data
        assert judged["decision"] == "rejected"
        assert "correctness does not hold: step right" in judged["reason"]

        useless = changed(project, "sum.py", lambda text: f"# Sums squares.\n{text}")
        judged = (await agent.call("judge_patch", workflow="tune", patch=useless, why="say what it does")).data
        assert judged["decision"] == "rejected"
        assert judged["tried"]["effect"]["low"] < 0.1

        loop = SUM[SUM.index("    found = 0") : SUM.index("\n\n\nprint")]
        formula = "    return (count - 1) * count * (2 * count - 1) // 6"
        good = changed(project, "sum.py", lambda text: text.replace(loop, formula))
        judged = (await agent.call("judge_patch", workflow="tune", patch=good, why="a formula")).data
        assert judged["decision"] == "kept", judged["run"]["text"]
        assert judged["tried"]["effect"]["low"] > 0.1
        explained = (await agent.call("explain", run=judged["run"]["id"])).data
        assert (explained["verdict"], explained["branch"]) == ("pass", judged["branch"])
        assert [item["status"] for item in explained["targets"]] == ["met"]

    talk(project, script, "--allow-run", "--budget", "60s")
    # A human reviews the branch. The tree is unchanged.
    assert (project / "sum.py").read_text() == SUM


def changed(project: Path, name: str, change: Callable[[str], str]) -> str:
    """Return a patch for a file, as an agent creates it, without changing the file."""
    path = project / name
    before = path.read_text()
    try:
        path.write_text(change(before))
        return git(project, "diff", "--", name)
    finally:
        path.write_text(before)


@pytest.mark.long
@pytest.mark.timeout(2400)
@needs_cargo
def test_an_agent_speeds_up_the_bundled_crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.docs.test_documents import copy_of_the_tree

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clone = copy_of_the_tree(tmp_path / "perfflow")
    (clone / "workflows" / "dispatch.yaml").write_text(CRATE)
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "copy")
    crate = "examples/rust-hotpath/src"
    useful = (clone / "workflows" / "patches" / "rust-hotpath" / "slab.patch").read_text()

    async def script(agent: Agent) -> None:
        run = (await agent.call("run", workflow="dispatch", stages=["build", "baseline", "profile"])).data
        assert [step for step in run["failed_steps"] if step["status"] == "failed"] == [], run["text"]
        found = (await agent.call("hotspots", run=run["id"], benchmark="conductor/overhead", limit=10)).data["hotspots"]
        assert any(item["file"].startswith(crate) and item["lines"] for item in found), found

        name = f"{crate}/checksum.rs"
        wrong = changed(clone, name, lambda text: text.replace("high << 16 | low", "low << 16 | high"))
        judged = (await agent.call("judge_patch", workflow="dispatch", patch=wrong, why="another sum")).data
        assert judged["decision"] == "rejected"
        assert "correctness does not hold: step tests" in judged["reason"]

        useless = changed(clone, name, lambda text: f"{text}\n// The end.\n")
        call = {"workflow": "dispatch", "patch": useless, "why": "a comment", "budget": "60s"}
        judged = (await agent.call("judge_patch", **call)).data
        assert judged["decision"] == "rejected"

        judged = (
            await agent.call(
                "judge_patch", workflow="dispatch", patch=useful, why="keep tasks in a slab", technique="memory"
            )
        ).data
        assert judged["decision"] == "kept", judged["run"]["text"]
        assert judged["tried"]["effect"]["low"] > 0.1

    talk(clone, script, "--allow-run", "--budget", "4m")
    assert subprocess.run(["git", "-C", clone, "diff", "--quiet"], check=False).returncode == 0
