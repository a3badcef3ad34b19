"""Perform one job on the machine that an engine chose: ``python -P -m perfflow.jobs.cluster.agent FOLDER``.

The agent claims the folder, starts the measuring process, and touches its claim meanwhile. It ends all processes that
the job started before it writes the result. If its parent dies, the agent ends too, so no measurement is left running.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path

from perfflow.execute.gpus import VISIBLE
from perfflow.execute.programs import LABELS, given_labels
from perfflow.jobs.cluster.job_folder import BEAT, LOG, TAKEN, Ended, JobFolder, Work, Worker
from perfflow.machine import orphans
from perfflow.machine.facts import facts
from perfflow.machine.private_folder import per_user, private_folder
from perfflow.model.errors import Exit, UserError
from perfflow.tools.tool_files import last_line

KILLED = "the measuring process was killed; was there too little memory?"
GRACE = 10.0
"""Seconds that the measuring process has to end by itself after an interrupt."""


def main(folder: Path) -> int:
    """Perform the job in a folder; return an exit status for the engine, which perfflow does not use."""
    job = JobFolder(folder)
    work = job.work()
    worker = Worker(
        node=os.environ.get("SLURMD_NODENAME", platform.node()),
        pid=os.getpid(),
        job=os.environ.get("SLURM_JOB_ID", ""),
    )
    orphans.adopt()
    orphans.end_with_parent(signal.SIGTERM)
    if not job.claim(worker):
        sys.stderr.write(f"{folder}: another process performs this job\n")
        return TAKEN
    began = time.monotonic()
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: stopped.append(number))
    try:
        environment = environment_of(work)
    except (UserError, OSError) as error:
        reason = str(error).removeprefix("error: ")
        job.end(Ended("done", worker, int(Exit.UNMEASURED), 0.0, reason, facts()))
        return 1
    with (folder / LOG).open("ab") as log:
        status = _performed(job, environment, log.fileno(), stopped)
    orphans.end_descendants()
    state, reason = _state(job, status, stopped), ""
    if state == "stopped":
        reason = f"the engine ended the job ({signal.Signals(stopped[0]).name})" if stopped else KILLED
    elif status:
        reason = last_line((folder / LOG).read_text(encoding="utf-8", errors="replace"))
    job.end(Ended(state, worker, status, time.monotonic() - began, reason, {**facts(), **_about_job(environment)}))
    return 0 if state == "done" else 1


def _state(job: JobFolder, status: int | None, stopped: Sequence[int]) -> Literal["done", "stopped", "cancelled"]:
    if job.is_cancelled:
        return "cancelled"
    killed = status is None or status < 0
    return "stopped" if stopped or killed else "done"


def _performed(job: JobFolder, environment: Mapping[str, str], log: int, stopped: list[int]) -> int | None:
    """Run the measuring process until it ends or must stop; return its exit status, None if it had to be killed."""
    argv = [sys.executable, "-P", "-m", "perfflow.cli.node_run", str(os.getpid()), str(job.path)]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    told: float | None = None
    while True:
        try:
            return child.wait(timeout=0.2 if told else BEAT)
        except subprocess.TimeoutExpired:
            job.beat()
        if told is None and (stopped or job.is_cancelled):
            # SIGINT, so that the samples so far are kept, as after ^C.
            child.send_signal(signal.SIGINT)
            told = time.monotonic()
        elif told is not None and time.monotonic() > told + GRACE:
            child.kill()
            child.wait()
            return None


def environment_of(work: Work) -> dict[str, str]:
    """Return the job's environment: the labels it was placed by, only its GPUs, and folders on this machine's disk.

    Raises UserError if other users could change these folders, OSError if they cannot be created.
    """
    found = dict(os.environ)
    found[LABELS] = " ".join(dict.fromkeys([*given_labels(), *work.labels]))
    if work.gpus:
        # On an exclusive node, Slurm shows a batch step all GPUs, however few were requested.
        seen = [name for name in found.get(VISIBLE, "").split(",") if name] or list(map(str, range(work.gpus)))
        found[VISIBLE] = ",".join(seen[: work.gpus])
    if work.scratch:
        cache = private_folder(per_user(Path(work.scratch))) / "cache"
        found["XDG_CACHE_HOME"] = str(cache)
        _lend_library(cache)
    return found


def _lend_library(cache: Path) -> None:
    """Link the user's fetched workflows of other repositories into the cache, since a node may have no network."""
    own, lent = user_cache_path("perfflow") / "library", cache / "perfflow" / "library"
    lent.parent.mkdir(parents=True, exist_ok=True)
    if own.is_dir() and not lent.exists():
        lent.unlink(missing_ok=True)
        lent.symlink_to(own)


def _about_job(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the engine's facts about the job, for the receipt."""
    names = {"partition": "SLURM_JOB_PARTITION", "cluster": "SLURM_CLUSTER_NAME", "gpus": VISIBLE}
    about = {name: environment[variable] for name, variable in names.items() if environment.get(variable)}
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {**about, "governor": governor.read_text().strip()} if governor.is_file() else about


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
