"""Limit the files that perfflow reads for a workflow: regular files of at most 1 MiB in allowed folders.

A workflow may come from somebody else, and error messages show lines of the files that it names. So perfflow reads
such files only inside the allowed folders, and follows no link out of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.tools import regular_files

LARGEST = 2**20
"""Most bytes of a file."""
_ALLOWED_HINT = "perfflow reads only the project, its own library, and the folder of a workflow that you name"


@dataclass(frozen=True)
class Readable:
    """Folders that may be read, with everything below them, as real paths.

    ``further`` has the folders that were added while the workflow was read, ``fixed`` the files whose bytes are known.
    """

    folders: tuple[str, ...]
    further: set[str] = field(default_factory=set, compare=False)
    fixed: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, *folders: Path) -> Readable:
        """Create it from these folders; links in their paths are resolved."""
        return cls(tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders)))

    def allow(self, folder: Path) -> None:
        """Allow one more folder."""
        self.further.add(os.path.realpath(folder))

    def fix(self, contents: Mapping[Path, bytes]) -> None:
        """Allow files, and take their bytes from ``contents`` instead of the disk."""
        self.fixed.update((os.path.abspath(path), raw) for path, raw in contents.items())  # noqa: PTH100 (no links)

    def bytes_of(self, path: Path, largest: int = LARGEST) -> bytes:
        """Return the bytes of a file of at most ``largest`` bytes.

        Raises UserError if the file is outside the folders, without showing its contents; OSError if it is not a
        regular file, is too large or cannot be read; ValueError for a NUL in the path.
        """
        raw = self.fixed.get(os.path.abspath(path)) if self.fixed else None  # noqa: PTH100 (links may have changed)
        return regular_files.read(self._real(path), largest) if raw is None else raw

    def holds(self, path: Path) -> bool:
        """Return whether a file is inside the folders after links are resolved."""
        if os.path.abspath(path) in self.fixed:  # noqa: PTH100 (links may have changed)
            return True
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(folder) for folder in (*self.folders, *self.further))

    def _real(self, path: Path) -> str:
        real = os.path.realpath(path)
        if self.holds(path):
            return real
        is_linked = real != os.path.abspath(path)  # noqa: PTH100 (resolve() would follow the link)
        hint = (
            "a symbolic link leads there; name the file itself, or copy it into the project"
            if is_linked
            else _ALLOWED_HINT
        )
        raise UserError.of(f"{path} lies outside the project", hint)
