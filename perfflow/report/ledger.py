"""The optimization ledger as text: planned candidates with their bounds, and the tries that were kept or reverted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import rank
from perfflow.model.readings import Side
from perfflow.model.result import Optimization, Result, StepResult
from perfflow.model.units import format_change, format_together
from perfflow.model.version import tree_of
from perfflow.report.failed_steps import last_words
from perfflow.report.table import NOTHING
from perfflow.report.technique_order import before_each
from perfflow.report.truncate import truncated

CANDIDATE = "candidate"
"""Role of a candidate step."""
MOST_DIFF_LINES = 120
"""Lines of one diff that a report shows; the file in the run folder has all."""
MOST_DIFF_TEXT = 200_000
"""Characters of all diffs together, kept changes first: GitHub cuts a summary at 1 MB."""
_WORDS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}
_SYMBOLS = {"accepted": "✅", "rejected": "❌", "skipped": "❔"}


@dataclass(frozen=True)
class Planned:
    """One line of the plan: a candidate with all its alternatives or attempts, or a technique that is ruled out."""

    priority: str
    name: str
    technique: str
    why: str
    remark: str
    expected: str


@dataclass(frozen=True)
class Diff:
    """The shown lines of a diff, the number of the other lines, and the file that has all of them."""

    lines: tuple[str, ...]
    left_out: int
    file: str


@dataclass(frozen=True)
class Try:
    """One try and its outcome; ``where`` is the benchmark and metric that judged it."""

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
    log_tail: tuple[str, ...]
    """The last lines of the command that failed; the whole log is the file ``log`` in the run folder."""
    log: str
    diff: Diff
    settings: tuple[str, ...]
    revision: str
    source: Optimization
    """The entry of the result, for drawings."""

    @property
    def kept(self) -> bool:
        """Whether the later tries were built on it."""
        return self.decision == _WORDS["accepted"]


@dataclass(frozen=True)
class Ledger:
    """The content of the optimize stage in a report.

    ``settings`` are YAML lines of the kept settings, ``file`` is the workflow they belong to. ``look`` is the command
    that shows the commits of ``branch``, ``take`` the command that takes them over. ``own_changes``: the first commit
    holds the user's uncommitted changes and is not taken over. ``no_branch`` is the reason why kept code has no branch.
    """

    plan: tuple[Planned, ...]
    accept: str
    tries: tuple[Try, ...]
    others: int
    """Number of tries left out of a long table."""
    before: tuple[tuple[str, str, str], ...]
    """Name and technique of a try, and the outcome of the cheaper techniques before it."""
    settings: tuple[str, ...]
    file: str
    branch: str
    look: str
    take: str
    own_changes: bool
    no_branch: str

    @property
    def kept(self) -> tuple[Try, ...]:
        """The tries that were kept."""
        return tuple(item for item in self.tries if item.kept)

    @property
    def reverted(self) -> tuple[Try, ...]:
        """The tries that were reverted or not tried."""
        return tuple(item for item in self.tries if not item.kept)


def starts_with_own_changes(result: Result) -> bool:
    """Return whether the branch with the kept changes begins with a commit of the user's uncommitted files."""
    start = tree_of(result.trees, Side.BASELINE)
    return bool(start.dirty or start.untracked)


def taking_over(result: Result) -> str | None:
    """Return the command that brings the kept changes onto the user's branch, or None if there is no such branch.

    A merge would also bring the commit of the user's uncommitted files, and git refuses that.
    """
    branch = tree_of(result.trees, Side.CANDIDATE).branch or ""
    if not branch:
        return None
    # Count back from the end of the branch: a resumed run makes its first commits anew.
    count = sum(1 for item in result.optimizations if item.decision == "accepted" and item.files)
    if starts_with_own_changes(result) and count:
        return shlex.join(["git", "cherry-pick", f"{branch}~{count}..{branch}"])
    return shlex.join(["git", "merge", branch])


def ledger_of(result: Result, criteria: Criteria) -> Ledger | None:
    """Return the ledger of a result, or None if the run had no candidates."""
    plan = tuple(_plan(result))
    if not plan:
        return None
    tries = truncated(result.optimizations, lambda item: item.decision != "accepted")
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
    """Yield a key of the workflow file with its values as YAML; JSON scalars are valid YAML."""
    if values:
        yield f"{key}:"
        yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _why_no_branch(result: Result) -> str:
    if result.run.interrupted:
        return "the run was interrupted"
    failed = [item.id for item in result.verification if item.status == "failed"]
    return f"{', '.join(failed)} failed on the kept changes" if failed else "it could not be created"


def _plan(result: Result) -> Iterator[Planned]:
    """Yield the plan in the order of the hierarchy: candidates in file order, and the techniques that are ruled out."""
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
    """Return the step of a try: ``level[n=2]`` is a cell of ``level``, ``propose.2`` an attempt of ``propose``."""
    step = name if name in owners else name.rpartition(".")[0]
    return step.partition("[")[0]


def _remark(found: Sequence[Optimization], owners: Sequence[str]) -> str:
    if len(found) < 2:
        return ""
    return f"{len(found)} {'alternatives' if found[0].id in owners else 'attempts'}"


def _expected(bound: float | None) -> str:
    """Return Amdahl's bound as text, from the share of time that the hotspot takes."""
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
        log_tail=last_words(item.tail),
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
    """Return text such as ``+28.1% [+26.0%, +30.3%]``, without an interval for an exact figure."""
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
    return " → ".join(format_together([item.before, item.after], dimension))


def _diffs(tries: Sequence[Optimization]) -> Iterator[tuple[str, Diff]]:
    """Yield the diff of each try with its id, cut to the room that is left."""
    room = MOST_DIFF_TEXT
    for item in sorted(tries, key=lambda item: item.decision != "accepted"):
        found = _diff(item, room)
        room -= sum(map(len, found.lines))
        yield item.id, found


def _diff(item: Optimization, room: int) -> Diff:
    """Return the beginning of a diff. A result does not store a very long diff: it is only in the file."""
    lines = item.diff.removesuffix("\n").split("\n") if item.diff else []
    ends = accumulate(map(len, lines))
    shown = sum(end <= room for end in islice(ends, MOST_DIFF_LINES))
    return Diff(tuple(lines[:shown]), len(lines) - shown, item.diff_file)
