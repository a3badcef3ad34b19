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
    "t3": "heavy tails",
    "ar3": "neighbours correlated by 0.3",
    "ar6": "neighbours correlated by 0.6",
    "nights": "5% of the runs five times noisier",
    "quant2": "values rounded to 2%",
    "quant5": "values rounded to 5%",
    "sevar": "runs of unequal precision",
    "calmer": "falls to a quarter",
    "louder": "rises to four times",
}
DEPENDENT = "ar6"
PLACED, DRIFTS = "of those, within 2 points", "reported as a drift"


def _of(part: str, whole: str = "series") -> Share:
    return lambda cell: 100 * cell[part] / cell[whole] if cell[whole] else math.nan


ROWS: Sequence[tuple[str, str, Share]] = (
    ("quiet", "any change or drift reported", _of("either")),
    ("step", "found", _of("near")),
    ("step", "of those, within 1 point", _of("within_1", "near")),
    ("step", PLACED, _of("within_2", "near")),
    ("step", "one change reported, within 2 points", _of("exact")),
    ("step", DRIFTS, _of("drifted")),
    ("newest", "found", _of("near")),
    ("latest", "found", _of("near")),
    ("small", "any change reported", _of("changed")),
    ("small", "found", _of("near")),
    ("several", "all three reported within 2 points", _of("exact")),
    ("drift", DRIFTS, _of("drifted")),
    ("drift", "reported as steps", _of("changed")),
    ("spike", "reported as a change", _of("changed")),
    ("high spike", "reported as a change", _of("changed")),
)
"""The shape of a row, what it counts, and the percentage of a cell."""
SUMMARY: Sequence[tuple[str, str, str]] = (
    ("step of 5%, of those found: within 2 points", "step", PLACED),
    ("10 points after the step: found", "newest", "found"),
    ("5 points after the step: found", "latest", "found"),
    ("step of 2%: found", "small", "found"),
    ("steps of +5%, +5%, -8%: all within 2 points", "several", "all three reported within 2 points"),
    ("slope of 0.1% a point: reported as a drift", "drift", DRIFTS),
    ("the slope: reported as steps", "drift", "reported as steps"),
    ("5 points 20% higher: reported as a change", "high spike", "reported as a change"),
)
"""The rows of the page on change points: a title, and the shape of a row and what it counts."""


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


def noise_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield alarms in series without a change, and how a step of 5% was found, of both programs by noise."""
    yield "| noise | no change: alarms | Otava | step of 5%: found | exact | Otava: exact |"
    yield "|---|--:|--:|--:|--:|--:|"
    for noise in ALL:
        cells = ((program, 0) for program in ("perfflow", "Otava"))
        own = [("perfflow", 1), ("perfflow", 4), ("Otava", 4)]
        shown = (_shown(entries, program, row, noise) for program, row in (*cells, *own))
        yield f"| {TITLES[noise]} | {' | '.join(shown)} |"


def other_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the other shapes: for each program the range over seven steady kinds of noise, and correlation 0.6."""
    yield "| series | perfflow | at 0.6 | Otava | at 0.6 |"
    yield "|---|--:|--:|--:|--:|"
    rows = [(shape, counts) for shape, counts, _ in ROWS]
    for title, shape, counts in SUMMARY:
        row = rows.index((shape, counts))
        shown = []
        for program in ("perfflow", "Otava"):
            others = [_share(entries, program, row, noise) for noise in NOISES if noise != DEPENDENT]
            both = [_range(min(others), max(others)), _shown(entries, program, row, DEPENDENT)]
            shown += both if program == "perfflow" or counts != DRIFTS else ["-", "-"]  # Otava has no drifts.
        yield f"| {title} | {' | '.join(shown)} |"


def watched_table(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield how often the newest points raise a wrong alarm, and how soon a right one, by noise."""
    yield "| noise | alarms per 1,000 appends | a step of 5%: median delay | 90% within |"
    yield "|---|--:|--:|--:|"
    for noise in ALL:
        cell = _cell(entries, "perfflow", "watched", noise)
        if cell:
            delays = (f"{one:.0f}" if math.isfinite(one) else "-" for one in delays_of(cell))
            yield f"| {TITLES[noise]} | {alarms_of(cell):.2f} | {' | '.join(delays)} |"


def alarms_of(watched: Entry) -> float:
    """Return the alarms in 1,000 quiet points."""
    return float(1000 * watched["alarms"] / watched["points"])


def delays_of(watched: Entry) -> tuple[float, float]:
    """Return after how many points half, and 90%, of the series show a step; not finite beyond 100, or if unknown."""
    delays = sorted(math.inf if one is None else one for one in watched["delays"])
    if not delays:
        return (math.nan, math.nan)
    half, most = (delays[math.ceil(share * len(delays)) - 1] for share in (0.5, 0.9))
    return (half, most)


def published_table(entries: Sequence[Entry], name: str) -> Iterator[str]:
    """Yield what both programs say of a public series, in the order of its points."""
    own, peer = (_cell(entries, one, "published", name) or {} for one in ("perfflow", "Otava"))
    of_peer = {one["at"] for one in peer.get("changes", ())}
    of_own = {one["at"]: one for one in own.get("changes", ())}
    yield "| first point after | perfflow | 95% of positions | Otava |"
    yield "|--:|---|--:|---|"
    for at in sorted(of_own.keys() | of_peer):
        found = of_own.get(at)
        shown = f"{_size(found)} | {found['earliest']} to {found['latest']}" if found else "- | -"
        yield f"| {at} | {shown} | {'yes' if at in of_peer else '-'} |"
    for one in own.get("drifts", ()):
        yield f"| {one['begin']} to {one['end']} | drift, {100 * math.expm1(one['size']):+.1f}% | - | - |"


def _size(change: Entry) -> str:
    size, low, high = (f"{100 * math.expm1(change[key]):+.1f}%" for key in ("size", "low", "high"))
    return f"{size} [{low}, {high}]"


def page(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the lines of dev/experiments/changes.md."""
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
            yield from ("", f"Outliers, which perfflow does not report: {groups or 'none'}.")
