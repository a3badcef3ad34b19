"""What ``perfflow plan --detect`` prints: per benchmark, how long a change takes to prove, and what a budget shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfflow.model.units import brief_duration
from perfflow.report.expected import span
from perfflow.report.table import name, table, value, words
from perfflow.report.text_table import laid_out


@dataclass(frozen=True)
class Detectable:
    """What can be shown of one benchmark.

    ``spread``: standard deviation of ln(candidate / baseline) of one pair; None without data. ``pair_seconds``: time of
    one pair. ``source``: where both come from. ``pairs``: that prove the change asked about; None if more than are ever
    measured. ``within``: the smallest change, as a share, that its part of the budget proves.
    """

    benchmark: str
    metric: str = ""
    spread: float | None = None
    pair_seconds: float | None = None
    source: str = ""
    pairs: int | None = None
    within: float | None = None

    def with_answer(self, pairs: int | None, within: float | None) -> Detectable:
        """Return it with what the formula says."""
        return replace(self, pairs=pairs, within=within)

    @property
    def seconds(self) -> float | None:
        """Time that the proof takes, if it is known."""
        return self.pairs * self.pair_seconds if self.pairs and self.pair_seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return plain data; shares and seconds, null if unknown."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric or None,
            "spread": self.spread,
            "pairs": self.pairs,
            "seconds": self.seconds,
            "within_budget": self.within,
            "source": self.source or None,
        }


def to_json(rows: Sequence[Detectable], change: float, budget: float) -> dict[str, Any]:
    """Return plain data of all benchmarks."""
    total = sum(row.seconds or 0.0 for row in rows)
    return {"detect": change, "budget": budget, "seconds": total, "benchmarks": [row.to_json() for row in rows]}


def lines(rows: Sequence[Detectable], change: float, budget: float, file: str, width: int) -> Iterator[str]:
    """Yield the answer as text. ``file``: the workflow as typed."""
    known, unknown = [row for row in rows if row.spread is not None], [row for row in rows if row.spread is None]
    size = f"{change * 100:.3g}%"
    if known:
        yield f"a change of {size} is proven 9 times out of 10 after:"
        columns = [name("Benchmark"), words("Metric"), value("Spread"), value("Pairs"), value("Time")]
        columns.append(value(f"In {brief_duration(budget)} for all"))
        cells = (
            (
                row.benchmark,
                row.metric,
                f"±{(row.spread or 0.0) * 100:.2g}%",
                "too many" if row.pairs is None else str(row.pairs),
                "?" if row.seconds is None else span(row.seconds),
                "?" if row.within is None else f"{row.within * 100:.2g}%",
            )
            for row in known
        )
        laid = laid_out(table(columns, cells), width)
        yield from (laid.head, *(line for entry in laid.entries for line in entry))
        total = sum(row.seconds or 0.0 for row in known)
        yield f"all together: about {span(total)}; data from {', '.join(dict.fromkeys(row.source for row in known))}"
    if unknown:
        yield f"no data: {', '.join(row.benchmark for row in unknown)}"
        yield f"  perfflow calibrate {file}, or one perfflow gate {file}, measures their spread"
