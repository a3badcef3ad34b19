"""``perfflow calibrate`` of a tool that builds its program: the budget is only for comparisons."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import perfflow, write
from tests.tools.lines_adapter import ADAPTER
from tests.tools.test_provided import install

BUILD = """

def preparations(call):
    return (Invocation(("sleep", "3")),)


ADAPTER = Adapter(
    build=Builder(preparations=preparations),
"""
BUILT = ADAPTER.replace("\n\nADAPTER = Adapter(\n", BUILD).replace("import (\n", "import (\n    Builder,\n", 1)
STEP = "{{id: {}, uses: lines, runs: 3, with: {{command: [echo, '{{\"time\": 0.5}}']}}}}"


def test_what_is_built_first_takes_none_of_the_budget(tmp_path: Path) -> None:
    """Either build takes longer than a step's share, and both longer than the whole budget."""
    site = tmp_path / "site"
    site.mkdir()
    install(site, "slow", {"slow_adapter": BUILT}, {"lines": "slow_adapter:ADAPTER"})
    flow = str(write(tmp_path, f"stages: {{baseline: [{STEP.format('one')}, {STEP.format('two')}]}}\n"))
    env = {"PYTHONPATH": str(site)}
    done = perfflow("calibrate", flow, "--trials", "1", "--budget", "4s", "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert {item["finding"]["step"] for item in found["entries"]} == {"one", "two"}
    assert found["skipped"] == []
