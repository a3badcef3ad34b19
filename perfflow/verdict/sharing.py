"""Compare all rows of a run. The gating rows of a benchmark share its allowance for false alarms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from perfflow.model.criteria import Criteria
from perfflow.model.design import Design
from perfflow.model.metrics import MEMORY, TIMES
from perfflow.model.readings import Side
from perfflow.model.result import GUARDED, HAS_TARGET, MEMORY_GREW
from perfflow.stats.designs import FEW
from perfflow.store.record import Record, Series
from perfflow.verdict.clocks import witnesses
from perfflow.verdict.comparison import Comparison, compare
from perfflow.verdict.gating import ASKED, Key, gating_rows, two_trees


def compared(record: Record, criteria: Criteria, measured: Mapping[Key, Series] | None = None) -> dict[Key, Comparison]:
    """Compare all series with readings, or those of ``measured``. The rows of a benchmark share its false alarms."""
    series = {
        key: item
        for key, item in (record.series if measured is None else measured).items()
        if any(map(item.readings, Side))
    }
    rows = {key: compare(item, criteria) for key, item in series.items()}
    shares = _shares(record, rows, criteria)
    return rows | {key: compare(series[key], criteria, share) for key, share in shares.items() if share < 1}


_OF_CHOSEN, _OF_WITNESSES = 8, 2


def _shares(record: Record, rows: Mapping[Key, Comparison], criteria: Criteria) -> dict[Key, float]:
    """Return the part of a benchmark's false alarms that each of its rows may raise.

    The rows that always gate get most of it. Clocks and memory that gate only if they prove a regression share the
    rest. They can raise an alarm on one side only, so the interval of each may have twice the error. The smallest
    number of runs in random order needs the whole allowance to prove a change, so there the chosen row keeps it.
    """
    weights: dict[str, dict[Key, float]] = defaultdict(dict)
    shares: dict[Key, float] = {}
    # Without the other clocks, because the shares must not depend on what these clocks prove.
    gating = gating_rows(record, rows, criteria, witnessed=False)
    for key, why in gating.items():
        if not rows[key].metric.exact and why != MEMORY_GREW:
            weights[key[0]][key] = _OF_CHOSEN
    for name, own in weights.items():
        chosen = next((metric for _, metric in own if metric in TIMES and _is_chosen(gating[name, metric])), "")
        others = [*(_others(rows, name, chosen) if chosen else []), *_watched_memory(record, rows, criteria, name)]
        fewest = bool(chosen) and record.series[name, chosen].design == Design.FEW and rows[name, chosen].pairs <= FEW
        one_sided = [key for key in others if key not in own] if len(own) > 1 or not fewest else []
        whole = sum(own.values()) + (_OF_WITNESSES if one_sided else 0)
        each = 2 * _OF_WITNESSES / max(1, len(one_sided))
        shares |= {key: weight / whole for key, weight in {**own, **dict.fromkeys(one_sided, each)}.items()}
    return shares


def _is_chosen(why: str) -> bool:
    """Return whether a clock gates because it was chosen automatically."""
    return why not in (ASKED, HAS_TARGET, GUARDED)


def _others(rows: Mapping[Key, Comparison], name: str, chosen: str) -> list[Key]:
    by_metric = {metric: rows[name, metric] for metric in TIMES if (name, metric) in rows}
    return [(name, item.metric.name) for item in witnesses(by_metric, chosen)]


def _watched_memory(record: Record, rows: Mapping[Key, Comparison], criteria: Criteria, name: str) -> list[Key]:
    """Return the noisy memory rows, which gate if they grow."""
    if criteria.memory_of(name) is None or not two_trees(record):
        return []
    known = [(name, metric) for metric in MEMORY if (name, metric) in rows]
    return [key for key in known if rows[key].pairs and not rows[key].metric.exact]
