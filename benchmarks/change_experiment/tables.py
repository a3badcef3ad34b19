"""The tables of the experiment on change points, from its stored counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.change_experiment.series import NOISES, POINTS, SHAPES

Entry = Mapping[str, Any]
Share = Callable[[Entry], float]


def _of(part: str, whole: str = "series") -> Share:
    return lambda cell: 100 * cell[part] / cell[whole] if cell[whole] else math.nan


ROWS: Sequence[tuple[str, str, Share]] = (
    ("quiet", "any change or drift told", _of("either")),
    ("step", "found", _of("near")),
    ("step", "of those, within 1 point", _of("within_1", "near")),
    ("step", "of those, within 2 points", _of("within_2", "near")),
    ("newest", "found", _of("near")),
    ("small", "any change told", _of("changed")),
    ("small", "found", _of("near")),
    ("drift", "told as a drift", _of("drifted")),
    ("drift", "told as steps", _of("changed")),
    ("spike", "told as a change", _of("changed")),
    ("high spike", "told as a change", _of("changed")),
)
"""The shape of a row, what it counts, and the percentage of a cell."""
SUMMARY: Sequence[tuple[str, int]] = (
    ("No change: a change is told", 0),
    ("One step of 5%: found", 1),
    ("- of those, within 2 points", 3),
    ("A step of 5%, 10 points follow: found", 4),
    ("A step of 2%: found", 6),
    ("A drift, 0.1% a point: told as steps", 8),
    ("5 points 20% higher: told as a change", 10),
)
"""What the page on change points shows: a title, and the number of the row."""
DEPENDENT = "ar6"


def programs(entries: Sequence[Entry]) -> list[str]:
    """The programs that were counted, perfflow first."""
    return list(dict.fromkeys(entry["program"] for entry in entries if "program" in entry))


def percentages(entries: Sequence[Entry], program: str, row: int) -> dict[str, float]:
    """The percentage of a row by the kind of noise."""
    shape, _, share = ROWS[row]
    own = [entry for entry in entries if entry.get("program") == program and entry["shape"] == shape]
    return {entry["noise"]: share(entry) for entry in own}


def summary(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the rows of a small table: for each program the range over seven kinds of noise, and AR .6 alone."""
    for title, row in SUMMARY:
        shown = []
        for program in programs(entries):
            found = percentages(entries, program, row)
            others = [value for noise, value in found.items() if noise != DEPENDENT]
            shown += [_range(min(others), max(others)), _percent(found[DEPENDENT])]
        yield f"| {title} | {' | '.join(shown)} |"


def _percent(value: float) -> str:
    if math.isnan(value):
        return "-"
    # Rounding must not turn a few misses into none.
    return f"{value:.1f}%" if value < 10 or 99.5 <= value < 100 else f"{value:.0f}%"


def _range(low: float, high: float) -> str:
    return _percent(low) if _percent(low) == _percent(high) else f"{_percent(low)} to {_percent(high)}"


def page(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the lines of docs/experiments/changes.md."""
    start = entries[0]
    peer = f"Otava {start['otava']} with its defaults" if start["otava"] else "no Otava: name a Python with --otava"
    yield "# Change points: a simulation"
    yield ""
    yield "Written by `python -m benchmarks.changes`."
    yield f"Programs: perfflow, and {peer}. Each cell: {start['series']} series of {POINTS} points, seeds from 0 on."
    yield "Noise between runs has a standard deviation of 2%, and each run a standard error of 0.5%."
    yield ""
    yield from (f"- `{name}`: {text}" for name, text in NOISES.items())
    for program in programs(entries):
        yield from ("", f"## {program}", "", f"| series | % of them | {' | '.join(NOISES)} |")
        yield "|---|---|" + "---|" * len(NOISES)
        for number, (shape, counts, _) in enumerate(ROWS):
            if program != "perfflow" and counts == "told as a drift":
                continue  # Otava tells steps alone.
            found = percentages(entries, program, number)
            yield f"| {SHAPES[shape].title} | {counts} | {' | '.join(_percent(found[name]) for name in NOISES)} |"
    yield from _published(entries[-1]["published"])


def _published(said: Entry) -> Iterator[str]:
    yield from ("", "## A published series", "", "TigerBeetle's 365 points, which Otava's tests contain, in order:", "")
    yield "| program | change | from point | 95% of positions | size |"
    yield "|---|---|---|---|---|"
    for one in said["perfflow"]:
        size = f"{100 * math.expm1(one['size']):+.1f}%"
        yield f"| perfflow | step | {one['at']} | {one['earliest']} to {one['latest']} | {size} |"
    for one in said["drifts"]:
        yield f"| perfflow | drift | {one['begin']} | until {one['end']} | {100 * math.expm1(one['size']):+.1f}% |"
    for begin, end in said["outliers"]:
        yield f"| perfflow | outliers, not told | {begin} | until {end - 1} | |"
    yield from (f"| Otava | step | {at} | | |" for at in said.get("Otava", ()))
