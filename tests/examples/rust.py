"""The Rust examples without what only their benchmarks need: criterion takes minutes to compile."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_without_benchmarks(source: Path, target: Path) -> None:
    """Copy a crate or a workspace, with new dates, which cargo goes by; its tests and programs are all there.

    What is locked is criterion and what that needs. The long tests of the workflows build the benchmarks as they are.
    """
    ignored = shutil.ignore_patterns("target", "__pycache__", "benches", "Cargo.lock")
    shutil.copytree(source, target, ignore=ignored, copy_function=shutil.copyfile)
    for manifest in target.rglob("Cargo.toml"):
        sections = manifest.read_text().split("\n\n")
        kept = [section for section in sections if not section.startswith(("[[bench]]", "[dev-dependencies]"))]
        text = "\n\n".join(kept)
        assert "\ncriterion.workspace" not in text
        manifest.write_text("".join(f"{line}\n" for line in text.splitlines() if not line.startswith("criterion")))
