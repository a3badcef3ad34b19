"""Two commands, no file: the workflow that ``perfflow compare -- OLD NEW`` stands for."""

from __future__ import annotations

import json
import secrets
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.execute.invoke import LEFT_RUNNING
from perfflow.execute.prepare import DISCARD
from perfflow.jobs.run.run import RunRequest
from perfflow.model.errors import UserError
from perfflow.model.later import dataclass, late_pattern
from perfflow.session.opening import Opened, open_workflow

STEP = "compare"
MOST_SEED = 2**63 - 1
"""The largest seed that a run takes."""
_BUILTINS = r":|alias|cd|command|eval|exec|exit|export|set|shopt|source|type|ulimit|umask|unset|wait"
_SHELL = late_pattern(rf"[|&;<>()$`*?\[\]~#\n\\]|^\s*\w+=|^\s*(?:{_BUILTINS})(?=\s|$)")


@dataclass(frozen=True)
class Question:
    """Two commands and how long to look at them. ``budget`` is a duration such as 20s; ``metric`` auto or a timing.

    ``stdout`` and ``allow_left_running`` (why processes may be left running) are as in a workflow.
    """

    old: str
    new: str
    budget: str = "20s"
    metric: str = "auto"
    runs: int | None = None
    stdout: str = DISCARD
    allow_left_running: str | None = None


def require_commands(*commands: str) -> None:
    """Raise UserError for a command that is empty or has an open quotation."""
    for text in commands:
        if not text.strip():
            raise UserError.of("one of the commands is empty", "write a program and its arguments")
        try:
            shlex.split(text)
        except ValueError as error:
            raise UserError.of(f"{text!r}: {error}", "close the quotation") from error


def as_run(question: Question, request: RunRequest) -> tuple[Opened, RunRequest]:
    """What to ``run`` to answer a question: both commands in pairs until the difference is settled.

    ``request``: what is asked for beside the question. Raises UserError for an unusable command.
    """
    for text in (question.old, question.new):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UserError.of("a command holds bytes that are not UTF-8", "put it into a script, and compare that")
    with tempfile.TemporaryDirectory(prefix="perfflow-") as folder:
        path = Path(folder) / "compare.yaml"
        path.write_text(json.dumps(workflow_of(question), ensure_ascii=False), encoding="utf-8")
        opened = open_workflow(str(path))
    opened.require_usable(to_run=True)
    # The answer is wanted within a second; the look at the machine would take a quarter of it.
    return opened, replace(request, look_at_noise=False, command=_typed(question), typed=True)


def _typed(question: Question) -> list[str]:
    """The command that asks this question."""
    usual = Question(question.old, question.new)
    options = [
        word
        for name in ("budget", "metric", "runs", "stdout", "allow_left_running")
        if (value := getattr(question, name)) != getattr(usual, name)
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return ["perfflow", "compare", *options, "--", question.old, question.new]


def workflow_of(question: Question) -> dict[str, Any]:
    """The workflow as data; JSON is YAML."""
    # bash only where the text needs it: without, nothing stands between the clock and the program.
    shell = any(_SHELL.search(text) for text in (question.old, question.new))
    step: dict[str, Any] = {
        "id": STEP,
        "benchmark": _literal(question.new),
        "uses": "command",
        "with": {"command": _literal(question.old), "shell": shell},
        "candidate": _literal(question.new),
        "metric": question.metric,
        "budget": question.budget,
    }
    if question.runs is not None:
        step["runs"] = question.runs
    if question.stdout != DISCARD:
        step["stdout"] = _literal(question.stdout)
    if question.allow_left_running is not None:
        step["allow"] = {LEFT_RUNNING: _literal(question.allow_left_running)}
    component = f"{question.old} → {question.new}"
    return {"perfflow": 1, "name": STEP, "component": _literal(component), "stages": {"baseline": [step]}}


def _literal(text: str) -> str:
    """Text in which ``${{`` means itself."""
    return text.replace("${{", "${{ '${{' | raw }}")


def new_folder() -> Path:
    """A new folder for a run that belongs to no project, in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("perfflow") / "compare" / secrets.token_hex(8)
