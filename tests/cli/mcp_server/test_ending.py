"""The end of calls and servers: cancelled, interrupted, killed, or without a client. No sample is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.cli.mcp_server.agent import Agent, ToolAnswer, session, talk
from tests.cli.mcp_server.conftest import new_cost
from tests.cli.running import RUN, events_of, is_left, samples_of, wait_until
from tests.long import rest_long

LONG = """\
perfflow: 1
name: long
stages:
  baseline:
    - id: first
      run: echo run >> ../starts; echo 1
      runs: 3
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
    - id: second
      run: test -e GO || sleep MARK; echo 2
      runs: 1
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
  optimize: {isolate: off}
  verify:
    - {id: right, run: 'true'}
"""


@pytest.fixture
def mark(project: Path, request: pytest.FixtureRequest) -> str:
    """Seconds that the second step of the workflow ``long`` sleeps. No other process sleeps that long."""
    number = f"6{os.getpid()}{abs(hash(request.node.name)) % 1000:03}"
    (project / "workflows" / "long.yaml").write_text(
        LONG.replace("MARK", number).replace("GO", str(project.parent / "go"))
    )
    return f"sleep {number}"


async def until(is_so: Callable[[], bool], what: str) -> None:
    with anyio.move_on_after(60):
        while not is_so():  # noqa: ASYNC110
            await anyio.sleep(0.05)  # poll, because the end of a descendant process cannot be awaited
        return
    raise AssertionError(what)


def ended(project: Path, mark: str) -> Callable[[], bool]:
    """Return whether all processes of a run are gone, it is marked as interrupted, and its last file is written."""
    run = project / RUN
    return lambda: (
        not is_left(mark) and events_of(run)[-1]["event"] == "interrupted" and (run / "receipt.json").is_file()
    )


async def cancelled(agent: Agent, mark: str, tool: str, **arguments: Any) -> None:
    """Call a tool, and cancel the call while its second step runs."""
    async with anyio.create_task_group() as group:

        async def call() -> None:
            said = await agent.call(tool, **arguments)
            raise AssertionError(said.error or "the call ended by itself")

        group.start_soon(call)
        await until(lambda: is_left(mark), "the step never started")
        group.cancel_scope.cancel()


def test_a_cancelled_run_is_interrupted_and_can_be_resumed(project: Path, mark: str) -> None:
    before: list[str] = []

    async def script(agent: Agent) -> ToolAnswer:
        await cancelled(agent, mark, "run", workflow="long")
        await until(ended(project, mark), "the run did not end")
        stopped = await agent.call("explain")
        assert stopped.data["resume"] == stopped.data["run"]
        before.append((project.parent / "starts").read_text())
        (project.parent / "go").write_text("")
        await agent.call("run", workflow="long", resume=stopped.data["resume"])
        return await agent.call("explain", detail=True)

    said = talk(project, script, "--allow-run", fresh=True)
    assert [(row["name"], row["baseline"]["n"]) for row in said.data["benchmarks"]] == [("first", 3), ("second", 1)]
    # Earlier samples are not measured again.
    assert [(project.parent / "starts").read_text()] == before


@pytest.mark.long  # ends as a run that is cancelled, which this file has
def test_a_cancelled_judgement_is_resumed_by_the_same_call(project: Path, mark: str) -> None:
    arguments = {"workflow": "long", "patch": new_cost(1), "why": "less"}

    async def script(agent: Agent) -> ToolAnswer:
        await cancelled(agent, mark, "judge_patch", **arguments)
        await until(ended(project, mark), "the run did not end")
        (project.parent / "go").write_text("")
        return await agent.call("judge_patch", **arguments, resume="latest")

    said = talk(project, script, "--allow-run", fresh=True)
    assert said.data["decision"] in ("no-gain", "undecided")
    assert said.data["reason"]
    assert [event["event"] for event in events_of(project / RUN)].count("resumed") == 1


@pytest.mark.long  # ends as a run that is cancelled, which this file has
def test_a_comparison_that_is_cancelled_ends(project: Path) -> None:
    mark = f"sleep 7{os.getpid()}1"

    async def script(agent: Agent) -> ToolAnswer:
        await cancelled(agent, mark, "compare", old=mark, new="sleep 0.01")
        await until(lambda: not is_left(mark), "the command goes on")
        return await agent.call("look")

    assert talk(project, script, "--allow-commands", fresh=True).data["workflows"]


@pytest.mark.long  # as a run that is cancelled
def test_calls_that_measure_take_turns(project: Path, mark: str) -> None:
    said: list[str] = []

    async def script(agent: Agent) -> None:
        async with anyio.create_task_group() as group:

            async def first() -> None:
                await agent.call("run", workflow="long")

            async def second() -> None:
                found = await agent.call("run", workflow="counted")
                said.extend(found.progress)

            group.start_soon(first)
            await until(lambda: is_left(mark), "the step never started")
            group.start_soon(second)
            # Read-only calls do not wait.
            assert (await agent.call("look", workflow="long")).data["steps"]
            (project.parent / "go").write_text("")
            await anyio.run_process(["pkill", "-f", "-x", mark])

    talk(project, script, "--allow-run", fresh=True)
    assert said[0] == "waiting: another call of this session is measuring"


@pytest.mark.long  # ends as a run that is cancelled, which this file has
def test_a_run_whose_client_leaves_is_interrupted(project: Path, mark: str) -> None:
    async def leaving() -> None:
        async with session(project, "--allow-run", fresh=True) as agent:
            await cancelled(agent, mark, "run", workflow="long")
        await until(ended(project, mark), "the run did not end")

    anyio.run(leaving)


class Raw:
    """A server with its pipes but no client, so that a test can send anything."""

    def __init__(self, folder: Path, *flags: str) -> None:
        argv = [sys.executable, "-m", "perfflow", "mcp", *flags]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        who = {"name": "raw", "version": "1"}
        self.ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who})
        assert self.answer(0)["result"]["serverInfo"]["name"] == "perfflow"
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, number: int, method: str, params: dict[str, Any]) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == number:
                return message
        raise AssertionError("the server closed its end")

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.mark.parametrize(
    ("number", "status"), rest_long([(signal.SIGTERM, 130), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
)
def test_a_server_that_is_ended_leaves_nothing_running(project: Path, mark: str, number: int, status: int) -> None:
    server = Raw(project, "--allow-run")
    server.ask(1, "tools/call", {"name": "run", "arguments": {"workflow": "long"}})
    wait_until(lambda: is_left(mark), "the step never started")
    server.process.send_signal(number)
    assert server.process.wait(60) == status
    wait_until(ended(project, mark), "the run did not end")
    assert len(samples_of(project / RUN)) == 3
    server.close()


def test_a_client_that_goes_away_in_the_middle_ends_the_run(project: Path, mark: str) -> None:
    server = Raw(project, "--allow-run")
    server.ask(1, "tools/call", {"name": "run", "arguments": {"workflow": "long"}})
    wait_until(lambda: is_left(mark), "the step never started")
    assert server.close() == 0
    assert ended(project, mark)()


def test_lines_that_are_no_messages_do_not_end_the_server(project: Path) -> None:
    server = Raw(project)
    for line in (b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"jsonrpc": "2.0", "id": 5}', b"[" * 100_000):
        server.send(line)
    server.ask(2, "tools/call", {"name": "nothing", "arguments": {}})
    assert "nothing" in json.dumps(server.answer(2))
    server.ask(3, "tools/call", {"name": "look", "arguments": {"workflow": "\ud800"}})
    server.ask(4, "tools/call", {"name": "look", "arguments": {"workflow": "counted"}})
    assert json.loads(server.answer(4)["result"]["content"][0]["text"])["workflow"] == "counted"
    assert server.close() == 0
