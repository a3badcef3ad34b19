"""A service is stopped however a run is interrupted, and a resumed run starts another one."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.running import DEADLINE, RUN, has_event, wait_for_samples, wait_until
from tests.cli.shell import ROOT, perfflow, start, write
from tests.long import rest_long

SERVICE = ROOT / "examples" / "python-service"
FLOW = f"""
name: served
stages:
  build:
    - id: server
      run: |
        echo $$ $PERFFLOW_PORT > service
        exec python3 {SERVICE}/server.py --port $PERFFLOW_PORT
      background: true
      ready: {{port: "${{{{ env.PERFFLOW_PORT }}}}"}}
  baseline:
    - id: load
      run: python3 {SERVICE}/load.py --port ${{{{ steps.server.outputs.port }}}} --requests 20 --clients 2
      parse: {{json: {{time: "latencies[]", rate: rate}}, units: {{time: s, rate: 1/s}}}}
      runs: 5
"""
STUBBORN = """
stages:
  build:
    - {id: server, run: "trap '' INT TERM; echo up; while :; do sleep 0.1; done", background: true, ready: {regex: up}}
    - {id: user, needs: [server], run: 'true'}
    - {id: later, run: 'touch later'}
"""


def require_gone(folder: Path) -> str:
    """Wait until the process and the port of the service are gone, and return both."""
    text = (folder / "service").read_text()
    pid, port = text.split()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the service still runs")
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", int(port))) != 0
    return text


@pytest.mark.parametrize(
    ("number", "status"), rest_long([(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
)
def test_a_service_is_gone_after_an_interruption_and_resume_starts_another(
    tmp_path: Path, number: int, status: int
) -> None:
    write(tmp_path, FLOW)
    process = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    wait_for_samples(tmp_path / RUN)
    process.send_signal(number)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == status
    first = require_gone(tmp_path)
    done = perfflow("run", "flow.yaml", "--resume", "--json", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {step["id"]: step["status"] for step in result["steps"]} == {"server": "done", "load": "done"}
    assert result["benchmarks"][0]["baseline"]["n"] == 5
    assert require_gone(tmp_path) != first


def test_an_interruption_while_a_service_stops_ends_the_run(tmp_path: Path) -> None:
    write(tmp_path, STUBBORN)
    process = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    wait_until(lambda: has_event(tmp_path / RUN, event="step", id="user"), "the user did not end")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert not (tmp_path / "later").exists()
