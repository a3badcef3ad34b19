"""Which changes this machine can show in which time: from comparisons of a workflow, calibrations, or the history."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from perfflow.machine.facts import facts
from perfflow.model.errors import UserError
from perfflow.model.result import Benchmark, Result
from perfflow.plan.plan import Plan
from perfflow.report.detectable import Detectable
from perfflow.session.known_names import KnownNames, is_source
from perfflow.session.open_workflow import Opened
from perfflow.stats.paired_test import pair_spread
from perfflow.store import calibrations, result_file, run_folder
from perfflow.store.history.spread import METRIC, spreads
from perfflow.store.history.stored import open_for_reading
from perfflow.tools.adapter import Role
from perfflow.verdict import detect

_FEWEST = 6
"""Pairs from which on a spread is known."""
_NEWEST = 20
"""Runs that are searched for comparisons. A gate times few benchmarks, so one run does not have all."""


def detectable(opened: Opened, selected: Collection[str], change: float, budget: float) -> list[Detectable]:
    """Return what can be shown of each known benchmark of the selected steps; starts nothing.

    change: to prove, as a share. budget: seconds that all benchmarks share.
    """
    known = {item.benchmark: item for item in _calibrated(opened)}
    known |= {item.benchmark: item for item in _measured(opened)}
    names = list(dict.fromkeys([*_named(opened.plan, selected), *known]))
    known = {item.benchmark: item for item in _stored(opened, names)} | known
    share = budget / max(1, len(names))
    return [_shown(opened, known.get(name, Detectable(name)), change, share) for name in names]


def _shown(opened: Opened, item: Detectable, change: float, budget: float) -> Detectable:
    if item.spread is None:
        return item
    floor = opened.plan.criteria.thresholds_of(item.benchmark).floor
    pairs = detect.pairs_to_prove(change, item.spread, floor)
    affordable = budget / item.pair_seconds if item.pair_seconds else None
    within = detect.smallest_change(affordable, item.spread, floor) if affordable else None
    return item.with_answer(pairs, within)


def _named(plan: Plan, selected: Collection[str]) -> list[str]:
    """Return the benchmarks that steps name. Those of suites are known after they ran."""
    measuring = [
        item.id for item in plan.steps if item.role is Role.MEASURE and item.id in selected and is_source(item)
    ]
    names, _ = KnownNames().names(plan, measuring)
    return names


def _measured(opened: Opened) -> Iterator[Detectable]:
    """Yield the deciding rows that runs of this workflow compared in pairs on this machine, the newest last."""
    identity = facts()["identity"]
    # `latest` sorts last: of two runs in one second, names do not tell which is newer.
    newest = sorted((opened.root / run_folder.HOME / "runs").glob(f"*/{run_folder.RESULT}"))[-_NEWEST:]
    for folder in newest:
        try:
            result = result_file.read(folder)
        except UserError:
            continue
        if result.run.workflow == opened.plan.workflow.name and result.machine.get("identity") == identity:
            yield from _rows(result)


def _rows(result: Result) -> Iterator[Detectable]:
    for row in result.benchmarks:
        if row.gating and row.paired and row.baseline and row.candidate and row.pairs >= _FEWEST:
            spread = _spread(row)
            if spread is not None:
                seconds = row.seconds / row.pairs if row.seconds else None
                yield Detectable(row.name, row.metric, spread, seconds, f"run {result.run.id}")


def _spread(row: Benchmark) -> float | None:
    sides = [side.samples for side in (row.baseline, row.candidate) if side]
    positive = [(a, b) for a, b in zip(*sides, strict=False) if a > 0 and b > 0]
    return pair_spread(*zip(*positive, strict=True)) if len(positive) >= _FEWEST else None


def _stored(opened: Opened, names: Collection[str]) -> Iterator[Detectable]:
    """Yield the benchmarks of which the history knows the spread of single samples."""
    with open_for_reading(opened.root, server=False) as history:
        if history:
            plan = opened.plan
            found = spreads(history, plan.workflow.name, plan.params, str(facts()["identity"]), names)
            for name, spread in found.items():
                yield Detectable(name, METRIC, spread.noise * math.sqrt(2), source="the history")


def _calibrated(opened: Opened) -> Iterator[Detectable]:
    """Yield the judged metrics of the calibration of this machine."""
    plan = opened.plan
    for entry in calibrations.load(opened.root, facts()["identity"]):
        found = entry.finding
        is_own = (entry.workflow, entry.params) == (plan.workflow.name, dict(plan.params))
        if is_own and found.judged and not found.exact and found.noise is not None:
            each = found.within / found.replayed if found.within and found.replayed else None
            yield Detectable(
                found.benchmark, found.metric, found.noise, each, f"calibration of {entry.calibrated[:10]}"
            )
