"""Choose the regression between two revisions, and decide on which side of it a commit between them is.

A commit has the regression if the whole interval of its change from the good revision is beyond half of the regression,
and lacks it if the whole interval is below. The cut is at half, where both outcomes are equally far away.

``Bisected`` is the result of a bisection, as bisect.json and the reports show it. ``read_bisection`` reads a stored
bisect.json, to render its page again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.targets import is_chosen
from perfflow.model.units import format_interval
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.trees.line_history import Described
from perfflow.verdict.acceptance import Goal, effect_of
from perfflow.verdict.comparison import ComparedMetric, compare
from perfflow.verdict.decide import Ruling, rule
from perfflow.verdict.gating import compared, gating_rows

_ALL = 0.75
"""Share of the regression below which a revision on the cut counts as having only a part of it."""
_MOST_TOLD = 4
"""Maximum number of unproven rows with a note."""
_FROM_NOTHING = 2.0
"""Size of a regression from zero, which has no relative change: any value above zero is beyond the cut."""


class Holds(StrEnum):
    """Whether a revision has the regression."""

    YES = "has it"
    NO = "lacks it"
    PART = "has part of it"
    UNPROVEN = "unproven"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Regression:
    """A proven regression of one metric of a benchmark; ``worse`` is its change as a share, up is worse."""

    benchmark: str
    metric: str
    step: str
    change: Interval
    worse: Interval
    confidence: float | None

    @property
    def size(self) -> float:
        """The estimate, replaced by a finite size if the good revision has a count of zero."""
        return self.worse.estimate if math.isfinite(self.worse.estimate) else _FROM_NOTHING

    @property
    def cut(self) -> float:
        """The change that separates the revisions that have the regression from those that lack it.

        Half of the estimate, or the lower bound of the interval if that is less.
        """
        return min(self.size / 2, self.worse.low)

    def goal(self) -> Goal:
        """Return the goal that ends the sampling of a revision: its whole interval is on one side of the cut."""
        return Goal(((self.benchmark, self.metric),), (), -self.cut)

    def criteria(self, criteria: Criteria) -> Criteria:
        """Return criteria in which only the cut matters."""
        thresholds = Thresholds(concern=self.cut, action=self.cut, floor=criteria.thresholds.floor)
        return replace(criteria, targets=(), thresholds=thresholds, per_glob={}, accepted=())


@dataclass(frozen=True)
class JudgedRow:
    """One row of good against bad, and its decision."""

    comparison: ComparedMetric
    ruling: Ruling

    @property
    def key(self) -> tuple[str, str]:
        """Benchmark and metric."""
        return self.comparison.benchmark, self.comparison.metric.name


def judged_rows(record: Record, criteria: Criteria, benchmarks: Sequence[str], metric: str) -> list[JudgedRow]:
    """Return the requested rows of good against bad: the gating rows of each benchmark, or those of ``metric``.

    ``benchmarks`` are globs, () for all.
    """
    rows = compared(record, criteria)
    gating = gating_rows(record, rows, criteria)
    keys = [key for key in rows if (key[1] == metric if metric else key in gating)]
    named = [key for key in keys if is_chosen(benchmarks, key[0])]
    return [
        JudgedRow(rows[key], rule(rows[key], criteria.thresholds_of(*key), identical=_identical(record, rows[key])))
        for key in named
    ]


def regressions(found: list[JudgedRow], *, any_level: bool) -> list[Regression]:
    """Return the proven regressions, the worst first; of at least level concern unless ``any_level``."""
    proven = []
    for item in found:
        row, worse = item.comparison, _worse(item.comparison)
        if item.ruling.decision != "regressed" or worse is None or row.change is None:
            continue
        if any_level or item.ruling.level in ("concern", "action"):
            proven.append(Regression(*item.key, row.step, row.change, worse, row.confidence))
    return sorted(proven, key=lambda each: -each.size)


def nothing_proven(record: Record, rows: list[JudgedRow], requested: str) -> tuple[str, str]:
    """Return ``not measured``, ``unproven`` or ``same`` with the reason, if no regression is proven.

    ``requested`` names the requested rows.
    """
    if not rows:
        known = ", ".join(sorted({f"{name} {metric}" for name, metric in record.series})) or "nothing"
        missing = requested or "the deciding metric"
        return "not measured", f"{missing} was not measured on both revisions; measured: {known}"
    unsure = undecided(rows)
    if unsure:
        return "unproven", f"a regression is neither proven nor excluded: {_names(unsure)}"
    gone = [item for item in rows if item.comparison.only is not None or item.comparison.change is None]
    if gone:
        return "not measured", f"not measured on both revisions: {_names(gone)}"
    if all(item.ruling.decision == "improved" for item in rows):
        return "same", "bad is better than good; were they swapped?"
    return "same", "bad is not worse than good in any deciding metric"


def undecided(rows: list[JudgedRow]) -> list[JudgedRow]:
    """Return the unproven rows, the one with the worst estimate first."""
    found = [item for item in rows if item.ruling.decision == "unproven"]
    return sorted(found, key=lambda item: -(_worse(item.comparison) or Interval(-math.inf, 0, 0)).estimate)


def what_to_raise(record: Record, rows: list[JudgedRow]) -> list[str]:
    """Return a line for each unproven row: its change, and how to get more pairs."""
    return [_raise(record, item) for item in undecided(rows)[:_MOST_TOLD]]


def _raise(record: Record, item: JudgedRow) -> str:
    row, ruling = item.comparison, item.ruling
    remedies = {
        "total budget": "give a larger --budget",
        "budget": f"raise `budget` of step {row.step}",
        "last look": f"make the program of step {row.step} do more work",
    }
    counted = f"{row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    more = f", about {ruling.more} more would settle it" if ruling.more else ""
    remedy = remedies.get(record.why_stopped(record.series[item.key]), f"raise `runs` of step {row.step}")
    return f"{' '.join(item.key)}: {change_text(row.change)} after {counted}{more}: {remedy}"


def change_text(change: Interval | None) -> str:
    """Return ``+27.1% [+25.0%, +29.3%]``, ``-`` without a change."""
    if change is None or math.isnan(change.estimate):
        return "-"
    return format_interval(change.estimate, change.low, change.high)


def _names(rows: list[JudgedRow]) -> str:
    return ", ".join(" ".join(item.key) for item in rows)


def row_of(record: Record, criteria: Criteria, regression: Regression) -> ComparedMetric | None:
    """Return the row of one revision against the good one; None if it was not measured on both sides."""
    series = record.series.get((regression.benchmark, regression.metric))
    row = compare(series, criteria) if series else None
    return row if row and row.only is None and row.change is not None else None


def holds(row: ComparedMetric, regression: Regression) -> Holds:
    """Return on which side of the cut a revision is.

    If the interval includes the cut but its lower bound is above half of the cut, the revision has at least a part of
    the regression. It has only a part if the interval excludes most of it: then it came in several steps.
    """
    worse = _worse(row)
    known = row.metric.exact or row.confidence is not None
    if worse is None or not known:
        return Holds.UNPROVEN
    if worse.low > regression.cut:
        return Holds.YES
    if worse.high < regression.cut:
        return Holds.NO
    if worse.low <= regression.cut / 2:
        return Holds.UNPROVEN
    return Holds.PART if worse.high < regression.size * _ALL else Holds.YES


def _worse(row: ComparedMetric) -> Interval | None:
    """Return the change, up is worse; None if it is not known."""
    effect = effect_of(row)
    return None if effect is None else Interval(-effect.estimate, -effect.high, -effect.low)


def _identical(record: Record, row: ComparedMetric) -> bool:
    return record.outcome_of(row.step).identical


SCHEMA = "perfflow.bisect/1"


class BisectionOutcome(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    NARROWED = "narrowed"
    """Several commits are left that could not be narrowed down further."""
    SAME = "same"
    """Good and bad are proven not to differ in the deciding metrics, so there is nothing to bisect."""
    UNPROVEN = "unproven"
    """Between good and bad a regression is neither proven nor excluded."""
    NOT_MEASURED = "not measured"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class JudgedRevision:
    """One revision: whether it has the regression, its change from the good one, and the cost of measuring it.

    ``built`` is False if another revision has the same tree. ``seconds`` is the time to build and measure.
    """

    commit: Described
    holds: Holds
    change: Interval | None = None
    pairs: int = 0
    reason: str = ""
    seconds: float = 0.0
    built: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain data for bisect.json."""
        return {
            "revision": self.commit.revision,
            "subject": self.commit.subject,
            "decision": self.holds.value,
            "change": interval_json(self.change),
            "pairs": self.pairs,
            "reason": self.reason,
            "seconds": self.seconds,
            "built": self.built,
        }


