"""A session of an agent from the first call to an accepted change, checked step by step."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.mcp_server.agent import Agent, talk
from tests.cli.mcp_server.test_tools import BRIEF
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
        listed = (await agent.call("look")).data["workflows"]
        assert "tune" in [item["name"] for item in listed]
        run = (await agent.call("run", workflow="tune", stages=["baseline", "profile"])).data
        hottest = (await agent.call("hotspots", run=run["run"], limit=1, context=4)).data["hotspots"][0]
        assert (hottest["place"], hottest["function"]) == ("sum.py:1", "total")
        assert hottest["self"] > 0.5
        assert "    for number in range(count):" in hottest["lines"]

        wrong = changed(project, "sum.py", lambda text: text.replace("range(count)", "range(count // 2)"))
        judged = (await agent.call("judge_patch", workflow="tune", patch=wrong, why="half of the work")).data
        assert judged["decision"] != "kept"
        assert "correctness does not hold: step right" in judged["reason"]

        useless = changed(project, "sum.py", lambda text: f"# Sums squares.\n{text}")
        judged = (await agent.call("judge_patch", workflow="tune", patch=useless, why="say what it does")).data
        assert judged["decision"] != "kept"
        assert judged["effect"]["low"] < 0.1

        good = changed(project, "sum.py", with_a_formula)
        judged = (await agent.call("judge_patch", workflow="tune", patch=good, why="a formula")).data
        assert judged["decision"] == "kept", judged
        assert judged["effect"]["low"] > 0.1
        explained = (await agent.call("explain", run=judged["run"])).data
        assert (explained["verdict"], explained["branch"]) == ("pass", judged["branch"])
        assert [item["status"] for item in explained["targets"]] == ["not looked at"]

    talk(project, script, "--allow-run", "--budget", "60s")
    # A human reviews the branch. The tree is unchanged.
    assert (project / "sum.py").read_text() == SUM


MOST_CALLS = 8


def test_an_agent_comes_from_a_bare_folder_to_a_kept_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the calls of the page, in a folder that has nothing but the program of the page."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = (ROOT / "docs" / "how-to" / "agents.md").read_text().split("## From a bare folder to a kept patch")[1]
    program, patch, session = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "diff", "text"))
    calls = [line.split(" ", 1) for line in session.splitlines()]
    assert len(calls[::2]) <= MOST_CALLS
    folder = tmp_path / "squares"
    folder.mkdir()
    (folder / "squares.py").write_text(program.removeprefix("# squares.py\n"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "squares")

    answers: dict[str, dict[str, Any]] = {}

    async def script(agent: Agent) -> None:
        for (name, text), (_, shown) in zip(calls[::2], calls[1::2], strict=True):
            arguments = {key: patch if key == "patch" else value for key, value in json.loads(text).items()}
            said = await agent.call(name, **arguments)
            assert (said.error, has_what_the_page_shows(said.data, json.loads(shown))) == ("", True), said
            assert said.size < BRIEF
            answers[name] = said.data

    talk(folder, script, "--allow-run", "--budget", "120s")
    judged = answers["judge_patch"]
    assert git(folder, "rev-parse", judged["branch"]).strip() == judged["revision"]
    total = next(item for item in answers["hotspots"]["hotspots"] if item["function"] == "total")
    assert total["inclusive"] > 0.5 > total["self"]
    assert "with what it calls" in total["gain"]
    (written,) = folder.glob(".perfflow/patches/*/judge.yaml")
    stage = json.loads(written.read_text())["stages"]["optimize"]
    assert (stage["isolate"], stage["protect"]) == ("strict", "tests")


def has_what_the_page_shows(found: Any, shown: Any) -> bool:
    """Whether an answer has the keys and texts that the page shows. Figures may differ, and lists have more entries."""
    if isinstance(shown, dict):
        return all(key in found and has_what_the_page_shows(found[key], value) for key, value in shown.items())
    if isinstance(shown, list):
        return all(any(has_what_the_page_shows(item, each) for item in found) for each in shown)
    return type(found) is type(shown) and (isinstance(shown, float) or found == shown)


def with_a_formula(text: str) -> str:
    """Return a program with the loop of ``total`` replaced by a formula."""
    loop = text[text.index("    found = 0") : text.index("    return found") + len("    return found")]
    return text.replace(loop, "    return (count - 1) * count * (2 * count - 1) // 6")


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
@pytest.mark.timeout(3600)
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
        assert [step for step in run.get("failed", ()) if step["status"] == "failed"] == [], run
        call = {"run": run["run"], "benchmark": "conductor/overhead", "limit": 10}
        found = (await agent.call("hotspots", **call)).data["hotspots"]
        assert any(item["place"].startswith(crate) and item["lines"] for item in found), found

        name = f"{crate}/checksum.rs"
        wrong = changed(clone, name, lambda text: text.replace("high << 16 | low", "low << 16 | high"))
        judged = (await agent.call("judge_patch", workflow="dispatch", patch=wrong, why="another sum")).data
        assert judged["decision"] != "kept"
        assert "correctness does not hold: step tests" in judged["reason"]

        useless = changed(clone, name, lambda text: f"{text}\n// The end.\n")
        call = {"workflow": "dispatch", "patch": useless, "why": "a comment", "budget": "60s"}
        judged = (await agent.call("judge_patch", **call)).data
        assert judged["decision"] != "kept"

        judged = (
            await agent.call(
                "judge_patch", workflow="dispatch", patch=useful, why="keep tasks in a slab", technique="memory"
            )
        ).data
        assert judged["decision"] == "kept", judged
        assert judged["effect"]["low"] > 0.1

    talk(clone, script, "--allow-run", "--budget", "20m")
    assert subprocess.run(["git", "-C", clone, "diff", "--quiet"], check=False).returncode == 0
