"""The gates table: the status of each group of rules, with the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.result import Benchmark, Result, TargetResult, is_untimed
from perfflow.model.targets import specificity
from perfflow.report.blame import not_run
from perfflow.report.bounds import is_about
from perfflow.report.requirements import RequirementLine, requirement_of
from perfflow.report.table import NOTHING
from perfflow.report.text_table import Truncated, truncated
from perfflow.tools.adapter import OPTIONAL_ROLES
from perfflow.verdict.acceptance import taken
from perfflow.verdict.comparison import without_inverse_rates
from perfflow.verdict.row_text import judged

MOST_NAMED = 4
"""Rows that the evidence of one gate names."""
SYMBOLS = {"pass": "✅", "concern": "✅", "accepted": "✅", "unproven": "❔", "error": "❌", "fail": "❌"}
_STATUSES = tuple(SYMBOLS)
"""From best to worst. The status of a gate is the worst of its rows."""
_OF_TARGETS = {
    "met": "pass",
    "not met": "fail",
    "unproven": "unproven",
    "not measured": "error",
    "not held by base": "pass",
}


@dataclass(frozen=True)
class GateLine:
    """One gate; ``group`` is the glob whose thresholds or targets it covers, '' for all."""

    gate: str
    group: str
    status: str
    evidence: str
    counts: str = ""
    """The evidence without names, '' if it has none."""

    @property
    def counted(self) -> str:
        """The evidence for a page whose other tables show the names."""
        return self.counts or self.evidence

    @property
    def symbol(self) -> str:
        """The symbol of the status."""
        return SYMBOLS[self.status]


def gates_of(result: Result, criteria: Criteria) -> Truncated[GateLine]:
    """Return the gate itself, then its parts: measured benchmarks, correctness, regressions and targets by group.

    The last one holds everything else that prevents a pass: failed steps, and a run that did not finish.
    """
    groups = [*_measured(result), *_correctness(result), *_regressions(result, criteria), *_targets(result, criteria)]
    whole = [GateLine(gate.name, "", gate.status, f"the verdict is {result.verdict}") for gate in [result.gate] if gate]
    return truncated([*whole, *groups, *_run(result, groups)], lambda line: -_STATUSES.index(line.status))


def _run(result: Result, groups: Sequence[GateLine]) -> Iterator[GateLine]:
    failed = [
        step
        for step in result.steps
        if step.status in ("failed", "timeout") and not step.allowed and step.role not in ("check", *OPTIONAL_ROLES)
    ]
    texts = ["it did not finish"] if result.run.interrupted else []
    texts += [f"step {step.id}: {step.reason}" for step in failed]
    if texts:
        yield GateLine("run", "", "error", _listed("", texts, "; "))
    elif result.verdict not in ("pass", None) and all(line.status != result.verdict for line in groups):
        texts = [item.text for item in result.causes]
        yield GateLine("run", "", result.verdict, _listed("", texts, "; ") or "no reason is stored")


def _measured(result: Result) -> Iterator[GateLine]:
    rows = [row for row in result.benchmarks if row.gating]
    removed = {row.name: None for row in rows if row.decision == "removed"}
    silent = dict.fromkeys(not_run(result))
    names = {row.name: None for row in rows} | silent
    if not names:
        return
    lost = len(removed | silent)
    untimed = len({row.name for row in rows if is_untimed(row)})
    counted = (
        f"{len(names) - lost - untimed} of {len(names)} {'benchmarks' if len(names) > 1 else 'benchmark'} measured"
    )
    counted += f", {untimed} not timed because they run the same code" if untimed else ""
    texts = [_listed(f"{word}: ", list(found)) for word, found in (("removed", removed), ("not run", silent)) if found]
    yield GateLine("measured", "", "error" if lost else "pass", "; ".join([counted, *texts]), counted)


def _correctness(result: Result) -> Iterator[GateLine]:
    allowed = {step.id for step in result.steps if step.allowed}
    checks = [check for check in result.verification if check.id not in allowed]
    if not checks:
        return
    by_status = {
        word: [check.id for check in checks if check.status == word] for word in ("failed", "not run", "skipped")
    }
    passed = sum(check.status == "passed" for check in checks)
    texts = [_listed(f"{word}: ", names) for word, names in by_status.items() if names]
    status = "fail" if by_status["failed"] else "error" if not passed else "pass"
    yield GateLine("correctness", "", status, "; ".join([f"{passed} of {len(checks)} passed", *texts]))


def _regressions(result: Result, criteria: Criteria) -> Iterator[GateLine]:
    """Yield one gate for the common thresholds, and one for each glob with its own thresholds."""
    groups: dict[str, list[Benchmark]] = {}
    for row in without_inverse_rates(result.benchmarks):
        if row.gating and row.change is not None and row.decision not in (None, "new", "removed"):
            groups.setdefault(_group(row.name, criteria), []).append(row)
    for glob in ("", *criteria.per_glob):
        rows = groups.get(glob, [])
        if not rows:
            continue
        status = max((_status(row, criteria) for row in rows), key=_STATUSES.index)
        yield GateLine("regressions", glob, status, _delta(rows, status, criteria), _counted(rows, status, criteria))


def _group(name: str, criteria: Criteria) -> str:
    """Return the glob whose action threshold judges a benchmark: the one with the most literal characters, or ''."""
    globs = [glob for glob, own in criteria.per_glob.items() if "action" in own.shares and criteria.matches(glob, name)]
    return max(globs, key=lambda glob: specificity(glob, name), default="")


def _status(row: Benchmark, criteria: Criteria) -> str:
    if row.decision == "not measured":
        return "error"
    if row.decision == "unproven" and row.level is None:
        return "unproven"
    if taken(row, criteria):
        return "accepted"
    return {"action": "fail", "concern": "concern"}.get(row.level or "", "pass")


def _delta(rows: Sequence[Benchmark], status: str, criteria: Criteria) -> str:
    """Return the figures of the rows that decide the status, or of the worst row if all pass.

    Unproven rows are only named, since the reasons of the verdict explain them.
    """
    if status == "pass":
        worst = max(rows, key=lambda row: (_estimate(row), row.decision == "unproven"))
        return f"{_row_text(worst, criteria)} (worst of {len(rows)})"
    deciding = [row for row in rows if _status(row, criteria) == status]
    deciding.sort(key=_estimate, reverse=True)
    counted = f"{len(deciding)} of {len(rows)}"
    if status == "unproven":
        return _listed(f"{counted} unproven: ", [row.title for row in deciding])
    return _listed(f"{counted}: ", [_row_text(row, criteria) for row in deciding], "; ")


def _counted(rows: Sequence[Benchmark], status: str, criteria: Criteria) -> str:
    word = {"fail": "over the action threshold", "concern": "over the concern threshold"}.get(status, status)
    count = sum(_status(row, criteria) == status for row in rows)
    return f"{count} of {len(rows)} {word}"


def _row_text(row: Benchmark, criteria: Criteria) -> str:
    return f"{row.title}: {judged(row, criteria, taken(row, criteria))}"


def _estimate(row: Benchmark) -> float:
    """Return by which share a row got worse; a row without an estimate ranks first."""
    value = row.change.value if row.change else None
    if value is None:
        return float("inf")
    return -value if row.better == "higher" else value


def _targets(result: Result, criteria: Criteria) -> Iterator[GateLine]:
    """Yield one gate for each benchmark or glob with targets in the workflow."""
    groups: dict[str, list[TargetResult]] = {}
    for target in result.targets:
        if target.status == "not looked at":
            continue
        groups.setdefault(_owner(target, criteria), []).append(target)
    by_key = {(row.name, row.metric): row for row in result.benchmarks}
    for glob, targets in groups.items():
        status = max((_OF_TARGETS[target.status] for target in targets), key=_STATUSES.index)
        met = f"{sum(target.status == 'met' for target in targets)} of {len(targets)} met"
        yield GateLine("targets", glob, status, _met(targets, status, criteria, by_key), met)


def _owner(target: TargetResult, criteria: Criteria) -> str:
    return next((wanted.benchmark for wanted in criteria.targets if is_about(wanted, target)), target.benchmark)


def _met(
    targets: Sequence[TargetResult],
    status: str,
    criteria: Criteria,
    by_key: Mapping[tuple[str, str], Benchmark],
) -> str:
    """Return the number of met targets, and the figures of those that decide the status."""
    deciding = targets if status == "pass" and len(targets) == 1 else []
    if status != "pass":
        deciding = [target for target in targets if _OF_TARGETS[target.status] == status]
    shown = [
        requirement_of(target, criteria, by_key.get((target.benchmark, target.metric)))
        for target in deciding[:MOST_NAMED]
    ]
    met = f"{sum(target.status == 'met' for target in targets)} of {len(targets)} met"
    more = f" and {len(deciding) - MOST_NAMED} more" if len(deciding) > MOST_NAMED else ""
    return "; ".join([*([met] if len(targets) > 1 else []), *map(_target_text, shown)]) + more


def _target_text(row: RequirementLine) -> str:
    figure = f"{row.measured} {row.interval}".rstrip()
    known = row.measured != NOTHING
    unproven = f"{figure} is unproven" if known else f"unproven, {row.detail}"
    measured = {"met": figure, "not met": figure, "unproven": unproven}.get(row.status, row.status)
    return f"{row.name}: {measured}, required {row.required}"


def _listed(start: str, names: Sequence[str], between: str = ", ") -> str:
    """Return the first names of a list, and the number of the others."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{start}{between.join(names[:MOST_NAMED])}{more}"
