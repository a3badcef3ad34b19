"""A report of Nsight Systems through the real command. See also ``cases/gpu_reports.txt``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import perfflow, write
from tests.tools.nsys.databases import build


def test_a_database_of_nsys_tells_launches_that_the_model_works_out(tmp_path: Path) -> None:
    build(tmp_path / "a.sqlite")
    write(tmp_path, "stages: {profile: {steps: [{id: kernels, uses: nsys, with: {report: a.sqlite}}]}}\n")
    done = perfflow("run", "flow.yaml", "--out", "run", "--unproven=pass", "--progress", "off", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    saxpy = result["kernels"][0]
    assert (saxpy["device"], saxpy["capability"], saxpy["grid"], saxpy["threads"]) == ("Model GPU", "7.5", 256, 128)
    assert saxpy["registers"] == 24
    # On 7.5 an SM has 32 slots for warps: 8 blocks of 4.
    assert (saxpy["model"]["blocks"], saxpy["model"]["occupancy"]) == (8, 1.0)
    assert saxpy["bound"] is None
    assert {peak["device"] for peak in result["peaks"]} == {"Model GPU"}
    verified = perfflow("receipt", "verify", "run", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/result.json").write_bytes((tmp_path / "run/result.json").read_bytes())
    assert json.loads(perfflow("report", "alone/result.json", "--json", cwd=tmp_path).stdout) == result
