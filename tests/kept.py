"""Folders for what takes long to build: some outlive a run of the tests, and some are common to its processes."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "kept"


@contextmanager
def kept(name: str) -> Iterator[Path]:
    """Have a folder to oneself, whatever process of pytest the others that use it run in."""
    folder = _KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(_KEPT / f"{name}.lock"):
        yield folder


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return a folder that ``build`` has filled: in the first process that asks for it, for all of this run.

    If it raises, the next that asks builds again.
    """
    own = factory.getbasetemp()
    # Each worker of pytest-xdist has a folder of its own in that of the run.
    common = (own.parent if own.name.startswith("popen-") else own) / "built-once"
    folder, done = common / name, common / f"{name}.done"
    common.mkdir(exist_ok=True)
    with _alone(common / f"{name}.lock"):
        if not done.exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            done.touch()
    return folder


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
