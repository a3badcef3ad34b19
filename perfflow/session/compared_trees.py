"""Find files that the trees of a gate or of candidates will lack, before anything is built.

A tree contains the files that git tracks, and untracked files that are not ignored. An ignored file exists there only
if a step makes it in each tree, or if ``worktree: {share: [...]}`` names it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from perfflow.execute.context import TreeContext
from perfflow.execute.prepare import BASH, first_count, ready
from perfflow.model.errors import Problem, Severity, StepError, UserError, in_file_order
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned, building_steps, profiles_several
from perfflow.session.open_workflow import Opened
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.trees import shared_installs, sharing
from perfflow.trees.slots import ENVIRONMENTS, is_build_folder
from perfflow.trees.snapshots import tops

_OPERATORS = re.compile(r"[;&|\n(){}]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRITTEN = re.compile(r"-o|--?out\w*|>{1,2}")
"""Words before the name of an output file."""
_MOST_WORDS = 2000


@dataclass(frozen=True)
class _Need:
    """A path of the user's tree that a step names; ``first``: the step runs it as its first program."""

    item: Planned | None
    written: str
    path: str
    first: bool = False


def problems_of(opened: Opened) -> tuple[Problem, ...]:
    """Return errors for paths that certainly fail in another tree, or run the user's code there; warnings for others.

    Empty if the project is not a git repository, because then there are no other trees.
    """
    if not (opened.root / ".git").exists():
        return ()
    try:
        return in_file_order([*_of_shared(opened), *_lacking(opened)])
    except UserError:  # git is missing or the repository is damaged: reported when the trees are made
        return ()


def require_complete(opened: Opened) -> tuple[str, ...]:
    """Return the warnings. Raises UserError with all errors."""
    found = problems_of(opened)
    errors = tuple(problem for problem in found if problem.severity is Severity.ERROR)
    if errors:
        raise UserError(errors)
    return tuple(f"{problem.message}; {problem.hint}" for problem in found)


def _of_shared(opened: Opened) -> Iterator[Problem]:
    """Yield the problems of each shared path. A missing path may still be made by a `setup` step."""
    plan, root = opened.plan, opened.root
    share = plan.workflow.worktree.share
    if not share:
        return

    layers = [plan.workflow.env, plan.workflow.defaults.env]
    layers += [stage.env for stage in plan.workflow.stages.values()] + [item.step.env for item in plan.steps]
    prepared = shared_installs.Prepared(bool(building_steps(plan)), any("PYTHONPATH" in layer for layer in layers))
    has_setup = any(item.stage == "setup" for item in plan.steps)
    for index, path in enumerate(share):
        place = opened.draft.document.place(("worktree", "share", index))
        if has_setup and not os.path.lexists(root / path):
            continue
        wrong = list(sharing.problems_of(root, path))
        for problem in wrong or shared_installs.faults(root, path, share, prepared):
            yield replace(problem, place=place)


def _lacking(opened: Opened) -> Iterator[Problem]:
    """Yield problems for ignored paths that steps name but no step makes and the workflow does not share."""
    share = [PurePosixPath(path) for path in opened.plan.workflow.worktree.share]
    texts = {item.id: _text_of(opened, item) for item in opened.plan.steps if _runs_in_trees(item)}
    needs = list(_needs(opened, texts))
    ignored = tops(opened.root, {need.path for need in needs})
    problems: dict[str, Problem] = {}
    for need in needs:
        top = ignored.get(need.path)
        if top is None or any(PurePosixPath(need.path).is_relative_to(path) for path in share):
            continue
        problem = _problem(opened, need, top, texts)
        # Report each path once: for the step that certainly fails, else for the first step.
        if problem and (
            top not in problems or (problem.severity, problems[top].severity) == (Severity.ERROR, Severity.WARNING)
        ):
            problems[top] = problem
    yield from problems.values()


