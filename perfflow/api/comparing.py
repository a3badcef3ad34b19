"""Compares two commands from Python, like ``perfflow compare -- OLD NEW``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from perfflow.api.run import Run, comparison_html, run_of
from perfflow.jobs.compare.compare_stored import MOST_SEED, Question, as_run, new_folder, require_commands
from perfflow.jobs.run.run import RunRequest, run
from perfflow.model.errors import UserError
from perfflow.model.result import Benchmark, Bounds, Decision
from perfflow.model.units import UnitError, duration
from perfflow.report import terminal
from perfflow.session.progress import unheard

Command = str | Sequence[str | os.PathLike[str]]
"""A program and its arguments, or a command as text."""
Clock = Literal["auto", "time", "cpu", "uncontended"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """A comparison of two commands: ``run`` is the stored run, ``answer`` the result in one line.

    ``benchmark``: the row that decides; None if nothing could be measured, see ``run.reasons`` then.
    A notebook shows it as a table; ``repr`` is the text that `perfflow compare` prints.

    >>> import perfflow
    >>> slower = perfflow.compare(["sleep", "0.01"], ["sleep", "0.1"], seed=1)
    >>> slower.decision, slower.verdict, slower.change.low > 0.5
    ('regressed', 'fail', True)
    >>> print(slower)  # doctest: +ELLIPSIS
    the second is ...x slower [...x, ...x]
      time ...
    """

    run: Run
    answer: str
    benchmark: Benchmark | None
    _text: str

    @property
    def verdict(self) -> Literal["pass", "fail", "unproven", "error"] | None:
        """``fail``: the second is slower by more than 10%. ``error``: something could not be measured."""
        return self.run.verdict

    @property
    def decision(self) -> Decision | None:
        """The decision of the deciding row; None if nothing could be measured."""
        return self.benchmark.decision if self.benchmark else None

    @property
    def change(self) -> Bounds | None:
        """Second/first - 1 of the deciding row; None if it is not known."""
        return self.benchmark.change if self.benchmark else None

    @property
    def speedup(self) -> Bounds | None:
        """How many times faster the second command is, below 1 if it is slower; None if it is not known."""
        return self.benchmark.speedup if self.benchmark else None

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        result = self.run._result  # noqa: SLF001 (both are parts of one API; the field is not for users)
        return comparison_html(self.answer, list(terminal.shown_rows(result)), result, names=False)


def compare(
    old: Command,
    new: Command,
    *,
    budget: str | float | None = None,
    runs: int | None = None,
    metric: Clock = "auto",
    seed: int | None = None,
    lock_timeout: str | float = "30m",
    out: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Run two commands in pairs until the difference is settled or the budget is spent.

    ``old``, ``new``: a program and its arguments as a list, or a command as text.
    ``budget``: the longest time of the whole comparison: ``20s``, or seconds. Without it, it is 20 s, but slow commands
    still run a few times each. ``lock_timeout``: the longest time to wait for other measurements.
    ``runs``: number of pairs, instead of ``budget``. ``metric``: the metric that decides. ``seed``: of the random order
    of the pairs. ``out``: a new folder for the run; by default in the user's cache, which `perfflow clean` empties.
    Raises UserError for unusable commands and values, and if the folder cannot be written. Raises KeyboardInterrupt
    after an interruption, when the results so far are stored. A program that fails raises nothing: then ``verdict`` is
    ``error``.

    >>> import perfflow
    >>> perfflow.compare("sleep 0.01", "sleep 0.01", runs=0)
    Traceback (most recent call last):
    perfflow.model.errors.UserError: error: runs is 0
      hint: write a whole number from 1 to 1000000, or leave it out
    """
    words = _text(old, "old"), _text(new, "new")
    require_commands(*words)
    _require_usable(runs, metric, seed)
    question = Question(
        *words, budget=None if budget is None else _duration("budget", budget), metric=metric, runs=runs
    )
    patience = duration(_duration("lock_timeout", lock_timeout))
    folder = new_folder() if out is None else Path(out)
    request = RunRequest(seed=seed, lock_timeout=patience, out=folder, report=out is not None)
    finished = run(*as_run(question, request), unheard)
    if finished.interrupted:
        raise KeyboardInterrupt(f"the results so far are in {finished.folder}")
    text = terminal.render_summary(finished.result, str(finished.folder)).rstrip("\n")
    stored = run_of(finished.result, finished.folder)
    row = terminal.deciding_rows(finished.result)
    benchmark = stored.benchmark(row.name, row.metric) if row else None
    return Comparison(stored, text.partition("\n")[0], benchmark, text)


def _text(command: Command, name: str) -> str:
    if isinstance(command, str):
        return command
    try:
        return shlex.join(os.fspath(word) for word in command)
    except TypeError as error:
        text = f"{name} is {command!r:.100}, which is not a command"
        raise UserError.of(text, "write a list of texts, such as ['python3', 'parse.py'], or a text") from error


def _duration(name: str, value: str | float) -> str:
    text = value if isinstance(value, str) else f"{value}s"
    try:
        duration(text)
    except UnitError as error:
        raise UserError.of(f"{name}: {error}", "write 20s, 5m or a number of seconds") from error
    return text


def _require_usable(runs: int | None, metric: str, seed: int | None) -> None:
    if metric not in get_args(Clock):
        raise UserError.of(f"unknown metric {metric!r}", f"write one of: {', '.join(get_args(Clock))}")
    whole: tuple[tuple[str, object, int, int], ...] = (("runs", runs, 1, 10**6), ("seed", seed, 0, MOST_SEED))
    for name, value, least, most in whole:
        if value is not None and not (isinstance(value, int) and least <= value <= most):
            hint = f"write a whole number from {least} to {most}, or leave it out"
            raise UserError.of(f"{name} is {value!r}", hint)
