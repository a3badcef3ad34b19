"""The findings of judging a run, which the rules for routes and advice read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.kernels import KernelResult
from perfflow.model.result import Attribution, Benchmark, HotspotResult, Recommendation, TargetResult, Verification
from perfflow.store.record import Record


@dataclass(frozen=True)
class Findings:
    """A judged run, before its result is assembled."""

    record: Record
    criteria: Criteria
    verdict: str
    rows: Sequence[Benchmark]
    targets: Sequence[TargetResult]
    checks: Sequence[Verification]
    blamed: Sequence[Attribution] = ()
    hotspots: Sequence[HotspotResult] = ()
    advice: Sequence[Recommendation] = ()
    kernels: Sequence[KernelResult] = ()

    def regressed(self, level: str = "") -> list[Benchmark]:
        """Return the gating rows that regressed, of one level or of any."""
        return [
            row for row in self.rows if row.gating and row.decision == "regressed" and (not level or row.level == level)
        ]

    def undecided(self) -> list[Benchmark]:
        """Return the gating rows that are unproven and do not exclude a regression over the action threshold."""
        return [row for row in self.rows if row.gating and row.decision == "unproven" and row.level is None]


_ELAPSED = ("time", "uncontended")


def waits_longer(row: Benchmark, rows: Sequence[Benchmark]) -> bool:
    """Return whether most of the time that a row lost is waiting: CPU time grew by less than half of it.

    Profilers record where CPU time is spent, so they cannot name a function for it. ``rows``: all rows of the run.
    """
    if row.metric not in _ELAPSED:
        return False
    cpu = next((item for item in rows if (item.name, item.step, item.metric) == (row.name, row.step, "cpu")), None)
    lost, computed = _longer(row), _longer(cpu) if cpu else None
    return lost is not None and computed is not None and computed < lost / 2


def _longer(row: Benchmark) -> float | None:
    """Return by how much the value of the candidate exceeds that of the baseline (s)."""
    values = [side.value for side in (row.baseline, row.candidate) if side and side.value is not None]
    return values[1] - values[0] if len(values) == 2 else None


def worse_by(row: Benchmark) -> float | None:
    """Return the change of a row as a share of the baseline, up is worse; None if there is no relative change."""
    if row.change is None or row.change.value is None:
        return None
    return -row.change.value if row.better == "higher" else row.change.value
