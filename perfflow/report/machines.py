"""The machines of a cluster with the benchmarks that each measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.result import NodeResult, Result

MOST_NAMED = 6
"""Most benchmarks of one machine that are named."""


@dataclass(frozen=True)
class Machine:
    """A machine, its description, its job numbers, and the benchmarks that it measured."""

    name: str
    about: str
    jobs: str
    benchmarks: str


def machines_of(result: Result) -> Iterator[Machine]:
    """Yield the machines of a run that was distributed over a cluster."""
    for node in result.nodes:
        names = list(dict.fromkeys(row.name for row in result.benchmarks if row.node == node.name))
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        jobs = ", ".join(job.id + (" (a second attempt)" if job.lost else "") for job in node.jobs)
        yield Machine(node.name, _about(node), jobs, ", ".join(names[:MOST_NAMED]) + more or "none")


def _about(node: NodeResult) -> str:
    facts, noise = node.machine, node.machine.get("noise", {})
    parts = [facts.get("cpu"), f"{facts.get('cores')} cores", facts.get("governor") and f"governor {facts['governor']}"]
    parts += [noise.get("kind") and f"noise: {noise['kind']}", f"kind {node.identity[:8]}" if node.identity else None]
    return ", ".join(str(part) for part in parts if part)