def _problem(opened: Opened, need: _Need, top: str, texts: Mapping[str, Sequence[str]]) -> Problem | None:
    """Return the problem of an ignored path; None if an earlier step may make it."""
    environment = PurePosixPath(top).name in ENVIRONMENTS or (opened.root / top / "pyvenv.cfg").is_file()
    before = list(_before(opened, need.item)) if need.item else []
    made = any(top in " ".join(texts.get(item.id, ())) for item in before)
    # A command with the folder itself as an argument probably makes it: `python3 -m venv .venv`.
    makes = need.item is not None and need.path == top and not need.first and need.item.role is Role.WORK
    if made or makes or (before and need.item and not environment):
        return None
    document, draft = opened.draft.document, opened.draft
    if need.item is None:
        place = document.place(("data",))
    else:
        place = document.place(draft.steps[need.item.step.id], find=need.written)
    message = f"`{need.written}` is ignored by git, so the trees of a gate and of candidates do not have it"
    hint = f"worktree: {{share: [{top}]}}"
    if is_build_folder(top):
        hint = "build it in each tree: add a step to the stage `build`"
    return Problem(message, hint, place, Severity.ERROR if need.first and _must_run(need.item) else Severity.WARNING)


def _must_run(item: Planned | None) -> bool:
    """Return whether a step always runs and must not fail."""
    if item is None or item.role in OPTIONAL_ROLES:
        return False
    return item.step.if_ is None and item.step.requires is None and not item.step.continue_on_error


def _before(opened: Opened, item: Planned) -> Iterator[Planned]:
    """Yield the earlier steps in the same tree that may make files."""
    for other in opened.plan.steps:
        if other.id == item.id:
            return
        if other.stage != "setup" and other.role in (Role.WORK, Role.CHECK):
            yield other


def _runs_in_trees(item: Planned) -> bool:
    if item.stage == "setup" or item.role in (Role.CANDIDATE, Role.COMPARE):
        return False
    return not (item.role is Role.PROFILE and profiles_several(item))


def _text_of(opened: Opened, item: Planned) -> tuple[str, ...]:
    """Return the words of a step's command, empty if they are not known before the run."""
    context = TreeContext(opened.plan, opened.root, "<run>", 0, Path("<run>"), dry=True)
    try:
        ops = first_count(context, item)
        return ready(context, item, Side.BASELINE, Path("<folder>"), ops).shown
    except (StepError, OSError):
        return ()


def _needs(opened: Opened, texts: Mapping[str, Sequence[str]]) -> Iterator[_Need]:
    """Yield the paths that steps name and that exist in the user's tree."""
    root = opened.root
    for planned in opened.plan.steps:
        folder = _folder(opened, planned)
        for word, first in _words(texts.get(planned.id, ())):
            path = _inside(folder / word)
            if path and os.path.lexists(root / path):
                yield _Need(planned, word, path, first)
    for glob in opened.plan.workflow.data:
        head = _inside(PurePosixPath(*_literal(PurePosixPath(glob).parts)))
        if head and os.path.lexists(root / head):
            yield _Need(None, glob, head)


def _folder(opened: Opened, item: Planned) -> PurePosixPath:
    """Return the working directory of a step relative to the root; the root if it contains an expression."""
    stage, defaults = opened.plan.stage(item.stage), opened.plan.workflow.defaults
    text = item.step.working_directory or stage.working_directory or defaults.working_directory or "."
    return PurePosixPath("." if "${{" in text else text)


def _words(argv: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the words of a command that may be paths, and whether each is the first program of the step."""
    text = argv[-1] if argv[: len(BASH)] == BASH else ""
    commands = _OPERATORS.split(text) if text else [shlex.join(argv)]
    first = True
    for command in commands[:_MOST_WORDS]:
        try:
            words = shlex.split(command, comments=True)
        except ValueError:  # a quote that continues on the next line
            first = False
            continue
        while words and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        for number, word in enumerate(words[:_MOST_WORDS]):
            if number == 0 or not _WRITTEN.fullmatch(words[number - 1]):
                yield word.rpartition("=")[2] if word.startswith("-") else word, first and number == 0
        first = first and not words


def _literal(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if any(letter in part for letter in "*?["):
            return
        yield part


def _inside(path: PurePosixPath) -> str:
    """Return a normalized relative path; '' if it is absolute, leads out of the tree, or is not a path."""
    text = os.path.normpath(path)
    usable = not path.is_absolute() and not text.startswith("..") and "\0" not in text and len(text) < 1000
    return text if usable and text != "." else ""
