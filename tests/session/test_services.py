"""Background steps with small real servers: when they are ready, which steps run beside them, how they end."""

from __future__ import annotations

import json
import os
import socket
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfflow.execute.child import Spawner
from perfflow.model.criteria import Criteria
from perfflow.model.errors import UserError
from perfflow.model.readings import Reading, reading_of_many
from perfflow.session.evidence import with_service_cpu
from perfflow.session.steps import profile
from tests.long import rest_long
from tests.session.project import Project, flow, row, samples, step
from tests.verdict.records import opening, pairs, planned

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
READY = '{regex: "on (?P<port>[0-9]+)"}'
SERVED = f"{{id: server, argv: [python3, server.py], background: true, ready: {READY}}}"
ASK = "python3 get.py ${{ steps.server.outputs.port }}"
LATENCY = 'parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}'


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
    rest_long(
        [
            '{port: "${{ env.PERFFLOW_PORT }}"}',
            '{url: "http://127.0.0.1:${{ env.PERFFLOW_PORT }}/404"}',
            '{regex: "listening on (?P<port>[0-9]+)"}',
        ]
    ),
)
def test_a_service_is_measured_while_it_lives_and_gone_afterwards(served: Project, ready: str) -> None:
    pid = "${{ steps.server.outputs.pid }}"
    alive = f"""{{id: alive, run: 'test "$(cut -d" " -f1 pid)" = {pid}; kill -0 {pid}'}}"""
    load = f"{{id: load, run: '{ASK}', runs: 2, {LATENCY}}}"
    result = served.run(flow(build=SERVED.replace(READY, ready), baseline=[alive, load]))
    assert [item.status for item in result.steps] == ["done"] * 3
    assert samples(result, "load", "latency") == [pytest.approx(0.003)] * 2
    assert step(result, "server").outputs["pid"] == (served.folder / "pid").read_text().split()[0]
    require_gone(served.folder / "pid")


def test_what_a_service_puts_out_before_it_is_ready_reaches_later_steps(served: Project) -> None:
    run = "run: 'echo token=$PPID-x >> \"$PERFFLOW_OUTPUT\"; exec python3 server.py'"
    said = '{id: said, run: "echo ${{ steps.server.outputs.token }} > said"}'
    server = f'{{id: server, {run}, background: true, ready: {{regex: "^listening"}}}}'
    token = step(served.run(flow(build=[server, said])), "server").outputs["token"]
    assert (served.folder / "said").read_text().strip() == token
    assert token.endswith("-x")


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
    ready = '{url: "http://127.0.0.1:${{ env.PERFFLOW_PORT }}/500"}, timeout: 1s'
    assert step(served.run(flow(build=SERVED.replace(READY, ready))), "server").status == "timeout"
    require_gone(served.folder / "pid")


def test_a_port_that_somebody_else_has_is_not_taken_for_the_service(project: Project) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        server = f"{{id: server, run: sleep 60, background: true, ready: {{port: {port}}}}}"
        result = project.run(flow(build=server))
    assert f"port {port} is in use before the service is started" in step(result, "server").reason


def test_a_service_that_dies_during_a_measurement_fails_the_run_by_its_name(served: Project) -> None:
    # The connection is closed a little before the process has ended.
    run = f"({ASK} die || true) 2> /dev/null; sleep 0.3; echo 3 ms"
    load = f"{{id: load, run: '{run}', runs: 1, warmup: 0, {LATENCY}}}"
    result = served.run(flow(build=SERVED, baseline=[load, "{id: after, run: touch after}"]))
    assert result.verdict == "error"
    assert step(result, "server").status == "failed"
    assert step(result, "load").reason == "the service `server` exited with 7 before it was stopped"
    assert not (served.folder / "after").exists()


