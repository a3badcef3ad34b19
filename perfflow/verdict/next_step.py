"""The next step after a run: a sentence, and the command to type where there is one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from perfflow.model.metrics import TIMES
from perfflow.model.readings import Side
from perfflow.model.result import Attribution, Benchmark
from perfflow.model.tree_facts import tree_of
from perfflow.verdict.attribution import leading, localized_in, loss_share_text
from perfflow.verdict.brief import brief_of, target_text
from perfflow.verdict.decide import SPARE, remaining, seconds_to_settle
from perfflow.verdict.findings import Findings, waits_longer
from perfflow.verdict.out_of_time import larger_budget
from perfflow.verdict.row_text import estimate_of

_SHORT = 12
_MOST_NAMES = 3
_BUDGET = 600.0
"""Seconds that a run without a budget of its own is assumed to have had."""


class NextStep(NamedTuple):
    """What to do, as a sentence without a final stop, and the command to type for it, '' if there is none."""

    text: str
    command: str = ""


def next_step(rule: str, found: Findings) -> NextStep | None:
    """Return what to do next by a built-in rule; None for any other rule."""
    say = _STEPS.get(rule)
    if say and rule in _MERGING and found.record.run.shard:
        return NextStep(f"judge part {found.record.run.shard} together with the others, by `perfflow merge`")
    return say(found) if say else None


def _names(names: Sequence[str]) -> str:
    """Return names as text, the first few of many: ``a, b and c``, ``a, b, c and 4 more``."""
    unique = list(dict.fromkeys(names))
    shown, more = unique[:_MOST_NAMES], len(unique) - _MOST_NAMES
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def _command(found: Findings, name: str) -> str:
    """Return the first command of the brief that is ``perfflow NAME``, with short revisions; '' if there is none."""
    text = next((text for text in brief_of(found).commands if text.startswith(f"perfflow {name} ")), "")
    for side in Side:
        revision = tree_of(found.record.trees, side).revision
        text = text.replace(revision, revision[:_SHORT]) if revision else text
    return text


def _changed(rows: Sequence[Benchmark], found: Findings) -> str:
    """Return what changed and by how much. Of the clocks of a benchmark it names the first, as it is one slowdown."""
    texts = {row.name if row.metric in TIMES else row.title: row for row in reversed(rows)}
    return _names([f"{name} ({estimate_of(row, found.criteria)})" for name, row in reversed(texts.items())])


def _repair(found: Findings) -> NextStep:
    failed = [item.id for item in found.checks if item.status == "failed"]
    text = f"make {_names(failed)} pass: until then the program may do something else than it should"
    # The checks alone would measure nothing, which is no pass.
    return NextStep(text, _command(found, "gate") or _command(found, "run"))


def _fix(findings: Findings) -> NextStep:
    cause = leading(findings)
    if not isinstance(cause, Attribution):
        return _find(findings)
    place = f"{cause.file}:{cause.line}" if cause.file and cause.line else cause.file
    function = f"{cause.function} ({place})" if place else cause.function
    share = "part" if cause.share is None else loss_share_text(cause.share)
    text = f"look at {function}, which causes {share} of the slowdown of {cause.benchmark}"
    kind = localized_in(findings)
    if kind in ("file", "crate"):
        whole = cause.file if kind == "file" else f"the crate {cause.crate}"
        text = f"look at {whole}, which causes most of the slowdown of {cause.benchmark}, above all {function}"
    commit = next(iter(cause.commits), None)
    if commit is None:
        return NextStep(text, _command(findings, "bisect"))
    if not commit.revision:
        return NextStep(f"{text}; it is changed but not committed", shlex.join(["git", "diff", "HEAD", cause.file]))
    return NextStep(f'{text}; last changed by "{commit.subject}"', f"git show {commit.revision[:_SHORT]}")


def _find(found: Findings) -> NextStep:
    names = _changed(found.regressed("action"), found)
    if all(waits_longer(row, found.rows) for row in found.regressed("action")):
        why = "the program waits longer, which no profile of CPU time explains; `uses: strace` counts its system calls"
    else:
        why = "no single function explains it" if found.blamed else "no profile names a function"
    if bisect := _command(found, "bisect"):
        return NextStep(f"find the commit that made {names} worse, since {why}", bisect)
    return NextStep(f"look through your changes: {names} got worse, and {why}")


def _reach(found: Findings) -> NextStep:
    missed = [target_text(item, found.criteria) for item in found.targets if item.status == "not met"]
    spot = leading(found)
    name = "" if spot is None else spot.function if isinstance(spot, Attribution) else spot.location
    begin = f"; begin with {name}, where most of it is spent" if name else ""
    return NextStep(f"reach the target, or change it if it is wrong: {_names(missed)}{begin}")


def _measure(findings: Findings) -> NextStep:
    lost = [row.name for row in findings.rows if row.decision == "not measured"]
    if lost or any(step.out_of_time for _, step in findings.record.ended_steps()):
        again = _command(findings, "gate") or _command(findings, "run")
        what = _names(lost) or "everything"
        return NextStep(
            f"give it more time to measure {what}", f"{again} {larger_budget(findings.record)}" if again else ""
        )
    failed = [
        f"{step_id} ({step.reason})" if step.reason else step_id
        for step_id, step in findings.record.ended_steps()
        if step.status in ("failed", "timeout") and not findings.record.planned[step_id].allowed
    ]
    if failed:
        return NextStep(f"repair what could not be measured: {_names(failed)}")
    missing = [row.name for row in findings.rows if row.gating and row.decision == "removed"]
    missing += [item.benchmark for item in findings.targets if item.status == "not measured"]
    what = f" {_names(missing)}" if missing else " everything"
    return NextStep(f"find out why the run did not measure{what}: the reasons are above")


def _wait(findings: Findings) -> NextStep:
    rows = findings.undecided()
    hint = next((f"; {row.name}: {hint}" for row in rows if (hint := remaining(row))), "") if len(rows) == 1 else ""
    again = _command(findings, "gate") or _command(findings, "run")
    needed = sum(seconds_to_settle(row) or 0.0 for row in rows)
    budget = findings.record.run.budget or _BUDGET
    minutes = max(1, math.ceil((budget + needed * SPARE if needed else 2 * budget) / 60))
    names = _names([row.name for row in rows]) or "it"
    text = f"nothing got worse as far as is known; to be sure, measure {names} for longer{hint}"
    # The budget of a step binds before that of the command, and its key is in the reason.
    option = "" if rows and all(row.stopped == "budget" for row in rows) else f" --budget {minutes}m"
    return NextStep(text, f"{again}{option}" if again else "")


def _record(found: Findings) -> NextStep:
    names = _names([row.name for row in found.rows])
    return NextStep(f"nothing to compare yet: base has no {names}, and once this is merged it has")


def _confirm(found: Findings) -> NextStep:
    used = [row for row in found.rows if row.accepted]
    return NextStep(f"let a reviewer confirm that {_changed(used, found)} is worth it, as `accepted` says")


def _watch(found: Findings) -> NextStep:
    return NextStep(f"it can be merged; {_changed(found.regressed(), found)} got worse by less than a gate refuses")


_STEPS: Mapping[str, Callable[[Findings], NextStep]] = {
    "correctness-failed": _repair,
    "regression-localized": _fix,
    "regression-spread": _find,
    "target-missed": _reach,
    "not-measured": _measure,
    "unproven": _wait,
    "baseline-missing": _record,
    "trade-off-accepted": _confirm,
    "within-threshold": _watch,
    "all-passed": lambda _: NextStep("it can be merged"),
}
"""The next step by each built-in rule."""
_MERGING = ("all-passed", "within-threshold", "trade-off-accepted", "baseline-missing")
"""Rules after which a change can be merged."""
