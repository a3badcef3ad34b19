"""Place jobs on machines: the interface of an engine, the engines of a site, and Slurm by its own commands.

- ``Executor`` is the interface of an engine. A job's folder counts more than the engine's reports.
- ``sites`` reads the file ``executors.yaml`` of the user or of a site, which lists where jobs can go. It is not part of
  a workflow.
- ``Slurm`` needs no accounting, and the controller may be unreachable for a while. The output formats are those of
  ``squeue -o`` and ``sinfo -o`` (https://slurm.schedmd.com/squeue.html), which are stable; the formats of ``--json``
  change between versions.
- ``executors`` lists the executors of a site, and checks whether each would accept a job.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Protocol

import yaml
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perfflow.execute.prepare import labels
from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.model.units import UnitError, duration
from perfflow.plan.groups import NodeRequirement
from perfflow.tools.tool_files import last_line


class Phase(StrEnum):
    """The phase of a job, as an engine reports it. ``unknown``: it does not respond or does not list the job."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Status:
    """An engine's report on a job. ``hopeless``: the job will never start, for the ``reason``."""

    phase: Phase
    node: str = ""
    reason: str = ""
    hopeless: bool = False


@dataclass(frozen=True)
class Submission:
    """A job for an engine: its folder, a name, where it may run, and its time limit in minutes."""

    folder: Path
    name: str
    place: NodeRequirement
    minutes: int


@dataclass(frozen=True)
class Node:
    """A machine of an engine: its labels, its GPUs in the engine's words, and its state."""

    name: str
    labels: tuple[str, ...]
    gpus: str
    state: str
    usable: bool


@dataclass(frozen=True)
class ExecutorQueue:
    """The number of waiting and running jobs of all users on an engine's machines."""

    waiting: int
    running: int


class EngineError(Exception):
    """An engine cannot be used or refuses a job. The text gives the reason."""


class Executor(Protocol):
    """An engine that places jobs."""

    def nodes(self) -> Sequence[Node]:
        """Return the machines. Raises EngineError."""

    def longest(self) -> int | None:
        """Return the largest time limit of a job in minutes; None if there is none. Raises EngineError."""

    def check(self) -> ExecutorQueue:
        """Check that the engine would accept a job, and return its queue. Raises EngineError."""

    def submit(self, job: Submission) -> str:
        """Queue a job that performs its folder; return the engine's number for it. Raises EngineError."""

    def find(self, name: str) -> str:
        """Return the number of the unfinished job with that name, '' if there is none. Raises EngineError."""

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        """Return the status of each job, with one query for all."""

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs and all processes that they started. Raises EngineError."""


VARIABLE = "PERFFLOW_EXECUTORS"
FILE = "executors.yaml"
LOCAL = "local"
"""The executor that always exists: this machine."""
Seconds = Annotated[str, Field(description="a duration such as 90s")]


class Site(BaseModel):
    """One executor of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))

    engine: Literal["slurm"]
    partition: str = ""
    account: str = ""
    qos: str = ""
    options: list[str] = Field(default_factory=list, description="further options of sbatch")
    exclude: list[str] = Field(default_factory=list, description="nodes that are not used")
    folder: str = Field("", description="for jobs; the nodes see it under the same path; default: the run's own")
    scratch: str = Field("", description="on each node's own disk; default: the user's cache folder")
    python: str = Field("", description="interpreter with perfflow on the nodes; default: the same path as here")
    trees: Literal["bundle", "path"] = Field("bundle", description="how the code gets to the nodes")
    group: tuple[str, str] = Field(("10m", "60m"), description="shortest and longest group")
    pending: str = Field("24h", description="longest time that a job waits in the queue")
    poll: str = Field("10s", description="how often the engine is asked")
    grace: str = Field("30s", description="how long files of a job that ended may take to be seen here")
    env: dict[str, str] = Field(default_factory=dict, description="environment of the engine's commands")

    def seconds(self, name: Literal["pending", "poll", "grace"]) -> float:
        """Return one of the durations in s."""
        return duration(str(getattr(self, name)))

    @property
    def lengths(self) -> tuple[float, float]:
        """The shortest and the longest group, in s."""
        least, most = map(duration, self.group)
        return least, most


