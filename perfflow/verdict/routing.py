"""Route a run by the first rule that matches, and give advice by the rules that have evidence.

- ``read_rules`` reads the built-in rules, YAML files that are read when they are first used.
- ``facts_of`` returns the facts of a run that the rules under ``routes`` use; ``workflow.criteria_checks`` defines
  their meanings.
- ``routes_taken`` returns the route of a run, with a brief for the next step.
- ``evidence`` returns the evidence of a run for one condition of a rule, as text: hotspots, slower functions, metrics.
- ``recommendations`` gives the advice of the rules in ``rules/recommendations.yaml``, each with its evidence from this
  run.
- ``advice_of_tools`` passes on a profiler's own advice on GPU kernels, verbatim, in addition to the advice of
  perfflow's rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from perfflow.model.criteria import Criteria, Route, read_share
from perfflow.model.kernels import KernelResult, ToolAdvice
from perfflow.model.result import Attribution, Benchmark, HotspotResult, Recommendation, RouteTaken
from perfflow.model.stacks import is_own
from perfflow.model.units import Dimension, format_change, format_quantity, format_together, significant
from perfflow.tools.linux.costly_calls import parse_cause
from perfflow.verdict.attribution import current, leading, localized_in, loss_share_text
from perfflow.verdict.brief import _SHORT, brief_of
from perfflow.verdict.comparison import read_count
from perfflow.verdict.findings import Findings, worse_by
from perfflow.verdict.gating import is_accepted, two_trees
from perfflow.verdict.kernels import LowOccupancy, Stalled, Wasted, current_kernels, of_kernel
from perfflow.verdict.next_step import NextStep, next_step
from perfflow.workflow.criteria_checks import FoundNames, context, holds
from perfflow.workflow.expression_text import ExpressionError

FOLDER = Path(__file__).parent / "rules"


@cache
def read_rules(name: str) -> list[dict[str, Any]]:
    """Return the list in ``rules/NAME.yaml``, whose only key is NAME."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, list[dict[str, Any]]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return data[name]


def facts_of(findings: Findings) -> dict[str, Any]:
    """Return every fact of a run, nested as expressions read them."""
    gating = [row for row in findings.rows if row.gating]
    failed_checks = [item.id for item in findings.checks if item.status == "failed"]
    values: dict[str, Any] = {
        "verdict": findings.verdict,
        "gate": "pass" if findings.verdict == "pass" else "fail",
        "workflow": findings.record.run.workflow,
        "component": findings.record.run.component,
        "benchmarks": _benchmarks(findings.rows),
        "regressions": _benchmarks(findings.regressed()),
        "regressions.action": _benchmarks(findings.regressed("action")),
        "regressions.concern": _benchmarks(findings.regressed("concern")),
        "regressions.worst": max((worse_by(row) or 0.0 for row in findings.regressed()), default=0.0),
        "improvements": _benchmarks(row for row in gating if row.decision == "improved"),
        "unproven": _benchmarks(findings.undecided()),
        "new": _benchmarks(row for row in findings.rows if row.decision == "new"),
        "removed": _benchmarks(row for row in findings.rows if row.decision == "removed"),
        "baseline.missing": bool(findings.rows) and all(row.decision in (None, "new") for row in findings.rows),
        "accepted.used": _benchmarks(row for row in findings.rows if row.accepted),
        "accepted.expired": FoundNames(_accepted_expired(findings)),
        "correctness.failed": FoundNames(failed_checks),
        "errors": FoundNames(_errors(findings, failed_checks)),
        "recommendations": FoundNames(item.rule for item in findings.advice if not item.source),
        "commits": FoundNames(commit.revision[:_SHORT] for item in findings.blamed for commit in item.commits),
    }
    for status in ("met", "not met", "unproven", "not measured"):
        names = FoundNames(target.benchmark for target in findings.targets if target.status == status)
        values[f"targets.{status.replace(' ', '_')}"] = names
    return context(values | _hotspots(findings))


