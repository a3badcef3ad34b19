"""Convert two stored sets to the same statistic. A quartile is never compared with a mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfflow.model.readings import CAPPED, MEAN, Reading
from perfflow.store.history.stored import Key, Stored
from perfflow.store.history.suggestions import listed
from perfflow.tools.tool_files import clean_name

_MEDIAN = "p50"
_WORDS = {
    "": "single values",
    MEAN: "the mean of each process",
    CAPPED: "the capped mean of each process",
    _MEDIAN: "the median of each process",
}
_Readings = tuple[Reading, ...]


def with_same_statistic(first: Stored, second: Stored) -> tuple[Stored, Stored, list[str]]:
    """Return both sets with common metrics as the same statistic, without those that have none, and warnings."""
    kept: tuple[dict[Key, _Readings], dict[Key, _Readings]] = (dict(first.series), dict(second.series))
    left_out: dict[tuple[str, str], list[str]] = defaultdict(list)
    turned: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key in first.series.keys() & second.series.keys():
        pair = first.series[key], second.series[key]
        old, new = (series[0].statistic for series in pair)
        shown = clean_name(f"{key[0]} {key[1]}")
        if old == new or any(reading.exact for side in pair for reading in side):
            continue
        common = next((name for name in (new, old, MEAN, _MEDIAN) if all(_holds(side, name) for side in pair)), "")
        if common:
            turned[old, new, common].append(shown)
        else:
            left_out[old, new].append(shown)
        for side, series in zip(kept, pair, strict=True):
            side[key] = tuple(_as(reading, common) for reading in series)
            if not common:
                del side[key]
    said = [*_turned(first, second, turned), *_left_out(first, second, left_out)]
    return replace(first, series=kept[0]), replace(second, series=kept[1]), said


def _holds(series: Sequence[Reading], statistic: str) -> bool:
    return bool(statistic) and all(reading.statistic == statistic or statistic in reading.inner for reading in series)


def _as(reading: Reading, statistic: str) -> Reading:
    return replace(reading, value=reading.inner.get(statistic, reading.value), statistic=statistic)


def _turned(first: Stored, second: Stored, found: dict[tuple[str, str, str], list[str]]) -> Iterator[str]:
    for (old, new, common), names in found.items():
        yield (
            f"compared by {_words(common)}, which both contain: {listed(sorted(names))} "
            f"({_name(first)} was judged by {_words(old)}, {_name(second)} by {_words(new)})"
        )


def _left_out(first: Stored, second: Stored, found: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    older = second if first.started and second.started and second.started < first.started else first
    for (old, new), names in found.items():
        yield (
            f"skipped, because {_name(first)} contains {_words(old)} and {_name(second)} {_words(new)}: "
            f"{listed(sorted(names))}; measure {_name(older)} again to compare them"
        )


def _words(statistic: str) -> str:
    return _WORDS.get(statistic, f"the {statistic} of each process")


def _name(side: Stored) -> str:
    return clean_name(side.label)
