"""Figures of a workflow's own: what got worse or changed is never hidden."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import perfflow, write

FLOW = """
stages:
  baseline:
    - id: a
      run: "echo served 500, widgets 500, took 10"
      candidate: "echo served 250, widgets 250, took 10"
      runs: 16
      parse:
        regex: "served (?P<served>[0-9]+), widgets (?P<widgets>[0-9]+), took (?P<time>[0-9]+)"
        units: {served: req/s, widgets: "1", time: ms}
"""


def test_a_rate_that_halves_beside_an_unchanged_time_fails_and_a_change_without_direction_is_shown(
    tmp_path: Path,
) -> None:
    write(tmp_path, FLOW)
    done = perfflow("run", "flow.yaml", "--progress", "off", "--out", "out", cwd=tmp_path)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    rows = {row["metric"]: row for row in result["benchmarks"]}
    assert (done.returncode, result["verdict"]) == (1, "fail")
    served, widgets = rows["served"], rows["widgets"]
    assert (served["better"], served["decision"], served["gating"]) == ("higher", "regressed", True)
    assert (widgets["decision"], widgets["changed"]) == (None, True)
    first = done.stdout.splitlines()[0]
    assert "1 regressed" in done.stdout
    assert "1 changed (its direction is not known)" in done.stdout, first
    assert "say `better: {widgets: lower}`" in (tmp_path / "out" / "report.md").read_text()