def _benchmarks(rows: Iterable[Benchmark]) -> FoundNames:
    return FoundNames(row.name for row in rows)


def _hotspots(findings: Findings) -> dict[str, Any]:
    place, top = localized_in(findings), leading(findings)
    lost = [item.function for item in findings.blamed]
    blamed = top if isinstance(top, Attribution) else None
    name = "" if top is None else top.function if isinstance(top, Attribution) else top.location
    return {
        "hotspots": FoundNames(lost or (spot.location for spot in current(findings.hotspots))),
        "hotspots.localized": bool(place),
        "hotspots.localized_in": place,
        "hotspots.top": name,
        "hotspots.file": top.file if top else "",
        "hotspots.crate": blamed.crate if blamed else "",
        "hotspots.region": blamed.region if blamed else "",
        "hotspots.share": (top.share or 0.0) if top else 0.0,
        "hotspots.files": FoundNames(item.file for item in findings.blamed if item.file),
        "hotspots.crates": FoundNames(item.crate for item in findings.blamed if item.crate),
        "hotspots.regions": FoundNames(item.region for item in findings.blamed if item.region),
    }


def _accepted_expired(found: Findings) -> list[str]:
    today = found.record.run.started[:10]
    over = [item for item in found.criteria.accepted if not item.in_force(today)]
    return [
        row.name
        for row in found.regressed()
        if any(is_accepted(item, found.criteria, (row.name, row.metric), row.gates_by) for item in over)
    ]


def _errors(found: Findings, failed_checks: list[str]) -> list[str]:
    return [
        step_id
        for step_id, step in found.record.ended_steps()
        if step.status in ("failed", "timeout")
        and not found.record.planned[step_id].allowed
        and step_id not in failed_checks
    ]


OWN = "routes: "
"""Prefix of the condition of a workflow's own rule, which has no name as built-in rules do."""


def routes_taken(findings: Findings) -> Iterator[RouteTaken]:
    """Yield the route of the first rule that matches, if any. The workflow's own rules come before the built-in ones.

    A run that neither compared two trees nor has its own routes gets no route. A rule that cannot be evaluated does
    not match, and the reason of the route notes it.
    """
    routes = findings.criteria.routes
    if not routes and not two_trees(findings.record):
        return

    facts, notes = facts_of(findings), []
    for name, route in (*((f"{OWN}{route.condition}", route) for route in routes), *built_in()):
        try:
            matched = holds(route.condition, facts)
        except ExpressionError as error:
            notes.append(f"{name} could not be evaluated ({error})")
            continue
        if matched:
            why = "; ".join(filter(None, (route.why, *notes)))
            own_words = f"{route.to}: {route.why}" if route.why else route.to
            text, command = next_step(name, findings) or NextStep(own_words)
            yield RouteTaken(rule=name, to=route.to, why=why, next=text, command=command, brief=brief_of(findings))
            return


def built_in() -> Iterator[tuple[str, Route]]:
    """Yield the built-in rules in order, each with its name."""
    for item in read_rules("routes"):
        yield item["id"], Route(item["if"], item["to"], item["why"])


_NAMED = 3
"""Number of places named per profile."""


@dataclass(frozen=True)
class CallShare:
    """Functions, and calls of a kind below other functions, with together at least ``share`` of a profile of ``of``.

    All functions of files that match ``files`` count.
    """

    share: float
    of: tuple[str, ...]
    functions: tuple[str, ...] = ()
    calls: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class HotPlace:
    """One hotspot that alone has at least ``share`` of a profile of ``of`` by one of the profilers in ``by``.

    It must match one of ``functions``, if given. Its source must show all of ``code`` and one of ``any_code``, and its
    profiler must have counted it at least ``count`` times (calls, hits, blocks or opens).
    """

    share: float
    of: tuple[str, ...]
    by: tuple[str, ...]
    functions: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    any_code: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True)
