"""Decide what to do about one attempt to measure a group, by its files first and the engine's report second."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfflow.jobs.cluster.agent import BEAT, JobEnd
from perfflow.jobs.cluster.slurm import Phase, Status


class AttemptOutcome(StrEnum):
    """What to do about an attempt. ``lost``: no process performs it any more. ``refused``: none ever will."""

    WAIT = "wait"
    ENDED = "ended"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True)
class WaitingLimits:
    """How long an attempt may wait in the queue, and how long its files may take to become visible here, in s."""

    pending: float
    grace: float

    @property
    def silence(self) -> float:
        """Seconds without a touched claim after which a worker counts as dead."""
        return self.grace + 3 * BEAT


@dataclass(frozen=True)
class Observation:
    """What is known about an attempt, times in s.

    ``silent``: since its claim changed; None while it is not claimed. ``over``: since the engine reported its end.
    ``queued``: since it was submitted. ``stopped``: since its worker was seen to have ended.
    """

    ended: JobEnd | None
    status: Status
    silent: float | None
    over: float
    queued: float
    stopped: float = 0.0


def outcome_of(seen: Observation, limits: WaitingLimits) -> tuple[AttemptOutcome, str]:
    """Return what to do about an attempt, and why."""
    if seen.ended is not None:
        if seen.ended.state == "stopped":
            # The worker ends before the engine reports why it ended the job, such as a time limit.
            if seen.status.phase is not Phase.ENDED and seen.stopped <= limits.grace:
                return AttemptOutcome.WAIT, ""
            reason = f" ({seen.status.reason})" if seen.status.reason else ""
            return AttemptOutcome.LOST, f"{seen.ended.reason}{reason}"
        return AttemptOutcome.ENDED, ""
    if seen.silent is not None and seen.silent > limits.silence:
        return AttemptOutcome.LOST, f"its machine gave no sign of life for {seen.silent:.0f} s"
    # A worker that still touches the claim is alive, whatever the engine reports.
    quiet = seen.silent is None or seen.silent > 3 * BEAT
    if seen.status.phase is Phase.ENDED and seen.over > limits.grace and quiet:
        reason = f" ({seen.status.reason})" if seen.status.reason else ""
        return AttemptOutcome.LOST, f"the job ended without a result{reason}"
    if seen.status.phase is Phase.QUEUED and seen.silent is None:
        if seen.status.hopeless:
            return AttemptOutcome.REFUSED, f"it can never start: {seen.status.reason}"
        if seen.queued > limits.pending:
            return AttemptOutcome.REFUSED, f"it waited in the queue for {seen.queued:.0f} s: {seen.status.reason}"
    return AttemptOutcome.WAIT, ""
