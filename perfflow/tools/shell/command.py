"""``command``: time any command. Each sample is a fresh process, timed from spawn to exit; wait4(2) gives resources."""

from __future__ import annotations

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role

# A process inherits the spawner's peak memory over exec; within this factor of it, the reading is only an upper bound.
_FLOOR_MARGIN = 1.02


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
    if usage.main_share is not None:
        readings.append(Reading("main_share", usage.main_share))
    if usage.uncontended is not None:
        readings.append(Reading("uncontended", usage.uncontended))
    return Parsed(tuple(readings))


METRICS = builtin_metrics(
    "time", "cpu", "user", "system", "uncontended", "rss", "main_share", "turns", "page_faults", "context_switches"
)
ADAPTER = Adapter("command", Role.MEASURE, invocations, parse, metrics=METRICS, passes_stdout=True)
