"""Next steps: a task list with owners, and the route that the run takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.result import Attribution, Benchmark, Result, RouteTaken
from perfflow.model.units import format_threshold
from perfflow.report.blame import commit_text, place_of, share_text
from perfflow.report.regressions import not_run, worst_first
from perfflow.report.requirements import target_name
from perfflow.report.truncate import Truncated, truncated
from perfflow.verdict.acceptance import taken
from perfflow.verdict.decide import by_cpu, remaining
from perfflow.verdict.routing import OWN
from perfflow.verdict.row_text import estimate_of, judged


@dataclass(frozen=True)
class Action:
    """One task: the verb, its object, the reason, and the owner, which may be ''."""

    verb: str
    name: str
    detail: str
    owner: str


@dataclass(frozen=True)
class Routed:
    """The route of a run, the rule that chose it, and the brief with its long lists cut."""

    to: str
    rule: str
    why: str
    next: str
    command: str
    """The command for the next step, '' if there is none."""
    lists: tuple[tuple[str, Truncated[str]], ...]
    """The lists of the brief that are not empty, with their titles."""
    commands: tuple[str, ...]


def actions_of(result: Result, criteria: Criteria) -> Truncated[Action]:
    """Return the tasks: failures first, then missing and unproven measurements, then warnings."""
    # A built-in rule names a kind of work, one of the workflow's own names somebody.
    to = next((route.to for route in result.routes if route.rule.startswith(OWN)), "")
    return truncated([*_failing(result, criteria, to), *_unknown(result, to), *_warned(result, criteria, to)])


def routed(route: RouteTaken) -> Routed:
    """Return a route with its brief."""
    brief = route.brief
    lists = (
        ("Regressed", brief.regressed),
        ("Undecided", brief.undecided),
        ("Thresholds", brief.thresholds),
        ("Hotspots", brief.hotspots),
    )
    return Routed(
        to=route.to,
        rule=route.rule,
        why=route.why,
        next=route.next,
        command=route.command,
        lists=tuple((title, truncated(lines)) for title, lines in lists if lines),
        commands=truncated(brief.commands).shown,
    )


def _failing(result: Result, criteria: Criteria, to: str) -> Iterator[Action]:
    for row in worst_first(result.benchmarks):
        if row.level == "action":
            yield _regression(result, row, criteria, "Fix", to)
    for target in result.targets:
        if target.status == "not met":
            yield Action("Meet", f"{target_name(target)} {target.requirement}", target.detail, to)
    for check in result.verification:
        if check.status == "failed" and not _allowed(result, check.id):
            yield Action("Fix", check.id, check.detail, to)


def _unknown(result: Result, to: str) -> Iterator[Action]:
    for row in result.benchmarks:
        if row.gating and row.decision == "removed":
            yield Action("Restore", row.name, "measured at base, missing at head", to)
    for name in dict.fromkeys(not_run(result)):
        yield Action("Measure", name, "expected, but not measured", to)
    for row in result.benchmarks:
        if row.gating and row.decision == "unproven" and row.level is None:
            hints = filter(None, (remaining(row), by_cpu(row, result.benchmarks)))
            yield Action("Measure longer", row.title, "; ".join(hints), to)


def _warned(result: Result, criteria: Criteria, to: str) -> Iterator[Action]:
    for row in worst_first(result.benchmarks):
        accepted = taken(row, criteria)
        if accepted:
            action = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
            detail = f"{estimate_of(row, criteria)} is accepted until then; afterwards a change over {action} fails"
            owner = _owner(result, row, to)
            yield Action(f"Fix before {accepted.until}:", row.title, detail, owner)
        elif row.level == "concern":
            yield _regression(result, row, criteria, "Look at", to)


def _regression(result: Result, row: Benchmark, criteria: Criteria, verb: str, to: str) -> Action:
    place = next(_blamed(result, row), None)
    share = f"{share_text(place.share)} of it" if place and place.share is not None else "some of it"
    where = f", {share} in {place.function} {place_of(place)}".rstrip() if place else ""
    since = f", touched by {commit_text(place.commits[0])}" if place and place.commits else ""
    detail = f"{judged(row, criteria)}{where}{since}"
    return Action(verb, row.title, detail, _owner(result, row, to))


def _owner(result: Result, row: Benchmark, to: str) -> str:
    """Return the author of the newest commit to the most blamed function; if unknown, ``to``."""
    authors = (commit.author for item in _blamed(result, row) for commit in item.commits)
    return next(filter(None, authors), to)


def _blamed(result: Result, row: Benchmark) -> Iterator[Attribution]:
    return (item for item in result.attributions if (item.benchmark, item.metric) == (row.name, row.metric))


def _allowed(result: Result, step_id: str) -> bool:
    return any(step.id == step_id and step.allowed for step in result.steps)
