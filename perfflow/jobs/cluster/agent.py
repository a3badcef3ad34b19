"""Perform one job on the machine that an engine chose: ``python -P -m perfflow.jobs.cluster.agent FOLDER``.

- ``JobFolder`` is the folder of one job: its work, its worker, and how it ended. These files count, not the engine's
  reports: after a crash, an engine may run a job twice, lose it, or forget how it ended. So a worker first claims the
  folder, which only one can, and touches the claim while it works. The result is written atomically.
- ``main`` is the agent. It claims the folder, starts the measuring process, and touches its claim meanwhile. It ends
  all processes that the job started before it writes the result. If its parent dies, the agent ends too, so no
  measurement is left running.
- ``Builds`` shares builds between jobs on machines of the same kind: the trees and the outputs of the build steps, by a
  key. The key covers the code, the workflow, the kind of machine, and the folder, since programs contain paths. If all
  nodes of a cluster use the same folder on their own disks, each kind of node builds once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from platformdirs import user_cache_path

from perfflow.execute.gpus import VISIBLE
from perfflow.execute.prepare import LABELS, given_labels
from perfflow.machine import orphans
from perfflow.machine.facts import facts
from perfflow.machine.private_folder import per_user, private_folder
from perfflow.model.errors import Exit, UserError
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.plan.groups import Benchmarks
from perfflow.store import run_folder
from perfflow.store.run_folder import write_text
from perfflow.tools.tool_files import last_line
from perfflow.trees.git import remove_tree
from perfflow.trees.repository import home_of

_Kind = TypeVar("_Kind", "Worker", "JobEnd")
WORK, CLAIM, ENDED, CANCEL, LOG, STDOUT = "work.json", "claim", "ended.json", "cancel", "log", "stdout"
KEPT = "kept.bundle"
"""The git bundle with the branch of accepted candidates."""
RUN, BUILD = "run", "build"
"""The folder of the job's run, and the folder of the build that it shares with other jobs."""
HERE = "{run}"
"""Placeholder for the job's run folder in the words of a command."""
TAKEN = 75
"""Exit status of an agent whose job folder is already claimed (sysexits' EX_TEMPFAIL)."""
BEAT = 2.0
"""Seconds between two touches of a claim."""


@dataclass(frozen=True)
class JobPatch:
    """A patch of a batch: its number there, its name, its bytes as latin-1, and the reason for it."""

    number: int
    name: str
    text: str
    why: str


@dataclass(frozen=True)
class Judging:
    """Patches that a job judges, and how: see ``jobs.judge.judge.JudgeRequest``."""

    patches: tuple[JobPatch, ...]
    isolate: str
    budget: float | None
    attempts: int
    command: tuple[str, ...]


@dataclass(frozen=True)
class JobWork:
    """The work of a job: some steps of a run, in a clone of the code.

    ``root`` is the project that submitted it. ``source`` is the repository or bundle with the code, and ``states`` are
    its commits by name. ``settings`` are those of ``--set``, ``chosen`` those of ``--benchmark``. ``compared_steps`` is
    that of ``jobs.run.run.RunPart``. Times in s.
    """

    root: str
    workflow: str
    digest: str
    source: str
    states: Mapping[str, str]
    settings: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    compared_steps: int = 1
    seed: int | None = 0
    share: tuple[str, ...] = ()
    scratch: str = ""
    labels: tuple[str, ...] = ()
    gpus: int = 0
    keep_going: bool = False
    budget: float | None = None
    lock_timeout: float = 1800.0
    version: str = ""
    command: tuple[str, ...] = ()
    """Words of a command that is run instead of the steps."""
    judging: Judging | None = None
    """Patches that are judged instead."""


@dataclass(frozen=True)
class Worker:
    """The process that claimed a job: the engine's name of its machine, its id, and the engine's number of the job."""

    node: str
    pid: int
    job: str = ""


@dataclass(frozen=True)
class JobEnd:
    """How a job ended. ``stopped``: the engine ended it, such as at its time limit; ``cancelled``: perfflow did.

    ``status`` is the exit status of the measuring process; ``machine`` are facts about its machine.
    """

    state: Literal["done", "stopped", "cancelled"]
    worker: Worker
    status: int | None = None
    seconds: float = 0.0
    reason: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)


