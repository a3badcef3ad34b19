"""Measure in a job on another machine, as ``perfflow run`` would there.

Started as ``python -P -m perfflow.cli.node_run PARENT FOLDER`` by ``jobs.cluster.agent``, whose process id is PARENT.
This process ends when the agent ends.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_path

from perfflow.cli.main import main as perfflow
from perfflow.jobs.cluster.agent import (
    BUILD,
    HERE,
    KEPT,
    RUN,
    STDOUT,
    BuildOutputs,
    Builds,
    JobFolder,
    JobWork,
    outputs_of,
)
from perfflow.jobs.judge.placed_judge import judge_in_job
from perfflow.jobs.run.run import RunPart, RunRequest, run
from perfflow.machine import orphans
from perfflow.model.errors import Exit, UserError
from perfflow.plan.plan import building_steps
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.session.progress import unheard
from perfflow.session.session import digest
from perfflow.trees.bundles import BASE, CLONES_OF, HEAD, clone_of, share, write_kept


def main() -> int:
    """Measure. Returns 0 if the run was completed, else an exit status of perfflow."""
    parent, folder = int(sys.argv[1]), Path(sys.argv[2])
    orphans.end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        return 1

    try:
        return _measure(JobFolder(folder))
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except UserError as error:
        sys.stderr.write("".join(f"{problem.render()}\n" for problem in error.problems))
        return int(error.exit)


def _measure(job: JobFolder) -> int:
    work = job.work()
    name = hashlib.sha256(os.fsencode(work.root)).hexdigest()[:16]
    with clone_of(user_cache_path("perfflow") / CLONES_OF / name, Path(work.source), work.states) as clone:
        share(Path(work.root), clone, work.share)
        os.chdir(clone)
        if work.command:
            return _run_command(job, work.command)
        opened = open_workflow(work.workflow, work.settings)
        # Trust was checked on the machine that submitted the job.
        opened.require_usable(to_run=True, trust=True)
        if digest(opened) != work.digest:
            hint = "use the same version of perfflow and of its tools on both machines"
            raise UserError.of(f"{work.workflow} differs on this machine", hint, Exit.UNMEASURED)
        if work.judging:
            return int(Exit.INTERRUPTED if judge_in_job(opened, job, work, work.judging) else Exit.PASS)
        base = work.states.get(BASE)
        request = RunRequest(
            only=work.steps,
            benchmarks=work.chosen,
            out=job.run,
            seed=work.seed,
            lock_timeout=work.lock_timeout,
            budget=work.budget,
            keep_going=work.keep_going,
            base=base,
            head=work.states[HEAD] if base else None,
            part=RunPart(work.parts, work.compared_steps),
            report=False,
        )
        built = _built(work, opened, clone, request, job.path / BUILD)
        part = RunPart(work.parts, work.compared_steps, built.outputs)
        finished = run(opened, replace(request, part=part), unheard)
        kept = finished.result.trees.get("candidate") or {}
        if kept.get("branch"):
            write_kept(clone, kept["branch"], work.states[HEAD], job.path / KEPT)
    return int(Exit.INTERRUPTED if finished.interrupted else Exit.PASS)


def _built(work: JobWork, opened: Opened, clone: Path, request: RunRequest, out: Path) -> BuildOutputs:
    """Return the outputs of the build steps, after this job or another one on the same kind of machine ran them."""
    before = ("setup", *(item.stage for item in opened.plan.steps if item.id in building_steps(opened.plan)))
    steps = [item.id for item in opened.plan.steps if item.stage in before and item.id in work.steps]
    if not any(opened.plan.by_id[name].stage != "setup" for name in steps):
        return BuildOutputs()
    builds = Builds(work, clone)
    while True:
        outputs = builds.stored()
        if outputs is not None:
            return outputs
        with builds.building() as mine:
            if mine:
                finished = run(opened, replace(request, only=steps, out=out, checks_noise=False), unheard)
                if finished.interrupted:
                    raise KeyboardInterrupt
                built = outputs_of(out, steps)
                builds.keep(built)
                return built


def _run_command(job: JobFolder, words: Sequence[str]) -> int:
    """Run a perfflow command, store its output in a file, and return its exit status."""
    # Run it in this process, which ends with the agent. A child process would continue.
    with (job.path / STDOUT).open("wb") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
    try:
        perfflow([word.replace(HERE, str(job.path / RUN)) for word in words])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
