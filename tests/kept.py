"""Folders that outlive a run of the tests, for what takes minutes to build."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "kept"


@contextmanager
def kept(name: str) -> Iterator[Path]:
    """Have a folder to oneself, whatever process of pytest the others that use it run in."""
    folder = _KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    with (_KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
