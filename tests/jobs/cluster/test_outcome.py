"""The decision about a job, by its files first and the engine's report second."""

from __future__ import annotations

import pytest

from perfflow.jobs.cluster.agent import JobEnd, Worker
from perfflow.jobs.cluster.outcome import AttemptOutcome, Observation, WaitingLimits, outcome_of
from perfflow.jobs.cluster.slurm import Phase, Status

LIMITS = WaitingLimits(pending=100, grace=10)
RUNNING = Status(Phase.RUNNING)
WORKER = Worker("n1", 1)
DONE = JobEnd("done", WORKER)


def seen(
    ended: JobEnd | None = None,
    status: Status = RUNNING,
    silent: float | None = None,
    over: float = 0,
    queued: float = 0,
    stopped: float = 0,
) -> Observation:
    return Observation(ended, status, silent, over, queued, stopped)


@pytest.mark.parametrize("phase", Phase)
def test_a_result_counts_whatever_the_engine_says(phase: Phase) -> None:
    assert outcome_of(seen(DONE, Status(phase), silent=1000, over=1000), LIMITS)[0] is AttemptOutcome.ENDED


@pytest.mark.parametrize("phase", Phase)
def test_who_is_heard_of_is_waited_for_whatever_the_engine_says(phase: Phase) -> None:
    assert outcome_of(seen(status=Status(phase), silent=1, over=11), LIMITS)[0] is AttemptOutcome.WAIT
    found = outcome_of(seen(status=Status(phase), silent=7, over=11), LIMITS)[0]
    assert found is (AttemptOutcome.LOST if phase is Phase.ENDED else AttemptOutcome.WAIT)


def test_files_may_take_a_while_to_be_seen() -> None:
    ended = Status(Phase.ENDED, reason="FAILED")
    assert outcome_of(seen(status=ended, over=9), LIMITS)[0] is AttemptOutcome.WAIT
    assert outcome_of(seen(status=ended, over=11), LIMITS) == (
        AttemptOutcome.LOST,
        "the job ended without a result (FAILED)",
    )


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.UNKNOWN, Phase.QUEUED])
def test_who_is_silent_for_long_is_lost(phase: Phase) -> None:
    assert outcome_of(seen(status=Status(phase), silent=LIMITS.silence - 1), LIMITS)[0] is AttemptOutcome.WAIT
    assert outcome_of(seen(status=Status(phase), silent=LIMITS.silence + 1), LIMITS)[0] is AttemptOutcome.LOST


def test_a_job_that_the_engine_ended_is_lost() -> None:
    stopped = JobEnd("stopped", WORKER, reason="the engine ended the job (SIGTERM)")
    assert outcome_of(seen(stopped, stopped=11), LIMITS) == (AttemptOutcome.LOST, "the engine ended the job (SIGTERM)")


def test_why_the_engine_ended_a_job_is_waited_for() -> None:
    stopped = JobEnd("stopped", WORKER, reason="the engine ended the job (SIGTERM)")
    for phase in (Phase.RUNNING, Phase.UNKNOWN):
        assert outcome_of(seen(stopped, Status(phase), stopped=9), LIMITS)[0] is AttemptOutcome.WAIT
    found = outcome_of(seen(stopped, Status(Phase.ENDED, reason="TIMEOUT")), LIMITS)
    assert found == (AttemptOutcome.LOST, "the engine ended the job (SIGTERM) (TIMEOUT)")


def test_what_will_never_start_is_not_waited_for() -> None:
    hopeless = Status(Phase.QUEUED, reason="BadConstraints", hopeless=True)
    assert outcome_of(seen(status=hopeless), LIMITS) == (AttemptOutcome.REFUSED, "it can never start: BadConstraints")
    waiting = Status(Phase.QUEUED, reason="Priority")
    assert outcome_of(seen(status=waiting, queued=99), LIMITS)[0] is AttemptOutcome.WAIT
    assert outcome_of(seen(status=waiting, queued=101), LIMITS)[0] is AttemptOutcome.REFUSED
    # A worker has claimed it, so it is running despite the engine's report.
    assert outcome_of(seen(status=hopeless, silent=1), LIMITS)[0] is AttemptOutcome.WAIT


def test_an_engine_that_is_away_changes_nothing() -> None:
    assert outcome_of(seen(status=Status(Phase.UNKNOWN, reason="away"), queued=1000), LIMITS)[0] is AttemptOutcome.WAIT
