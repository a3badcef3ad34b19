"""Remove folders, whatever permissions a build or a test set inside them."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def make_writable(folder: Path) -> None:
    """Restore the owner's permissions of all folders, so that they can be emptied."""
    for path, inner, _ in os.walk(folder):
        for name in inner:
            place = Path(path, name)
            if not place.is_symlink():
                place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)


def remove_tree(folder: Path) -> None:
    """Remove a folder with its contents. Raises OSError."""
    make_writable(folder)
    shutil.rmtree(folder)
