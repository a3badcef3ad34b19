"""Pin, fetch and update references to git repositories. Only this module fetches workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from perfflow.library import items, lock_file, references, store
from perfflow.library.items import Item
from perfflow.library.lock_file import Lock, Pin
from perfflow.library.pinned import Library
from perfflow.library.references import Reference
from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.trees import remote
from perfflow.workflow.readable import LARGEST

MOST_ITEMS = 50
"""The most items of one lock."""


@dataclass
class Pinned:
    """A lock before and after a command, with messages. ``moved``: messages about tags that now name another commit.

    ``touched``: the requested items, and the items that they reference.
    """

    root: Path
    before: Lock
    after: dict[str, Pin]
    notes: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)

    @property
    def unseen(self) -> list[str]:
        """The touched items whose files were never shown on this machine, in order."""
        return [name for name in sorted(self.touched) if not store.is_shown(name, self.after[name])]

    @property
    def is_new(self) -> bool:
        """Whether the lock has changed."""
        return dict(self.before) != self.after

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of an item by path. Raises UserError if they do not match the lock."""
        pin = self.after[name]
        files, wrong = store.checked(Library(self.root).folder_of(name, pin), pin)
        if wrong:
            raise UserError.of(f"{name}: {'; '.join(wrong)}", "run the command again")
        return files

    def files_shown_before(self, name: str) -> dict[str, bytes] | None:
        """Return the files of an item before the command, if all of them were shown on this machine, else None."""
        pin = self.before.get(name)
        if pin is None or not store.is_shown(name, pin):
            return None
        files, wrong = store.checked(store.cached(pin), pin)
        return None if wrong else files


def add(root: Path, texts: Sequence[str]) -> Pinned:
    """Pin and fetch the references and all references in their files; without any, fetch all items of the lock.

    Pinned items keep their commit, and are fetched if they are missing or damaged. The lock is not written yet.
    Raises UserError.
    """
    done = Pinned(root, before := lock_file.read(root), dict(before))
    if not (texts or before):
        raise UserError.of(f"there is no {lock_file.NAME} here", "name what to pin: perfflow library add REFERENCE")
    with _Fetching(done) as fetching:
        for text in texts or sorted(before):
            fetching.pin(text)
    return done


def update(root: Path, texts: Sequence[str], *, allow_moved: bool) -> Pinned:
    """Pin the current commits of the revisions of the named references, or of all.

    A moved tag keeps its pin unless ``allow_moved``. Raises UserError.
    """
    done = Pinned(root, before := lock_file.read(root), dict(before))
    names = known(before, texts)
    # All items of the same revision of a repository have the same commit.
    sources = {(item.url, item.revision) for item in map(references.read, names)}
    with _Fetching(done) as fetching:
        for name in sorted(before):
            reference = references.read(name)
            if (reference.url, reference.revision) in sources:
                fetching.move_on(reference, allow_moved=allow_moved)
    tidy(done)
    return done


def vendor(root: Path, texts: Sequence[str]) -> Pinned:
    """Copy the items of the named references, or all, into the project, and record it in the lock. Raises UserError."""
    done = Pinned(root, before := lock_file.read(root), dict(before))
    with _Fetching(done) as fetching:
        for name in known(before, texts):
            pin = before[name]
            item = fetching.pinned_item(name, pin)
            done.after[name] = pin.model_copy(update={"vendored": True})
            _copy(root, name, item)
            done.touched.add(name)
            done.notes.append(f"{name}: {store.vendored(root, references.read(name)).relative_to(root)}/{pin.path}")
    return done


def known(lock: Lock, texts: Sequence[str]) -> list[str]:
    """Return the references as the lock spells them; all if none is named. Raises UserError for unpinned ones."""
    if not lock:
        raise UserError.of(f"there is no {lock_file.NAME} here", "pin a workflow: perfflow library add REFERENCE")
    names = [str(references.read(text)) for text in texts] or sorted(lock)
    for name in names:
        if name not in lock:
            near = nearest(name, lock)
            hint = f"did you mean {near}?" if near else f"perfflow library add {name}"
            raise UserError.of(f"{name} is not in {lock_file.NAME}", hint)
    return names


def _copy(root: Path, name: str, item: Item) -> None:
    try:
        store.write_into(store.vendored(root, references.read(name)), item.files, root)
    except OSError as error:
        raise UserError.of(f"{error.filename}: {error.strerror}", "move the existing file away") from error


