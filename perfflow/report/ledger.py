"""The optimization ledger as text: what was planned and how far it could get, what was tried, kept and reverted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.later import dataclass
from perfflow.model.readings import Side
from perfflow.model.result import Optimization, Result, StepResult
from perfflow.model.techniques import rank
from perfflow.model.tree_facts import tree_of
from perfflow.model.units import format_change, format_quantity
from perfflow.report.failed_steps import last_words
from perfflow.report.table import NOTHING
from perfflow.report.technique_order import before_each
from perfflow.report.truncate import leading

CANDIDATE = "candidate"
"""Role of a step that is a candidate."""
MOST_DIFF_LINES = 120
"""Lines of one diff that a report shows; the file in the run's folder has all."""
MOST_DIFF_TEXT = 200_000
"""Characters of all diffs together, those of what was kept first: GitHub cuts a summary at 1 MB."""
_WORDS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}
_SYMBOLS = {"accepted": "✅", "rejected": "❌", "skipped": "❔"}


@dataclass(frozen=True)
class Planned:
    """One line of the plan: a candidate with all of its alternatives or attempts, or a technique that is ruled out."""

    priority: str
    name: str
    technique: str
    why: str
    remark: str
    expected: str


@dataclass(frozen=True)
class Diff:
    """The lines of a change that are shown, how many are not, and the file that has all of them."""

    lines: tuple[str, ...]
    left_out: int
    file: str


@dataclass(frozen=True)
class Try:
    """One try and what became of it; ``where`` is what it was judged by."""

    name: str
    technique: str
    why: str
    symbol: str
    decision: str
    effect: str
    where: str
    values: str
    pairs: str
    reason: str
    said: tuple[str, ...]
    """The last lines of the command for which it was rejected, which are in ``log`` of the run's folder."""
    log: str
    diff: Diff
    settings: tuple[str, ...]
    revision: str
    source: Optimization
    """The entry of the result, for what is drawn."""

    @property
    def kept(self) -> bool:
        """Whether what comes after was built on it."""
        return self.decision == _WORDS["accepted"]


@dataclass(frozen=True)
class Ledger:
    """Everything of the optimize stage that a report shows.

    ``settings`` are lines of YAML, what was kept beside the code, and ``file`` is the workflow they belong into.
    ``look`` shows the commits of ``branch``, ``take`` takes them over. ``own_changes``: the first commit is what was
    not committed, and is not for taking over. ``no_branch`` says why there is none although code was kept.
    """

    plan: tuple[Planned, ...]
    accept: str
    tries: tuple[Try, ...]
    others: int
    """Tries that are left out, since there are too many for one table."""
    before: tuple[tuple[str, str, str], ...]
    """Of each try its name and technique, and what had become of the cheaper ones."""
    settings: tuple[str, ...]
    file: str
    branch: str
    look: str
    take: str
    own_changes: bool
    no_branch: str

    @property
    def kept(self) -> tuple[Try, ...]:
        """The tries that what comes after was built on."""
        return tuple(item for item in self.tries if item.kept)

    @property
    def reverted(self) -> tuple[Try, ...]:
        """The tries of which nothing remains."""
        return tuple(item for item in self.tries if not item.kept)


def starts_with_own_changes(result: Result) -> bool:
    """Whether the branch with what was kept begins with a commit of the user's uncommitted files."""
    start = tree_of(result.trees, Side.BASELINE)
    return bool(start.dirty or start.untracked)


def taking_over(result: Result) -> str | None:
    """The command that brings the kept changes onto the user's branch; None where there is no branch with them.

    A merge would also bring a commit of the user's uncommitted files, over which git refuses it.
    """
    branch = tree_of(result.trees, Side.CANDIDATE).branch or ""
    if not branch:
        return None
    # Counted from the branch, since a run that was resumed has made its first commits anew.
    count = sum(1 for item in result.optimizations if item.decision == "accepted" and item.files)
    if starts_with_own_changes(result) and count:
        return shlex.join(["git", "cherry-pick", f"{branch}~{count}..{branch}"])
    return shlex.join(["git", "merge", branch])


def ledger_of(result: Result, criteria: Criteria) -> Ledger | None:
    """The ledger of a result; None of a run that had no candidates."""
    plan = tuple(_plan(result))
    if not plan:
        return None
    tries = leading(result.optimizations, lambda item: item.decision != "accepted")
    diffs = dict(_diffs(tries.shown))
    kept = [item for item in result.optimizations if item.decision == "accepted"]
    code = any(item.files for item in kept)
    branch = tree_of(result.trees, Side.CANDIDATE).branch or ""
    start = tree_of(result.trees, Side.BASELINE)
    base = start.branch or (start.revision or "")[:12]
    return Ledger(
        plan=plan,
        accept=f"{result.run.accept * 100:.3g}%" if result.run.accept is not None else "",
        tries=tuple(_try(item, criteria, diffs[item.id], with_commit=bool(branch)) for item in tries.shown),
        others=tries.others,
        before=tuple(before_each(tries.shown)),
        settings=(
            *_settings("params", {name: value for item in kept for name, value in item.params.items()}),
            *_settings("env", {name: value for item in kept for name, value in item.env.items()}),
        ),
        file=result.run.file,
        branch=branch,
        look=shlex.join(["git", "log", "-p", f"{base}..{branch}" if base else branch]),
        take=taking_over(result) or "",
        own_changes=starts_with_own_changes(result),
        no_branch=_why_no_branch(result) if code and not branch else "",
    )