class ProvenGrowth:
    """A metric that is proven worse than on the baseline by at least a share."""

    metric: tuple[str, ...]
    grew: float


@dataclass(frozen=True)
class Rate:
    """A metric of the latest side, divided by the metric ``per`` if given, that is over a number.

    The metric itself must be at least ``least``, because the rate of a tiny count means nothing.
    """

    metric: tuple[str, ...]
    over: float
    per: str = ""
    least: float = 0.0


@dataclass(frozen=True)
class Low:
    """A metric of the latest side that is under a number.

    For GPU kernels, these must have at least ``time``, a share of all kernels' time.
    """

    metric: tuple[str, ...]
    under: float
    time: float = 0.0


Condition = CallShare | HotPlace | ProvenGrowth | Rate | Low | LowOccupancy | Wasted | Stalled


def evidence(condition: Condition, findings: Findings, benchmark: str) -> Iterator[str]:
    """Yield the evidence for one benchmark, a text per profile or metric; nothing if the condition does not hold."""
    match condition:
        case CallShare():
            yield from _in_profiles(condition, findings, benchmark)
            yield from _in_losses(condition, findings, benchmark)
        case HotPlace():
            yield from _in_places(condition, findings, benchmark)
        case ProvenGrowth():
            yield from _grown(condition, findings, benchmark)
        case Rate():
            yield from _rates(condition, findings, benchmark)
        case Low():
            yield from _low(condition, findings, benchmark)
        case LowOccupancy() | Wasted() | Stalled():
            for kernel in current_kernels(findings.kernels):
                if kernel.benchmark == benchmark:
                    yield from of_kernel(condition, kernel)


def _in_profiles(condition: CallShare, findings: Findings, benchmark: str) -> Iterator[str]:
    """Yield the total share per profile: shares are of disjoint parts. Profiles with few samples are skipped."""
    profiles: dict[tuple[str, str, str], list[tuple[float, str]]] = defaultdict(list)
    for spot in current(findings.hotspots):
        if spot.benchmark == benchmark and spot.unit in condition.of and not _is_thin(findings, spot.step):
            part = _part(condition, spot)
            if part:
                profiles[spot.step, spot.source, spot.unit].append(part)
    for (_, source, unit), parts in profiles.items():
        whole = sum(share for share, _ in parts)
        if whole >= condition.share:
            first = sorted(parts, key=lambda part: (-part[0], part[1]))[:_NAMED]
            yield f"{source}: {whole:.0%} of {unit} ({'; '.join(text for _, text in first)})"


def _is_thin(found: Findings, step: str) -> bool:
    """Return whether the profiler took too few samples for reliable shares."""
    return found.record.outcome_of(step).few_samples


def _part(condition: CallShare, spot: HotspotResult) -> tuple[float, str] | None:
    """Return the share that a hotspot adds: all of it if its own name matches, else the measured part below it."""
    place = f" ({spot.file}:{spot.line})" if spot.file and spot.line else ""
    of_file = condition.files and _pattern(condition.files).fullmatch(spot.file)
    if of_file or _named(condition.functions, spot.location, spot.file):
        return spot.share, f"{spot.location}{place} {spot.share:.0%}"
    told = parse_cause(spot.cause)
    if told and told.kind == condition.calls:
        share = spot.share * told.share
        return share, f"{spot.location}{place} {spot.share:.0%}, {told.share:.0%} of it {told.kind}, by {told.through}"
    return None


def _in_places(condition: HotPlace, findings: Findings, benchmark: str) -> Iterator[str]:
    """Yield each hotspot that matches, the largest of each profile first."""
    for spot in current(findings.hotspots):
        if spot.benchmark != benchmark or spot.unit not in condition.of or spot.source not in condition.by:
            continue
        count = read_count(spot.cause)
        if spot.share < condition.share or count < condition.count or _is_thin(findings, spot.step):
            continue
        if condition.functions and not _named(condition.functions, spot.location, spot.file):
            continue
        shown = [use for use in (*condition.code, *condition.any_code) if use in spot.uses]
        if set(condition.code) <= set(shown) and (not condition.any_code or set(condition.any_code) & set(shown)):
            place = f" ({spot.file}:{spot.line})" if spot.file and spot.line else ""
            counted = [f"{count:,} times"] if count else []
            figures = "; ".join([f"{spot.share:.0%} of {spot.unit}", *counted, *shown])
            yield f"{spot.source}: {spot.location}{place}: {figures}"


