"""Builds whose links are recorded, so that what they link can be linked again with other code layouts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfflow.execute.context import TreeContext
    from perfflow.execute.prepare import Ready

RECORDINGS = "recordings"
"""Where a tree's folder for code layouts has what was seen of its links."""


def watched(context: TreeContext, prepared: Ready) -> Ready:
    """The same call with its links recorded, where layouts of what it builds may be drawn."""
    return replace(prepared, env=_recorded(context.layouts, prepared.env)) if context.layouts else prepared


def _recorded(layouts: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    # Imported where it is needed: most runs draw no layouts.
    from perfflow.execute.layouts.recording import recording

    with suppress(OSError):
        # What cannot be recorded is built all the same; who wants layouts of it hears that nothing was recorded.
        return recording(env, layouts / RECORDINGS)
    return env
