"""What arrives from the gauges: lines of text, out of order. Generated, the same ones every time."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

GAUGES = 96
_START = 1_700_000_000_000
_MASK = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one gauge: ``time`` in ms since 1970, ``value`` in m of water or in hPa of air."""

    time: int
    gauge: str
    value: float


def generate(rows: int) -> Iterator[str]:
    """Yield lines such as ``2023-11-14T22:13:20.417+00:00 g07 level 3.2615``; every other one is a pressure."""
    state = 2463534242
    for row in range(rows):
        # A linear congruential generator (Knuth, MMIX): the same numbers in every Python, the high bits the good ones.
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        # About one a second, up to a minute late.
        time = _START + row * 1000 + (state >> 40) % 60_000
        stamp = datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds")
        noise = (state >> 44) / 2**20
        kind, value = ("pressure", 990 + 40 * noise) if row % 2 else ("level", 3 + noise)
        yield f"{stamp} g{(state >> 33) % GAUGES:02} {kind} {value:.4f}"


@functools.cache
def milliseconds(stamp: str) -> int:
    """Return the time of an ISO 8601 stamp in ms since 1970."""
    return round(datetime.fromisoformat(stamp).timestamp() * 1000)


def parse(lines: Iterable[str]) -> tuple[list[Reading], list[Reading]]:
    """Return the levels and the pressures, each in the order of arrival."""
    found: dict[str, list[Reading]] = {"level": [], "pressure": []}
    for line in lines:
        stamp, gauge, kind, value = line.split()
        found[kind].append(Reading(milliseconds(stamp), gauge, float(value)))
    return found["level"], found["pressure"]
