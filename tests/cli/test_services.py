"""No process and no port of a service is left, however a run ends."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow, start, write
from tests.execute.test_child import DEADLINE, wait_until
from tests.repositories import git

SERVER = ROOT / "examples/python-service/server.py"
LOAD = ROOT / "examples/python-service/load.py"
FLOW = f"""
name: served
stages:
  build:
    - id: server
      run: |
        echo $$ $PERFFLOW_PORT > service
        exec python3 {SERVER} --port $PERFFLOW_PORT
      background: true
      ready: {{port: "${{{{ env.PERFFLOW_PORT }}}}"}}
  baseline:
    - id: load
      run: python3 {LOAD} --port ${{{{ steps.server.outputs.port }}}} --requests 20 --clients 2 AND
      parse: {{json: {{time: "latencies[]", rate: rate}}, units: {{time: s, rate: 1/s}}}}
      RUNS
"""


def flow(folder: Path, *, runs: int, then: str = "") -> None:
    write(folder, FLOW.replace("AND", then).replace("RUNS", f"runs: {runs}"))


def service(folder: Path) -> tuple[int, int]:
    """Process id and port of the service."""
    pid, port = map(int, (folder / "service").read_text().split())
    return pid, port


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def require_gone(folder: Path) -> None:
    pid, port = service(folder)
    wait_until(lambda: not is_running(pid), "the service still runs")
    assert not accepts(port)


def is_measuring(folder: Path) -> bool:
    events = folder / ".perfflow/runs/latest/events.jsonl"
    return events.exists() and '"sample"' in events.read_text()


def test_a_service_is_gone_after_a_run(tmp_path: Path) -> None:
    flow(tmp_path, runs=2)
    done = perfflow("run", "flow.yaml", "--json", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stderr
    rows = {row["metric"]: row for row in json.loads(done.stdout)["benchmarks"]}
    assert rows["time"]["baseline"]["n"] == 2
    assert rows["rate"]["baseline"]["value"] > 0
    require_gone(tmp_path)


def test_a_service_is_gone_after_a_failure(tmp_path: Path) -> None:
    flow(tmp_path, runs=2, then="&& exit 5")
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 3
    require_gone(tmp_path)


def test_a_service_that_dies_is_named(tmp_path: Path) -> None:
    flow(tmp_path, runs=2, then="&& kill -9 ${{ steps.server.outputs.pid }}")
    done = perfflow("run", "flow.yaml", "--progress", "plain", cwd=tmp_path)
    assert done.returncode == 3
    assert "the service `server` was killed by signal 9 before it was stopped" in done.stderr
    require_gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_service_is_gone_after_an_interruption_and_resume_starts_another(tmp_path: Path, number: int) -> None:
    flow(tmp_path, runs=5)
    process = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    wait_until(lambda: is_measuring(tmp_path), "nothing was measured")
    first = service(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == (130 if number != signal.SIGKILL else -signal.SIGKILL)
    require_gone(tmp_path)
    done = perfflow("run", "flow.yaml", "--resume", "--json", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {step["id"]: step["status"] for step in result["steps"]} == {"server": "done", "load": "done"}
    assert result["benchmarks"][0]["baseline"]["n"] == 5
    assert service(tmp_path) != first
    require_gone(tmp_path)


def test_an_interruption_while_a_service_stops_ends_the_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
stages:
  build:
    - {id: server, run: "trap '' INT TERM; echo up; while :; do sleep 0.1; done", background: true, ready: {regex: up}}
    - {id: user, needs: [server], run: 'true'}
    - {id: later, run: 'touch later'}
""",
    )
    process = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    events = tmp_path / ".perfflow/runs/latest/events.jsonl"
    wait_until(lambda: events.exists() and '"step","id":"user"' in events.read_text(), "the user did not end")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert not (tmp_path / "later").exists()


def test_each_side_of_a_gate_has_a_service_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    write(
        root,
        f"""
name: gated
stages:
  build:
    - id: server
      run: |
        echo $$ $PERFFLOW_PORT > {tmp_path}/$(cat side)
        exec python3 {SERVER} --port $PORT
      env: {{PORT: "${{{{ env.PERFFLOW_PORT }}}}"}}
      background: true
      ready: {{port: "${{{{ env.PERFFLOW_PORT }}}}"}}
  baseline:
    - id: which
      run: |
        cut -d' ' -f2 {tmp_path}/$(cat side) | grep -qx ${{{{ steps.server.outputs.port }}}}
        python3 {LOAD} --port ${{{{ steps.server.outputs.port }}}} --once '/quote?basket=3' > /dev/null
        echo cost $(wc -c < side)
      parse: {{regex: 'cost (?P<cost>[0-9]+)', units: {{cost: '1'}}, better: {{cost: lower}}}}
      runs: 3
""",
    )
    git(root, "init", "-q", "-b", "main")
    (root / "side").write_text("base")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "side").write_text("head-")
    done = perfflow("gate", "flow.yaml", "--base", "main", "--json", cwd=root)
    result = json.loads(done.stdout)
    row = result["benchmarks"][0]
    assert (row["baseline"]["value"], row["candidate"]["value"]) == (4, 5), done.stderr
    pids = [int((tmp_path / name).read_text().split()[0]) for name in ("base", "head-")]
    assert len(set(pids)) == 2
    assert not any(map(is_running, pids))


def test_a_service_of_a_tree_is_refused_in_a_bisection(tmp_path: Path) -> None:
    flow(tmp_path, runs=2)
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(3):
        (tmp_path / "file").write_text(str(number))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"number {number}")
    done = perfflow("bisect", "flow.yaml", "--good", "main~2", "--bad", "main", cwd=tmp_path)
    assert done.returncode == 2
    assert "the service `server` would keep running after the tree of its commit is replaced" in done.stderr


def test_a_plan_shows_what_runs_in_the_background(tmp_path: Path) -> None:
    flow(tmp_path, runs=2)
    shown = perfflow("plan", "flow.yaml", cwd=tmp_path).stdout
    assert "server  (run)  [background]" in shown
    assert "ready: port ${{ env.PERFFLOW_PORT }}" in shown
    assert not (tmp_path / "service").exists()
