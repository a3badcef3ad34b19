"""The workflow behind ``perfflow compare -- OLD NEW``, which compares two commands without a workflow file."""

from __future__ import annotations

import json
import secrets
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from perfflow.execute.invoke import LEFT_RUNNING
from perfflow.execute.prepare import DISCARD
from perfflow.jobs.run.run import RunRequest
from perfflow.model.errors import UserError
from perfflow.model.units import duration
from perfflow.session.open_workflow import Opened, open_workflow

STEP = "compare"
BUDGET = "20s"
MOST_SEED = 2**63 - 1
"""The largest seed that a run accepts."""


@dataclass(frozen=True)
class Question:
    """Two commands and how to compare them. ``metric`` is auto or a timing.

    ``budget``: the longest time of the whole comparison, such as 20s. Without it, it is BUDGET, but slow commands still
    run a few times each.
    ``stdout`` and ``allow_left_running`` (the reason why processes may be left running) are as in a workflow.
    """

    old: str
    new: str
    budget: str | None = None
    metric: str = "auto"
    runs: int | None = None
    stdout: str = DISCARD
    allow_left_running: str | None = None


def require_commands(*commands: str) -> None:
    """Raise UserError if a command is empty or has an unclosed quotation."""
    for text in commands:
        if not text.strip():
            raise UserError.of("one of the commands is empty", "write a program and its arguments")
        try:
            shlex.split(text)
        except ValueError as error:
            raise UserError.of(f"{text!r}: {error}", "close the quotation") from error


def as_run(question: Question, request: RunRequest) -> tuple[Opened, RunRequest]:
    """Return the workflow and the request that compare both commands in pairs until the difference is settled.

    ``request``: the user's other options. Raises UserError for an unusable command.
    """
    for text in (question.old, question.new):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UserError.of("a command contains bytes that are not UTF-8", "put it into a script, and compare that")
    with tempfile.TemporaryDirectory(prefix="perfflow-") as folder:
        path = Path(folder) / "compare.yaml"
        path.write_text(json.dumps(workflow_of(question), ensure_ascii=False), encoding="utf-8")
        opened = open_workflow(str(path))
    opened.require_usable(to_run=True)
    total = None if question.budget is None else duration(question.budget)
    # The comparison should take about a second; checking the machine's noise would take a quarter of it.
    return opened, replace(request, budget=total, checks_noise=False, command=_typed(question), typed=True)


def _typed(question: Question) -> list[str]:
    """Return the command line that asks this question."""
    usual = Question(question.old, question.new)
    options = [
        word
        for name in ("budget", "metric", "runs", "stdout", "allow_left_running")
        if (value := getattr(question, name)) != getattr(usual, name)
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return ["perfflow", "compare", *options, "--", question.old, question.new]


def workflow_of(question: Question) -> dict[str, Any]:
    """Return the workflow as data, which is written as JSON because JSON is also YAML."""
    step: dict[str, Any] = {
        "id": STEP,
        "benchmark": _literal(question.new),
        "run": _literal(question.old),
        "candidate": _literal(question.new),
        "metric": question.metric,
        "budget": question.budget or BUDGET,
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
    """Return the text with ``${{`` escaped, so that it is not read as an expression."""
    return text.replace("${{", "${{ '${{' | raw }}")


def new_folder() -> Path:
    """Return a new folder in the user's cache, for a run that belongs to no project."""
    return user_cache_path("perfflow") / "compare" / secrets.token_hex(8)
