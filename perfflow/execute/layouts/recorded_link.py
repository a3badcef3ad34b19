"""A recorded link: find it for an executable, and prepare to repeat it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfflow.execute.layouts import driver_arguments
from perfflow.execute.layouts.file_digest import digest
from perfflow.execute.layouts.refusal import LayoutsRefusedError

_HOW_TO_RECORD = (
    "build it in a workflow step, with a compiler that is found on PATH by its name (gcc, clang, cc ...), in an empty"
    " build folder"
)


@dataclass(frozen=True)
class Input:
    """An input file of the link: its second name ("" if none was kept), size (bytes) and modification time (ns)."""

    kept: str
    size: int
    modified: int

    def is_at(self, path: Path) -> bool:
        """Return whether the file at this path is the one that was linked, judged by size and time."""
        with suppress(OSError):
            found = path.stat()
            return (found.st_size, found.st_mtime_ns) == (self.size, self.modified)
        return False


@dataclass(frozen=True)
class RecordedLink:
    """One link: the driver with its arguments, folder and environment, its inputs, and its output file."""

    driver: str
    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    output: Path
    digest: str
    inputs: Mapping[str, Input]
    profile: str

    def secured(self, work: Path) -> tuple[tuple[str, ...], dict[Path, Input]]:
        """Return the arguments, with objects and archives named in ``work``, and the files that must not change.

        Sources may change later, because they are compiled once. Objects and archives get a second name, because a
        later build may remove or replace them. Raises LayoutsRefusedError if an input has already changed and no second
        name was kept.
        """
        arguments, watched = self.arguments, {}
        for number, (path, recorded) in enumerate(self.inputs.items()):
            place = next((name for name in (self.folder / path, Path(recorded.kept)) if recorded.is_at(name)), None)
            if place is None:
                raise LayoutsRefusedError(f"{path} has changed since {self.output.name} was linked: build it again")
            if recorded.kept:
                place = _second_name(place, work / "inputs" / str(number))
                arguments = tuple(driver_arguments.replaced(word, path, str(place)) for word in arguments)
            if not driver_arguments.is_source(path):
                watched[place] = recorded
        return arguments, watched


def _second_name(path: Path, folder: Path) -> Path:
    """Hard-link the file into the folder, or copy it if the folder is on another disk."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / path.name
    place.unlink(missing_ok=True)
    try:
        place.hardlink_to(path)
    except OSError:
        shutil.copy2(path, place)
    return place


def find(executable: Path, recordings: Path) -> RecordedLink:
    """Return the recorded link that produced this executable, even if it was renamed.

    Raises LayoutsRefusedError if none is recorded, or if the executable was changed after its link.
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
            f"{executable.name} was changed after it was linked: remove the build steps that edit it (strip, objcopy)"
        )
    if not made:
        raise LayoutsRefusedError(f"no link of {executable.name} was recorded: {_HOW_TO_RECORD}")
    return next((link for link in made if link in here), made[0])


def _read(path: Path) -> RecordedLink | None:
    """Return one recorded link; None if another build is replacing its folder."""
    try:
        content = json.loads(path.read_text())
        inputs = {name: Input(**found) for name, found in content["inputs"].items()}
        paths = {"folder": Path(content["folder"]), "output": Path(content["output"])}
        return RecordedLink(**{**content, **paths, "arguments": tuple(content["arguments"]), "inputs": inputs})
    except (OSError, ValueError, KeyError, TypeError):
        return None