def file() -> Path | None:
    """Return the file that PERFFLOW_EXECUTORS names, else the one in the user's configuration folder, else None."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)

    path = user_config_path("perfflow") / FILE
    return path if path.is_file() else None


def sites() -> dict[str, Site]:
    """Return the executors of the file by name; empty without a file. Raises UserError for a wrong file."""
    path = file()
    if path is None:
        return {}
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", f"correct {VARIABLE}, or unset it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError.of(f"{path}: not YAML: {error}") from error
    named = data.get("executors") if isinstance(data, dict) else None
    if not isinstance(named, dict) or set(data) != {"executors"}:
        raise UserError.of(f"{path}: has no map `executors`", "executors: {lab: {engine: slurm, partition: bench}}")
    if LOCAL in named:
        raise UserError.of(f"{path}: `{LOCAL}` is this machine", "give the executor another name")
    return {str(name): _site(path, str(name), about) for name, about in named.items()}


def _site(path: Path, name: str, about: object) -> Site:
    try:
        site = Site.model_validate(about)
        for key in ("pending", "poll", "grace"):
            duration(str(getattr(site, key)))
        least, most = site.lengths
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        keys = ", ".join(field.alias or key for key, field in Site.model_fields.items())
        raise UserError.of(f"{path}: {name}.{where}: {problem['msg']}", f"keys: {keys}") from error
    except UnitError as error:
        raise UserError.of(f"{path}: {name}: {error}", "write a duration such as 90s or 24h") from error
    if not 0 < least <= most:
        raise UserError.of(f"{path}: {name}.group: the first duration must be the shorter one", "group: [10m, 60m]")
    return site


def site_of(name: str) -> Site | None:
    """Return the executor with a name, None for this machine. Raises UserError for an unknown name."""
    if name == LOCAL:
        return None
    known = sites()
    if name not in known:
        near = nearest(name, [LOCAL, *known])
        where = file()
        hint = f"did you mean {near}?" if near else f"executors: {', '.join([LOCAL, *known])}"
        there = f"in {where}" if where else f"there is no {FILE}; {VARIABLE} names one"
        raise UserError.of(f"no executor is called {name!r}", f"{hint} ({there})")
    return known[name]


_PATIENCE = 60
"""Seconds for one command. Without a controller, squeue gives up after 18 s."""
_QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
_NEVER = (
    "BadConstraints",
    "PartitionTimeLimit",
    "PartitionNodeLimit",
    "InvalidAccount",
    "InvalidQOS",
    "QOSNotAllowed",
    "AssociationResourceLimit",
    "JobHeldAdmin",
    "JobHeldUser",
    "launch failed requeued held",
    "DependencyNeverSatisfied",
)
"""Reasons for which a job will never start without a change (https://slurm.schedmd.com/job_reason_codes.html)."""
_UNUSABLE = ("down", "drain", "drng", "fail", "maint", "unk", "inval", "power")


class Slurm:
    """A Slurm cluster with a site's settings."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def nodes(self) -> Sequence[Node]:
        """Return all nodes of the partition, or of the cluster. Raises EngineError."""
        of = ["-p", self._site.partition] if self._site.partition else []
        text = self._said(["sinfo", "-h", "-N", *of, "-o", "%N|%f|%G|%t"])
        found: dict[str, Node] = {}
        for line in text.splitlines():
            name, labels, gpus, state = (*line.split("|"), "", "", "")[:4]
            own = tuple(label for label in labels.split(",") if label not in ("", "(null)"))
            usable = not state.startswith(_UNUSABLE) and not state.endswith("*")
            found[name] = Node(name, own, "" if gpus == "(null)" else gpus, state, usable)
        return list(found.values())

    def longest(self) -> int | None:
        """Return the partition's largest time limit in minutes; None for no limit. Raises EngineError."""
        of = ["-p", self._site.partition] if self._site.partition else []
        limits = [_minutes(text) for text in self._said(["sinfo", "-h", *of, "-o", "%l"]).split()]
        known = [limit for limit in limits if limit is not None]
        return max(known) if len(known) == len(limits) and known else None

    def check(self) -> ExecutorQueue:
        """Check, without submitting a job, that one would be accepted; return the queue. Raises EngineError."""
        self._said(["sbatch", "--test-only", "-t", "1", *self._site_options(), "--wrap", "true"])
        of = ["-p", self._site.partition] if self._site.partition else []
        states = self._said(["squeue", "-h", *of, "-o", "%T"]).split()
        return ExecutorQueue(sum(state in _QUEUED for state in states), sum(state in _RUNNING for state in states))

    def submit(self, job: Submission) -> str:
        """Queue a job for a whole node. Raises EngineError with Slurm's message."""
        agent = [self._site.python or sys.executable, "-P", "-m", "perfflow.jobs.cluster.agent", str(job.folder)]
        argv = ["sbatch", "--parsable", "--no-requeue", "--open-mode=append", "--export=ALL", "-N", "1"]
        argv += ["-J", job.name, "-o", str(job.folder / "engine.log"), "-D", str(job.folder), "-t", str(job.minutes)]
        argv += [*self._where(job.place), *self._site_options(), "--wrap", f"exec {shlex.join(agent)}"]
        lines = self._said(argv).strip().splitlines()
        # A site's scripts may print lines before the number, and the cluster's name follows it.
        number = re.match(r"\d+", lines[-1]) if lines else None
        if number is None:
            raise EngineError(f"sbatch printed no job number: {' '.join(lines)[:200]!r}")
        return number[0]

    def _where(self, place: NodeRequirement) -> list[str]:
        argv = ["--exclusive", "--mem=0"] if place.exclusive else []
        argv += ["--constraint", "&".join(place.labels)] if place.labels else []
        if place.gpus:
            argv += ["--gres", ":".join(filter(None, ("gpu", place.gpu_type, str(place.gpus))))]
        argv += ["--nodelist", place.node] if place.node else []
        argv += ["--exclude", ",".join(self._site.exclude)] if self._site.exclude and not place.node else []
        return argv

    def _site_options(self) -> list[str]:
        site = self._site
        named = (("-p", site.partition), ("-A", site.account), ("--qos", site.qos))
        return [*(word for option, value in named if value for word in (option, value)), *site.options]

    def find(self, name: str) -> str:
        """Return the number of a waiting or running job. Raises EngineError."""
        said = self._said(["squeue", "-h", "--me", "-n", name, "-o", "%i"]).split()
        return said[0] if said else ""

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        """Query all jobs with one squeue. Jobs that it does not list have ended; if it fails, nothing is known."""
        if not jobs:
            return {}
        argv = ["squeue", "-h", "-t", "all", "-j", ",".join(jobs), "-o", "%i|%T|%N|%r"]
        try:
            text = self._said(argv)
        except EngineError as error:
            if "Invalid job id" not in str(error):
                return {job: Status(Phase.UNKNOWN, reason=str(error)) for job in jobs}
            # squeue prints this error only if the one requested job is gone. Of several jobs, it lists the others.
            text = ""
        statuses = {}
        for line in text.splitlines():
            number, state, node, reason = (*line.split("|", 3), "", "", "")[:4]
            statuses[number] = _status(state, node, reason)
        return {job: statuses.get(job, Status(Phase.ENDED)) for job in jobs}

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs, including their batch scripts. Raises EngineError."""
        if jobs:
            self._said(["scancel", "--full", "--quiet", *jobs])

    def _said(self, argv: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                check=False,
                stdin=subprocess.DEVNULL,
                env=self._environment(),
            )
        except FileNotFoundError as error:
            raise EngineError(f"{argv[0]} is not on PATH; install Slurm's client (Debian: slurm-client)") from error
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{argv[0]} did not answer in {_PATIENCE} s") from error
        if done.returncode:
            reason = last_line(done.stderr).removeprefix(f"{argv[0]}: ").removeprefix("error: ")
            raise EngineError(f"{argv[0]}: {reason or f'exit status {done.returncode}'}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Return the environment without a surrounding job's variables, whose limits sbatch would use otherwise."""
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))
        }
        kept = {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}
        return {**own, **kept, **self._site.env}


