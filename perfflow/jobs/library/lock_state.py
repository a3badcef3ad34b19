"""The state of a lock's items on this machine. Uses no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfflow.library import lock_file, store
from perfflow.library.lock_file import Pin
from perfflow.library.pinned import Library


@dataclass(frozen=True)
class ItemState:
    """One item: the folder of its files, whether its files were shown on this machine, and problems of its files."""

    name: str
    pin: Pin
    folder: Path
    is_shown: bool
    wrong: tuple[str, ...]

    @property
    def word(self) -> str:
        """``vendored``, ``fetched``, ``not fetched`` or ``changed``."""
        if not self.folder.is_dir():
            return "missing" if self.pin.vendored else "not fetched"
        return "changed" if self.wrong else "vendored" if self.pin.vendored else "fetched"


def item_states(root: Path) -> list[ItemState]:
    """Return all items of a project's lock, in order. Raises UserError for a lock that cannot be read."""
    library = Library(root)
    return [_state(library, name, pin) for name, pin in sorted(lock_file.read(root).items())]


def _state(library: Library, name: str, pin: Pin) -> ItemState:
    folder = library.folder_of(name, pin)
    return ItemState(name, pin, folder, store.is_shown(name, pin), tuple(store.changed(folder, pin)))