class JobFolder:
    """The files of one attempt to measure a group."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run(self) -> Path:
        """The folder of the job's run."""
        return self.path / RUN

    def write(self, work: JobWork) -> None:
        """Write the work, readable only for the user, since settings may contain secrets. Raises OSError."""
        self.path.mkdir(0o700, parents=True, exist_ok=True)
        (self.path / WORK).touch(0o600)
        (self.path / WORK).write_text(json.dumps(to_json(work)), encoding="utf-8")

    def work(self) -> JobWork:
        """Return the work. Raises OSError and ValueError."""
        return from_json(JobWork, json.loads((self.path / WORK).read_text(encoding="utf-8")))

    def claim(self, worker: Worker) -> bool:
        """Claim the job; return False if it was claimed before. Raises OSError."""
        try:
            number = os.open(self.path / CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(to_json(worker)))
        return True

    def beat(self) -> None:
        """Touch the claim to show that the job is still running. Raises OSError."""
        os.utime(self.path / CLAIM)

    def last_beat(self) -> float | None:
        """Return when the claim was last touched, by the file system's clock; None if the job is not claimed."""
        try:
            return (self.path / CLAIM).stat().st_mtime
        except OSError:
            return None

    def worker(self) -> Worker | None:
        """Return who claimed the job; None if nobody has, or while the claim is being written."""
        return self._read(CLAIM, Worker)

    def end(self, ended: JobEnd) -> None:
        """Store how the job ended, atomically. Raises OSError."""
        write_text(self.path / ENDED, json.dumps(to_json(ended)))

    def ended(self) -> JobEnd | None:
        """Return how the job ended; None if that is not stored (yet)."""
        return self._read(ENDED, JobEnd)

    def cancel(self) -> None:
        """Ask the worker to stop. Raises OSError."""
        (self.path / CANCEL).touch()

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was asked to stop."""
        return (self.path / CANCEL).exists()

    def _read(self, name: str, kind: type[_Kind]) -> _Kind | None:
        try:
            return from_json(kind, json.loads((self.path / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            return None


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
        job.end(JobEnd("done", worker, int(Exit.UNMEASURED), 0.0, reason, facts()))
        return 1
    with (folder / LOG).open("ab") as log:
        status = _performed(job, environment, log.fileno(), stopped)
    orphans.end_descendants()
    state, reason = _state(job, status, stopped), ""
    if state == "stopped":
        reason = f"the engine ended the job ({signal.Signals(stopped[0]).name})" if stopped else KILLED
    elif status:
        reason = last_line((folder / LOG).read_text(encoding="utf-8", errors="replace"))
    job.end(JobEnd(state, worker, status, time.monotonic() - began, reason, {**facts(), **_about_job(environment)}))
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
    told_at: float | None = None
    while True:
        try:
            return child.wait(timeout=0.2 if told_at else BEAT)
        except subprocess.TimeoutExpired:
            job.beat()
        if told_at is None and (stopped or job.is_cancelled):
            # SIGINT, so that the samples so far are kept, as after ^C.
            child.send_signal(signal.SIGINT)
            told_at = time.monotonic()
        elif told_at is not None and time.monotonic() > told_at + GRACE:
            child.kill()
            child.wait()
            return None


def environment_of(work: JobWork) -> dict[str, str]:
    """Return the job's environment: the labels it was placed by, only its GPUs, and folders on this machine's disk.

    Raises UserError if other users could change these folders, OSError if they cannot be created.
    """
    env = dict(os.environ)
    env[LABELS] = " ".join(dict.fromkeys([*given_labels(), *work.labels]))
    if work.gpus:
        # On an exclusive node, Slurm shows a batch step all GPUs, however few were requested.
        seen = [name for name in env.get(VISIBLE, "").split(",") if name] or list(map(str, range(work.gpus)))
        env[VISIBLE] = ",".join(seen[: work.gpus])
    if work.scratch:
        cache = private_folder(per_user(Path(work.scratch))) / "cache"
        env["XDG_CACHE_HOME"] = str(cache)
        _lend_library(cache)
    return env


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


_NOTE = "perfflow-built-for"
"""A file in a clone's git folder with the key of the build in the clone and its trees."""
_SILENCE = 60.0
"""Seconds without a touched claim after which a builder counts as dead."""


@dataclass(frozen=True)
class BuildOutputs:
    """The outputs of build steps, by side and step. Empty if the build failed; each job then reports that itself."""

    outputs: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)


