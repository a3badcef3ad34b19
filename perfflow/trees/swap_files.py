"""Replace files for a while, and restore the originals afterwards; after a kill, on the next start."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from perfflow.model.errors import UserError

ASIDE = "aside"
"""Subfolder for the original files, in a tree's folder for code layouts."""
_PLACES = "places.json"


class InPlace:
    """Copies in ``folder`` of the original files of one tree, while they are replaced. All methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside: dict[str, str] = {}
        self._lock: int | None = None
        self._replaced: set[Path] = set()

    def hold(self, places: Iterable[Path]) -> None:
        """Copy the files at these places, so that they can be restored whatever is written there."""
        new = [place for place in places if str(place) not in self._aside]
        if not new:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        for place in new:
            name = str(len(self._aside))
            if place.exists():
                shutil.copy2(place, self._folder / name)
            self._aside[str(place)] = name if place.exists() else ""
        # Written completely before any file is replaced, so that the originals can be restored after a kill.
        fresh = self._folder / f"{_PLACES}.new"
        fresh.write_text(json.dumps(self._aside))
        fresh.replace(self._folder / _PLACES)

    def put(self, files: Mapping[Path, Path]) -> None:
        """Put files in these places, each by one rename, and restore all other replaced places."""
        self.hold(files)
        for place in self._replaced - set(files):
            self._put_back(place, self._aside[str(place)])
        for place, file in files.items():
            _put(place, file, _second_name)
        self._replaced = set(files)

    def reset(self) -> None:
        """Restore all originals, and keep their copies."""
        for place, name in self._aside.items():
            self._put_back(Path(place), name)
        self._replaced = set()

    def restore(self) -> None:
        """Restore all originals, also those of a killed process, and delete their copies.

        Does nothing if another live process holds them.
        """
        note = self._folder / _PLACES
        if not note.exists():
            return
        with suppress(BlockingIOError):
            self._take_lock()
            self._aside = json.loads(note.read_bytes())
            self.reset()
            note.unlink()
            for name in filter(None, self._aside.values()):
                (self._folder / name).unlink(missing_ok=True)
            self._aside = {}
            self._let_go()

    def _take_lock(self) -> None:
        """Lock the folder. Raises BlockingIOError if another process has replaced files of this tree."""
        if self._lock is None:
            number = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(number)
                raise BlockingIOError(error.errno, "another run has layouts there", str(self._folder)) from None
            self._lock = number

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def original(self, place: Path) -> Path | None:
        """Return the copy of a place's original file; None if there was none, or it is not held."""
        name = self._aside.get(str(place))
        return self._folder / name if name else None

    def _put_back(self, place: Path, name: str) -> None:
        if not name:
            place.unlink(missing_ok=True)
        elif place.parent.is_dir():  # else the tree was removed
            # A copy, because writes to the tree's file must not change the held original.
            _put(place, self._folder / name, shutil.copy2)


def restore(folder: Path) -> None:
    """Restore the originals that a killed process left in this folder. Raises UserError if that fails."""
    try:
        InPlace(folder).restore()
    except OSError as error:
        text = f"cannot restore {error.filename or folder}: {error.strerror}"
        raise UserError.of(text, "a killed run left another code layout in its place; rebuild the program") from error


def _put(place: Path, file: Path, name_it: Callable[[Path, Path], object]) -> None:
    fresh = place.with_name(f".{place.name}.perfflow")
    fresh.unlink(missing_ok=True)
    try:
        name_it(file, fresh)
        fresh.replace(place)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _second_name(file: Path, place: Path) -> None:
    """Hard-link a file, or copy it if the place is on another disk."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copy2(file, place)
