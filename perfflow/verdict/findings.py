"""The findings of judging a run, which the rules for routes and advice read."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.criteria import Criteria
from perfflow.model.lazy import dataclass
from perfflow.model.result import Attribution, Benchmark, HotspotResult, Recommendation, TargetResult, Verification
from perfflow.model.result_kernels import KernelResult
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


def worse_by(row: Benchmark) -> float | None:
    """Return the change of a row as a share of the baseline, up is worse; None if there is no relative change."""
    if row.change is None or row.change.value is None:
        return None
    return -row.change.value if row.better == "higher" else row.change.value
