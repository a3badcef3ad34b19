"""What one run hides: by the names of variables and parameters, and by what its workflow reads from the environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.secrets import Secrets, secrets_in
from perfflow.plan.plan import Plan
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import Expression, pieces
from perfflow.workflow.model import as_data


def secrets_of(plan: Plan, inherited: Mapping[str, str], repository: Path | None, *, typed: bool) -> Secrets:
    """What no file of a run may repeat, where perfflow was started with the variables ``inherited``.

    ``repository`` is asked whether a text is a revision of it; None where nothing is to be started. ``typed``: whether
    the workflow was made of the command line, whose texts are not public as a file's are.
    """
    texts = list(_texts(as_data(plan.workflow, by_alias=True)))
    conditions = [step.if_ for step in (item.step for item in plan.steps) if isinstance(step.if_, str)]
    asked = set(_variables([*texts, *("${{" + text + "}}" for text in conditions)]))
    read = {name: value for name, value in inherited.items() if name in asked or "" in asked}
    written = "" if typed else "\n".join(texts)

    def is_revision(text: str) -> bool:
        return repository is not None and _is_object(repository, text)

    return secrets_in(inherited, plan.params, read=read, written=written, is_revision=is_revision)


def _is_object(repository: Path, name: str) -> bool:
    if not (repository / ".git").exists():
        return False
    # Imported where it is needed: few variables hold what could be a revision.
    from perfflow.trees.git import Git

    try:
        # What a partial clone lacks is not fetched for this.
        git = Git(repository).with_variables(GIT_NO_LAZY_FETCH="1")
        return git.attempt("cat-file", "-e", name).status == 0
    except UserError:
        return False


def _texts(data: Any) -> dict[str, None]:
    """Every text in plain data, keys too, each once; in no order that means anything."""
    found: dict[str, None] = {}
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found[value] = None
        elif isinstance(value, dict):
            found.update(dict.fromkeys(map(str, value)))
            waiting += filter(None, value.values())
        elif isinstance(value, list):
            waiting += filter(None, value)
    return found


def _variables(texts: list[str]) -> Iterator[str]:
    """Names of variables that expressions read; '' where a name is worked out, so that it can be any."""
    for text in texts:
        if "${{" not in text or "env" not in text:
            continue
        with contextlib.suppress(ExpressionError):
            for part in pieces(text):
                if isinstance(part, Expression):
                    yield from (path[1] if len(path) > 1 else "" for path in part.names() if path[0] == "env")
