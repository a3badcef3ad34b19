"""Series of a history for pages, equal on every machine."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import groupby

from perfflow.report.history_tables import ChangeRow, Followed, Shift
from perfflow.report.html.history_site import changes_of_many, render_benchmark, render_change, render_index
from perfflow.report.table import Tone
from perfflow.store.history.database import StoredSeries, StoredValue


def a_series(name: str, metric: str = "time", number: int = 1) -> StoredSeries:
    return StoredSeries(number, name, metric, "p50", "w", "", "s", "lower", "0123456789abcdef", 120)


def a_point(number: int, value: float) -> StoredValue:
    day = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T03:00:00Z"
    low, high = value * 0.98, value * 1.02
    about = ("", f"run-{number}", day, f"{number:040x}", "main")
    return StoredValue(value, low, high, 9, *about, dirty=False, committed="", noise="quiet")


def changed(name: str = "parse", points: int = 120) -> Followed:
    """Return a series that becomes slower in its middle, with its change."""
    luck, middle = random.Random(3), points // 2
    values = [0.01 * math.exp(luck.gauss(0, 0.01)) * (1.2 if number >= middle else 1.0) for number in range(points)]
    series = a_series(name)
    shift = Shift(0.2, "2026-03-05T03:00:00Z", "a" * 40, Tone.BAD)
    row = ChangeRow(
        series, 0.01, 0.012, (0.2, 0.19, 0.21), shift, "", "aaa..bbb", "perfflow bisect w --good aaa --bad bbb"
    )
    measured = [a_point(number, value) for number, value in enumerate(values)]
    return Followed(series, measured, [middle], [row], [(0, middle, 0.01), (middle, points, 0.012)], is_flaky=False)


def quiet(name: str = "write", points: int = 3) -> Followed:
    """Return a series without a change."""
    return Followed(a_series(name), [a_point(at, 0.5) for at in range(points)], [], [], [], is_flaky=True)


def site(project: str, found: Sequence[Followed]) -> dict[str, str]:
    """Return the text of each page by its path, the index first."""
    of_benchmark = groupby(sorted(found, key=lambda item: item.series.benchmark), lambda item: item.series.benchmark)
    pages = [render_benchmark(project, list(own)) for _, own in of_benchmark]
    changes = [render_change(project, item) for item in changes_of_many(found)]
    return dict([render_index(project, found), *pages, *changes])
