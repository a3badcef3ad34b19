"""Tests that need cargo are skipped with a reason where it is missing or does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchains import why_no_cargo


def test_a_cargo_that_does_not_run_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_no_cargo() == "cargo is not on PATH (https://rustup.rs)"
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'error: rustup could not choose a version of cargo to run' >&2\nexit 1\n")
    cargo.chmod(0o755)
    assert why_no_cargo() == "cargo does not run: error: rustup could not choose a version of cargo to run"
