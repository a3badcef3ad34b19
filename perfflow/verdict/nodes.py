"""The other machines that measured parts of a run, each with its jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from perfflow.model.result_nodes import JobResult, NodeResult
from perfflow.store.group_events import GroupJob
from perfflow.store.record import Record


def nodes(record: Record) -> Iterator[NodeResult]:
    """Yield the machines, sorted by name."""
    by_name: dict[str, list[GroupJob]] = defaultdict(list)
    for job in record.jobs.values():
        by_name[job.node].append(job)
    for name, jobs in sorted(by_name.items()):
        machine = next((job.machine for job in jobs if job.machine), {})
        yield NodeResult(
            name=name,
            identity=str(machine.get("identity", "")),
            machine=dict(machine),
            jobs=[_job(job) for job in jobs],
        )


def _job(job: GroupJob) -> JobResult:
    return JobResult(
        group=job.group, id=job.job, attempt=job.attempt, state=job.state, seconds=job.seconds, lost=job.lost
    )
