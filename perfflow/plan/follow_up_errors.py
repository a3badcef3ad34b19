"""Avoid follow-up errors: an invalid step may be the one that measures a benchmark which seems to be missing."""

from __future__ import annotations

from perfflow.model.targets import matches
from perfflow.workflow.checks import each_step
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage, Step
from perfflow.workflow.shape import keys_of

_TELLING = {"", "uses", "run", "argv", "parse", "work", "ops", "matrix"} | {"id", "benchmark"}
"""Keys of a step that determine what it measures; '' is the step as a whole."""
_NAMING = {"", "id", "benchmark", "matrix", "uses"}
"""Keys that determine the names of its benchmarks; those of a suite come from its tool."""
_STEP_KEYS, _STAGE_KEYS = frozenset(keys_of(Step)), frozenset(keys_of(Stage)) - {"steps"}


def is_in_doubt(draft: Draft, benchmark: str) -> bool:
    """Return whether an invalid part of the file may measure a benchmark (a name or a glob)."""
    if not draft.wrong:
        return False
    if draft.full or any(_hides_steps(loc) for loc in draft.wrong):
        return True
    broken = ((step, draft.wrong_keys(loc)) for _, step, loc in each_step(draft))
    return any(_is_telling(keys) and _may_name(step, keys, benchmark) for step, keys in broken if keys)


def _hides_steps(loc: Loc) -> bool:
    return loc[:1] == ("stages",) and len(loc) <= 3 and not (len(loc) == 3 and loc[2] in _STAGE_KEYS)


def _is_telling(keys: set[str]) -> bool:
    """Return whether an invalid or unknown key may affect what the step measures."""
    return any(key in _TELLING or key not in _STEP_KEYS for key in keys)


def _may_name(step: Step, keys: set[str], benchmark: str) -> bool:
    name = step.benchmark or step.id
    return bool(keys & _NAMING) or "${{" in name or matches(benchmark, name) or matches(name, benchmark)
