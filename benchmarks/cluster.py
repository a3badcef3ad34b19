"""What a group and a command cost on a cluster: ``python -m benchmarks.cluster`` (minutes; ``--help`` for less).

Two nodes of a Slurm are started on this machine. Commands that do nothing are run on them by perfflow, by ``sbatch``
and by ``srun`` in turn. Times are those of one machine, whose processors both nodes and all else share; the ratios are
what counts. CPU is that of what submits and waits, not that of the jobs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks import two_nodes
from benchmarks.overhead.peers import PERFFLOW
from benchmarks.overhead.timing import Job, take
from benchmarks.runner import table
from perfflow.jobs.cluster.agent import ENDED, JobFolder
from perfflow.jobs.cluster.placed_run import GROUPS, partition
from perfflow.jobs.cluster.slurm import VARIABLE
from perfflow.store import run_folder
from perfflow.store.record import record_of

APART, TOGETHER = "apart", "together"
"""Executors that make a group of each step, and one of all."""
SITES = f"""executors:
  {APART}: {{engine: slurm, group: [1s, 2s], poll: 1s, grace: 5s}}
  {TOGETHER}: {{engine: slurm, group: [1000h, 1000h], poll: 1s, grace: 5s}}
"""
FEW = 2
"""Jobs that are taken off the others: one for each node."""
WAIT = 'until [ -z "$(squeue -h -n $name)" ]; do sleep 0.5; done'
"""As often as perfflow looks at its jobs' files."""


def per_group(project: Path, count: int, rounds: int) -> None:
    """Print what each further job costs that does nothing."""
    jobs = {}
    for number in (FEW, count):
        jobs[f"perfflow {number}"] = perfflow(project, number, APART)
        jobs[f"sbatch {number}"] = _shell(
            project,
            f"name=plain-$$; for n in $(seq {number}); do "
            f"sbatch --parsable -J $name -o /dev/null --exclusive --no-requeue --wrap true; done; {WAIT}",
        )
        jobs[f"srun {number}"] = _shell(
            project, f"for n in $(seq {number}); do srun -N 1 -n 1 --exclusive true & done; wait"
        )
    totals = take(jobs, rounds)
    further = count - FEW
    found = {name: (totals[f"{name} {count}"] - totals[f"{name} {FEW}"]).each(further) for name in _names(jobs)}
    table(f"Each further group of one command ({FEW} to {count}, on two nodes)", found, "sbatch")
    whole = {f"{name}, {number}": totals[f"{name} {number}"] for name in _names(jobs) for number in (FEW, count)}
    table("All of them, from the first submission to the end", whole, f"sbatch, {count}")


def per_command(project: Path, count: int, rounds: int) -> None:
    """Print what each further command costs in a job."""
    jobs = {}
    for number in (1, 1 + count):
        jobs[f"perfflow in a group {number}"] = perfflow(project, number, TOGETHER)
        jobs[f"perfflow here {number}"] = perfflow(project, number, "local")
        for name, command in (("srun in a job", "srun -n 1 true"), ("batch script", "/bin/true")):
            text = f"for n in $(seq {number}); do {command}; done"
            submit = f"name=plain-$$; sbatch --parsable -J $name -o /dev/null --exclusive --wrap '{text}'"
            jobs[f"{name} {number}"] = _shell(project, f"{submit}; {WAIT}")
    totals = take(jobs, rounds)
    found = {name: (totals[f"{name} {1 + count}"] - totals[f"{name} 1"]).each(count) for name in _names(jobs)}
    table(f"Each further command in one job (1 to {1 + count})", found, "srun in a job")


def _names(jobs: Mapping[str, Job]) -> list[str]:
    """Names without the number behind them, in order."""
    return list(dict.fromkeys(name.rpartition(" ")[0] for name in jobs))


def _shell(project: Path, text: str) -> Job:
    return Job(("sh", "-ec", text), project)


