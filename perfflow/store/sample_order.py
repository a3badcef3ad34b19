"""Find the order in which the samples of a row were taken, from the events. result.json does not contain it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from perfflow.model.metrics import MEMORY
from perfflow.model.readings import Design, Side
from perfflow.store import run_folder

Orders = Mapping[str, Sequence[int]]
"""By side: the position of each sample among all samples of the row in the order taken, from 0."""


class Wanted(NamedTuple):
    """A row of a result: its step, benchmark and metric, and the values of each side."""

    step: str
    benchmark: str
    metric: str
    values: Mapping[str, Sequence[float]]


class _Taken(NamedTuple):
    """A sample in the events. ``partner``: both sides of its pair have the metric."""

    side: str
    value: float
    order: int
    partner: bool
    layout: int


_Key = tuple[str, str, str]


@dataclass(slots=True)
class TakingOrder:
    """The samples in the events of a run, by trial; '' is the run itself."""

    _trials: dict[str, dict[_Key, list[_Taken]]]

    def of(self, row: Wanted) -> Orders:
        """Return the order of a row's samples; empty if the events do not contain exactly these values.

        So a result that does not belong to these events, such as a changed one, gets no order.
        """
        # The accepted state is compared in a trial of its own, the last one.
        for name in ("", *reversed([name for name in self._trials if name])):
            taken_values = self._trials.get(name, {}).get((row.step, row.benchmark, row.metric), [])
            for taken in _selections(taken_values):
                orders = _matched(taken, row.values)
                if orders:
                    return orders
        return {}


def taking_order(events: Iterable[Mapping[str, Any]]) -> TakingOrder:
    """Fold the events of a run. Raises LookupError, TypeError or ValueError for damaged events."""
    trials: dict[str, dict[_Key, list[_Taken]]] = defaultdict(lambda: defaultdict(list))
    benchmarks: dict[str, str] = {}
    for event in events:
        trial = event.get("trial", "")
        kind = event.get("event")
        if kind == "run":
            benchmarks |= {item["id"]: item.get("benchmark", "") for item in event["steps"]}
        elif kind == "begun":
            trials.pop(trial, None)
        elif kind == "sample":
            _take(trials[trial], event, benchmarks.get(event["step"], ""))
    return TakingOrder({name: dict(by_key) for name, by_key in trials.items()})


def order_in(folder: Path | None) -> TakingOrder:
    """Return the order of all samples of a run; empty without events, as for a copied result.json.

    Raises UserError for damaged events.
    """
    if folder is None or not (folder / run_folder.EVENTS).is_file():
        return TakingOrder({})
    with run_folder.explaining_damage(folder / run_folder.EVENTS):
        return taking_order(run_folder.events(folder))


def _take(by_key: dict[_Key, list[_Taken]], event: Mapping[str, Any], benchmark: str) -> None:
    sides = [side.value for side in Side if side in event]
    # Samples that were combined from two stored sets have no known order.
    if event.get("design") == Design.UNPAIRED or (len(sides) > 1 and "first" not in event):
        return
    sides.sort(key=lambda side: side != event.get("first"))
    step = event["step"]
    usual = benchmark or step
    keys = {side: [(step, item.get("benchmark") or usual, item["metric"]) for item in event[side]] for side in sides}
    layout = event.get("layout", 0)
    for side in sides:
        others = {key for other in sides if other != side for key in keys[other]}
        for key, item in zip(keys[side], event[side], strict=True):
            # Memory is only judged for the programs as built, as in the record.
            if not (layout and item["metric"] in MEMORY):
                taken = by_key[key]
                taken.append(_Taken(side, item["value"], len(taken), key in others, layout))


def _selections(taken: Sequence[_Taken]) -> Iterator[list[_Taken]]:
    """Yield the selections of samples that a row may consist of, the likeliest first (see ``record.MetricSeries``)."""
    of_layouts = [item for item in taken if item.layout]
    as_built = [item for item in taken if not item.layout]
    for chosen in (sorted(of_layouts, key=lambda item: item.layout), as_built):
        yield [item for item in chosen if item.partner]
        yield chosen


def _matched(taken: Sequence[_Taken], values: Mapping[str, Sequence[float]]) -> Orders:
    by_side = {side: [item for item in taken if item.side == side] for side in values}
    if all([item.value for item in by_side[side]] == list(values[side]) for side in values):
        return {side: [item.order for item in own] for side, own in by_side.items() if own}
    return {}
