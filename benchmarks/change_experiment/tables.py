"""The tables of the experiment on change points, from its stored counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.change_experiment.series import CHANGING, NOISES, POINTS, SHAPES

Entry = Mapping[str, Any]
Share = Callable[[Entry], float]
ALL = {**NOISES, **CHANGING}
TITLES = {
    "gauss": "normal",
    "t3": "heavy tails (Student's t, 3 degrees of freedom)",
    "ar3": "neighbours correlated by 0.3",
    "ar6": "neighbours correlated by 0.6",
    "nights": "5% of the points five times noisier",
    "quant2": "values in steps of 2%",
    "quant5": "values in steps of 5%",
    "sevar": "runs of unequal precision",
    "calmer": "noise falls to a quarter",
    "louder": "noise rises four times",
}
DEPENDENT = "ar6"


def _of(part: str, whole: str = "series") -> Share:
    return lambda cell: 100 * cell[part] / cell[whole] if cell[whole] else math.nan


ROWS: Sequence[tuple[str, str, Share]] = (
    ("quiet", "any change or drift told", _of("either")),
    ("step", "found", _of("near")),
    ("step", "of those, within 1 point", _of("within_1", "near")),
    ("step", "of those, within 2 points", _of("within_2", "near")),
    ("step", "one change told, within 2 points", _of("exact")),
    ("step", "told as a drift", _of("drifted")),
    ("newest", "found", _of("near")),
    ("latest", "found", _of("near")),
    ("small", "any change told", _of("changed")),
    ("small", "found", _of("near")),
    ("several", "three changes told, all within 2 points", _of("exact")),
    ("drift", "told as a drift", _of("drifted")),
    ("drift", "told as steps", _of("changed")),
    ("spike", "told as a change", _of("changed")),
    ("high spike", "told as a change", _of("changed")),
)
"""The shape of a row, what it counts, and the percentage of a cell."""
DRIFTS = "told as a drift"


def programs(entries: Sequence[Entry]) -> list[str]:
    """The programs that were counted, perfflow first."""
    return list(dict.fromkeys(entry["program"] for entry in entries))


def _cell(entries: Sequence[Entry], program: str, shape: str, noise: str) -> Entry | None:
    """What is stored of a cell; None where it is not counted yet."""
    key = (program, shape, noise)
    return next((one for one in entries if (one["program"], one["shape"], one["noise"]) == key), None)


def _shown(entries: Sequence[Entry], program: str, row: int, noise: str) -> str:
    return _percent(_share(entries, program, row, noise))


def _share(entries: Sequence[Entry], program: str, row: int, noise: str) -> float:
    shape, _, share = ROWS[row]
    cell = _cell(entries, program, shape, noise)
    return share(cell) if cell else math.nan


def _percent(value: float) -> str:
    if math.isnan(value):
        return "-"
    # Rounding must not turn a few misses into none.
    return f"{value:.1f}%" if 0 < value < 10 or 99.5 <= value < 100 else f"{value:.0f}%"


def _range(low: float, high: float) -> str:
    return _percent(low) if _percent(low) == _percent(high) else f"{_percent(low)} to {_percent(high)}"


def quiet_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield how many series without a change raised an alarm, by noise."""
    yield "| noise, series without a change | perfflow | Otava |"
    yield "|---|--:|--:|"
    for noise in ALL:
        yield f"| {TITLES[noise]} | {' | '.join(_shown(entries, one, 0, noise) for one in programs(entries))} |"


def step_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield how a step of 5% was found and placed, by noise."""
    yield "| noise, one step of 5% | found | within 2 points | one change, within 2 | Otava: the same |"
    yield "|---|--:|--:|--:|--:|"
    for noise in ALL:
        own = [_shown(entries, "perfflow", row, noise) for row in (1, 3, 4)]
        yield f"| {TITLES[noise]} | {' | '.join([*own, _shown(entries, 'Otava', 4, noise)])} |"


def other_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the other shapes: for each program the range over seven steady kinds of noise, and correlation 0.6."""
    yield "| series | perfflow | at 0.6 | Otava | at 0.6 |"
    yield "|---|--:|--:|--:|--:|"
    for row, (shape, counts, _) in list(enumerate(ROWS))[5:]:
        shown = []
        for program in programs(entries):
            others = [_share(entries, program, row, noise) for noise in NOISES if noise != DEPENDENT]
            told = program == "perfflow" or counts != DRIFTS  # Otava has no drifts.
            shown += (
                [_range(min(others), max(others)), _shown(entries, program, row, DEPENDENT)] if told else ["-", "-"]
            )
        yield f"| {SHAPES[shape].title}: {counts} | {' | '.join(shown)} |"


