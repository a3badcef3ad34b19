"""``command``: our own driver. A fresh process per sample, timed from spawn to exit, resources by wait4(2)."""

from __future__ import annotations

from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role

# exec hands the spawner's high-water mark down; within this factor of it the reading says nothing about the program.
_FLOOR_MARGIN = 1.02
# Less than this share of the CPU time in the main thread means threads or children, whose queueing schedstat does not
# show. The two clocks differ by up to a tick.
ONE_THREAD = 0.95
_TICK = 0.001


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command itself, nothing around it."""
    return (Invocation(call.command),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Turn resource usage into readings; ``uncontended`` only for a program of one thread and no children."""
    cpu = usage.user + usage.system
    at_floor = usage.max_rss <= usage.rss_floor * _FLOOR_MARGIN
    readings = [
        Reading("time", usage.wall),
        Reading("cpu", cpu),
        Reading("user", usage.user),
        Reading("system", usage.system),
        Reading("rss", float(usage.max_rss), at_most=at_floor),
        Reading("page_faults", float(usage.page_faults)),
        Reading("context_switches", float(usage.context_switches)),
    ]
    if usage.queued is not None and usage.main_cpu is not None:
        share = min(1.0, (usage.main_cpu + _TICK) / cpu) if cpu else 1.0
        readings.append(Reading("main_share", share))
        if share >= ONE_THREAD:
            readings.append(Reading("uncontended", max(usage.wall - usage.queued, cpu)))
    return Parsed(tuple(readings))


METRICS = of_perfflow(
    "time", "cpu", "user", "system", "uncontended", "rss", "main_share", "page_faults", "context_switches"
)
ADAPTER = Adapter("command", Role.MEASURE, invocations, parse, metrics=METRICS, passes_stdout=True)
