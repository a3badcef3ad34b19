"""Check the keys ``scaling``, ``scenario``, ``confirms``, ``variants`` and ``compare`` of a step."""

from __future__ import annotations

from perfflow.model.similar import did_you_mean
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Matrix, Scalar, Step
from perfflow.workflow.roles import is_suite, names_its_own_benchmarks, role_of

LEAST_SIZES = 3
"""Fewest sizes from which growth can be fitted."""
_COMPARED = "matrix: {cc: [gcc, clang]}, compare: cc"
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
        if step.axis:
            hint = "`compare: KEY` compares the cells of a `matrix` of a step that measures"
            draft.complain((*loc, "compare"), "`compare` on a step that does not measure", hint, key=True)
        return
    _check_scaling(draft, step, loc)
    _check_confirms(draft, step, loc)
    _check_variants(draft, step, loc)
    _check_compare(draft, step, loc)


def _check_compare(draft: Draft, step: Step, loc: Loc) -> None:
    key, place = step.axis, (*loc, "compare")
    if not key or draft.wrong_keys((*loc, "matrix")):
        return
    if step.matrix is None:
        if "matrix" not in draft.wrong_keys(loc):
            draft.complain(place, "`compare` needs a `matrix` with the key", _COMPARED, key=True)
    elif not (values := _values(step.matrix, key)):
        hint = did_you_mean(key, step.matrix.axes, "matrix keys")
        draft.complain(place, f"`compare`: the matrix has no key `{key}`", hint, find=key)
    elif len(values) == 1 and not (isinstance(values[0], str) and OPEN in values[0]):
        draft.complain(place, f"`compare`: matrix key `{key}` has one value only", "add a second value", find=key)
    for other in ("candidate", "variants"):
        if getattr(step, other) is not None:
            hint = "split it into two steps, one for each comparison"
            draft.complain(place, f"a step cannot have both `compare` and `{other}`", hint, key=True)
    if step.scaling == key:
        hint = "sizes are not compared with each other: compare another key"
        draft.complain(place, f"`compare` and `scaling` of the same matrix key `{key}`", hint, key=True)


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
