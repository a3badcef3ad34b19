"""List the executors of a site, and check whether each would accept a job."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.execute.this_machine import labels
from perfflow.jobs.cluster.executor import EngineError, Node, Queue
from perfflow.jobs.cluster.site import LOCAL, sites
from perfflow.jobs.cluster.slurm import Slurm


@dataclass(frozen=True)
class Checked:
    """An executor, its machines and queue; ``trouble`` is the reason why it cannot be used, or ''."""

    name: str
    engine: str
    nodes: Sequence[Node]
    queue: Queue | None = None
    trouble: str = ""


def executors() -> Iterator[Checked]:
    """Yield this machine, then the executors of the file. Raises UserError if the file is wrong."""
    load = f"load {os.getloadavg()[0]:.1f}"
    yield Checked(LOCAL, "this machine", [Node(platform.node(), labels(), "", load, usable=True)])
    for name, site in sites().items():
        engine = Slurm(site)
        try:
            yield Checked(name, site.engine, engine.nodes(), engine.check())
        except EngineError as error:
            yield Checked(name, site.engine, (), None, str(error))
