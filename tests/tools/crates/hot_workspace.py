"""The workspace under hot/, whose benchmarks are the only ones of CI that build criterion."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kept import kept
from tests.tools.harness import CRATE


@contextmanager
def hot_workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a copy, always in the same folder: cargo would reuse the build of a copy in another folder."""
    # For libtest's benchmarks. A change of it would build criterion again.
    monkeypatch.setenv("RUSTC_BOOTSTRAP", "1")
    for name in ("HOT_PANIC", "RUST_BACKTRACE"):
        monkeypatch.delenv(name, raising=False)
    with kept("cargo") as place:
        monkeypatch.setenv("CARGO_TARGET_DIR", str(place / "target"))
        shutil.rmtree(place / "crate", ignore_errors=True)
        folder = Path(shutil.copytree(CRATE, place / "crate"))
        # Tests change it, and cargo compares dates: it would reuse the build of a changed file for an older one.
        (folder / "benches" / "other.rs").touch()
        yield folder
