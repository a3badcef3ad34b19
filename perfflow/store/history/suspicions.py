"""Store suspicions about the newest points of a series and their outcome, so that each is reported only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from perfflow.store.history.connections import Connection

OPEN, CONFIRMED, WITHDRAWN = "open", "confirmed", "withdrawn"


@dataclass(frozen=True)
class StoredSuspicion:
    """A suspicion, identified by the runs of its points, which do not change when other points are added.

    ``first`` is the run of the first point of the new level, ``since`` that of the first point of the old level. Each
    has its revision as well, because a run may have measured two. ``before``, ``size`` and ``z`` are as in
    ``stats.newest_points``. ``told`` is when it was first reported (RFC 3339). ``state`` is open, confirmed or
    withdrawn, and ``why`` is the reason. ``run`` is the run that measured both revisions in pairs, '' without one.
    """

    series: int
    first: str
    first_revision: str
    since: str
    since_revision: str
    before: float
    size: float
    z: float
    told: str
    state: str = OPEN
    why: str = ""
    run: str = ""


_NAMES = tuple(about.name for about in fields(StoredSuspicion))
_COLUMNS = ", ".join(_NAMES)


def of_series(connection: Connection, series: int) -> list[StoredSuspicion]:
    """Return all suspicions of a series, in the order in which they were reported."""
    query = f"SELECT {_COLUMNS} FROM suspicion WHERE series = :series ORDER BY told, first"  # noqa: S608 (constants)
    return [StoredSuspicion(*row) for row in connection.rows(query, {"series": series})]


def keep(connection: Connection, found: Sequence[StoredSuspicion]) -> None:
    """Store new suspicions, and update the state of known ones."""
    values: list[dict[str, Any]] = [{name: getattr(item, name) for name in _NAMES} for item in found]
    if not values:
        return
    places = ", ".join(f":{name}" for name in _NAMES)
    text = (
        f"INSERT INTO suspicion ({_COLUMNS}) VALUES ({places}) "  # noqa: S608 (constants)
        "ON CONFLICT (series, first, first_revision) DO UPDATE SET state = excluded.state, why = excluded.why, "
        "run = excluded.run"
    )
    with connection.writing():
        connection.many(text, values)
