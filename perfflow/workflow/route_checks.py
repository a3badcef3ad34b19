"""Read and check ``routes`` when the file is loaded; the rules are evaluated after a run is judged."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Route
from perfflow.model.similar import did_you_mean
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import Expression
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Route as Written
from perfflow.workflow.route_facts import FACTS, MATCHING, FactKind, examples


def read(draft: Draft) -> Iterator[Route]:
    """Yield the valid rules, and add the problems of the others to the draft."""
    for index, written in enumerate(draft.workflow.routes):
        loc: Loc = ("routes", index)
        before = len(draft.wrong)
        _check_condition(draft, written, (*loc, "if"))
        if not written.to.strip():
            draft.complain((*loc, "to"), "`to` is empty", "name the recipient or next step: to: performance-review")
        if len(draft.wrong) == before:
            yield Route(condition_of(written), written.to.strip(), written.why)


def condition_of(written: Written) -> str:
    """Return the condition as text; the YAML boolean ``true`` is a rule that always matches."""
    return str(written.if_).lower() if isinstance(written.if_, bool) else written.if_.strip()


def holds(condition: str, facts: dict[str, object]) -> bool:
    """Return whether a rule matches. Numbers and lists of names are true unless 0 or empty.

    Raises ExpressionError, also if the value is a string.
    """
    value = Expression(condition).value(facts)
    if isinstance(value, str):
        hint = "write a comparison, such as verdict == 'fail'"
        raise ExpressionError(f"`if: {condition}` is a string, not true or false", condition, hint)
    return bool(value)


def _check_condition(draft: Draft, written: Written, loc: Loc) -> None:
    condition = condition_of(written)
    if OPEN in condition:
        hint = "write the expression alone, such as `if: regressions.action > 0`"
        draft.complain(loc, "`if` must not contain ${{ }}", hint, find=OPEN)
        return
    try:
        unknown = next(filter(None, (_unknown(path) for path in Expression(condition).names())), None)
        if unknown:
            name, message, hint = unknown
            draft.complain(loc, message, hint, find=name if name in condition else condition)
            return
        for facts in examples():
            holds(condition, facts)
    except ExpressionError as error:
        said = str(error).replace("${{ ", "").replace(" }}", "").replace("'FoundNames'", "names")
        draft.complain(loc, said, error.hint, find=error.near)


def _unknown(path: tuple[str, ...]) -> tuple[str, str, str] | None:
    """Return the text, message and hint for an invalid dotted name, or None if the name is valid."""
    written = ".".join(path)
    name = next((part for size in range(len(path), 0, -1) if (part := ".".join(path[:size])) in FACTS), "")
    rest = path[name.count(".") + 1 :] if name else path
    if name and not rest:
        return None
    kind = FACTS[name].kind if name else None
    if kind is FactKind.NAMES and rest == (MATCHING,):
        return None
    below = [other for other in FACTS if other.startswith(f"{written}.")]
    if below:
        return written, f"`{written}` has no value", f"use one of {', '.join(below)}"
    if kind is FactKind.TEXT and len(rest) == 1:
        return None  # a method of strings, which is checked at evaluation
    if kind is FactKind.NAMES and rest[0] == MATCHING:
        return written, f"unknown fact `{written}`", f'write {name}.{MATCHING}("core/**") > 0'
    return written, f"unknown fact `{written}`", did_you_mean(written, _known(path[0]), "facts")


def _known(root: str) -> list[str]:
    """Return the facts that may have been meant: those below the same name if there are several, else all."""
    own = [name for name in FACTS if name.partition(".")[0] == root]
    return own if len(own) > 1 else list(FACTS)
