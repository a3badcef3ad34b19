"""Compare where a benchmark spent its time before and after a change, from the profiles of runs on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.sanitize import visible
from perfflow.store import result_file
from perfflow.store.history.database import Measured
from perfflow.store.run_folder import HOME, RESULT

_LOOKED_AT = 5
"""The most runs on each side of a change that are searched for a profile."""
_LEAST = 0.01
"""The smallest cost change of a function that is reported, as a share of the whole cost before."""
MOST = 3


@dataclass(frozen=True)
class HotspotShift:
    """A function with its share of the profile on both sides, 0 to 1.

    ``cost`` is the cost that it added, as a share of the whole cost before. ``runs`` are the profiled runs before and
    after the change.
    """

    function: str
    before: float
    after: float
    cost: float
    runs: tuple[str, str]

    def text(self) -> str:
        """Return ``parse 12% → 35% of the profile``."""
        return f"{visible(self.function)} {self.before:.0%} → {self.after:.0%} of the profile"


def hotspot_shifts(
    root: Path, benchmark: str, before: Iterable[Measured], after: Iterable[Measured], change: float
) -> tuple[HotspotShift, ...]:
    """Return the functions whose cost moved most in the direction of a change, at most 3, the largest first.

    before, after: points on both sides, nearest first. change: that of the benchmark, as a share. Empty if the same
    tool did not profile the benchmark on both sides.
    """
    for old, old_run in _profiled(root, benchmark, before):
        for new, new_run in _profiled(root, benchmark, after):
            source = next((name for name in old if name in new), "")
            if source:
                return _moved(old[source], new[source], change, (old_run, new_run))
    return ()


_Shares = dict[str, float]


def _profiled(root: Path, benchmark: str, points: Iterable[Measured]) -> list[tuple[dict[str, _Shares], str]]:
    """Return (tool → function → share, run) of the benchmark for each profiled run."""
    runs = list(dict.fromkeys(point.run for point in points))[:_LOOKED_AT]
    found = [(_shares(root, run, benchmark), run) for run in runs]
    return [(shares, run) for shares, run in found if shares]


def _shares(root: Path, run: str, benchmark: str) -> dict[str, _Shares]:
    result = _result(root, run)
    shares: dict[str, _Shares] = {}
    if result is None:
        return shares
    trees = {spot.tree for spot in result.hotspots}
    wanted = "candidate" if "candidate" in trees else "baseline"
    for spot in result.hotspots:
        if spot.benchmark == benchmark and spot.tree == wanted:
            own, name = shares.setdefault(spot.source, {}), spot.function or spot.location
            own[name] = own.get(name, 0.0) + (spot.share if spot.self_share is None else spot.self_share)
    return shares


@cache
def _result(root: Path, run: str) -> Result | None:
    # The name of the run, without the name of the machine in it.
    path = root / HOME / "runs" / run.partition("/")[0] / RESULT
    # A run of another machine or tool has no folder here.
    if not path.is_file():
        return None

    try:
        return result_file.read(path)
    except (UserError, OSError):
        return None


def _moved(old: _Shares, new: _Shares, change: float, runs: tuple[str, str]) -> tuple[HotspotShift, ...]:
    found = []
    for name in {**old, **new}:
        before, after = old.get(name, 0.0), new.get(name, 0.0)
        # Relative to the whole cost before, since the whole cost changed as well.
        cost = after * (1 + change) - before
        if abs(cost) >= _LEAST and (cost > 0) == (change > 0):
            found.append(HotspotShift(name, before, after, cost, runs))
    return tuple(sorted(found, key=lambda item: (-abs(item.cost), item.function))[:MOST])