def test_a_service_that_dies_in_the_last_profile_fails_the_run(served: Project) -> None:
    profiles = [
        f"{{id: {name}, uses: cprofile, with: {{command: '{ASK}{path}'}}}}"
        for name, path in (("calls", ""), ("end", " die"), ("late", ""))
    ]
    result = served.run(flow(build=SERVED, profile=profiles))
    assert step(result, "calls").status == "done"
    assert "the service `server` exited with 7" in step(result, "end").reason
    assert step(result, "late").reason == "the service `server` exited with 7 before it was stopped"
    assert step(result, "server").status == "failed"
    assert result.verdict == "error"


def test_what_is_needed_by_name_is_stopped_after_the_last_step_that_uses_it(served: Project) -> None:
    alive, gone = (f"kill -0 $(cut -d' ' -f1 {name})" for name in ("pid", "traffic"))
    steps = [
        SERVED,
        SERVED.replace("id: server", "id: traffic").replace("server.py", "server.py, traffic"),
        '{id: uses, needs: [traffic], run: "test -e traffic"}',
        f'{{id: also, needs: [uses], run: "{gone}"}}',
        f'{{id: later, run: "{alive}; ! {gone} 2> /dev/null"}}',
    ]
    result = served.run(flow(build=steps))
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


@pytest.mark.long  # as a service beside one step
def test_steps_in_threads_run_beside_a_service(served: Project) -> None:
    steps = [f"{{id: {name}, needs: [server], run: '{ASK}'}}" for name in "ab"]
    assert served.run(flow(build=SERVED, baseline=steps), jobs=3).verdict == "pass"
    require_gone(served.folder / "pid")


def test_beside_candidates_a_service_runs_in_setup_alone(project: Project) -> None:
    def open_with(stage: str) -> None:
        server = "{id: server, run: ./serve, background: true, ready: {port: 8080}}"
        others = {
            "baseline": '{id: bench, uses: command, with: {command: "true"}}',
            "profile": '{id: cpu, uses: cprofile, with: {command: "python3 x.py"}}',
            "optimize": '{id: c, technique: io, run: "true"}',
            "verify": '{id: tests, run: "true"}',
        }
        project.open(flow(**{stage: server}, **others))

    open_with("setup")
    with pytest.raises(UserError, match=r"with candidates, a service in the stage `[a-z]+` is not available"):
        open_with("build")


@pytest.mark.long  # starts a service for each candidate
def test_a_service_of_setup_serves_every_candidate(tree: Project) -> None:
    cost = 'parse: {regex: "(?P<cost>[0-9]+)", units: {cost: "1"}, better: {cost: lower}}'
    less = "{id: less, technique: algorithm, why: it costs, run: echo 5 > cost}"
    text = flow(
        setup=SERVED,
        baseline=f"{{id: load, run: '{ASK} > /dev/null; cat cost', runs: 8, {cost}}}",
        profile=f"{{id: calls, uses: cprofile, with: {{command: '{ASK}'}}}}",
        optimize=less,
        verify=f"{{id: answers, run: '{ASK}'}}",
    )
    tree.commit({"server.py": SERVER, "get.py": GET, "cost": "10\n", ".gitignore": ".perfflow/\npid\nflow.yaml\n"})
    result = tree.run(text.replace(f"    - {less}", f"    objective: load cost\n    steps:\n      - {less}"))
    assert [(item.id, item.reason) for item in result.steps if item.status != "done"] == []
    assert [(item.id, item.decision) for item in result.optimizations] == [("less", "accepted")]
    require_gone(tree.folder / "pid")


def bench(keys: str, command: str) -> str:
    options = f"with: {{command: {json.dumps(command)}, shell: true}}"
    return flow(baseline=f"{{id: bench, uses: command, runs: 3, {keys}{options}}}")


def test_what_is_left_running_fails_the_step_and_is_named(project: Project) -> None:
    result = project.run(bench("", "sleep 60 & sleep 61 & sleep 0.3"))
    failed = step(result, "bench")
    assert (failed.status, result.verdict, result.benchmarks) == ("failed", "error", [])
    assert "it left processes running when it ended, and what they do is not measured: " in failed.reason
    for part in ("`sleep 60`", "`sleep 61`", "allow: {left-running: WHY}"):
        assert part in failed.reason


