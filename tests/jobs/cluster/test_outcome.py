"""The decision about a job, by its files first and the engine's report second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from perfflow.jobs.cluster import placed_run
from perfflow.jobs.cluster.agent import WORK, JobEnd, JobFolder, JobWork, Worker
from perfflow.jobs.cluster.outcome import AttemptOutcome, Observation, WaitingLimits, outcome_of
from perfflow.jobs.cluster.placed_run import Placing, SubmittedError, Where
from perfflow.jobs.cluster.slurm import EngineError, ExecutorQueue, Node, Phase, Status, Submission
from perfflow.plan.groups import ANYWHERE, Group
from perfflow.store import run_folder
from perfflow.store.run_folder import RunFolder

LIMITS = WaitingLimits(pending=100, grace=10)
RUNNING = Status(Phase.RUNNING)
WORKER = Worker("n1", 1)
DONE = JobEnd("done", WORKER)


WAIT, LOST = AttemptOutcome.WAIT, AttemptOutcome.LOST
SIGTERM = "the engine ended the job (SIGTERM)"
STOPPED = JobEnd("stopped", WORKER, reason=SIGTERM)


def outcome(
    ended: JobEnd | None = None, status: Status = RUNNING, silent: float | None = None, **seconds: float
) -> tuple[AttemptOutcome, str]:
    waited = {"over": 0.0, "queued": 0.0, "stopped": 0.0} | seconds
    return outcome_of(Observation(ended, status, silent, **waited), LIMITS)


@pytest.mark.parametrize("phase", Phase)
def test_a_result_counts_whatever_the_engine_says(phase: Phase) -> None:
    assert outcome(DONE, Status(phase), silent=1000, over=1000)[0] is AttemptOutcome.ENDED


@pytest.mark.parametrize("phase", Phase)
def test_who_is_heard_of_is_waited_for_whatever_the_engine_says(phase: Phase) -> None:
    assert outcome(status=Status(phase), silent=1, over=11)[0] is WAIT
    assert outcome(status=Status(phase), silent=7, over=11)[0] is (LOST if phase is Phase.ENDED else WAIT)


def test_files_may_take_a_while_to_be_seen() -> None:
    ended = Status(Phase.ENDED, reason="FAILED")
    assert outcome(status=ended, over=LIMITS.grace)[0] is WAIT
    assert outcome(status=ended, over=11) == (LOST, "the job ended without a result (FAILED)")


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.UNKNOWN, Phase.QUEUED])
def test_who_is_silent_for_long_is_lost(phase: Phase) -> None:
    assert outcome(status=Status(phase), silent=LIMITS.silence)[0] is WAIT
    assert outcome(status=Status(phase), silent=LIMITS.silence + 1)[0] is LOST


def test_a_job_that_the_engine_ended_is_lost_but_why_is_waited_for() -> None:
    assert outcome(STOPPED, stopped=11) == (LOST, SIGTERM)
    for phase in (Phase.RUNNING, Phase.UNKNOWN):
        assert outcome(STOPPED, Status(phase), stopped=LIMITS.grace)[0] is WAIT
    assert outcome(STOPPED, Status(Phase.ENDED, reason="TIMEOUT")) == (LOST, f"{SIGTERM} (TIMEOUT)")


def test_what_will_never_start_is_not_waited_for() -> None:
    hopeless = Status(Phase.QUEUED, reason="BadConstraints", hopeless=True)
    assert outcome(status=hopeless) == (AttemptOutcome.REFUSED, "it can never start: BadConstraints")
    waiting = Status(Phase.QUEUED, reason="Priority")
    assert outcome(status=waiting, queued=99)[0] is WAIT
    assert outcome(status=waiting, queued=101)[0] is AttemptOutcome.REFUSED
    # A worker has claimed it, so it is running despite the engine's report.
    assert outcome(status=hopeless, silent=1)[0] is WAIT


def test_an_engine_that_is_away_changes_nothing() -> None:
    assert outcome(status=Status(Phase.UNKNOWN, reason="away"), queued=1000)[0] is WAIT


GROUP = Group("g1", ("one",), ANYWHERE, 1.0)
WORK_OF = JobWork("/root", "w.yaml", "d", "/source", {"head": "1"}, settings=("token=x",))


@dataclass
class Engine:
    """An engine that raises ``error`` in place of an answer, and records the names of submitted jobs."""

    error: BaseException | None = None
    names: list[str] = field(default_factory=list)

    def nodes(self) -> Sequence[Node]:
        return ()

    def longest(self) -> int | None:
        return None

    def check(self) -> ExecutorQueue:
        return ExecutorQueue(0, 0)

    def submit(self, job: Submission) -> str:
        if self.error:
            raise self.error
        self.names.append(job.name)
        return str(len(self.names))

    def find(self, name: str) -> str:
        return str(1 + self.names.index(name)) if name in self.names else ""

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        return dict.fromkeys(jobs, Status(Phase.UNKNOWN))

    def cancel(self, jobs: Sequence[str]) -> None:
        pass


class Silent(Engine):
    """An engine that does not answer questions about jobs."""

    def find(self, name: str) -> NoReturn:
        raise EngineError(f"no answer about {name}")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with run_folder.create(tmp_path, tmp_path / "run") as found:
        yield found


def placing(folder: RunFolder, engine: Engine) -> Placing:
    where = Where(engine, folder.path / "groups", WaitingLimits(1, 1), 0.1)
    return Placing(folder, [GROUP], where, lambda _: None)


def measured(folder: RunFolder, engine: Engine) -> list[tuple[str, str]]:
    """Return the groups that ended, and why each was not measured."""
    return [(group.id, why) for group, why in placing(folder, engine).measure(lambda _: WORK_OF)]


def submitted(folder: RunFolder, engine: Engine) -> Sequence[str]:
    """Submit what is to be submitted, and return the groups that are waited for."""
    jobs = placing(folder, engine)
    with pytest.raises(SubmittedError):
        list(jobs.measure(lambda _: WORK_OF, detach=True))
    return jobs.open


def killed_before_submitting(folder: RunFolder) -> None:
    with pytest.raises(KeyboardInterrupt):
        measured(folder, Engine(KeyboardInterrupt()))


def test_a_refused_job_is_submitted_anew_when_the_run_is_resumed(folder: RunFolder) -> None:
    assert measured(folder, Engine(EngineError("over quota"))) == [("g1", "over quota")]
    assert not list(folder.path.rglob(WORK))

    engine = Engine()
    assert submitted(folder, engine) == ["g1"]
    assert engine.names == [f"pf-{folder.id}-g1-2"]
    assert (folder.path / "groups" / "g1" / "2" / WORK).is_file()


def test_a_job_that_is_refused_when_the_run_is_resumed_is_not_waited_for(folder: RunFolder) -> None:
    killed_before_submitting(folder)
    assert measured(folder, Engine(EngineError("over quota"))) == [("g1", "over quota")]


def test_a_job_that_the_engine_may_have_is_looked_for_again(folder: RunFolder) -> None:
    killed_before_submitting(folder)
    assert measured(folder, Silent()) == [("g1", f"no answer about pf-{folder.id}-g1-1")]

    engine = Engine(names=[f"pf-{folder.id}-g1-1"])
    assert submitted(folder, engine) == ["g1"]
    assert len(engine.names) == 1


@dataclass
class Ending(Engine):
    """An engine that ends each job, whose worker says so first; the engine reports it only when asked again."""

    reason: str = "TIMEOUT"
    seconds: float = 1.0
    minutes: list[int] = field(default_factory=list)
    asked: int = 0

    def submit(self, job: Submission) -> str:
        self.minutes.append(job.minutes)
        JobFolder(job.folder).end(JobEnd("stopped", Worker("n1", 1), None, self.seconds, SIGTERM))
        self.asked = 0
        return super().submit(job)

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        self.asked += 1
        ended = Status(Phase.ENDED, "n1", self.reason)
        return dict.fromkeys(jobs, ended if self.asked > 1 else Status(Phase.RUNNING, "n1"))


@pytest.mark.parametrize(
    ("reason", "seconds", "minutes"),
    [
        ("TIMEOUT", 1.0, [15, 30]),
        ("PREEMPTED", 1.0, [15, 15]),
        # The engine has forgotten the job, whose worker worked as long as it was allowed to.
        ("", 895.0, [15, 30]),
    ],
)
def test_a_job_that_reached_its_time_limit_is_repeated_with_twice_the_time(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, reason: str, seconds: float, minutes: list[int]
) -> None:
    monkeypatch.setattr(placed_run, "LOOK", 0.01)
    engine = Ending(reason=reason, seconds=seconds)
    where = Where(engine, folder.path / "groups", WaitingLimits(100, 100), 0.0)
    list(Placing(folder, [GROUP], where, lambda _: None).measure(lambda _: WORK_OF))
    assert engine.minutes == minutes
