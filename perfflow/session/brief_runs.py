"""Check that the brief runs of a tool, which comparisons use, give the same figures as its full run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import replace

from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.metrics import METRICS, Better
from perfflow.model.readings import Side
from perfflow.model.units import format_quantity
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Effort

_LONGEST = 60.0
"""Seconds after which a full run is ended without a result."""
_FACTOR = 1.25
"""A full run disagrees if its figure is this far outside of all figures of brief runs."""


class BriefRuns:
    """Runs one benchmark of a tool in full, untimed, and compares its figures with those of the samples.

    Only for tools of others: the brief runs of perfflow's own tools are tested, and their full runs are long.
    """

    def __init__(self) -> None:
        self._side: Side | None = None
        self._tool: Adapter | None = None
        self._full: dict[tuple[str, str], float] = {}
        """The figure of the full run for each benchmark and metric with a better direction."""
        self._brief: dict[tuple[str, str], list[float]] = {}
        self._trouble = ""

    def run_full(self, prepared: ReadyProcess, start: Callable[[ReadyProcess], Invoked]) -> None:
        """Run the benchmark of the first brief call in full."""
        call, tool = prepared.call, prepared.tool
        if self._tool or not tool or not call or not call.only or call.effort is not Effort.BRIEF:
            return
        if tool.name in registry.MODULES and not tool.is_of_file:
            return
        self._tool, self._side = tool, prepared.side
        limit = min(prepared.timeout or math.inf, _LONGEST)
        full = replace(prepared, timeout=limit, call=replace(call, effort=Effort.NORMAL, timeout=limit))
        if [item.argv for item in full.invocations()] == [item.argv for item in prepared.invocations()]:
            return
        try:
            readings = start(full).parsed.readings
        except Failure as failure:
            self._trouble = "" if failure.timeout else f"{call.only}: its full run failed: {failure.reason}"
            return
        metrics = {**METRICS, **tool.metrics}
        self._full = {
            (item.benchmark, item.metric): item.value
            for item in readings
            if item.benchmark == call.only and metrics[item.metric].better is not Better.NONE
        }

    def note(self, prepared: ReadyProcess, invoked: Invoked) -> None:
        """Note the figures of a sample."""
        for item in invoked.parsed.readings if prepared.side is self._side else ():
            if (item.benchmark, item.metric) in self._full:
                self._brief.setdefault((item.benchmark, item.metric), []).append(item.value)

    @property
    def warning(self) -> str:
        """What differs between the full run and the brief ones; '' if nothing does."""
        for (benchmark, metric), values in self._brief.items():
            full = self._full[benchmark, metric]
            if self._tool and not min(values) / _FACTOR <= full <= max(values) * _FACTOR:
                dimension = {**METRICS, **self._tool.metrics}[metric].dimension
                brief, whole = (format_quantity(value, dimension) for value in (statistics.median(values), full))
                return (
                    f"{benchmark} {metric}: {brief} in brief runs of `{self._tool.name}`, {whole} in a full run; "
                    "comparisons time brief runs, so let `brief` run until both agree"
                )
        return self._trouble
