"""Find out which of two trees lacks a step's program: its benchmark is then new or removed, not failed.

A crashing program must never count as a missing one. The rule therefore checks files, not exit statuses: the step's
working directory, its crate, the files or targets that its options name, and the first word of its command that is a
file of the tree. If only one tree has one of these, the step cannot run in the other. If a tree lacks some of several
files or targets, the step runs with the others there. Shell text is split into words like a shell does; programs behind
variables and substitutions are not recognized, and count as failures.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfflow.execute.context import TreeContext
from perfflow.execute.prepare import NoFolderError, ReadyProcess, absent_parts, first_count, ready
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Options


def missing_side(session: RunSession, planned: Planned) -> Side | None:
    """Return the side whose tree lacks the step's program, None if both or neither have it. Raises PreparationError."""
    folder = session.folder.step(planned.id)
    return side_without_program(session.contexts, planned, folder) if session.contexts else None


def side_without_program(
    contexts: Mapping[Side, TreeContext], planned: Planned, folder: Path, *, folders_only: bool = False
) -> Side | None:
    """Return the same for two contexts; ``folder``: where the files of the step's calls would be stored.

    ``folders_only``: ignore the words of the command, for example of a build, which runs many programs.
    """
    paths: dict[Side, list[Path]] = {}
    unready: dict[Side, NoFolderError] = {}
    for side, context in contexts.items():
        try:
            ops = first_count(context, planned)
            prepared = ready(context, planned, side, folder / side.value, ops)
            if prepared.call and _has_no_part(context, prepared, prepared.call.options):
                return side
            paths[side] = [*_folders(context, prepared), *(() if folders_only else _program(context, prepared))]
        except NoFolderError as error:
            unready[side] = error
    if not paths:
        raise next(iter(unready.values()))
    if unready:
        return next(iter(unready))
    return next((side for side in contexts if _lacks(contexts, side, paths)), None)


def _has_no_part(context: TreeContext, prepared: ReadyProcess, options: Options) -> bool:
    """Return whether only the other tree has the files or targets that a step's options name."""
    return bool(absent_parts(context, prepared.tool, options, prepared.cwd))


def _lacks(contexts: Mapping[Side, TreeContext], side: Side, found: Mapping[Side, list[Path]]) -> bool:
    """Return whether a file that the other side runs exists there but not on this side."""
    other = next(item for item in contexts if item is not side)
    return any(
        (contexts[other].root / path).exists() and not (contexts[side].root / path).exists() for path in found[other]
    )


def _folders(context: TreeContext, prepared: ReadyProcess) -> Iterator[Path]:
    """Yield the paths within the tree of the step's working directory and its crate."""
    yield from _within(context, prepared.cwd)
    crate = getattr(prepared.call.options, "crate", "") if prepared.call else ""
    if crate:
        yield from _within(context, prepared.cwd / crate)


def _program(context: TreeContext, prepared: ReadyProcess) -> Iterator[Path]:
    """Yield the path within the tree of the first word that is a file of it: a program, or the script of one."""
    for word in _words(prepared):
        try:
            named = (prepared.cwd / word).is_file()
        except (OSError, ValueError):
            continue
        if named:
            inside = list(_within(context, prepared.cwd / word))
            yield from inside
            if inside:
                return


def _words(prepared: ReadyProcess) -> tuple[str, ...]:
    """Return the words of the command; shell text is split as far as possible."""
    if not prepared.shell_text:
        return prepared.argv
    try:
        return tuple(shlex.split(prepared.shell_text, comments=True))
    except ValueError:
        return ()


def _within(context: TreeContext, path: Path) -> Iterator[Path]:
    """Yield the path relative to the tree's root, if it is inside."""
    root, place = context.root.resolve(), path.resolve()
    if place.is_relative_to(root):
        yield place.relative_to(root)
