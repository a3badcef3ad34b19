"""Results of a step's tool besides figures: profiles and hotspots, from the last call of each side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.kernels import GPU, KernelResult
from perfflow.model.memory_curve import MemoryCurve
from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import COUNT, HOTSPOT, Cost, Hotspot, Parsed, Reading, Side
from perfflow.model.result import MemoryResult
from perfflow.plan.plan import Planned
from perfflow.session.known_names import benchmark_of_kernel
from perfflow.session.own_code import SourceFiles
from perfflow.session.session import RunSession
from perfflow.store.receipts.manifest import sha256
from perfflow.store.run_facts import FoundHotspot, StepFindings, StoredProfile
from perfflow.workflow.expressions import render
from perfflow.workflow.model import Work

_RATES = {"bytes": "throughput", "elements": "rate", "flops": "flops"}


def per_operation(found: Sequence[tuple[Reading, ...]], counts: Sequence[int]) -> tuple[Reading, ...]:
    """Divide totals by the number of operations; with two counts return the slope, which cancels the fixed part.

    ``found``: readings of each process; ``counts``: its operations (empty: nothing is divided).
    """
    if not counts:
        return found[-1]
    if len(counts) == 1:
        return tuple(_divided(item, counts[0]) for item in found[0])
    few = {(item.benchmark, item.metric): item for item in found[0]}
    more = counts[1] - counts[0]
    sloped = []
    for item in found[1]:
        other = few.get((item.benchmark, item.metric))
        if not is_total(item) or other is None:
            sloped.append(item)
        else:
            sloped += _slope(replace(item, tick=(item.tick + other.tick) / more), (item.value - other.value) / more)
    return tuple(sloped)


def _slope(item: Reading, value: float) -> list[Reading]:
    """Return the figure of one operation; drop a negative one. Raises Failure if noise exceeds a time difference."""
    if item.metric in TIMES and value <= 0:
        reason = f"the run with more operations did not take more {item.metric}: noise hides the difference"
        raise Failure(f"{reason}; choose two numbers of `ops` that are further apart")
    return [replace(item, value=value, inner={})] if value >= 0 else []


def is_total(item: Reading) -> bool:
    """Return whether the metric is a total over the run. Only built-in metrics can be, also if ``parse`` names one."""
    known = METRICS.get(item.metric)
    return known is not None and known.total


def _divided(item: Reading, count: int) -> Reading:
    if not is_total(item):
        return item
    inner = {name: value / count if name != "n" else value for name, value in item.inner.items()}
    return replace(item, value=item.value / count, inner=inner, tick=item.tick / count)


def costs_of_more(few: Parsed, many: Parsed) -> tuple[Cost, ...]:
    """Return the costs of functions in the additional iterations of ``many``."""
    less: dict[tuple[str, str, str], float] = {}
    for cost in few.costs:
        key = (cost.metric, cost.function, cost.file)
        less[key] = less.get(key, 0.0) + cost.count
    costs = []
    for cost in many.costs:
        left = cost.count - less.pop((cost.metric, cost.function, cost.file), 0.0)
        if left > 0:
            costs.append(replace(cost, count=left))
    return tuple(costs)


def hotspots_per_operation(many: Parsed, costs: Sequence[Cost], more: int) -> tuple[Hotspot, ...]:
    """Return the largest functions of ``more`` additional iterations.

    many: the run with all iterations, whose hotspots say what is counted. costs: from ``costs_of_more``.
    """
    if not many.hotspots or not costs:
        return ()
    first, metric = many.hotspots[0], many.costs[0].metric
    of_metric = sorted((cost for cost in costs if cost.metric == metric), key=lambda cost: (-cost.count, cost.function))
    whole = sum(cost.count for cost in of_metric)
    return tuple(
        Hotspot(
            cost.function,
            cost.count / whole,
            first.unit,
            first.source,
            cost.file,
            cost.line,
            f"measured: {cost.count / more:,.6g} {first.unit} per operation",
        )
        for cost in of_metric[: len(many.hotspots)]
    )


def with_work(readings: tuple[Reading, ...], work: Work | None, context: Mapping[str, Any]) -> tuple[Reading, ...]:
    """Add throughput, rate and flops: the declared work of a run or operation divided by its time."""
    if work is None:
        return readings
    added = []
    for key, metric in _RATES.items():
        amount = render(getattr(work, key), context)
        if amount is None:
            continue
        timed = [item for item in readings if item.metric == "time" and item.value > 0]
        number = _number(key, amount)
        added += [_rate(metric, _finite(key, number / item.value), item) for item in timed]
    return (*readings, *added)


def with_service_cpu(readings: tuple[Reading, ...], seconds: float) -> tuple[Reading, ...]:
    """Add the CPU time of the services per request; ``seconds``: during the process of these readings.

    The number of requests is that of the latencies. With several kinds of requests their shares are not known.
    """
    timed = [item for item in readings if item.metric == "time"]
    if len(timed) != 1 or timed[0].inner.get(COUNT, 1) <= 1 or seconds <= 0:
        return readings
    return (*readings, Reading("service_cpu", seconds / timed[0].inner[COUNT], timed[0].benchmark))


def _rate(metric: str, value: float, time: Reading) -> Reading:
    """Return a rate with the same relative resolution as the time."""
    return Reading(metric, value, time.benchmark, statistic=time.statistic, tick=value * time.tick / time.value)


def _finite(key: str, value: float) -> float:
    if not math.isfinite(value):
        raise Failure(f"work.{key} gives {value} per second, which is not a finite number", exit_code=0)
    return value


def _number(key: str, amount: object) -> float:
    try:
        number = float(str(amount))
    except ValueError as error:
        raise Failure(f"work.{key} is {amount!r}, not a number") from error
    if not 0 < number < math.inf:
        raise Failure(f"work.{key} is {amount!r}; it must be above 0 and finite")
    return number


class StepEvidence:
    """Collects the profiles, hotspots and kernels of one step. Only the files of a side's last call exist."""

    def __init__(self, session: RunSession, planned: Planned, benchmark: str = "") -> None:
        """``benchmark``: the benchmark that was profiled, if the step profiles several."""
        self._session, self._planned, self._benchmark = session, planned, benchmark
        self._devices: dict[str, None] = {}
        self._found: dict[Side, tuple[ReadyProcess, Parsed]] = {}

    def add(self, prepared: ReadyProcess, parsed: Parsed) -> None:
        """Replace the results of a side by those of its last call."""
        if parsed.device:
            self._devices.setdefault(parsed.device)
        if parsed.hotspots or parsed.profiles or parsed.kernels:
            self._found[prepared.side] = (prepared, parsed)

    def found(self) -> StepFindings:
        """Return the results of both sides."""
        findings = StepFindings(devices=self._gpus())
        for side in (side for side in Side if side in self._found):
            prepared, parsed = self._found[side]
            sources = sources_of(self._session, prepared)
            spots = (replace(sources.placed(spot), benchmark=self._benchmark) for spot in parsed.hotspots)
            findings += StepFindings(
                profiles=tuple(self._profiles(side, prepared, parsed)),
                hotspots=tuple(FoundHotspot(spot, side, sources.place_of(spot)) for spot in spots),
                kernels=tuple(
                    item.model_copy(update={"benchmark": self._whose(item), "tree": side.value})
                    for item in parsed.kernels
                ),
                memory=self._curve(parsed.memory, side) if parsed.memory else (),
            )
        return findings

    def _curve(self, curve: MemoryCurve, side: Side) -> tuple[MemoryResult]:
        found = MemoryResult(
            benchmark=self._benchmark, tree=side.value, axis=curve.axis, at=list(curve.at), held=list(curve.held)
        )
        return (found,)

    def _gpus(self) -> tuple[str, ...]:
        """Return the GPUs that the calls reported; a nameless one if a GPU tool reported none."""
        return (*self._devices,) or ((GPU,) if self._planned.tool and self._planned.tool.gpu else ())

    def _whose(self, facts: KernelResult) -> str:
        return self._benchmark or benchmark_of_kernel(self._planned, facts.name)

    def _profiles(self, side: Side, prepared: ReadyProcess, parsed: Parsed) -> Iterator[StoredProfile]:
        folder = prepared.call.folder if prepared.call else self._session.folder_of(self._planned, side)
        for profile in parsed.profiles:
            path = folder / profile.path
            shown = str(path.relative_to(self._session.folder.path))
            tool = prepared.tool.name if prepared.tool else ""
            yield StoredProfile(side, shown, profile.kind, sha256(path), self._benchmark, tool, profile.stacks)


def flatness(parsed: Parsed) -> tuple[str, ...]:
    """Return a note if a profile has no hotspot."""
    if not parsed.hotspots or parsed.hotspots[0].share > HOTSPOT:
        return ()
    first = parsed.hotspots[0]
    return (f"no hotspot above {HOTSPOT:.0%}; the largest is {first.location} with {first.share:.1%}",)


def sources_of(session: RunSession, prepared: ReadyProcess) -> SourceFiles:
    """Return the source files of the tree that a call ran in."""
    return SourceFiles(session.tree_context_of(prepared.side).root, _folders(prepared))


def _folders(prepared: ReadyProcess) -> Iterator[Path]:
    """Yield folders where the compiler may have run: the step's folder, and those above the program (its crate)."""
    yield prepared.cwd
    if prepared.call and prepared.call.command:
        yield from (prepared.cwd / prepared.call.command[0]).parents
