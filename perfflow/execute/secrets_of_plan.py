"""Find the secrets of a run: in named variables and parameters, and in variables that its workflow reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.secrets import Secrets, secrets_in
from perfflow.plan.plan import Plan
from perfflow.trees.git import Git
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import Expression, pieces
from perfflow.workflow.model import as_data


def secrets_of(plan: Plan, inherited: Mapping[str, str], repository: Path | None, *, typed: bool) -> Secrets:
    """Return the secrets that no file of a run may contain, if perfflow was started with the variables ``inherited``.

    repository: used to check whether a text is a revision; None if no process may be started.
    typed: whether the workflow comes from the command line, whose texts are not public like those of a file.
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

    try:
        # Do not let a partial clone fetch missing objects for this check.
        git = Git(repository).with_variables(GIT_NO_LAZY_FETCH="1")
        return git.attempt("cat-file", "-e", name).status == 0
    except UserError:
        return False


def _texts(data: Any) -> dict[str, None]:
    """Return every text in plain data, including keys, once each and in no particular order."""
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
    """Yield the names of variables that expressions read; '' for a computed name, which may be any variable."""
    for text in texts:
        if "${{" not in text or "env" not in text:
            continue
        with contextlib.suppress(ExpressionError):
            for part in pieces(text):
                if isinstance(part, Expression):
                    yield from (path[1] if len(path) > 1 else "" for path in part.names() if path[0] == "env")
