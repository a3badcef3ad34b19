"""The Python service and its workflow: what is planted in it shows, and nothing of it is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.examples.trees import copied, run
from tests.execute.test_child import wait_until

EXAMPLE = ROOT / "examples" / "python-service"


@pytest.fixture
def port(tmp_path: Path) -> Any:
    """Port of a service of its own."""
    said = tmp_path / "said"
    with said.open("w") as stream:
        server = subprocess.Popen([sys.executable, EXAMPLE / "server.py", "--port", "0"], stdout=stream)
    wait_until(lambda: said.read_text().endswith("\n"), "the service did not start")
    yield said.read_text().split()[-1]
    server.terminate()
    server.wait()


def load(port: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, EXAMPLE / "load.py", "--port", port, *words])


def test_the_load_generator_says_what_it_saw(port: str) -> None:
    found = json.loads(load(port, "--clients", "3", "--requests", "20", "--warmup", "0").stdout)
    assert (found["requests"], found["errors"], len(found["latencies"])) == (60, 0, 60)
    assert min(found["latencies"]) <= found["p50"] <= found["p95"] <= found["p99"] <= max(found["latencies"])
    assert found["rate"] > 0


@pytest.mark.parametrize("path", ["/quote?basket=none", "/quote?basket=0", "/quote?basket=9999", "/elsewhere"])
def test_an_answer_that_is_an_error_fails_the_load(port: str, path: str) -> None:
    done = load(port, "--path", path, "--clients", "1", "--requests", "3", "--warmup", "0")
    assert done.returncode == 1
    assert json.loads(done.stdout)["errors"] == 3


def test_a_quote_is_the_one_that_is_expected(port: str) -> None:
    assert load(port, "--once", "/quote?basket=120").stdout == (EXAMPLE / "expected" / "quote.json").read_text()


@pytest.mark.long  # a whole workflow; tests/session/test_services.py measures a service
def test_the_workflow_measures_profiles_and_checks_the_live_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    copied(tmp_path, "examples/python-service", "workflows/python-service.yaml")
    words = ("--budget", "60s", "--progress", "off", "--json")
    done = perfflow("run", "workflows/python-service.yaml", *words, cwd=tmp_path, measured=True)
    assert done.returncode in (0, 1, 4), done.stderr  # how fast this machine is, is no matter of the test
    result = json.loads(done.stdout)
    steps = {step["id"]: step for step in result["steps"]}
    assert {step["status"] for name, step in steps.items() if name != "sampled"} == {"done"}
    assert {row["metric"] for row in result["benchmarks"] if row["name"] == "service"} == {
        *("time", "rate", "rss", "service_cpu")
    }
    assert [check["status"] for check in result["verification"]] == ["passed"]
    (path,) = tmp_path.glob(".perfflow/runs/2*/events.jsonl")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    (pid,) = [event["outputs"]["pid"] for event in events if event.get("id") == "server"]
    assert not Path(f"/proc/{pid}").exists()
