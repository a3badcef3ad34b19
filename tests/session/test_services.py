"""Background steps with small real servers: when they are ready, which steps run beside them, how they end."""

from __future__ import annotations

import os
import socket
from functools import partialmethod
from pathlib import Path

import pytest

from perfflow.execute.child import Spawner
from perfflow.jobs.run.run import RunRequest, run
from perfflow.model.errors import UserError
from perfflow.session.open_workflow import open_workflow
from tests.repositories import git
from tests.session.project import Project, row, step

SERVER = """
import http.server, os, pathlib, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            os._exit(7)
        self.send_response(int(self.path[1:] or 200))
        self.end_headers()
        self.wfile.write(b"3 ms")

    def log_message(self, *args):
        pass

port = int(os.environ["PERFFLOW_PORT"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("listening on", port, flush=True)
pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "pid").write_text(f"{os.getpid()} {port}")
server.serve_forever()
"""
GET = """
import sys, urllib.request
path = sys.argv[2] if len(sys.argv) > 2 else ""
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{path}").read().decode())
"""
LOAD = """
    - id: load
      run: python3 get.py ${{ steps.server.outputs.port }}
      runs: 2
      parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}
"""


@pytest.fixture
def served(project: Project) -> Project:
    project.write("server.py", SERVER)
    project.write("get.py", GET)
    return project


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def require_gone(file: Path) -> None:
    """The process and the port that a server wrote to a file no longer exist."""
    pid, port = map(int, file.read_text().split())
    assert not is_running(pid)
    assert not accepts(port)


@pytest.mark.parametrize(
    "ready",
    [
        '{port: "${{ env.PERFFLOW_PORT }}"}',
        '{url: "http://127.0.0.1:${{ env.PERFFLOW_PORT }}/404"}',
        '{regex: "listening on (?P<port>[0-9]+)"}',
    ],
)
def test_a_service_is_measured_while_it_lives_and_gone_afterwards(served: Project, ready: str) -> None:
    result = served.run(f"""
stages:
  build:
    - {{id: server, argv: [python3, server.py], background: true, ready: {ready}}}
  baseline:
    - id: alive
      run: |
        test "$(cut -d' ' -f1 pid)" = ${{{{ steps.server.outputs.pid }}}}
        kill -0 ${{{{ steps.server.outputs.pid }}}}
{LOAD}""")
    assert [item.status for item in result.steps] == ["done"] * 3
    assert row(result, "load", "latency").baseline.value == pytest.approx(0.003)  # type: ignore[union-attr]
    assert step(result, "server").outputs["pid"] == (served.folder / "pid").read_text().split()[0]
    require_gone(served.folder / "pid")


def test_what_a_service_puts_out_before_it_is_ready_reaches_later_steps(served: Project) -> None:
    result = served.run("""
stages:
  build:
    - id: server
      run: |
        echo token=$PPID-x >> "$PERFFLOW_OUTPUT"
        exec python3 server.py
      background: true
      ready: {regex: "^listening"}
    - {id: said, run: "echo ${{ steps.server.outputs.token }} > said"}
""")
    assert (served.folder / "said").read_text().strip() == step(result, "server").outputs["token"]
    assert step(result, "server").outputs["token"].endswith("-x")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no such file >&2; exit 3", "the service `server` exited with 3 before it was ready"),
        ("exit 0", "exited with 0 before it was ready; it must stay in the foreground"),
        ("kill -9 $$", "was killed by signal 9 before it was ready"),
        ("echo waiting; sleep 60", "was not ready within 0.5 s: no line of its output matches '^ready'"),
    ],
)
def test_a_service_that_does_not_come_up_fails_with_its_output(project: Project, command: str, reason: str) -> None:
    result = project.run(f"""
stages:
  build:
    - {{id: server, run: "{command}", background: true, timeout: 0.5s, ready: {{regex: ^ready}}}}
    - {{id: after, run: touch after}}
""")
    failed = step(result, "server")
    assert failed.status == ("timeout" if "not ready" in reason else "failed")
    assert reason in failed.reason
    assert result.verdict == "error"
    assert not (project.folder / "after").exists()
    if command.startswith("echo"):
        event = next(event for event in project.events() if event.get("id") == "server" and event["event"] == "step")
        assert event["tail"] == ["no such file" if "exit" in command else "waiting"]


def test_a_status_of_500_is_no_answer(served: Project) -> None:
    result = served.run("""
stages:
  build:
    - id: server
      argv: [python3, server.py]
      background: true
      timeout: 1s
      ready: {url: "http://127.0.0.1:${{ env.PERFFLOW_PORT }}/500"}
""")
    assert step(result, "server").status == "timeout"
    require_gone(served.folder / "pid")


def test_a_port_that_somebody_else_has_is_not_taken_for_the_service(project: Project) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = project.run(f"""
stages:
  build:
    - {{id: server, run: sleep 60, background: true, ready: {{port: {port}}}}}
""")
    assert f"port {port} is in use before the service is started" in step(result, "server").reason


def test_a_service_that_dies_during_a_measurement_fails_the_run_by_its_name(served: Project) -> None:
    result = served.run("""
stages:
  build:
    - {id: server, argv: [python3, server.py], background: true, ready: {regex: "on (?P<port>[0-9]+)"}}
  baseline:
    - id: load
      # The connection is closed a little before the process has ended.
      run: (python3 get.py ${{ steps.server.outputs.port }} die || true) 2> /dev/null; sleep 0.3; echo 3 ms
      runs: 1
      warmup: 0
      parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}
    - {id: after, run: touch after}
""")
    assert result.verdict == "error"
    assert step(result, "server").status == "failed"
    assert step(result, "load").reason == "the service `server` exited with 7 before it was stopped"
    assert not (served.folder / "after").exists()


