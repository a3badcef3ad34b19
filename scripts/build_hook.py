"""Build hook for Hatchling: stores the commit in packages, for ``perfflow --version``."""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``perfflow/commit.txt`` to wheels and source distributions built in a clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, except to editable installations, which read the clone, and outside a clone."""
        source = _version_module(Path(self.root))
        commit = source.checked_out(self.root)[: source.LETTERS]
        if version == "editable" or not commit:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="perfflow-build-")
        path = Path(self._folder.name) / source.COMMIT
        path.write_text(f"{commit}{'+dirty' if _is_dirty(self.root) else ''}\n", encoding="utf-8")
        build_data["force_include"][str(path)] = f"perfflow/{source.COMMIT}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what ``initialize`` wrote."""
        folder = getattr(self, "_folder", None)
        if folder:
            folder.cleanup()


def _version_module(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("perfflow_version", root / "perfflow" / "model" / "version.py")
    assert spec and spec.loader  # noqa: S101, PT018 (a path of a file always has both)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_dirty(root: str) -> bool:
    """Return whether tracked files were changed. Without git, return False."""
    command = ["git", "-C", root, "status", "--porcelain", "--untracked-files=no"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())
