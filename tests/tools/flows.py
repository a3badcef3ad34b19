"""Runs workflows of a few steps by the real command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.shell import perfflow


def run_flow(
    folder: Path, stages: dict[str, list[dict[str, Any]]], targets: dict[str, Any] | None = None, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run a workflow with these stages into ``out``; ``how`` is that of the shell."""
    content = {"perfflow": 1, **({"targets": targets} if targets else {}), "stages": stages}
    (folder / "flow.yaml").write_text(json.dumps(content))
    return perfflow("run", "flow.yaml", "--out", "out", cwd=folder, **how)


def result_in(folder: Path) -> dict[str, Any]:
    """Return the result of the run in a folder."""
    found: dict[str, Any] = json.loads((folder / "out" / "result.json").read_text())
    return found
