"""A link as the recorder wrote it down: found again for an executable, and made ready to be done again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from perfflow.execute.layouts import driver_arguments
from perfflow.execute.layouts.file_digest import digest
from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.model.lazy import dataclass

_FORGOTTEN = (
    "build it in a workflow step, by a compiler that is found on PATH by its name (gcc, clang, cc ...), into an empty"
    " build folder"
)


@dataclass(frozen=True)
class Input:
    """A file that the link read: its other name, "" where none was kept, its size in bytes and its time in ns."""

    kept: str
    size: int
    modified: int

    def is_at(self, path: Path) -> bool:
        """Whether the file at this path is the one that was linked, to judge by size and time."""
        with suppress(OSError):
            found = path.stat()
            return (found.st_size, found.st_mtime_ns) == (self.size, self.modified)
        return False


@dataclass(frozen=True)
class RecordedLink:
    """One link: the driver with its arguments, where it ran, what it read, and the file that it wrote."""

    driver: str
    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    output: Path
    digest: str
    inputs: Mapping[str, Input]
    profile: str

    def secured(self, work: Path) -> tuple[tuple[str, ...], dict[Path, Input]]:
        """Return the arguments, with names in ``work`` for objects and archives, and the files that must not change.

        Sources may change: they are compiled once. A later build may remove or replace objects and archives. Raises
        LayoutsRefusedError where that happened before, to a file of which no second name was kept.
        """
        arguments, watched = self.arguments, {}
        for number, (path, found) in enumerate(self.inputs.items()):
            place = next((name for name in (self.folder / path, Path(found.kept)) if found.is_at(name)), None)
            if place is None:
                raise LayoutsRefusedError(f"{path} has changed since {self.output.name} was linked: build it again")
            if found.kept:
                place = _named_again(place, work / "inputs" / str(number))
                arguments = tuple(driver_arguments.replaced(word, path, str(place)) for word in arguments)
            if not driver_arguments.is_source(path):
                watched[place] = found
        return arguments, watched


def _named_again(path: Path, folder: Path) -> Path:
    """Give the file a name in the folder; where that is on another disk, copy it."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / path.name
    place.unlink(missing_ok=True)
    try:
        place.hardlink_to(path)
    except OSError:
        shutil.copy2(path, place)
    return place


def find(executable: Path, recordings: Path) -> RecordedLink:
    """Return the recorded link that made this executable, whatever its name is by now.

    Raises LayoutsRefusedError where none is recorded, or where the executable was changed after its link.
    """
    try:
        content = digest(str(executable))
    except OSError as error:
        raise LayoutsRefusedError(f"{executable} cannot be read: {error.strerror}") from None
    links = [link for path in sorted(recordings.glob("links/*/link.json")) if (link := _read(path))]
    made = [link for link in links if link.digest == content]
    here = [link for link in links if link.output == executable.absolute()]
    if not made and here:
        raise LayoutsRefusedError(
            f"{executable.name} was changed after it was linked: leave out what strips or edits it (strip, objcopy)"
        )
    if not made:
        raise LayoutsRefusedError(f"no link of {executable.name} was recorded: {_FORGOTTEN}")
    return next((link for link in made if link in here), made[0])


def _read(path: Path) -> RecordedLink | None:
    """Return one recorded link; None for a folder that another build is just replacing."""
    try:
        content = json.loads(path.read_text())
        inputs = {name: Input(**found) for name, found in content["inputs"].items()}
        paths = {"folder": Path(content["folder"]), "output": Path(content["output"])}
        return RecordedLink(**{**content, **paths, "arguments": tuple(content["arguments"]), "inputs": inputs})
    except (OSError, ValueError, KeyError, TypeError):
        return None
