"""Events -> the order in which the samples of a row were taken, which result.json does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from perfflow.model.errors import UserError
from perfflow.model.metrics import MEMORY
from perfflow.model.readings import Side
from perfflow.store import folder as rundir
from perfflow.store.record import UNPAIRED

Orders = Mapping[str, Sequence[int]]
"""Of each side, by its name: the position of each of its samples among all of the row's as they were taken, from 0."""


class Wanted(NamedTuple):
    """A row of a result: whose samples they are, and the values that it has of each side."""

    step: str
    benchmark: str
    metric: str
    values: Mapping[str, Sequence[float]]


class _Taken(NamedTuple):
    """A sample as the events have it. ``partner``: both sides of its pair have the metric."""

    side: str
    value: float
    order: int
    partner: bool
    confirmation: int
    layout: int


_Key = tuple[str, str, str]


@dataclass(slots=True)
class TakingOrder:
    """The samples in the events of a run, by the trial they belong to; '' is the run itself."""

    _trials: dict[str, dict[_Key, list[_Taken]]]

    def of(self, wanted: Wanted) -> Orders:
        """Return the order of a row's samples; empty where the events do not hold exactly these values.

        So a result that does not belong to these events, such as one that was changed, gets no order at all.
        """
        # What was kept of candidates is compared in a trial of its own, the last one.
        for name in ("", *reversed([name for name in self._trials if name])):
            found = self._trials.get(name, {}).get((wanted.step, wanted.benchmark, wanted.metric), [])
            for taken in _selections(found):
                orders = _matched(taken, wanted.values)
                if orders:
                    return orders
        return {}


def taking_order(events: Iterable[Mapping[str, Any]]) -> TakingOrder:
    """Fold the events of a run. Raises LookupError, TypeError or ValueError for events that are damaged."""
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
    return TakingOrder({name: dict(found) for name, found in trials.items()})


def order_in(folder: Path | None) -> TakingOrder:
    """The order of all samples of a run; of none where there are no events, as of a result.json that was copied.

    Raises UserError for events that are damaged.
    """
    if folder is None or not (folder / rundir.EVENTS).is_file():
        return TakingOrder({})
    try:
        return taking_order(rundir.events(folder))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{folder / rundir.EVENTS}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, "was the file changed by hand or written by another version?") from error


def _take(found: dict[_Key, list[_Taken]], event: Mapping[str, Any], benchmark: str) -> None:
    sides = [side.value for side in Side if side in event]
    # Those of two stored sets were put together, and were taken who knows when.
    if event.get("design") == UNPAIRED or (len(sides) > 1 and "first" not in event):
        return
    sides.sort(key=lambda side: side != event.get("first"))
    step = event["step"]
    usual = benchmark or step
    keys = {side: [(step, item.get("benchmark") or usual, item["metric"]) for item in event[side]] for side in sides}
    confirmation = event.get("confirmation", 1 if event.get("design") == "confirm" else 0)
    layout = event.get("layout", 0)
    for side in sides:
        others = {key for other in sides if other != side for key in keys[other]}
        for key, item in zip(keys[side], event[side], strict=True):
            # Of memory only what was built counts, as in the record.
            if not (layout and item["metric"] in MEMORY):
                taken = found[key]
                taken.append(_Taken(side, item["value"], len(taken), key in others, confirmation, layout))


def _selections(taken: Sequence[_Taken]) -> Iterator[list[_Taken]]:
    """Which of all samples a row may be of, as the record of a run sets them aside: the likeliest first."""
    of_layouts = [item for item in taken if item.layout]
    as_built = [item for item in taken if not item.layout]
    last = max((item.confirmation for item in as_built), default=0)
    confirmed = [item for item in as_built if item.confirmation == last]
    for chosen in (sorted(of_layouts, key=lambda item: item.layout), confirmed, as_built):
        yield [item for item in chosen if item.partner]
        yield chosen


def _matched(taken: Sequence[_Taken], values: Mapping[str, Sequence[float]]) -> Orders:
    by_side = {side: [item for item in taken if item.side == side] for side in values}
    if all([item.value for item in by_side[side]] == list(values[side]) for side in values):
        return {side: [item.order for item in own] for side, own in by_side.items() if own}
    return {}