def _settings(key: str, values: Mapping[str, Any]) -> Iterator[str]:
    """A key of the workflow file with its values; JSON's scalars are YAML's."""
    if values:
        yield f"{key}:"
        yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _why_no_branch(result: Result) -> str:
    if result.run.interrupted:
        return "the run was interrupted"
    failed = [item.id for item in result.verification if item.status == "failed"]
    return f"{', '.join(failed)} failed on the kept changes" if failed else "it could not be created"


def _plan(result: Result) -> Iterator[Planned]:
    """In the order of the hierarchy: candidates by their place in the file, and what is ruled out of each technique."""
    tried: dict[str, list[Optimization]] = {}
    owners = [step.id for step in result.steps if step.role == CANDIDATE]
    for item in result.optimizations:
        tried.setdefault(_group(item.id, owners), []).append(item)
    steps: dict[str, StepResult] = {}
    for step in result.steps:
        if step.role == CANDIDATE:
            steps.setdefault(_group(step.id, owners), step)
    rows: list[tuple[int, Planned]] = []
    for name, step in steps.items():
        found = tried.get(name, [])
        first = found[0] if found else None
        technique, why = (first.technique, first.why) if first else (step.technique, step.why)
        expected = _expected(first.bound) if first else f"not tried: {step.reason or 'the run ended first'}"
        rows.append((rank(technique), Planned("", name, technique, why, _remark(found, owners), expected)))
    for technique, why in result.run.ruled_out.items():
        rows.append((rank(technique), Planned(NOTHING, "", technique, "", "", f"ruled out: {why}")))
    number = 0
    for _, row in sorted(rows, key=lambda item: item[0]):
        number += not row.priority
        yield row if row.priority else replace(row, priority=str(number))


def _group(name: str, owners: Sequence[str]) -> str:
    """The step of the file that a try belongs to: ``level[n=2]`` is a cell of it, ``propose.2`` its second attempt."""
    step = name if name in owners else name.rpartition(".")[0]
    return step.partition("[")[0]


def _remark(found: Sequence[Optimization], owners: Sequence[str]) -> str:
    if len(found) < 2:
        return ""
    return f"{len(found)} {'alternatives' if found[0].id in owners else 'attempts'}"


def _expected(bound: float | None) -> str:
    """Amdahl's bound from the share of time that the hotspot takes."""
    if bound is None:
        return "unknown: no profile of its hotspot"
    if bound >= 1:
        return "no bound: its hotspot takes all of the time"
    share = f"{bound:.0%}" if bound >= 0.01 else f"{bound:.1%}"
    return f"at most {1 / (1 - bound):.2f}x: its hotspot takes {share}"


def _try(item: Optimization, criteria: Criteria, diff: Diff, *, with_commit: bool) -> Try:
    return Try(
        name=item.id,
        technique=item.technique,
        why=item.why,
        symbol=_SYMBOLS[item.decision],
        decision=_WORDS[item.decision],
        effect=_effect(item),
        where=item.benchmark if item.metric in ("", "time") else f"{item.benchmark} {item.metric}",
        values=_values(item, criteria),
        pairs=str(item.pairs) if item.pairs else NOTHING,
        reason=item.reason,
        said=last_words(item.tail),
        source=item,
        log=item.log,
        diff=diff,
        settings=(
            *(f"params: {name}={_word(value)}" for name, value in item.params.items()),
            *(f"env: {name}={value}" for name, value in item.env.items()),
        ),
        revision=(item.revision or "")[:12] if with_commit and item.files else "",
    )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _effect(item: Optimization) -> str:
    """``+28.1% [+26.0%, +30.3%]``; without the interval where the figure is exact."""
    effect = item.effect
    if effect is None or effect.value is None:
        return NOTHING
    text = format_change(effect.value)
    if effect.low is None or effect.high is None or effect.low == effect.high:
        return text
    return f"{text} [{format_change(effect.low)}, {format_change(effect.high)}]"


def _values(item: Optimization, criteria: Criteria) -> str:
    if item.before is None or item.after is None:
        return NOTHING
    dimension = criteria.metric(item.metric).dimension
    return f"{format_quantity(item.before, dimension)} → {format_quantity(item.after, dimension)}"


def _diffs(tries: Sequence[Optimization]) -> Iterator[tuple[str, Diff]]:
    """The diff of each try by its id, as long as there is room."""
    room = MOST_DIFF_TEXT
    for item in sorted(tries, key=lambda item: item.decision != "accepted"):
        found = _diff(item, room)
        room -= sum(map(len, found.lines))
        yield item.id, found


def _diff(item: Optimization, room: int) -> Diff:
    """The diff's beginning. A result leaves out one that is very long: then all of it is in the file alone."""
    lines = item.diff.removesuffix("\n").split("\n") if item.diff else []
    ends = accumulate(map(len, lines))
    shown = sum(end <= room for end in islice(ends, MOST_DIFF_LINES))
    return Diff(tuple(lines[:shown]), len(lines) - shown, item.diff_file)
