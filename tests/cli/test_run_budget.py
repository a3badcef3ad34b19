"""``perfflow run --budget``: the time of all measuring together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write

FLOW = """
stages:
  baseline:
    - id: bench
      run: echo time $((100 + RANDOM % 100)) us
      candidate: {command: echo time $((100 + RANDOM % 100)) us}
      parse: {regex: "time (?P<time>[0-9.]+)", units: {time: us}}
"""


@pytest.mark.parametrize("text", ["0s", "10", "soon", "-5s", "5MB", ""])
def test_what_is_no_time_exits_2_with_a_remedy(text: str, tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    done = perfflow("run", "flow.yaml", "--budget", text, cwd=tmp_path)
    assert done.returncode == 2
    assert "--budget" in done.stderr
    assert "hint: " in done.stderr
    assert not (tmp_path / ".perfflow").exists()


def test_what_it_ended_is_unproven_and_named_everywhere(tmp_path: Path) -> None:
    flow = FLOW.replace("100 + RANDOM % 100", "1 + RANDOM")
    write(tmp_path, flow.replace("- id: bench", "- id: bench\n      budget: 1h"))
    done = perfflow("run", "flow.yaml", "--budget", "6s", cwd=tmp_path)
    assert done.returncode == 4
    assert "total budget ran out" in done.stdout
    folder = tmp_path / ".perfflow" / "runs" / "latest"
    row = json.loads((folder / "result.json").read_text())["benchmarks"][0]
    assert (row["decision"], row["stopped"]) == ("unproven", "total budget")
    page = (folder / "report.md").read_text()
    assert "the run's total budget ran out" in page
    assert "--budget 6s" in page
    assert perfflow("report", "--unproven=pass", cwd=tmp_path).returncode == 0


def test_what_was_not_measured_passes_never(tmp_path: Path) -> None:
    write(tmp_path, FLOW.replace("echo time $((100 + RANDOM % 100)) us\n", "sleep 60\n", 1))
    done = perfflow("run", "flow.yaml", "--budget", "2s", "--unproven", "pass", cwd=tmp_path)
    assert done.returncode == 3
    assert "not measured: 1 benchmark before the time was over: bench" in done.stdout
    assert "next: give it more time to measure bench" not in done.stdout  # only a gate has a route
    result = json.loads((tmp_path / ".perfflow" / "runs" / "latest" / "result.json").read_text())
    assert [row["decision"] for row in result["benchmarks"]] == ["not measured"]
    report = perfflow("report", "--unproven", "pass", cwd=tmp_path)
    assert report.returncode == 3


def test_a_gate_has_ten_minutes_and_can_have_no_limit(tmp_path: Path) -> None:
    told = perfflow("gate", "--help", cwd=tmp_path).stdout
    assert "10m" in told
    write(tmp_path, FLOW)
    assert perfflow("run", "flow.yaml", "--budget", "off", "--dry-run", cwd=tmp_path).returncode == 0
