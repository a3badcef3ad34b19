"""Runs the real command in a folder, as a user's shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def perfflow(
    *arguments: str,
    cwd: Path,
    path: str | None = None,
    env: dict[str, str] | None = None,
    measured: bool = False,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """``measured``: the programs under test are Python and timed, so nothing may trace them for coverage."""
    own = {name: value for name, value in os.environ.items() if not (measured and name.startswith("COVERAGE"))}
    full = {**own, **(env or {})}
    if path is not None:
        full["PATH"] = path
    return subprocess.run(
        [sys.executable, "-m", "perfflow", *arguments],
        cwd=cwd,
        env=full,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """To be interrupted or killed: tracing for coverage takes a lock of its own that an interrupt can leave held."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfflow", *arguments],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(folder: Path, text: str, name: str = "flow.yaml") -> Path:
    path = folder / name
    path.write_text(f"perfflow: 1\n{text}")
    return path
