"""Whether Node.js and its libraries of benchmarks are here: sh scripts/install tools,dev."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from platformdirs import user_cache_path

NODE_MODULES = user_cache_path("perfflow") / "node-bench-1" / "node_modules"
needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_MODULES / "vitest").is_dir(),
    reason="node, tinybench, mitata or vitest is not installed (sh scripts/install tools,dev, with npm)",
)


def node_project(folder: Path) -> Path:
    """Copy the Node.js project of these tests into a folder that may exist; return it."""
    shutil.copytree(Path(__file__).parent / "tools" / "node", folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(NODE_MODULES)
    return folder