def _status(state: str, node: str, reason: str) -> Status:
    if state in _QUEUED:
        return Status(Phase.QUEUED, reason=reason, hopeless=reason.startswith(_NEVER))
    if state in _RUNNING:
        return Status(Phase.RUNNING, node)
    return Status(Phase.ENDED, node, state if state != "COMPLETED" else "")


def _minutes(text: str) -> int | None:
    """Return a time limit as Slurm prints it, [[DAYS-]HOURS:]MINUTES:SECONDS, in whole minutes; None for no limit."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if match is None:
        return None
    days, hours, minutes, _ = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + minutes


def why_unsuitable(place: NodeRequirement, nodes: Sequence[Node]) -> str:
    """Return why no node of a cluster suits a place; '' if one does."""
    if place.node and place.node not in [node.name for node in nodes]:
        return f"there is no node {place.node}; nodes: {', '.join(node.name for node in nodes)}"
    fit = [node for node in nodes if set(place.labels) <= set(node.labels)]
    if not fit:
        known = sorted({label for node in nodes for label in node.labels})
        return f"no node has all of the labels {', '.join(place.labels)}; labels: {', '.join(known) or 'none'}"
    if place.gpus and not any("gpu" in node.gpus and place.gpu_type in node.gpus for node in fit):
        return f"no node with these labels has a GPU{' ' + place.gpu_type if place.gpu_type else ''}"
    return ""


@dataclass(frozen=True)
class CheckedExecutor:
    """An executor, its machines and queue; ``trouble`` is the reason why it cannot be used, or ''."""

    name: str
    engine: str
    nodes: Sequence[Node]
    queue: ExecutorQueue | None = None
    trouble: str = ""


def executors() -> Iterator[CheckedExecutor]:
    """Yield this machine, then the executors of the file. Raises UserError if the file is wrong."""
    load = f"load {os.getloadavg()[0]:.1f}"
    yield CheckedExecutor(LOCAL, "this machine", [Node(platform.node(), labels(), "", load, usable=True)])
    for name, site in sites().items():
        engine = Slurm(site)
        try:
            yield CheckedExecutor(name, site.engine, engine.nodes(), engine.check())
        except EngineError as error:
            yield CheckedExecutor(name, site.engine, (), None, str(error))
