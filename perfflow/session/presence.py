"""Which of two trees lacks what a step runs: then its benchmark is new or removed, and no failure of the other tree.

A program that crashes must never pass for one that is not there. So the rule looks at files, not at exit statuses: the
step's working directory, its crate, and the first word of its command that is a file of the tree. What one tree has of
these and the other does not cannot be run there, whatever it would do. In text for a shell the words are those a shell
would read from it; what is behind variables and substitutions is not seen, and stays a failure.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfflow.execute.context import TreeContext
from perfflow.execute.prepare import NoFolderError, Ready, first_count, ready
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession


def missing_side(session: RunSession, planned: Planned) -> Side | None:
    """The side whose tree lacks what the step runs, None where both have it or neither. Raises PreparationError."""
    return absent(session.contexts, planned, session.folder.step(planned.id)) if session.contexts else None


def absent(
    contexts: Mapping[Side, TreeContext], planned: Planned, folder: Path, *, folders_only: bool = False
) -> Side | None:
    """The same of two contexts; ``folder`` is where the files of the step's calls would lie.

    ``folders_only``: the words of the command do not count, as of a build, which runs much else.
    """
    found: dict[Side, list[Path]] = {}
    unready: dict[Side, NoFolderError] = {}
    for side, context in contexts.items():
        try:
            ops = first_count(context, planned)
            prepared = ready(context, planned, side, folder / side.value, ops)
            found[side] = [*_folders(context, prepared), *(() if folders_only else _program(context, prepared))]
        except NoFolderError as error:
            unready[side] = error
    if not found:
        raise next(iter(unready.values()))
    if unready:
        return next(iter(unready))
    return next((side for side in contexts if _lacks(contexts, side, found)), None)


def _lacks(contexts: Mapping[Side, TreeContext], side: Side, found: Mapping[Side, list[Path]]) -> bool:
    """Whether a file that the other side runs is there and not here."""
    other = next(item for item in contexts if item is not side)
    return any(
        (contexts[other].root / path).exists() and not (contexts[side].root / path).exists() for path in found[other]
    )


def _folders(context: TreeContext, prepared: Ready) -> Iterator[Path]:
    """Paths within the tree of the step's working directory and its crate."""
    yield from _within(context, prepared.cwd)
    crate = getattr(prepared.call.options, "crate", "") if prepared.call else ""
    if crate:
        yield from _within(context, prepared.cwd / crate)


def _program(context: TreeContext, prepared: Ready) -> Iterator[Path]:
    """The path within the tree of the first word that is a file of it: the program, or the script of another one."""
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


def _words(prepared: Ready) -> tuple[str, ...]:
    """The words of the command, of text for a shell as far as it can be read."""
    text = prepared.call.shell_text if prepared.call else prepared.argv[-1] if _is_shell(prepared) else ""
    if not text:
        return prepared.argv
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError:
        return ()


def _is_shell(prepared: Ready) -> bool:
    return prepared.tool is None and prepared.planned.step.run is not None


def _within(context: TreeContext, path: Path) -> Iterator[Path]:
    """The path relative to the tree's root, if it lies in it."""
    root, place = context.root.resolve(), path.resolve()
    if place.is_relative_to(root):
        yield place.relative_to(root)
