"""How one attempt at a group stands, by its files first and by what the engine says second."""

from __future__ import annotations

from enum import StrEnum

from perfflow.jobs.cluster.executor import Phase, Status
from perfflow.jobs.cluster.job_folder import BEAT, Ended
from perfflow.model.later import dataclass


class Outcome(StrEnum):
    """What is to be done about an attempt. ``lost``: nobody performs it any more. ``refused``: nobody ever will."""

    WAIT = "wait"
    ENDED = "ended"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True)
class Limits:
    """How long an attempt may wait in the queue, and how long files may take to be seen from here, in s."""

    pending: float
    grace: float

    @property
    def silence(self) -> float:
        """Seconds after which whoever has not touched a claim is taken for dead."""
        return self.grace + 3 * BEAT


@dataclass(frozen=True)
class Seen:
    """What is known of an attempt, times in s: since the claim changed, since the engine said that it ended, queued.

    ``silent`` is None while nobody has claimed it.
    """

    ended: Ended | None
    status: Status
    silent: float | None
    over: float
    queued: float


def outcome_of(seen: Seen, limits: Limits) -> tuple[Outcome, str]:
    """What is to be done, and why."""
    if seen.ended is not None:
        if seen.ended.state == "stopped":
            return Outcome.LOST, seen.ended.reason
        return Outcome.ENDED, ""
    if seen.silent is not None and seen.silent > limits.silence:
        return Outcome.LOST, f"nothing was heard of its machine for {seen.silent:.0f} s"
    # Who still touches the claim lives, whatever the engine says.
    quiet = seen.silent is None or seen.silent > 3 * BEAT
    if seen.status.phase is Phase.ENDED and seen.over > limits.grace and quiet:
        said = f" ({seen.status.reason})" if seen.status.reason else ""
        return Outcome.LOST, f"the job ended without a result{said}"
    if seen.status.phase is Phase.QUEUED and seen.silent is None:
        if seen.status.hopeless:
            return Outcome.REFUSED, f"it would never start: {seen.status.reason}"
        if seen.queued > limits.pending:
            return Outcome.REFUSED, f"it waited in the queue for {seen.queued:.0f} s: {seen.status.reason}"
    return Outcome.WAIT, ""
