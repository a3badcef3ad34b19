"""Check the keys ``scaling``, ``scenario``, ``confirms`` and ``variants`` of a step."""

from __future__ import annotations

from perfflow.model.similar import did_you_mean
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Matrix, Scalar, Step
from perfflow.workflow.roles import is_suite, names_its_own_benchmarks, role_of

LEAST_SIZES = 3
"""Fewest sizes from which growth can be fitted."""
_EXAMPLE = "matrix: {size: [100, 1000, 10000]}, scaling: size"


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check these keys of one step."""
    yields = role_of(step, stage, draft.workflow) in (Role.MEASURE, Role.PROFILE)
    # A step with a mistake may measure once the mistake is fixed.
    if not yields and not draft.wrong_keys(loc):
        for key in ("scaling", "scenario", "confirms", "variants"):
            if getattr(step, key) is not None:
                hint = "use it with a tool that measures, or with `run` and `parse`"
                draft.complain((*loc, key), f"`{key}` on a step that does not measure", hint, key=True)
        return
    _check_scaling(draft, step, loc)
    _check_confirms(draft, step, loc)
    _check_variants(draft, step, loc)


def _check_scaling(draft: Draft, step: Step, loc: Loc) -> None:
    key = step.scaling
    if key is None or draft.wrong_keys((*loc, "matrix")):
        return
    place = (*loc, "scaling")
    if step.matrix is None:
        if "matrix" not in draft.wrong_keys(loc):
            draft.complain(place, "`scaling` needs a `matrix` with the sizes", _EXAMPLE, key=True)
        return
    values = _values(step.matrix, key)
    if not values:
        hint = did_you_mean(key, step.matrix.axes, "matrix keys")
        draft.complain(place, f"`scaling`: the matrix has no key `{key}`", hint, find=key)
        return
    odd = [value for value in values if not _is_size(value)]
    for value in odd[:1]:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        draft.complain(place, f"{shown} under matrix key `{key}` is not a size", "write numbers above 0", find=key)
    sizes = {float(value) for value in values if _is_size(value)}
    if not odd and len(sizes) < LEAST_SIZES:
        message = f"`scaling` over `{key}` has {len(sizes)} sizes, but needs at least {LEAST_SIZES}"
        draft.complain(place, message, "add sizes; the largest should be at least 10 times the smallest", find=key)


def _values(matrix: Matrix, key: str) -> list[Scalar]:
    """Return all values that cells have under a key."""
    return [*matrix.axes.get(key, []), *(cell[key] for cell in matrix.include if key in cell)]


def _is_size(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _check_confirms(draft: Draft, step: Step, loc: Loc) -> None:
    if step.confirms is not None and step.scenario != "realistic" and "scenario" not in draft.wrong_keys(loc):
        hint = "add `scenario: realistic` to this step; `confirms` names synthetic benchmarks"
        draft.complain((*loc, "confirms"), "`confirms` needs `scenario: realistic`", hint, key=True)


def _check_variants(draft: Draft, step: Step, loc: Loc) -> None:
    variants, place = step.variants, (*loc, "variants")
    if variants is None:
        return
    for key in ("baseline", "candidate"):
        text = getattr(variants, key)
        if text.count("*") != 1:
            hint = 'write one `*` in place of the name of the benchmark: "*/scalar"'
            draft.complain((*place, key), f"{text!r} under `variants` must contain exactly one `*`", hint)
    if variants.baseline == variants.candidate:
        draft.complain((*place, "candidate"), "`variants` compares a benchmark with itself", "name two variants")
    if step.candidate is not None:
        hint = "split it into two steps, one for each comparison"
        draft.complain(place, "a step cannot have both `variants` and `candidate`", hint, key=True)
    several = names_its_own_benchmarks(step) or (is_suite(step) and "*" in (step.benchmark or "*"))
    if not several and not draft.wrong_keys(loc):
        hint = "variants are benchmarks of a suite; to compare two commands, use `candidate`"
        draft.complain(place, "`variants` on a step that measures one benchmark", hint, key=True)
