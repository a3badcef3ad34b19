"""The rules of keys that say what figures are evidence of: ``scaling``, ``scenario``, ``confirms`` and ``variants``."""

from __future__ import annotations

from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Matrix, Scalar, Step
from perfflow.workflow.roles import is_suite, names_its_own_benchmarks, role_of
from perfflow.workflow.yaml_hints import did_you_mean

LEAST_SIZES = 3
"""Sizes of which a growth can be read."""
_EXAMPLE = "matrix: {size: [100, 1000, 10000]}, scaling: size"


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Add the problems of these keys of one step."""
    yields = role_of(step, stage, draft.workflow) in (Role.MEASURE, Role.PROFILE)
    # A step in which something is wrong may measure once that is right.
    if not yields and not draft.wrong_keys(loc):
        for key in ("scaling", "scenario", "confirms", "variants"):
            if getattr(step, key) is not None:
                hint = "it goes with a tool that measures, or with `run` and `parse`"
                draft.complain((*loc, key), f"`{key}` on a step that measures nothing", hint, key=True)
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
        draft.complain(place, f"`scaling` names `{key}`, which is no key of the matrix", hint, find=key)
        return
    odd = [value for value in values if not _is_size(value)]
    for value in odd[:1]:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        draft.complain(place, f"{shown} of matrix key `{key}` is not a size", "sizes are numbers above 0", find=key)
    sizes = {float(value) for value in values if _is_size(value)}
    if not odd and len(sizes) < LEAST_SIZES:
        message = f"`scaling` along `{key}` has {len(sizes)} sizes, but a growth needs {LEAST_SIZES}"
        draft.complain(place, message, "add sizes, best a factor of 10 or more apart in all", find=key)


def _values(matrix: Matrix, key: str) -> list[Scalar]:
    """All values that cells have under a key."""
    return [*matrix.axes.get(key, []), *(cell[key] for cell in matrix.include if key in cell)]


def _is_size(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _check_confirms(draft: Draft, step: Step, loc: Loc) -> None:
    if step.confirms is not None and step.scenario != "realistic" and "scenario" not in draft.wrong_keys(loc):
        hint = "say `scenario: realistic`; what is confirmed is synthetic"
        draft.complain((*loc, "confirms"), "`confirms` on a step that is not realistic", hint, key=True)


def _check_variants(draft: Draft, step: Step, loc: Loc) -> None:
    variants, place = step.variants, (*loc, "variants")
    if variants is None:
        return
    for key in ("baseline", "candidate"):
        text = getattr(variants, key)
        if text.count("*") != 1:
            hint = 'the benchmark is what `*` stands for: "*/scalar"'
            draft.complain((*place, key), f"{text!r} of `variants` has not one `*`", hint)
    if variants.baseline == variants.candidate:
        draft.complain((*place, "candidate"), "`variants` compares a benchmark with itself", "name two variants")
    if step.candidate is not None:
        hint = "make it two steps: each compares one thing"
        draft.complain(place, "`variants` and `candidate` in one step", hint, key=True)
    several = names_its_own_benchmarks(step) or (is_suite(step) and "*" in (step.benchmark or "*"))
    if not several and not draft.wrong_keys(loc):
        hint = "variants are two benchmarks of a suite; to compare two commands write `candidate:`"
        draft.complain(place, "`variants` on a step that measures one benchmark", hint, key=True)