def test_the_side_that_leaves_something_is_the_one_that_fails(project: Project) -> None:
    # The shell that is forked becomes the program while the other one sleeps.
    result = project.run(bench("candidate: sleep 60 & sleep 0.3, ", "sleep 0.3"))
    assert (result.verdict, result.benchmarks) == ("error", [])
    assert "not measured: `sleep 60`" in step(result, "bench").reason


def test_what_left_its_session_and_its_environment_is_found(project: Project) -> None:
    assert "`sleep 60`" in step(project.run(bench("", "(setsid env -i sleep 60 &)")), "bench").reason


def test_what_is_allowed_is_named_once_and_goes_on(project: Project) -> None:
    # The second and third run fail if the process of the first one was ended.
    serve = "if test -e pid; then kill -0 $(cat pid); else setsid sleep 60 & echo $! > pid; fi\n"
    keys = "allow: {left-running: the compiler's cache}, "
    result = project.run(bench(keys, f"bash {project.write('serve.sh', serve)}"))
    assert step(result, "bench").status == "done", step(result, "bench").reason
    assert row(result, "bench", "time").baseline is not None
    others = ("hostile machine", "the start of bash itself")
    (said,) = [text for text in step(result, "bench").warnings if not any(other in text for other in others)]
    assert said.startswith("it left processes running (left-running: the compiler's cache): `")


@pytest.mark.parametrize(
    "command", rest_long(["cat big > >(cat > copy)", "python3 tracked.py", "sleep 0.02 & sleep 0.02 & wait"])
)
def test_what_is_only_ending_is_waited_for(project: Project, command: str) -> None:
    project.write("big", "x" * 100_000)
    tracked = "from multiprocessing.shared_memory import SharedMemory\n"
    project.write("tracked.py", tracked + "found = SharedMemory(create=True, size=9)\nfound.close()\nfound.unlink()\n")
    result = project.run(bench("", command))
    assert step(result, "bench").status == "done", step(result, "bench").reason


def test_a_run_that_is_parsed_is_measured_too(project: Project) -> None:
    parse = 'parse: {regex: "(?P<time>.+)", units: {time: s}}'
    result = project.run(flow(baseline=f'{{id: bench, run: "echo 5; sleep 60 &", {parse}, runs: 2}}'))
    assert "`sleep 60`" in step(result, "bench").reason


# -- the CPU time of a service per request

LATENCIES = reading_of_many("time", [0.001, 0.002, 0.003, 0.004], "api")


def test_the_cpu_time_is_shared_by_the_requests() -> None:
    found = with_service_cpu((Reading("rate", 400.0, "api"), LATENCIES), 0.2)
    assert found[2:] == (Reading("service_cpu", 0.05, "api"),)


@pytest.mark.parametrize(
    ("readings", "seconds"),
    [
        ((LATENCIES,), 0.0),  # no service, or it has ended
        ((Reading("time", 0.5, "command"),), 0.2),  # the time of a process, not of requests
        ((Reading("rss", 1.0, "api"),), 0.2),
        ((LATENCIES, reading_of_many("time", [0.1, 0.2], "other")), 0.2),  # whose request is it?
    ],
)
def test_it_is_left_out_where_the_requests_are_not_known(readings: tuple[Reading, ...], seconds: float) -> None:
    assert with_service_cpu(readings, seconds) == readings


def test_a_load_tool_is_profiled_for_as_long_as_its_process_runs_not_as_a_request_takes(tmp_path: Path) -> None:
    events = [opening([planned("load", tool="wrk")], Criteria())]
    events += [item | {"seconds": 4.0} for item in pairs("load", [0.0005] * 3, [0.0006] * 3, "service_cpu")]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in events))
    session = SimpleNamespace(folder=SimpleNamespace(path=tmp_path))
    source = SimpleNamespace(tool=SimpleNamespace(is_suite=False))
    subject = SimpleNamespace(benchmark="load", metric="service_cpu", source=source)
    assert profile._seconds(session, subject) == 2.0  # type: ignore[arg-type]
