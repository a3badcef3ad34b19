"""Which files may be read while a workflow is looked at: regular ones of 1 MiB at most, in the folders it belongs to.

A workflow may be somebody else's text. What it names is read only inside of these folders, and no link leads out of
them: an error would show lines of what was read.
"""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.tools import regular_files

LARGEST = 2**20
"""Bytes of a file."""
_OUTSIDE = "perfflow reads the project, its own library, and the folder of a workflow that is named"


@dataclass(frozen=True)
class Readable:
    """Folders whose files may be read, with all that is below them, by their real paths.

    ``further`` are those that became known while the workflow was read.
    """

    folders: tuple[str, ...]
    further: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, *folders: Path) -> Readable:
        """Return these folders, wherever links on the way to them lead."""
        return cls(tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders)))

    def allow(self, folder: Path) -> None:
        """Let the files of one more folder be read."""
        self.further.add(os.path.realpath(folder))

    def bytes_of(self, path: Path) -> bytes:
        """Return a file's bytes.

        Raises UserError where it lies outside, with nothing of what it holds; OSError where it is not a regular file,
        is larger than 1 MiB or cannot be read; ValueError for a NUL in the path.
        """
        return regular_files.read(self._real(path), LARGEST)

    def holds(self, path: Path) -> bool:
        """Whether a file lies inside, wherever links on the way to it lead."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(folder) for folder in (*self.folders, *self.further))

    def _real(self, path: Path) -> str:
        real = os.path.realpath(path)
        if self.holds(path):
            return real
        is_linked = real != os.path.abspath(path)  # noqa: PTH100 (resolve() would follow the link)
        hint = "a link leads there; name the file itself, or copy it into the project" if is_linked else _OUTSIDE
        raise UserError.of(f"{path} lies outside the project", hint)
