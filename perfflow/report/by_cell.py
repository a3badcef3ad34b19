"""The cells of steps with ``compare: KEY`` in a gate: what changed with which value, such as a compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import TIMES, in_words
from perfflow.model.result import Benchmark, Result
from perfflow.verdict.comparison import without_inverse_rates
from perfflow.verdict.row_text import estimate_of


@dataclass(frozen=True)
class ByCell:
    """One metric of one benchmark over the values of a key: ``faster with clang (-5.0%), slower with g++ (+21%)``."""

    key: str
    benchmark: str
    text: str


def by_cell(result: Result, criteria: Criteria) -> Iterator[ByCell]:
    """Yield the benchmarks that changed with at least one value of their key, in the order of the result."""
    steps = {step.id: step.axis for step in result.steps if step.axis}
    groups: dict[tuple[str, str, str], list[tuple[str, Benchmark]]] = {}
    for row in without_inverse_rates(result.benchmarks) if steps else ():
        axis = steps.get(row.step)
        if axis and row.gating and row.decision:
            before, star, after = axis["cell"].partition("*")
            own = row.name.removeprefix(before).removesuffix(after) if star else ""
            name = axis["of"].replace("*", own, 1) if star else axis["of"]
            metric = "" if row.metric in TIMES else in_words(row.metric)
            groups.setdefault((axis["key"], name, metric), []).append((axis["value"], row))
    for (key, name, metric), cells in groups.items():
        if any(row.decision in ("improved", "regressed") for _, row in cells):
            words = ", ".join(_told(row, value, criteria) for value, row in cells)
            yield ByCell(key, f"{name} {metric}".rstrip(), words)


def _told(row: Benchmark, value: str, criteria: Criteria) -> str:
    timed = row.metric in TIMES
    better, worse = ("faster", "slower") if timed else ("better", "worse")
    word = {"improved": better, "regressed": worse, "same": "the same"}.get(row.decision or "", row.decision or "")
    change = f" ({estimate_of(row, criteria)})" if row.decision in ("improved", "regressed") else ""
    return f"{word} with {value}{change}"
