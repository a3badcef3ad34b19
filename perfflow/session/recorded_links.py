"""Record the links of builds, so that their executables can be relinked with other code layouts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from perfflow.execute.context import TreeContext
from perfflow.execute.layouts.relinking import recording
from perfflow.execute.prepare import ReadyProcess

RECORDINGS = "recordings"
"""Subfolder for recorded links, in a tree's folder for code layouts."""


def with_links_recorded(context: TreeContext, prepared: ReadyProcess) -> ReadyProcess:
    """Return the same call, with its links recorded if layouts of its executables may be drawn."""
    return replace(prepared, env=_recorded(context.layouts, prepared.env)) if context.layouts else prepared


def _recorded(layouts: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    with suppress(OSError):
        # Build even if links cannot be recorded. A later request for layouts reports that nothing was recorded.
        return recording(env, layouts / RECORDINGS)
    return env
