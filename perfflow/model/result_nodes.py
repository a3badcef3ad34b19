"""Parts of result.json about other machines that measured parts of a run."""

from typing import Any

from pydantic import BaseModel

from perfflow.model.result_base import PART


class JobResult(BaseModel):
    """A job that measured one group of a run's steps. ``id`` is its number in the engine.

    ``state`` is ``done``, or how the job ended early; ``lost`` is why an earlier attempt did not count.
    """

    model_config = PART

    group: str
    id: str
    attempt: int
    state: str
    seconds: float
    lost: str = ""


class NodeResult(BaseModel):
    """A machine of a cluster that measured a part of the run: its name in the cluster, its facts, and its jobs."""

    model_config = PART

    name: str
    identity: str
    machine: dict[str, Any]
    jobs: list[JobResult]
