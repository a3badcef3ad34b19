"""What happens to a run on a cluster when a part of it is killed with -9: ``python -m benchmarks.cluster_deaths``.

A benchmark of 40 samples is measured by a job, and after five of them one part is killed. The table says how long
what measured lived on, how many jobs there were and how many samples the run has in the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import two_nodes
from perfflow.jobs.cluster.agent import JobFolder, Worker

SAMPLES, BEFORE = 40, 5
FLOW = f"""perfflow: 1
name: deaths
stages:
  baseline:
    - {{id: one, uses: command, runs: {SAMPLES}, with: {{command: sleep 0.2}}, runs-on: zen2}}
"""
SITE = "executors:\n  lab: {engine: slurm, partition: bench, group: [1s, 60s], poll: 1s, grace: 5s}\n"
PARTS = ("client", "what measures", "agent", "slurmstepd", "slurmd", "controller")
MEASURING = ("what measures", "agent", "slurmstepd")
"""Parts without which nothing measures."""
PATIENCE = 120.0
"""Seconds for anything to happen."""


def project(folder: Path) -> None:
    """Make the project that is measured."""
    (folder / "flow.yaml").write_text(FLOW)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


def killed(part: str, folder: Path, cluster: Path) -> str:
    """Measure, kill one part, and say what came of it, as a row of the table."""
    perfflow = [sys.executable, "-P", "-m", "perfflow", "run", "flow.yaml"]
    quiet = subprocess.DEVNULL
    client = subprocess.Popen([*perfflow, "--executor", "lab"], cwd=folder, stdout=quiet, stderr=quiet)
    latest = folder / ".perfflow" / "runs" / "latest"
    until(latest.is_symlink)
    job = JobFolder(latest.resolve() / "groups" / "g1" / "1")
    until(lambda: taken(job) >= BEFORE)
    worker = job.worker()
    if worker is None:
        raise RuntimeError("the job has samples and no worker")
    os.kill(process_of(part, client.pid, worker, job.path, cluster), signal.SIGKILL)
    began = time.monotonic()
    if part in MEASURING:
        until(lambda: not two_nodes.processes(str(job.path)))
    lived = time.monotonic() - began
    client.wait()
    if part == "client":
        until(lambda: job.ended() is not None)
        subprocess.run([*perfflow, "--resume"], cwd=folder, stdout=quiet, stderr=quiet, check=True)
    result = json.loads((latest / "result.json").read_text())
    jobs = [own for node in result["nodes"] for own in node["jobs"]]
    samples = {row["baseline"]["n"] for row in result["benchmarks"] if row["metric"] == "time"}
    left = len(two_nodes.processes(str(latest.resolve())))
    shown = f"{lived:.2f} s" if part in MEASURING else "to its end"
    return f"| {part} | {shown} | {jobs[0]['attempt']} | {', '.join(map(str, samples))} | {left} |"


def taken(job: JobFolder) -> int:
    """How many samples a job has stored."""
    try:
        return (job.run / "events.jsonl").read_text().count('"event":"sample"')
    except OSError:
        return 0


def process_of(part: str, client: int, worker: Worker, job: Path, cluster: Path) -> int:
    """The process that is a part."""
    found: Mapping[str, Callable[[], int]] = {
        "client": lambda: client,
        "agent": lambda: worker.pid,
        "what measures": lambda: two_nodes.processes(f"node_run\0{worker.pid}\0{job}")[0],
        "slurmstepd": lambda: two_nodes.processes(f"slurmstepd: [{worker.job}.")[0],
        "slurmd": lambda: int((cluster / "slurmd.n1.pid").read_text()),
        "controller": lambda: int((cluster / "slurmctld.pid").read_text()),
    }
    return found[part]()


def until(condition: Callable[[], Any]) -> None:
    """Wait for something. Raises TimeoutError where it does not happen."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError("it did not happen")
        time.sleep(0.02)


def main() -> None:
    """Kill each part once, each in a cluster of its own: one whose controller died may not trust its nodes."""
    absent = two_nodes.missing()
    if absent:
        print(f"skipped: {absent}")
        return
    print("$ python -m benchmarks.cluster_deaths")
    print("| killed with -9 | what measured lived on | attempts | samples | processes left |\n|---|--:|--:|--:|--:|")
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as made, two_nodes.two_nodes(Path(made) / "slurm") as conf:
            site = Path(made) / "executors.yaml"
            site.write_text(SITE)
            os.environ |= {"SLURM_CONF": str(conf), "PERFFLOW_EXECUTORS": str(site)}
            os.environ |= {"PERFFLOW_LOCK_FILE": f"{made}/lock", "XDG_CACHE_HOME": f"{made}/cache"}
            folder = Path(made) / "project"
            folder.mkdir()
            project(folder)
            print(killed(part, folder, conf.parent), flush=True)


if __name__ == "__main__":
    main()
