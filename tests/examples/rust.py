"""Where the tests build the Rust examples."""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).parents[2] / "examples" / "target" / "of-tests"
"""One folder for all of them: they lock the same criterion with the same profile, so it is compiled once."""
