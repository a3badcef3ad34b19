"""``perfflow clean`` and the patches that the MCP server wrote. See also ``cases/clean_*.txt``."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from perfflow.cli.mcp_server import answers
from perfflow.cli.mcp_server.limits import SessionLimits
from tests.cli.shell import perfflow, write

FLOW = "stages: {baseline: [{id: nap, uses: command, runs: 2, with: {command: sleep 0.01}}]}\n"
OLD = time.time() - 40 * 86400


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (OLD, OLD))


def test_a_patch_goes_with_the_last_run_that_judged_it(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    submitted, runs = {}, {}
    for name in ("judged", "kept", "fresh"):
        # Written and run as by the MCP server.
        limits = SessionLimits(tmp_path, 60, may_run=True)
        steps = [{"id": "nap", "stage": "baseline", "role": "measure"}]
        submitted[name] = answers.submit(limits, "flow.yaml", steps, f"--- {name}\n", name, "io").workflow.parent
    for name in ("judged", "kept"):
        workflow = submitted[name] / "judge.yaml"
        workflow.write_text(f"perfflow: 1\nextends: {json.loads(workflow.read_text())['extends']}\n")
        ran = perfflow("run", str(workflow.relative_to(tmp_path)), "--progress=off", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        age(submitted[name])
        runs[name] = (tmp_path / ".perfflow/runs/latest").resolve()
    age(runs["judged"])
    # The newest run needs its patch to be resumed. A new patch may be about to run.
    done = perfflow("clean", "runs", "--keep=0", "-n", cwd=tmp_path)
    assert [path for path in submitted.values() if str(path) in done.stdout] == [submitted["judged"]]
    assert all(path.is_dir() for path in submitted.values())
    done = perfflow("clean", "runs", "--keep=0", cwd=tmp_path)
    assert (done.returncode, f"patch  {submitted['judged']}" in done.stdout) == (0, True)
    assert [name for name, path in submitted.items() if path.is_dir()] == ["kept", "fresh"]
    assert (runs["judged"].is_dir(), runs["kept"].is_dir()) == (False, True)
    # Neither a running run nor its patch is removed.
    with (runs["kept"] / "events.jsonl").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        perfflow("clean", "runs", "--keep=0", "--older-than=0", cwd=tmp_path)
    assert [name for name, path in submitted.items() if path.is_dir()] == ["kept"]
