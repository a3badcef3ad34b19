"""The first lines of a gate that fails: the worst rows, what to run to find the commit, and how to accept the change.

The functions that are blamed are in ``Findings.culprits``, one for each function, however many rows it made slower.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import in_words
from perfflow.model.result import Benchmark, Result
from perfflow.report.blame import worst_first
from perfflow.verdict.row_text import estimate_of

ACCEPTED_DAYS = 90
"""Days until which a proposed entry of ``accepted`` is in force."""
MOST_ENTRIES = 4
"""Most proposed entries of ``accepted``; further rows are counted."""
_LONGEST_ENTRY = 300
_PARTS = re.compile(r"::|/")


@dataclass(frozen=True)
class RedGate:
    """What a reader of a failed gate needs first.

    ``unexplained`` are failing rows, the worst first, for which no function is blamed: title and change. ``bisect`` is
    the command that finds the commit, '' if there is none. ``accept`` are the lines for the workflow that accept the
    rows, and ``beyond`` counts the rows that they leave out. ``unprofiled`` are failing benchmarks without a profile.
    """

    unexplained: tuple[tuple[str, str], ...]
    bisect: str
    accept: tuple[str, ...]
    beyond: int
    unprofiled: tuple[str, ...]


def red_gate(result: Result, criteria: Criteria) -> RedGate | None:
    """Return the first lines of a gate in which rows got worse than a gate allows; None if there are none."""
    rows = [row for row in worst_first(result.benchmarks) if row.level == "action"]
    if not rows:
        return None
    blamed = {(item.benchmark, item.metric) for item in result.attributions}
    profiled = {spot.benchmark for spot in result.hotspots} | {item.benchmark for item in result.attributions}
    entries = sorted(_entries(rows, result), key=lambda item: len(item[0]) > _LONGEST_ENTRY)
    shown = [item for item in entries[:MOST_ENTRIES] if len(item[0]) <= _LONGEST_ENTRY]
    return RedGate(
        unexplained=tuple(
            (row.name if row.metric == "time" else f"{row.name} {in_words(row.metric)}", estimate_of(row, criteria))
            for row in rows
            if (row.name, row.metric) not in blamed
        ),
        bisect=next(
            (text for item in result.routes for text in item.brief.commands if text.startswith("perfflow bisect ")), ""
        ),
        accept=("accepted:", *(entry for entry, _ in shown)) if shown else (),
        beyond=sum(len(covered) for _, covered in entries[len(shown) :]),
        unprofiled=tuple(dict.fromkeys(row.name for row in rows if row.name not in profiled)),
    )


def _entries(rows: Sequence[Benchmark], result: Result) -> Iterator[tuple[str, list[str]]]:
    """Yield entries of ``accepted`` that cover the failing rows and no other row, with the names that each covers."""
    until = date.fromisoformat(result.run.started[:10]) + timedelta(days=ACCEPTED_DAYS)
    for metric in dict.fromkeys(row.metric for row in rows):
        worst = {row.name: found for row in rows if row.metric == metric and (found := _limit(row)) is not None}
        others = {row.name for row in result.benchmarks if row.metric == metric} - set(worst)
        left = dict(worst)
        while left:
            glob, covered = _widest(next(iter(left)), left, others)
            limit = max(left.pop(name) for name in covered)
            keys = {"benchmark": json.dumps(glob, ensure_ascii=False), "metric": metric, "change": f"{limit}%"}
            keys |= {"why": json.dumps("say what it is worth"), "until": until.isoformat()}
            yield f"  - {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}", covered


def _limit(row: Benchmark) -> int | None:
    """Return the percentage up to which a row must be accepted: the far end of its interval; None if it has none."""
    change = row.change
    if change is None or change.value is None:
        return None
    ends = [end for end in (change.value, change.low, change.high) if end is not None]
    return math.ceil(100 * (-min(ends) if row.better == "higher" else max(ends)) + 0.5)


def _widest(name: str, failing: Collection[str], others: Collection[str]) -> tuple[str, list[str]]:
    """Return the widest glob for a name and at least one more failing row but no other row, and what it matches.

    If there is none, it is the name.
    """
    # A part of a name with a wildcard would match more than its beginning.
    for part in () if {"*", "?"} & set(name) else _PARTS.finditer(name):
        start = name[: part.end()]
        covered = [each for each in failing if each.startswith(start)]
        if len(covered) > 1 and not any(each.startswith(start) for each in others):
            return f"{start}**", covered
    return name, [name]
