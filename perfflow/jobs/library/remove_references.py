"""Remove references from the lock, and their vendored copies from the project. Uses no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.jobs.library.pin_references import Pinned, known, tidy
from perfflow.library import items, lock_file, search_path, store
from perfflow.library.lock_file import Lock, Pin
from perfflow.library.pinned import Library
from perfflow.model.errors import UserError
from perfflow.workflow.readable import Readable
from perfflow.workflow.yaml_text import read_file, read_text


def remove(root: Path, texts: Sequence[str]) -> Pinned:
    """Remove references from the lock. The lock is not written yet, and the copies still exist.

    The references in their files stay pinned, since they may be used by themselves; a note reports this. Raises
    UserError if a workflow of the project or another item still uses one of the removed references.
    """
    done = Pinned(root, before := lock_file.read(root), dict(before))
    gone = dict.fromkeys(known(before, texts))
    for name in gone:
        del done.after[name]
    users = _users(root, done.after)
    for name in gone:
        if by := users.get(name):
            hint = f"remove that too: perfflow library remove {name} {by}" if by in done.after else f"change {by} first"
            raise UserError.of(f"{name} is used by {by}", hint)
        done.notes.append(f"{name}: removed")
    for name in _left_over(root, before, gone, users):
        done.notes.append(f"{name} stays pinned; nothing here uses it. Remove it: perfflow library remove {name}")
    return done


def sweep(done: Pinned) -> None:
    """Delete the vendored copies that no item of the lock has any more. Raises UserError."""
    try:
        tidy(done)
    except OSError as error:
        raise UserError.of(f"{error.filename}: {error.strerror}", "delete the copies by hand") from error


def _users(root: Path, lock: Lock) -> dict[str, str]:
    """Return reference -> a file of the project's ``workflows/``, or an item of the lock, that uses it."""
    users: dict[str, str] = {}
    for name, pin in sorted(lock.items()):
        users.update(dict.fromkeys(_named_by(root, name, pin), name))
    for path in search_path.workflows(root):
        if path.parent == search_path.SHIPPED:
            continue
        try:
            found = list(items.references_in(read_file(path, Readable.of(root))))
        except UserError:
            # An invalid workflow cannot be run, so it uses nothing; `perfflow validate` reports its errors.
            continue
        users.update(dict.fromkeys(found, str(path.relative_to(root))))
    return users


def _named_by(root: Path, name: str, pin: Pin) -> Iterator[str]:
    """Yield the references in the files of an item, if these are on this machine and unchanged."""
    folder = Library(root).folder_of(name, pin)
    files, wrong = store.checked(folder, pin)
    if not wrong:
        for path, raw in files.items():
            if path.endswith(search_path.SUFFIXES):
                yield from items.references_in(read_text(raw.decode("utf-8-sig"), str(folder / path)))


def _left_over(root: Path, before: Lock, gone: Mapping[str, None], users: Mapping[str, str]) -> Iterator[str]:
    for other in sorted({other for name in gone for other in _named_by(root, name, before[name])}):
        if other in before and other not in gone and other not in users:
            yield other