def perfflow(project: Path, steps: int, executor: str) -> Job:
    """A run of steps that do nothing."""
    words = (*PERFFLOW, "run", f"noop-{steps}.yaml", "--executor", executor, "--progress", "off", "--out", "@")
    return Job(words, project)


def write_project(project: Path, sizes: set[int]) -> None:
    """Write a project with a workflow of each size, and the file of executors beside it."""
    project.mkdir()
    for size in sizes:
        step = "uses: command, runs: 1, with: {command: 'true'}"
        steps = "".join(f"    - {{id: s{number}, {step}}}\n" for number in range(size))
        # What is not known is expected to take so long that three times that is more than the partition allows.
        place = "defaults:\n  runs-on: {minutes: 30}\n"
        text = f"perfflow: 1\nname: noop\n{place}stages:\n  baseline:\n{steps}"
        (project / f"noop-{size}.yaml").write_text(text)
    (project / "executors.yaml").write_text(SITES)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=project, check=True)


@dataclass(frozen=True, slots=True)
class Drained:
    """How many groups went through a cluster: seconds of all, until the last had a node, and of a job's median."""

    groups: int
    measured: int
    wall: float
    cpu: float
    waited: float
    job: float


def drained(folder: Path, wall: float, cpu: float) -> Drained:
    """What the folder of a run says of its groups."""
    shared = partition(folder)
    record = record_of(run_folder.events(folder))
    steps = {name for name, step in record.steps.items() if step.status == "done"}
    jobs = [path.parent for path in (folder / GROUPS).glob(f"*/*/{ENDED}")]
    seconds = [ended.seconds for path in jobs if (ended := JobFolder(path).ended())]
    first = datetime.fromisoformat(record.run.started).timestamp()
    began = [(path / ENDED).stat().st_mtime - own - first for path, own in zip(jobs, seconds, strict=True)]
    number = len(shared.groups) if shared else 0
    return Drained(number, len(steps), wall, cpu, max(began), statistics.median(seconds))


def drain(project: Path, count: int, out: Path) -> None:
    """Print how many groups at once go through the two nodes."""
    words = [word.replace("@", str(out)) for word in perfflow(project, count, APART).argv]
    before, began = os.times(), time.monotonic()
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    found = drained(out, wall, cpu)
    print(f"\n{found.groups} groups at once on two nodes: {found.measured} measured, exit status {done.returncode}")
    print(f"all: {found.wall:.1f} s, {found.wall / found.groups:.2f} s for each; CPU of the client: {found.cpu:.1f} s")
    print(f"the last had a node after {found.waited:.1f} s; a job took {found.job:.2f} s (median)")


def main() -> int:
    """Print everything; where Slurm is not installed, only that."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in {"groups": 20, "commands": 50, "rounds": 3, "drain": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="default: %(default)s")
    asked = parser.parse_args()
    absent = two_nodes.missing()
    if absent:
        print(f"skipped: {absent}")
        return 0
    with tempfile.TemporaryDirectory() as made:
        # Nobody's executors, caches or locks but our own.
        os.environ |= {VARIABLE: f"{made}/project/executors.yaml", "PERFFLOW_LOCK_FILE": f"{made}/lock"}
        os.environ |= {"XDG_CACHE_HOME": f"{made}/cache", "XDG_STATE_HOME": f"{made}/state"}
        project = Path(made) / "project"
        write_project(project, {FEW, asked.groups, 1, 1 + asked.commands, *filter(None, [asked.drain])})
        with two_nodes.two_nodes(Path(made) / "slurm") as conf:
            os.environ["SLURM_CONF"] = str(conf)
            if asked.rounds:
                per_group(project, asked.groups, asked.rounds)
                per_command(project, asked.commands, asked.rounds)
            if asked.drain:
                drain(project, asked.drain, Path(made) / "drained")
    return 0


if __name__ == "__main__":
    sys.exit(main())
