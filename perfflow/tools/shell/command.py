"""``command``: time any command. Each sample is a fresh process, timed from spawn to exit; wait4(2) gives resources."""

from __future__ import annotations

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role

# A process inherits the spawner's peak memory over exec; within this factor of it, the reading is only an upper bound.
_FLOOR_MARGIN = 1.02
# A smaller share of the CPU time in the main thread means threads or children, whose queueing schedstat does not show.
# The two clocks differ by up to a tick.
ONE_THREAD = 0.95
_TICK = 0.001


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command itself without a wrapper."""
    return (Invocation(call.command, in_bash=bool(call.shell_text)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Convert resource usage to readings; ``uncontended`` only for a program with one thread and no children."""
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


METRICS = builtin_metrics(
    "time", "cpu", "user", "system", "uncontended", "rss", "main_share", "turns", "page_faults", "context_switches"
)
ADAPTER = Adapter("command", Role.MEASURE, invocations, parse, metrics=METRICS, passes_stdout=True)
