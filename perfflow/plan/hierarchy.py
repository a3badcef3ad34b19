"""Lints for the optimization hierarchy: cheap techniques with large effects come before costlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.similar import did_you_mean
from perfflow.model.techniques import OUTSIDE, TECHNIQUES, rank
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step

COMPUTE_FIRST = "compute-first"
ORDER = "hierarchy-order"
_KNOWN = (*TECHNIQUES, OUTSIDE)


def check_hierarchy(draft: Draft, *, compute_allowed: bool) -> None:
    """Report unknown techniques, ``compute`` before cheaper techniques, and candidates out of order."""
    optimize = draft.workflow.stages["optimize"]
    ruled_out = optimize.ruled_out or {}
    for name in ruled_out:
        if name not in _KNOWN:
            place = ("stages", "optimize", "ruled-out", name)
            draft.complain(place, f"unknown technique `{name}`", did_you_mean(name, _KNOWN, "techniques"), key=True)
    tried = {step.technique for step in optimize.steps} | set(ruled_out)
    missing = [name for name in TECHNIQUES[: TECHNIQUES.index("compute")] if name not in tried]
    for step in optimize.steps:
        _check_technique(draft, step)
        if step.technique == "compute" and missing and not compute_allowed:
            hint = f"add candidates for {', '.join(missing)}, or list them under `ruled-out` with the reason"
            loc = (*draft.steps[step.id], "technique")
            draft.complain(loc, "`compute` comes before cheaper techniques", hint, rule=COMPUTE_FIRST)
    _check_order(draft, [step for step in optimize.steps if step.technique in TECHNIQUES])


def _check_technique(draft: Draft, step: Step) -> None:
    loc = draft.steps[step.id]
    if step.technique is None:
        if not draft.wrong_keys(loc):
            hint = f"add `technique`: one of {', '.join(_KNOWN)}"
            draft.complain(loc, f"the candidate `{step.id}` has no `technique`", hint)
    elif step.technique not in _KNOWN:
        hint = did_you_mean(step.technique, _KNOWN, "techniques")
        draft.complain((*loc, "technique"), f"unknown technique {step.technique!r}", hint)


def _check_order(draft: Draft, steps: Sequence[Step]) -> None:
    """Warn about each candidate after one with a costlier technique; ``configuration`` may be anywhere."""
    for number, step in enumerate(steps):
        costliest = max(steps[: number + 1], key=lambda item: rank(str(item.technique)))
        if rank(str(costliest.technique)) > rank(str(step.technique)) and ORDER not in step.allow:
            _warn_of_order(draft, step, costliest)


def _warn_of_order(draft: Draft, step: Step, costlier: Step) -> None:
    message = f"`{step.id}` ({step.technique}) comes after `{costlier.id}` ({costlier.technique}), a costlier technique"
    hint = f"move it before that candidate, or give a reason: `allow: {{{ORDER}: ...}}`"
    draft.warn((*draft.steps[step.id], "technique"), message, hint, rule=ORDER)