def _in_losses(condition: CallShare, found: Findings, benchmark: str) -> Iterator[str]:
    for item in found.blamed:
        lost = item.benchmark == benchmark and item.share is not None and item.share >= condition.share
        if lost and _named(condition.functions, item.function, item.file):
            held = loss_share_text(item.share or 0.0)
            yield f"{item.tool}: {item.function} accounts for {held} of the regression of {benchmark} {item.metric}"


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for globs in which brackets and slashes are ordinary characters: ``sync.(*Mutex).Lock``."""
    texts = ("".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in glob) for glob in globs)
    return re.compile("|".join(f"(?:{text})" for text in texts), re.DOTALL)


_BARE = re.compile(r"\w+")
_OF_PYTHON = re.compile(r".*/(?:lib/python\d|site-packages/|dist-packages/|Python-\d)")


def _named(globs: tuple[str, ...], name: str, file: str) -> bool:
    """Return whether a glob matches a name, also without its parameters, its version or its library.

    A bare name in the project's own code never matches: debug information shortens methods to names such as `write`,
    which is not the system call.
    """
    if _BARE.fullmatch(name) and is_own(file) and not _OF_PYTHON.match(file):
        return False
    forms = (name, re.sub(r" \([^()]*\)$", "", name), name.partition("@")[0], name.partition("(")[0])
    # Without globs, the pattern would match what is left of `(anonymous)`.
    return bool(globs) and any(_pattern(globs).fullmatch(form) for form in forms)


def _grown(condition: ProvenGrowth, found: Findings, benchmark: str) -> Iterator[str]:
    for row in found.rows:
        if row.name != benchmark or row.metric not in condition.metric or row.decision != "regressed":
            continue
        worse = worse_by(row)
        if worse is not None and worse < condition.grew:
            continue
        dimension = found.criteria.metric(row.metric).dimension
        known = [side.value for side in (row.baseline, row.candidate) if side and side.value is not None]
        values = format_together(known, dimension)
        yield f"{row.metric}: {' → '.join(values)}" + (f" ({format_change(worse)})" if worse is not None else "")


def _rates(condition: Rate, findings: Findings, benchmark: str) -> Iterator[str]:
    values = {
        row.metric: value for row in findings.rows if row.name == benchmark and (value := _value(row)) is not None
    }
    for metric in condition.metric:
        value, other = values.get(metric), values.get(condition.per)
        if value is None or (condition.per and other is None) or value < condition.least:
            continue
        if not condition.per:
            if value > condition.over:
                yield f"{metric}: {_plain(metric, value, findings)} (over {_plain(metric, condition.over, findings)})"
        elif other is not None and value > condition.over * other:
            figures = (
                f"{_figure(metric, value, findings.criteria)} to {_figure(condition.per, other, findings.criteria)}"
            )
            yield f"{metric}: {figures} {condition.per}"


def _low(condition: Low, found: Findings, benchmark: str) -> Iterator[str]:
    shares = [item.share or 0.0 for item in current_kernels(found.kernels) if item.benchmark == benchmark]
    if shares and sum(shares) < condition.time:
        return
    for row in found.rows:
        value = _value(row) if row.name == benchmark and row.metric in condition.metric else None
        if value is not None and value < condition.under:
            least = _plain(row.metric, condition.under, found)
            yield f"{row.metric}: {_plain(row.metric, value, found)} (under {least})"


def _figure(metric: str, value: float, criteria: Criteria) -> str:
    return format_quantity(value, criteria.metric(metric).dimension)


def _plain(metric: str, value: float, found: Findings) -> str:
    """Return a ratio as a percentage, and any other value with its unit."""
    is_ratio = found.criteria.metric(metric).dimension is Dimension.RATIO
    return f"{significant(value * 100)}%" if is_ratio else _figure(metric, value, found.criteria)


def _value(row: Benchmark) -> float | None:
    """Return the current value: that of the candidate, or of the baseline if only that was measured."""
    side = row.candidate or row.baseline
    return side.value if side else None


@dataclass(frozen=True)
class Rule:
    """One rule; ``reason`` explains the thresholds of its conditions."""

    id: str
    finding: str
    conditions: tuple[Condition, ...]
    advice: str
    reason: str


def recommendations(findings: Findings) -> Iterator[Recommendation]:
    """Yield the advice of each rule with evidence, in the order of the rules, then of the benchmarks."""
    every: list[Sequence[Benchmark | HotspotResult | KernelResult]] = [
        findings.rows,
        findings.hotspots,
        findings.kernels,
    ]
    names = dict.fromkeys(
        item.name if isinstance(item, Benchmark) else item.benchmark for part in every for item in part
    )
    for rule in rules():
        for name in names:
            shown = [text for condition in rule.conditions for text in evidence(condition, findings, name)]
            if shown:
                yield Recommendation(
                    finding=rule.finding,
                    advice=rule.advice,
                    evidence="; ".join(dict.fromkeys(shown)),
                    rule=rule.id,
                    benchmark=name,
                )


@cache
def rules() -> tuple[Rule, ...]:
    """Return all built-in rules in the order of their file."""
    return tuple(
        Rule(
            written_rule["id"],
            written_rule["finding"],
            tuple(_condition(written) for written in written_rule["when"]),
            " ".join(written_rule["advice"].split()),
            " ".join(written_rule["reason"].split()),
        )
        for written_rule in read_rules("recommendations")
    )


def _condition(written: dict[str, Any]) -> Condition:
    """Read one condition. Raises TypeError for an unknown key."""
    keys: dict[str, Any] = {**written}
    for key in _LISTS & keys.keys():
        keys[key] = (keys[key],) if isinstance(keys[key], str) else tuple(keys[key])
    for key in _NUMBERS & keys.keys():
        keys[key] = keys[key] if isinstance(keys[key], int | float) else read_share(keys[key])
    told: dict[str, type[Condition]] = {"by": HotPlace, "share": CallShare, "grew": ProvenGrowth, "under": Low}
    told |= {"occupancy": LowOccupancy, "uncoalesced": Wasted, "stalls": Stalled}
    return next((kind for key, kind in told.items() if key in keys), Rate)(**keys)


_LISTS = {"functions", "files", "of", "by", "code", "any_code", "metric", "limiter", "stalls"}
_NUMBERS = {"share", "grew", "over", "under", "least", "occupancy", "busy", "uncoalesced", "waiting", "time"}


MOST = 3
"""Maximum number of pieces of advice per kernel."""
LEAST_TIME = 0.05
"""Share of all kernels' time below which a kernel gets no advice."""


def advice_of_tools(kernels: Sequence[KernelResult]) -> Iterator[Recommendation]:
    """Yield the advice on each kernel that takes enough time, the largest expected gain first, then in tool order."""
    for kernel in current_kernels(kernels):
        if kernel.share is not None and kernel.share < LEAST_TIME:
            continue
        for advice in sorted(kernel.advice, key=_gain, reverse=True)[:MOST]:
            yield Recommendation(
                finding=f"{kernel.source} advises on {kernel.name}",
                advice=advice.text,
                evidence="",
                rule=advice.rule,
                benchmark=kernel.benchmark,
                source=kernel.source,
                gain=advice.gain,
            )


def _gain(found: ToolAdvice) -> float:
    return -1.0 if found.gain is None else found.gain