def test_a_service_that_dies_in_the_last_profile_fails_the_run(served: Project) -> None:
    result = served.run("""
stages:
  build:
    - {id: server, argv: [python3, server.py], background: true, ready: {regex: "on (?P<port>[0-9]+)"}}
  profile:
    - {id: calls, uses: cprofile, with: {command: "python3 get.py ${{ steps.server.outputs.port }}"}}
    - {id: end, uses: cprofile, with: {command: "python3 get.py ${{ steps.server.outputs.port }} die"}}
    - {id: late, uses: cprofile, with: {command: "python3 get.py ${{ steps.server.outputs.port }}"}}
""")
    assert step(result, "calls").status == "done"
    assert "the service `server` exited with 7" in step(result, "end").reason
    assert step(result, "late").reason == "the service `server` exited with 7 before it was stopped"
    assert step(result, "server").status == "failed"
    assert result.verdict == "error"


def test_what_is_needed_by_name_is_stopped_after_the_last_step_that_uses_it(served: Project) -> None:
    result = served.run("""
stages:
  build:
    - {id: server, argv: [python3, server.py], background: true, ready: {regex: "on (?P<port>[0-9]+)"}}
    - id: traffic
      argv: [python3, server.py, traffic]
      background: true
      ready: {regex: "on (?P<port>[0-9]+)"}
    - {id: uses, needs: [traffic], run: "test -e traffic"}
    - {id: also, needs: [uses], run: "kill -0 $(cut -d' ' -f1 traffic)"}
    - id: later
      run: |
        kill -0 $(cut -d' ' -f1 pid)
        ! kill -0 $(cut -d' ' -f1 traffic) 2> /dev/null
""")
    assert [(item.id, item.status) for item in result.steps if item.status != "done"] == []
    require_gone(served.folder / "pid")


def test_a_service_that_ignores_signals_and_one_that_leaves_its_session_are_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spawner, "run", partialmethod(Spawner.run, grace=0.2))
    result = project.run("""
stages:
  build:
    - id: server
      background: true
      ready: {regex: ready}
      run: |
        trap '' INT TERM
        setsid sleep 300 & echo $! > daemon
        echo $$ > pid; echo ready
        while true; do sleep 1; done
""")
    assert step(result, "server").status == "done"
    for name in ("pid", "daemon"):
        assert not is_running(int((project.folder / name).read_text()))


def test_steps_in_threads_run_beside_a_service(served: Project) -> None:
    result = served.run(
        """
stages:
  build:
    - {id: server, argv: [python3, server.py], background: true, ready: {regex: "on (?P<port>[0-9]+)"}}
  baseline:
    - {id: a, needs: [server], run: "python3 get.py ${{ steps.server.outputs.port }}"}
    - {id: b, needs: [server], run: "python3 get.py ${{ steps.server.outputs.port }}"}
""",
        jobs=3,
    )
    assert result.verdict == "pass"
    require_gone(served.folder / "pid")


def test_beside_candidates_a_service_runs_in_setup_alone(project: Project) -> None:
    flow = """
stages:
  {stage}:
    - {{id: server, run: ./serve, background: true, ready: {{port: 8080}}}}
  baseline:
    - {{id: bench, uses: command, with: {{command: "true"}}}}
  profile:
    - {{id: cpu, uses: cprofile, with: {{command: "python3 x.py"}}}}
  optimize:
    - {{id: c, technique: io, run: "true"}}
  verify:
    - {{id: tests, run: "true"}}
"""
    project.open(flow.format(stage="setup"))
    with pytest.raises(UserError, match=r"with candidates, a service in the stage `[a-z]+` is not available"):
        project.open(flow.format(stage="build"))


def test_a_service_of_setup_serves_every_candidate(served: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(served.folder.parent / "cache"))
    served.write("cost", "10\n")
    served.write(".gitignore", ".perfflow/\npid\n")
    served.write(
        "flow.yaml",
        """perfflow: 1
stages:
  setup:
    - {id: server, argv: [python3, server.py], background: true, ready: {regex: "on (?P<port>[0-9]+)"}}
  baseline:
    - id: load
      run: python3 get.py ${{ steps.server.outputs.port }} > /dev/null; cat cost
      runs: 8
      parse: {regex: "(?P<cost>[0-9]+)", units: {cost: "1"}, better: {cost: lower}}
  profile:
    - {id: calls, uses: cprofile, with: {command: "python3 get.py ${{ steps.server.outputs.port }}"}}
  optimize:
    objective: load cost
    steps:
      - {id: less, technique: algorithm, why: it costs, run: echo 5 > cost}
  verify:
    - {id: answers, run: "python3 get.py ${{ steps.server.outputs.port }}"}
""",
    )
    git(served.folder, "init", "-q", "-b", "main")
    git(served.folder, "add", ".")
    git(served.folder, "commit", "-qm", "one")
    opened = open_workflow("flow.yaml")
    opened.require_usable(to_run=True)
    result = run(opened, RunRequest(seed=1), served.told).result
    assert [(item.id, item.reason) for item in result.steps if item.status != "done"] == []
    assert [(item.id, item.decision) for item in result.optimizations] == [("less", "accepted")]
    require_gone(served.folder / "pid")
