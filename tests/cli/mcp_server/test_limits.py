"""The limits of a session: permissions, budgets, paths, and hostile arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.cli.mcp_server.limits import SessionLimits
from perfflow.model.errors import UserError
from tests.cli.mcp_server.agent import Agent, ask, talk
from tests.cli.mcp_server.conftest import COUNTED, new_cost
from tests.long import rest_long

RUNNING: dict[str, dict[str, Any]] = {
    "run": {"workflow": "counted"},
    "judge_patch": {"workflow": "counted", "patch": new_cost(1), "why": "less"},
    "bisect": {"workflow": "counted", "good": "HEAD"},
}
START: dict[str, Any] = {"command": "sh work.sh"}


def test_a_session_only_reads_unless_it_is_allowed_more(project: Path) -> None:
    async def script(agent: Agent) -> None:
        tools = await agent.tools()
        for name, arguments in {**RUNNING, "start": START}.items():
            said = await agent.call(name, **arguments)
            assert "a human can allow it: start the server with `perfflow mcp --allow-run`" in said.error
            assert "perfflow mcp --allow-run" in (tools[name].description or "")
        said = await agent.call("compare", old="touch a", new="touch b")
        assert "start the server with `perfflow mcp --allow-commands`" in said.error
        assert "perfflow mcp --allow-commands" in (tools["compare"].description or "")

    talk(project, script)
    assert not (project / "a").exists()
    assert not (project / ".perfflow").exists()
    assert not (project.parent / "starts").exists()


def test_a_session_that_may_run_workflows_takes_no_commands(project: Path) -> None:
    async def script(agent: Agent) -> None:
        said = await agent.call("compare", old="touch a", new="touch b")
        assert "--allow-commands" in said.error
        said = await agent.call("run", workflow="counted", params={"line": "1p; touch a; sed 1"})
        assert "parameters of a workflow may contain commands" in said.error
        assert "--allow-commands" in said.error
        tools = await agent.tools()
        assert "Not allowed" not in (tools["run"].description or "")

    talk(project, script, "--allow-run")
    assert not (project / "a").exists()


@pytest.mark.long  # measures as long as the budget allows
def test_a_budget_is_cut_to_that_of_the_server(project: Path) -> None:
    asked = [{"budget": "2h"}, {}, {"budget": "soon"}]
    calls = [("run", {"workflow": "counted", **budget}) for budget in asked]
    more, usual, wrong = ask(project, "--allow-run --budget 7s", *calls)
    assert more.data["notes"] == [
        "the budget of 7200 s was cut to 7 s, the limit of the server (perfflow mcp --budget)"
    ]
    for said in (more, usual):
        assert '"budget": 7.0' in Path(said.data["report"]).with_name("result.json").read_text()
    assert "notes" not in usual.data
    assert "write 90s, 10m or 1h 30m" in wrong.error


HOTSPOT = {
    "step": "look",
    "benchmark": "cost",
    "tree": "baseline",
    "location": "f",
    "line": 1,
    "share": 0.5,
    "unit": "time",
    "source": "perf",
    "cause": "",
    "impact": "",
}
PLACES = [
    "../outside.yaml",
    "/etc/passwd",
    "linked.yaml",
    "linked",
    "away/outside.yaml",
    "workflows/../../outside.yaml",
    "circle.yaml",
    "git+https://example.org/x/y@main#flow.yaml",
    "pkg:tests/flow.yaml",
    "owner/name/flow.yaml@main",
    "-n",
    "--help",
    "",
    "a\0b",
    "x" * 20_000,
    ".",
    "workflows",
    "no-such-workflow.yaml",
]


@pytest.fixture
def hostile(project: Path) -> Path:
    """The project, with a workflow outside it, and links to that workflow."""
    outside = project.parent / "outside.yaml"
    outside.write_text(COUNTED)
    (project / "linked.yaml").symlink_to(outside)
    (project / "workflows" / "linked.yaml").symlink_to(outside)
    (project / "away").symlink_to(project.parent)
    (project / "circle.yaml").symlink_to("circle.yaml")
    return project


def require_errors(folder: Path, flags: str, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
    for (name, arguments), said in zip(calls, ask(folder, flags, *calls), strict=True):
        assert said.error, f"{name} {arguments!r:.100}"
        assert "unexpected" not in said.error


def test_workflows_are_those_of_the_project_and_the_library(hostile: Path) -> None:
    given = {"look": {}, **RUNNING}
    calls = [(name, {**arguments, "workflow": place}) for name, arguments in given.items() for place in PLACES]
    calls.remove(("look", {"workflow": ""}))  # lists all workflows
    require_errors(hostile, "--allow-commands", calls)
    linked, outside, misspelt, shipped = ask(
        hostile,
        "--allow-commands",
        *(("look", {"workflow": name}) for name in ("linked", "../outside.yaml", "conted", "lib:two-commands")),
    )
    assert "leads out of the project" in linked.error
    assert "leads out of the project" in outside.error
    assert "did you mean 'counted'" in misspelt.data["problems"][0]["hint"]
    assert shipped.data["valid"]
    assert "parameter 'baseline' has no value" in shipped.data["note"]
    assert not (hostile / ".perfflow" / "runs").exists()
    assert not (hostile.parent / "starts").exists()


def test_runs_are_found_by_their_ids_alone(hostile: Path) -> None:
    runs = ("../../..", "/tmp", "", "a/b", "nope", "--out=x", "x" * 20_000, "a\0b")
    calls = [(name, {"run": run}) for name in ("explain", "hotspots") for run in runs]
    calls += [("run", {"workflow": "counted", "resume": run}) for run in runs]
    require_errors(hostile, "--allow-run", calls)
    assert not (hostile / ".perfflow" / "runs").exists()


def test_options_do_not_come_in_by_arguments(project: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run", {"workflow": "counted", "only": ["--out=x"]}),
        ("run", {"workflow": "counted", "stages": ["--trust"]}),
        ("run", {"workflow": "counted", "base": "--output=x"}),
        ("run", {"workflow": "counted", "params": {"--out": "x"}}),
        ("run", {"workflow": "counted", "params": {"line=1 --out": "x"}}),
        ("run", {"workflow": "counted", "unknown": 1}),
        ("run", {"workflow": ["counted"]}),
        ("bisect", {"workflow": "counted", "good": "--all"}),
        ("bisect", {"workflow": "counted", "good": "--upload-pack=touch x"}),
        ("bisect", {"workflow": "counted", "good": "HEAD", "benchmark": "a\0b"}),
        ("compare", {"old": "", "new": "true"}),
        ("compare", {"old": "sh -c 'open", "new": "true"}),
        ("compare", {"old": "true", "new": "true", "runs": 0}),
        ("compare", {"old": "x" * 20_000, "new": "true"}),
        ("hotspots", {"limit": 0}),
        ("hotspots", {"limit": 10**9}),
    ]
    require_errors(project, "--allow-commands", calls)
    assert not (project / "x").exists()


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("sh work.sh", "sh work.sh"),
        ("./work.sh 'a b' x;y", "./work.sh 'a b' 'x;y'"),
        ("build/later", "build/later"),
        ("touch x", ""),
        ("sh -c 'touch x'", ""),
        ("python3 -m timeit", ""),
        ("python3 ../outside.py", ""),
        ("../outside.sh", ""),
        ("sh linked.sh", ""),
        ("sh", ""),
        ("sh 'work.sh", ""),
    ],
)
def test_a_first_workflow_starts_programs_of_the_project_only(project: Path, command: str, taken: str) -> None:
    (project / "work.sh").write_text("echo 1\n")
    for outside in ("outside.py", "outside.sh"):
        (project.parent / outside).write_text("")
    (project / "linked.sh").symlink_to("../outside.sh")
    limits = SessionLimits(project.resolve(), 1.0, may_run=True)
    if taken:
        assert limits.program(command) == taken
    else:
        with pytest.raises(UserError):
            limits.program(command)
    assert replace(limits, may_command=True).program(command) == command


def patch_of(path: str, old: str = "/dev/null") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- {old}\n+++ b/{path}\n@@ -0,0 +1 @@\n+owned\n"


LINK = """\
diff --git a/out b/out
new file mode 120000
--- /dev/null
+++ b/out
@@ -0,0 +1 @@
+../../../../../../tmp
\\ No newline at end of file
"""
REFUSED = {
    "empty": ("", "the patch is empty"),
    "blank": (" \n", "the patch is empty"),
    "huge": (new_cost(1) + "+" * 1_100_000, "1,000,000 are allowed"),
}
REJECTED = {
    "no patch": "make it faster",
    "leads out": patch_of("../../owned"),
    "writes into git": patch_of(".git/hooks/post-checkout"),
    "through a link": LINK + patch_of("out/owned"),
}


@pytest.mark.parametrize("rejected", rest_long([["leads out", "through a link"], ["no patch", "writes into git"]]))
def test_patches_that_cannot_be_judged_are_refused(project: Path, rejected: list[str]) -> None:
    plain = COUNTED.replace("  optimize:\n    accept: 10%\n    forbid: [workflows/**]\n    isolate: off\n", "")
    (project / "workflows" / "plain.yaml").write_text(plain)

    async def script(agent: Agent) -> None:
        for name, (text, why) in REFUSED.items():
            said = await agent.call("judge_patch", workflow="counted", patch=text, why="x")
            assert why in said.error, name
        for name in rejected:
            said = await agent.call("judge_patch", workflow="counted", patch=REJECTED[name], why="x\ny: [")
            assert said.error or said.data["decision"] in ("forbidden", "incorrect", "undecided"), name
        said = await agent.call("judge_patch", workflow="plain", patch=new_cost(1), why="x")
        assert "plain has no stage 'optimize'" in said.error or "plain.yaml has no stage 'optimize'" in said.error
        said = await agent.call("judge_patch", workflow="counted", patch=new_cost(1), why=" ")
        assert "why is empty" in said.error
        # The server still works.
        assert not (await agent.call("look")).error

    talk(project, script, "--allow-run")
    assert not [*project.parent.glob("owned")]
    assert not (project / ".git" / "hooks" / "post-checkout").exists()


def test_lines_outside_of_the_project_are_not_shown(project: Path) -> None:
    """A profile that names a file outside the project, as for a library, and a link to such a file."""
    secret = project.parent / "secret.py"
    secret.write_text("password = 1\n" * 50)
    (project / "linked.py").symlink_to(secret)

    async def script(agent: Agent) -> None:
        run = await agent.call("run", workflow="counted", stages=["build", "baseline"])
        path = Path(run.data["report"]).with_name("result.json")
        result = json.loads(path.read_text())
        named = (str(secret), "linked.py", "costs")
        result["hotspots"] = [{**HOTSPOT, "rank": rank, "file": file} for rank, file in enumerate(named)]
        path.write_text(json.dumps(result))
        said = await agent.call("hotspots", run=run.data["run"], context=1)
        away, linked, own = said.data["hotspots"]
        for item in (away, linked):
            assert "lines" not in item
            assert "outside the project" in item["lines_note"]
        assert own["lines"] == ["100"]

    talk(project, script, "--allow-run")
