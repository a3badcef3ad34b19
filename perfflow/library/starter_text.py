"""Pieces of a first workflow's text: names, commands and lists as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable

from perfflow.model.later import dataclass, late_pattern
from perfflow.workflow import shell_syntax
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import masked

_PLAIN = late_pattern(r"[A-Za-z0-9_][\w.+-]*")
_NO_NAME = late_pattern(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Starter:
    """The text of a workflow for one kind of project, a name, what it is for in words, and what to know of it."""

    text: str
    name: str
    about: str
    note: str = ""


def fit(name: str) -> str:
    """A name as the file of a workflow can have it, '' where nothing of it can stay."""
    return _NO_NAME.sub("-", name).strip("-.")[:100]


def quoted(text: str) -> str:
    """A text as YAML: double quotes of JSON are double quotes of YAML, which folds separators that stand in them."""
    text = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def quoted_list(texts: Iterable[str]) -> str:
    """A list of texts in one line of YAML."""
    return f"[{', '.join(map(quoted, texts))}]"


def comment(text: str) -> str:
    """A text as it can stand in a comment: one line, of characters that YAML allows."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def is_plain(name: str) -> bool:
    """Whether a name that a project gives can stand in a command or an expression as it is."""
    return bool(_PLAIN.fullmatch(name))


def command_text(command: str) -> str:
    """A command as YAML, with the key that has a shell read it where it needs one."""
    try:
        needs_shell = shell_syntax.first(masked(command))
    except ExpressionError:
        needs_shell = None  # what is wrong with it is said when the workflow is read
    return quoted(command) + ("\n        shell: true" if needs_shell else "")
