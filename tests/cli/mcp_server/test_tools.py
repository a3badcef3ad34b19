"""Every tool, called by the SDK's client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.cli.mcp_server import answers
from perfflow.model.version import VERSION
from tests.cli.mcp_server.agent import Agent, ToolAnswer, ask, talk
from tests.cli.mcp_server.conftest import commit, new_cost, new_file
from tests.repositories import git

NAMES = {"look", "start", "run", "compare", "judge_patch", "hotspots", "bisect", "explain"}
BRIEF = 4000
"""Bytes of a brief answer: less than 1,000 tokens of a language model, of about four bytes each."""


def test_all_tools_are_described_in_few_words(project: Path) -> None:
    async def script(agent: Agent) -> None:
        listed = await agent.client.list_tools()
        # A client gives this to its model with each request: less than 2,000 tokens of about four bytes.
        assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < 8000
        tools = {tool.name: tool for tool in listed.tools}
        assert set(tools) == NAMES
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is None
        hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations}
        assert {name for name, only in hints.items() if only} == {"look", "hotspots", "explain"}
        about = agent.client.server_info
        assert about is not None
        assert (about.name, about.version) == ("perfflow", VERSION)
        assert "Measure first" in (agent.client.instructions or "")

    talk(project, script)


def test_agents_look_at_workflows(project: Path) -> None:
    (project / "workflows" / "odd.yaml").write_text("perfflow: 1\nstages: {baselin: []}\n")

    async def script(agent: Agent) -> None:
        listed = await agent.call("look")
        assert listed.size < BRIEF
        own = {item["name"]: item for item in listed.data["workflows"]}
        assert own["counted"]["description"].startswith("The cost is a number")
        assert {"perf", "command"} <= set(listed.data["tools"])
        whole = (await agent.call("look", detail=True)).data
        assert {tool["name"] for tool in whole["tools"]} >= set(listed.data["tools"])

        planned = (await agent.call("look", workflow="counted")).data
        assert [step["id"] for step in planned["steps"]] == ["make", "cost", "right"]
        assert (planned["workflow"], planned["valid"], planned["problems"]) == ("counted", True, [])
        whole = (await agent.call("look", workflow="workflows/counted.yaml", detail=True)).data
        assert [step["role"] for step in whole["steps"]] == ["work", "measure", "check"]

        wrong = (await agent.call("look", workflow="odd")).data
        assert not wrong["valid"]
        assert any("did you mean `baseline`" in problem["message"] for problem in wrong["problems"])
        assert wrong["problems"][0]["line"] == 2

    talk(project, script)
    assert not (project / ".perfflow").exists()
    assert not (project.parent / "starts").exists()


def test_a_run_is_judged_and_explained(project: Path) -> None:
    run = ("run", {"workflow": "counted", "budget": "30s"})
    whole_run = ("explain", {"detail": True})
    ran, explained, whole, hot = ask(project, "--allow-run", run, ("explain", {}), whole_run, ("hotspots", {}))
    assert (ran.error, ran.data["verdict"], ran.data["gate"]) == ("", "pass", "pass")
    assert [(row["name"], row["value"]) for row in ran.data["benchmarks"]] == [("cost", 100.0)]
    assert [(item["requirement"], item["status"]) for item in ran.data["targets"]] == [("<200", "met")]
    assert Path(ran.data["report"]).is_file()
    # One numbered line for each ended step, in order.
    assert [line.split()[2] for line in ran.progress if line.startswith("✓")] == ["make", "cost", "right"]
    assert ran.counts == list(range(1, len(ran.counts) + 1))
    assert explained.data == ran.data
    assert "review:gate:perf = pass" in whole.data["text"]
    assert whole.data["benchmarks"][0]["baseline"]["n"] > 1
    assert "samples" not in whole.data["benchmarks"][0]["baseline"]
    assert (hot.data["hotspots"], hot.data["run"]) == ([], ran.data["run"])
    assert "the run has no profile" in hot.data["note"]


def test_a_brief_answer_is_short_however_much_there_is_to_say() -> None:
    rows = [{"name": f"test_{number}", "value": number / 7, "tail": ["x" * 5000]} for number in range(500)]
    sent = answers.sent({"verdict": "fail", "benchmarks": rows, "reasons": ["slower"]})
    assert len(sent.encode()) < BRIEF
    found = json.loads(sent)
    assert (found["verdict"], found["reasons"], found["benchmarks"][1]["value"]) == ("fail", ["slower"], 0.1429)
    assert found["left_out"] == {"benchmarks": 500 - len(found["benchmarks"]), "hint": "ask with detail: true"}
    assert json.loads(answers.sent({"benchmarks": rows}, detail=True)) == {"benchmarks": rows}


def test_a_run_says_what_failed(project: Path) -> None:
    (project / "broken").write_text("")
    (said,) = ask(project, "--allow-run", ("run", {"workflow": "counted", "stages": ["build", "baseline"]}))
    assert said.data["verdict"] in ("fail", "error")
    assert said.data["failed"][0]["id"] == "make"
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
        return said, await agent.call("explain", run=said.data["run"])

    said, explained = talk(project, script, "--allow-commands")
    (row,) = said.data["benchmarks"]
    assert (row["decision"], said.data["verdict"]) == ("improved", "pass")
    assert explained.data["benchmarks"] == said.data["benchmarks"]


@pytest.mark.long  # five judgements; other tests, also of test_limits.py, keep and reject a patch
def test_patches_are_kept_or_rejected_with_figures(project: Path) -> None:
    patches = (new_file("wrong", "x"), new_file("broken", "x"), new_file("note", "x"), new_cost(95), new_cost(40))
    # The check names the file, so that patches of strangers may not touch it.
    flow = project / "workflows" / "counted.yaml"
    flow.write_text(flow.read_text().replace("isolate: off", "isolate: off\n    allow: [wrong]"))
    before = git(project, "status", "--porcelain"), (project / "costs").read_text()
    call = {"workflow": "counted", "why": "a try"}
    calls = [("judge_patch", {**call, "patch": text, "detail": text == patches[-1]}) for text in patches]
    found = ask(project, "--allow-run", *calls)
    assert [said.error for said in found] == [""] * 5
    assert max(said.size for said in found[:-1]) < BRIEF / 4
    wrong, broken, useless, small, good = (said.data for said in found)
    assert "kept" not in {item["decision"] for item in (wrong, broken, useless, small)}
    assert "correctness does not hold: step right" in wrong["reason"]
    assert (wrong["effect"], wrong["branch"], wrong["revision"]) == (None, None, None)
    assert "make" in broken["reason"]
    assert (useless["effect"]["value"], small["effect"]["value"]) == (0.0, pytest.approx(0.05))
    assert (good["decision"], good["code"], good["flags"]) == ("kept", "proven", ["fixed-input", "not-isolated"])
    assert (good["tried"]["before"], good["tried"]["after"]) == (100.0, 40.0)
    assert good["effect"]["value"] == pytest.approx(0.6)
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
    said, explained = ask(project, "--allow-run", ("judge_patch", arguments), ("explain", {"detail": True}))
    assert said.data["decision"] == "kept", said
    (tried,) = explained.data["optimizations"]
    assert (tried["technique"], tried["why"]) == ("compute", "by vectors")
    # A stranger's patch is judged in a sandbox and must not touch the tests, unless the workflow says something else.
    (written,) = project.glob(".perfflow/patches/*/judge.yaml")
    stage = json.loads(written.read_text())["stages"]["optimize"]
    assert {key: stage.get(key) for key in ("isolate", "protect")} == {"isolate": None, "protect": "tests"}


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
