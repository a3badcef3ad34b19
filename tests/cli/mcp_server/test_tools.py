"""Every tool, called by the SDK's client, which checks each answer against the schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.version import VERSION
from tests.cli.mcp_server.agent import Agent, ToolAnswer, ask, talk
from tests.cli.mcp_server.conftest import commit, new_cost, new_file
from tests.repositories import git

NAMES = {"list_workflows", "plan", "validate", "run", "compare", "judge_patch", "hotspots", "bisect", "explain"}


def test_all_tools_have_a_schema_of_what_they_take_and_return(project: Path) -> None:
    async def script(agent: Agent) -> None:
        tools = await agent.tools()
        assert set(tools) == NAMES
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is not None
            assert tool.output_schema["type"] == "object"
        hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations}
        assert {name for name, only in hints.items() if only} == NAMES - {"run", "compare", "judge_patch", "bisect"}
        about = agent.client.server_info
        assert about is not None
        assert (about.name, about.version) == ("perfflow", VERSION)
        assert "Measure first" in (agent.client.instructions or "")

    talk(project, script)


def test_agents_list_plan_and_validate(project: Path) -> None:
    (project / "workflows" / "odd.yaml").write_text("perfflow: 1\nstages: {baselin: []}\n")

    async def script(agent: Agent) -> None:
        listed = (await agent.call("list_workflows")).data
        own = {item["name"]: item for item in listed["workflows"] if item["origin"] == "project"}
        assert own["counted"]["description"].startswith("The cost is a number")
        assert {"perf", "command"} <= {tool["name"] for tool in listed["tools"]}

        planned = (await agent.call("plan", workflow="counted", params={"line": 1})).data
        assert [(step["id"], step["role"]) for step in planned["steps"]][:2] == [("make", "work"), ("cost", "measure")]
        assert planned["workflow"] == "counted"
        part = (await agent.call("plan", workflow="workflows/counted.yaml", stages=["verify"])).data
        assert [step["id"] for step in part["steps"]] == ["right"]

        files = (await agent.call("validate")).data["files"]
        assert {Path(file["file"]).name: file["valid"] for file in files} == {"counted.yaml": True, "odd.yaml": False}
        (wrong,) = (await agent.call("validate", workflows=["odd"])).data["files"]
        assert any("did you mean `baseline`" in problem["message"] for problem in wrong["problems"])
        assert wrong["problems"][0]["line"] == 2

    talk(project, script)
    assert not (project / ".perfflow").exists()
    assert not (project.parent / "starts").exists()


def test_a_run_is_judged_and_explained(project: Path) -> None:
    run = ("run", {"workflow": "counted", "budget": "30s"})
    ran, explained, hot = ask(project, "--allow-run", run, ("explain", {}), ("hotspots", {"run": "latest"}))
    assert (ran.error, ran.data["verdict"], ran.data["gate"]) == ("", "pass", "pass")
    assert [(row["name"], row["baseline"]["value"]) for row in ran.data["benchmarks"]] == [("cost", 100.0)]
    assert [(item["requirement"], item["status"]) for item in ran.data["targets"]] == [("<200", "met")]
    assert "review:gate:perf = pass" in ran.data["text"]
    assert (Path(ran.data["folder"]) / "report.md").is_file()
    # One numbered line for each ended step, in order.
    assert [line.split()[2] for line in ran.progress if line.startswith("✓")] == ["make", "cost", "look", "right"]
    assert ran.counts == list(range(1, len(ran.counts) + 1))
    assert explained.data == ran.data
    assert (hot.data["hotspots"], hot.data["run"]) == ([], ran.data["id"])
    assert "the run has no profile" in hot.data["note"]


def test_a_run_says_what_failed(project: Path) -> None:
    (project / "broken").write_text("")
    (said,) = ask(project, "--allow-run", ("run", {"workflow": "counted", "stages": ["build", "baseline"]}))
    assert said.data["verdict"] in ("fail", "error")
    assert said.data["failed_steps"][0]["id"] == "make"
    assert said.data["gate"] == "fail"


@pytest.mark.long  # the command behind it has tests of its own
def test_a_run_with_a_base_compares_both_trees(project: Path) -> None:
    commit(project, "slower", costs="150\n")
    (said,) = ask(project, "--allow-run", ("run", {"workflow": "counted", "base": "HEAD~1"}))
    (row,) = said.data["benchmarks"]
    assert (row["decision"], row["level"], row["change"]["value"]) == ("regressed", "action", 0.5)
    assert (said.data["verdict"], said.data["gate"]) == ("fail", "fail")


@pytest.mark.long  # the command behind it has tests of its own
def test_two_commands_are_compared(project: Path) -> None:
    async def script(agent: Agent) -> tuple[ToolAnswer, ToolAnswer]:
        said = await agent.call("compare", old="sleep 0.2", new="sleep 0.01", budget="60s")
        return said, await agent.call("explain", run=said.data["id"])

    said, explained = talk(project, script, "--allow-commands")
    (row,) = [row for row in said.data["benchmarks"] if row["gating"]]
    assert (row["decision"], said.data["verdict"]) == ("improved", "pass")
    assert explained.data["benchmarks"] == said.data["benchmarks"]


@pytest.mark.long  # five judgements; other tests, also of test_limits.py, keep and reject a patch
def test_patches_are_kept_or_rejected_with_figures(project: Path) -> None:
    before = git(project, "status", "--porcelain"), (project / "costs").read_text()
    patches = (new_file("wrong", "x"), new_file("broken", "x"), new_file("note", "x"), new_cost(40), new_cost(95))
    calls = [("judge_patch", {"workflow": "counted", "patch": text, "why": "a try"}) for text in patches]
    found = ask(project, "--allow-run", *calls)
    assert [said.error for said in found] == [""] * 5
    wrong, broken, useless, good, small = (said.data for said in found)
    assert [item["decision"] for item in (wrong, broken, useless, small)] == ["rejected"] * 4
    assert "correctness does not hold: step right" in wrong["reason"]
    assert wrong["tried"]["pairs"] == 0
    assert "make" in broken["reason"]
    assert (useless["tried"]["effect"]["value"], small["tried"]["effect"]["value"]) == (0.0, pytest.approx(0.05))
    assert (good["decision"], good["tried"]["before"], good["tried"]["after"]) == ("kept", 100.0, 40.0)
    assert good["tried"]["effect"]["value"] == pytest.approx(0.6)
    # The accepted change is a commit on a branch, and the files of the project are unchanged.
    assert git(project, "show", f"{good['branch']}:costs") == "40\n"
    assert git(project, "rev-parse", good["branch"]).strip() == good["revision"]
    assert (git(project, "status", "--porcelain"), (project / "costs").read_text()) == before
    assert Path(good["patch_file"]).read_text() == new_cost(40)


def test_a_patch_stands_in_for_the_candidates_of_the_workflow(project: Path) -> None:
    flow = project / "workflows" / "counted.yaml"
    own = "    steps:\n      - {id: submitted, technique: io, run: echo 1 > costs}\n  verify:"
    flow.write_text(flow.read_text().replace("  verify:", own))
    arguments = {"workflow": "counted", "patch": new_cost(50), "why": "by vectors", "technique": "compute"}
    (said,) = ask(project, "--allow-run", ("judge_patch", arguments))
    assert said.data["decision"] == "kept", said
    (tried,) = said.data["run"]["optimizations"]
    assert (tried["technique"], tried["why"]) == ("compute", "by vectors")


@pytest.mark.long  # the command behind it has tests of its own
def test_a_bisection_names_the_commit(project: Path) -> None:
    for number in range(4):
        commit(project, f"change {number}", note=str(number))
    slow = commit(project, "slower", costs="150\n")
    commit(project, "later", note="later")
    (said,) = ask(project, "--allow-run", ("bisect", {"workflow": "counted", "good": "HEAD~5"}))
    assert said.data["outcome"] == "found", said
    assert (said.data["first_bad"]["revision"], said.data["first_bad"]["files"]) == (slow, ["costs"])
    assert said.data["regression"]["change"]["value"] == 0.5
    assert said.progress