@dataclass(frozen=True)
class Bisected:
    """A whole bisection. ``left`` are the commits that may be the first bad one, the newest first.

    ``others`` are further proven regressions that were not bisected.
    """

    outcome: BisectionOutcome
    workflow: str
    good: Described
    bad: Described
    why: str = ""
    regression: Regression | None = None
    tried: tuple[JudgedRevision, ...] = ()
    left: tuple[Described, ...] = ()
    files: tuple[str, ...] = ()
    others: tuple[Regression, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first_bad(self) -> Described | None:
        """The first bad commit, None until it is found."""
        return self.left[0] if self.outcome is BisectionOutcome.FOUND else None

    @property
    def builds(self) -> int:
        """Number of revisions that were built and could be measured."""
        return sum(item.built and item.holds is not Holds.SKIPPED for item in self.tried)

    def of(self, revision: str) -> JudgedRevision | None:
        """Return the entry of a revision, None if it was not tried."""
        return next((item for item in self.tried if item.commit.revision == revision), None)

    def ended(self, outcome: BisectionOutcome, why: str = "") -> Bisected:
        """Return a copy with the given outcome."""
        return replace(self, outcome=outcome, why=why)

    def to_json(self, **more: Any) -> dict[str, Any]:
        """Return plain data for bisect.json."""
        first = self.first_bad
        first_bad = None
        if first:
            known = [(parent, self.of(parent)) for parent in first.parents]
            first_bad = {
                **_commit_json(first),
                "files": list(self.files),
                "change": interval_json(item.change if (item := self.of(first.revision)) else None),
                "parents": [
                    {"revision": parent, "change": interval_json(item.change if item else None)}
                    for parent, item in known
                ],
            }
        return {
            "schema": SCHEMA,
            "outcome": self.outcome.value,
            "why": self.why,
            "workflow": self.workflow,
            "good": _commit_json(self.good),
            "bad": _commit_json(self.bad),
            "regression": _regression_json(self.regression),
            "first_bad": first_bad,
            "left": [_commit_json(item) for item in self.left],
            "builds": self.builds,
            "tried": [item.to_json() for item in self.tried],
            "others": [_regression_json(item) for item in self.others],
            "notes": list(self.notes),
            **more,
        }


def interval_json(interval: Interval | None) -> dict[str, float | None] | None:
    """Return value and bounds as plain data; values that are not finite become null."""
    if interval is None:
        return None
    names = {"value": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if math.isfinite(value) else None for name, value in names.items()}


def about_size(tried: Sequence[JudgedRevision], regression: Regression, first: Described) -> list[str]:
    """Return notes for a regression that came in several steps."""
    by_revision = {judged.commit.revision: judged for judged in tried}
    notes = []
    judged = by_revision.get(first.revision)
    if judged and judged.holds is Holds.PART:
        notes.append(
            f"{first.revision[:12]} causes a part of the regression; to find the rest, use --good {first.revision[:12]}"
        )
    before = [by_revision[parent] for parent in first.parents if parent in by_revision]
    if any(each.change and _proven_worse(each.change, regression) for each in before):
        notes.append(f"an earlier commit causes a smaller part; to find it, use --bad {first.parents[0][:12]}")
    return notes


def _proven_worse(change: Interval, regression: Regression) -> bool:
    """Return whether a revision below the cut is proven to have more than a tenth of the regression."""
    sign = -1 if regression.change.estimate < 0 else 1
    return min(sign * change.low, sign * change.high) > regression.size / 10


def _commit_json(commit: Described) -> dict[str, str]:
    return {name: getattr(commit, name) for name in ("revision", "subject", "author", "date")}


def _regression_json(regression: Regression | None) -> dict[str, Any] | None:
    if regression is None:
        return None
    return {
        "benchmark": regression.benchmark,
        "metric": regression.metric,
        "step": regression.step,
        "change": interval_json(regression.change),
        "confidence": regression.confidence,
    }


def read_bisection(data: Mapping[str, Any]) -> Bisected:
    """Return the bisection in bisect.json. Raises LookupError, TypeError or ValueError if the data is damaged."""
    if data["schema"] != SCHEMA:
        raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA!r}")
    first = data["first_bad"]
    parents = {first["revision"]: tuple(parent["revision"] for parent in first["parents"])} if first else {}
    return Bisected(
        outcome=BisectionOutcome(data["outcome"]),
        workflow=data["workflow"],
        good=_commit(data["good"], parents),
        bad=_commit(data["bad"], parents),
        why=data["why"],
        regression=_regression(data["regression"]) if data["regression"] else None,
        tried=tuple(_tried(item) for item in data["tried"]),
        left=tuple(_commit(item, parents) for item in data["left"]),
        files=tuple(first["files"]) if first else (),
        others=tuple(map(_regression, data["others"])),
        notes=tuple(data["notes"]),
    )


def _commit(data: Mapping[str, Any], parents: Mapping[str, tuple[str, ...]]) -> Described:
    known = parents.get(data["revision"], ())
    return Described(data["revision"], known, data.get("author", ""), data.get("date", ""), data["subject"])


def _tried(data: Mapping[str, Any]) -> JudgedRevision:
    return JudgedRevision(
        commit=_commit(data, {}),
        holds=Holds(data["decision"]),
        change=_interval(data["change"]) if data["change"] else None,
        pairs=data["pairs"],
        reason=data["reason"],
        seconds=data["seconds"],
        built=data["built"],
    )


def _regression(data: Mapping[str, Any]) -> Regression:
    # The direction of the metric is not stored, and only a search needs it.
    change = _interval(data["change"])
    return Regression(data["benchmark"], data["metric"], data["step"], change, change, data["confidence"])


def _interval(data: Mapping[str, float | None]) -> Interval:
    """Read value and bounds; null is a value that was not finite."""
    ends = {"value": math.inf, "low": -math.inf, "high": math.inf}
    value, low, high = (end if (found := data[name]) is None else float(found) for name, end in ends.items())
    return Interval(value, low, high)
