"""Whether cargo works here, for tests that build crates."""

from __future__ import annotations

import subprocess

import pytest


def why_no_cargo() -> str:
    """Return why cargo cannot be used; '' if it can. rustup's cargo is on PATH also without a toolchain."""
    try:
        done = subprocess.run(["cargo", "--version"], capture_output=True, text=True, timeout=900, check=False)
    except FileNotFoundError:
        return "cargo is not on PATH (https://rustup.rs)"
    except OSError as error:
        return f"cargo does not run: {error.strerror}"
    return f"cargo does not run: {done.stderr.strip()}" if done.returncode else ""


_REASON = why_no_cargo()
needs_cargo = pytest.mark.skipif(bool(_REASON), reason=_REASON)