class _Fetching:
    """Keeps repositories open while references are pinned, so that each commit is fetched once."""

    def __init__(self, done: Pinned) -> None:
        self._done = done
        self._open = ExitStack()
        self._temporary = self._open.enter_context(store.temporary())
        self._snapshots: dict[tuple[str, str], remote.Snapshot] = {}
        self._tips: dict[tuple[str, str], tuple[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def pin(self, text: str, chain: tuple[str, ...] = ()) -> None:
        """Pin a reference and the references in its files. A pinned reference keeps its commit."""
        reference = references.read(text)
        name = str(reference)
        if name in chain:
            message = f"circular `extends`: {' -> '.join((*chain, name))}"
            raise UserError.of(message, "extend a file that does not extend this one")
        if name in self._done.touched:
            return
        if pin := self._done.after.get(name):
            item = self.pinned_item(name, pin)
        else:
            commit, kind = self._sibling(reference) or self._tip(reference)
            item = self._item(reference, commit)
            self._keep(name, items.pin_of(commit, kind, item), item)
        self._follow(name, item, chain)

    def move_on(self, reference: Reference, *, allow_moved: bool) -> None:
        """Pin the current commit of a revision, and note the change."""
        name = str(reference)
        old = self._done.after[name]
        commit, kind = self._tip(reference)
        if commit == old.commit:
            self._done.notes.append(f"{name}: {commit[:12]}, as before")
            self.pin(name)
            return
        said = f"{name}: {old.commit[:12]} -> {commit[:12]}"
        if remote.TAG in (old.kind, kind) and not allow_moved:
            self._done.moved.append(f"{said}: the tag {reference.revision} was moved")
            self.pin(name)
            return
        item = self._item(reference, commit)
        new = items.pin_of(commit, kind, item).model_copy(update={"vendored": old.vendored})
        self._keep(name, new, item)
        if old.vendored:
            _copy(self._done.root, name, item)
        self._done.notes.append(f"{said}, {'the same files' if new.sha256 == old.sha256 else 'its files changed'}")
        self._follow(name, item, ())

    def pinned_item(self, name: str, pin: Pin) -> Item:
        """Return the files of an item as pinned, fetched if they are not on this machine. Raises UserError."""
        folder = Library(self._done.root).folder_of(name, pin)
        reference = references.read(name)
        for place in (folder, store.cached(pin)):
            files, wrong = store.checked(place, pin)
            if not wrong:
                item = items.collected(reference, pin.path, sorted(files), _reader(reference, files))
                break
        else:
            item = self._item(reference, pin.commit)
            if lock_file.digest(store.sums(item.files)) != pin.sha256:
                hint = f"restore {lock_file.NAME}, or pin it anew: perfflow library remove {name}, then add it"
                raise UserError.of(f"{name}: {lock_file.NAME} has other checksums than commit {pin.commit[:12]}", hint)
            store.keep(pin, item.files)
        if pin.vendored and store.changed(folder, pin):
            _copy(self._done.root, name, item)
        return item

    def _follow(self, name: str, item: Item, chain: tuple[str, ...]) -> None:
        self._done.touched.add(name)
        for other in item.others:
            self.pin(other, (*chain, name))

    def _keep(self, name: str, pin: Pin, item: Item) -> None:
        store.keep(pin, item.files)
        self._done.after[name] = pin
        if len(self._done.after) > MOST_ITEMS:
            raise UserError.of(f"more than {MOST_ITEMS} items", "check why this library extends so many others")

    def _sibling(self, reference: Reference) -> tuple[str, str] | None:
        """Return commit and kind of a pinned item of the same revision, since all have the same commit; else None."""
        for name, pin in self._done.after.items():
            other = references.read(name)
            if (other.url, other.revision) == (reference.url, reference.revision):
                return pin.commit, pin.kind
        return None

    def _tip(self, reference: Reference) -> tuple[str, str]:
        key = (reference.url, reference.revision)
        if key not in self._tips:
            self._tips[key] = remote.tip(*key, self._done.root, self._temporary)
        return self._tips[key]

    def _item(self, reference: Reference, commit: str) -> Item:
        key = (reference.url, commit)
        if key not in self._snapshots:
            self._snapshots[key] = self._open.enter_context(remote.fetched(*key, self._done.root, self._temporary))
        snapshot = self._snapshots[key]
        path, further = items.entry_of(reference, snapshot.files)

        return items.collected(reference, path, further, _reader(reference, snapshot.files, snapshot))


def _reader(
    reference: Reference, files: Mapping[str, Any], snapshot: remote.Snapshot | None = None
) -> Callable[[str], bytes]:
    """Return a function that reads a repository's file from ``snapshot``, or without one from ``files``."""

    def read(name: str) -> bytes:
        if name not in files:
            hint = "a file of the repository names it"
            raise UserError.of(f"{reference.url} has no file {name!r} at {reference.revision}", hint)
        references.require_path(name, str(reference))
        found: bytes = snapshot.bytes_of(name, LARGEST) if snapshot else files[name]
        return found

    return read


def tidy(done: Pinned) -> None:
    """Remove the vendored copies that no item has any more. Raises OSError."""
    kept = {
        store.vendored(done.root, references.read(name)) / path
        for name, pin in done.after.items()
        for path in pin.files
    }
    for name, pin in done.before.items():
        for path in pin.files if pin.vendored else ():
            place = store.vendored(done.root, references.read(name)) / path
            if place not in kept:
                store.remove(place, done.root)