def key_of(work: JobWork, clone: Path) -> str:
    """Return a hash of everything that a build depends on."""
    parts = [dict(work.states), work.digest, facts()["identity"], str(clone), work.version]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Builds:
    """The builds of one run: a folder for each key, which all its jobs can read."""

    def __init__(self, work: JobWork, clone: Path) -> None:
        self.key = key_of(work, clone)
        self._folder = Path(work.source).parent / "builds" / self.key
        self._clone, self._trees = clone, home_of(clone)

    def stored(self) -> BuildOutputs | None:
        """Return another job's build, and unpack it here; None if there is none. Raises OSError."""
        try:
            found = from_json(BuildOutputs, json.loads((self._folder / "built.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        if found.outputs and not self._stands():
            self._unpack()
        return found

    @contextmanager
    def building(self) -> Iterator[bool]:
        """Claim the build, and touch the claim while the block runs. Yield False after waiting for another builder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        claim = self._folder / "builder"
        while True:
            with suppress(FileExistsError):
                os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
                break
            if not self._waited(claim):
                yield False
                return
        over = threading.Event()
        beating = threading.Thread(target=_beat, args=(claim, over), daemon=True)
        beating.start()
        try:
            yield True
        finally:
            over.set()
            beating.join()
            claim.unlink(missing_ok=True)

    def keep(self, built: BuildOutputs) -> None:
        """Store the build of this machine for other machines. Raises OSError."""
        if built.outputs:
            names = [str(path) for path in (self._clone, self._trees) if path.is_dir()]
            without = [f"--exclude={self._clone / name}" for name in (".git", run_folder.HOME)]
            fresh = self._folder / f".trees.{secrets.token_hex(8)}"
            # The posix format keeps fractions of seconds in times, which build tools compare.
            argv = ["tar", "--create", "--format=posix", "--absolute-names", f"--file={fresh}", *without, *names]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
            fresh.replace(self._folder / "trees.tar")
            self._note()
        write_text(self._folder / "built.json", json.dumps(to_json(built)))

    def _waited(self, claim: Path) -> bool:
        """Wait until the other builder ends; return True if it died, after removing its claim."""
        before, since = None, time.monotonic()
        while not (self._folder / "built.json").exists():
            try:
                now = claim.stat().st_mtime
            except FileNotFoundError:
                return not (self._folder / "built.json").exists()
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() > since + _SILENCE:
                return self._taken_over(claim, before)
            time.sleep(BEAT / 4)
        return False

    def _taken_over(self, claim: Path, beat: float) -> bool:
        """Remove the claim of a dead builder, whose last touch was at ``beat``; return True.

        Another waiter may have removed it, and claimed the build itself, since this one looked. So the claim is renamed
        first, which only one waiter can do, and put back if it is not the one that was watched.
        """
        dead = claim.with_name(f".{claim.name}.{secrets.token_hex(8)}")
        try:
            claim.rename(dead)
        except FileNotFoundError:
            return True
        if dead.stat().st_mtime != beat:
            with suppress(FileExistsError):
                os.link(dead, claim)
        dead.unlink()
        return True

    def _stands(self) -> bool:
        try:
            return (self._clone / ".git" / _NOTE).read_text(encoding="utf-8") == self.key
        except OSError:
            return False

    def _note(self) -> None:
        write_text(self._clone / ".git" / _NOTE, self.key)

    def _unpack(self) -> None:
        if self._trees.exists():
            remove_tree(self._trees)
        for path in self._clone.iterdir():
            if path.name not in (".git", run_folder.HOME):
                if path.is_dir() and not path.is_symlink():
                    remove_tree(path)
                else:
                    path.unlink()
        argv = ["tar", "--extract", "--absolute-names", f"--file={self._folder / 'trees.tar'}"]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        self._note()


def _beat(claim: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with suppress(OSError):
            os.utime(claim)


def outputs_of(run: Path, steps: Collection[str]) -> BuildOutputs:
    """Return the outputs of a run's build steps on each side; empty if one of them failed."""
    found: dict[Side, dict[str, dict[str, str]]] = {}
    for event in run_folder.own_events(run):
        if event.get("event") == "step" and event["id"] in steps:
            if event["status"] != "done":
                return BuildOutputs()
            side = Side.BASELINE if event.get("trial") else Side.CANDIDATE
            found.setdefault(side, {})[event["id"]] = event.get("outputs", {})
    return BuildOutputs(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