def watched_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield how often the newest points raise a wrong alarm, and how soon a right one, by noise."""
    yield "| noise | alarms per 1,000 appends | a step of 5%: median delay | 90% within |"
    yield "|---|--:|--:|--:|"
    for noise in ALL:
        cell = _cell(entries, "perfflow", "watched", noise)
        if cell is None:
            continue
        delays = sorted(math.inf if one is None else one for one in cell["delays"])
        shown = [_points(delays[int(share * (len(delays) - 1))]) if delays else "-" for share in (0.5, 0.9)]
        yield f"| {TITLES[noise]} | {1000 * cell['alarms'] / cell['points']:.2f} | {' | '.join(shown)} |"


def _points(delay: float) -> str:
    return f"{delay:.0f} points" if math.isfinite(delay) else "more than 100"


def published_table(entries: Sequence[Entry], name: str) -> Iterator[str]:
    """Yield what each program says of a public series, in the order of its points."""
    own, peer = (_cell(entries, one, "published", name) or {} for one in ("perfflow", "Otava"))
    rows = []
    for one in own.get("changes", ()):
        size, low, high = (f"{100 * math.expm1(one[key]):+.1f}%" for key in ("size", "low", "high"))
        places = f"{one['earliest']} to {one['latest']}"
        rows.append((one["at"], f"perfflow | {one['at']} | {places} | {size} [{low}, {high}]"))
    for one in own.get("drifts", ()):
        text = f"{one['begin']} to {one['end']} | drift | {100 * math.expm1(one['size']):+.1f}%"
        rows.append((one["begin"], f"perfflow | {text}"))
    rows += [(one["at"], f"Otava | {one['at']} | | ") for one in peer.get("changes", ())]
    yield "| program | first point after | 95% of positions | change |"
    yield "|---|--:|--:|--:|"
    yield from (f"| {text} |" for _, text in sorted(rows))


def page(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the lines of docs/experiments/changes.md."""
    yield from ("# Change points: a simulation", "", "Written by `python -m benchmarks.changes`.")
    yield f"Series have {POINTS} points, with seeds from 0 on."
    for program in programs(entries):
        cells = [entry for entry in entries if entry["program"] == program and entry["shape"] in SHAPES]
        version = "" if program == "perfflow" else f" {cells[0]['version']} with its defaults"
        counts = " or ".join(str(count) for count in sorted({cell["series"] for cell in cells}))
        yield f"{program}{version} was given {counts} of each kind."
    if programs(entries) == ["perfflow"]:
        yield "No Otava: name a Python with --otava."
    yield "Noise between runs has a standard deviation of 2%, and each run a standard error of 0.5%."
    yield ""
    yield from (f"- `{name}`: {text}" for name, text in ALL.items())
    for program in programs(entries):
        yield from ("", f"## {program}", "", f"| series | % of them | {' | '.join(ALL)} |")
        yield "|---|---|" + "--:|" * len(ALL)
        for number, (shape, counts, _) in enumerate(ROWS):
            if program == "perfflow" or counts != DRIFTS:
                shown = " | ".join(_shown(entries, program, number, noise) for noise in ALL)
                yield f"| {SHAPES[shape].title} | {counts} | {shown} |"
    yield from ("", "## Looked at after every append", "", *watched_table(entries))
    for own in entries:
        if own["shape"] == "published" and own["program"] == "perfflow":
            name, groups = own["noise"], ", ".join(f"{begin} to {end - 1}" for begin, end in own["outliers"])
            yield from ("", f"## A public series: {name}, {own['points']} points", "", *published_table(entries, name))
            yield from ("", f"Outliers by perfflow, not told: {groups or 'none'}.")
