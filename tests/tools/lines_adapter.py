"""The adapter in docs/how-to/writing-a-tool.md, its contract test, and a program for it."""

from __future__ import annotations

from pathlib import Path

from tests.docs.console import blocks

_SHOWN = blocks(Path(__file__).parents[2] / "docs" / "how-to" / "writing-a-tool.md", "python")
ADAPTER, CONTRACT = (
    next(text for text in _SHOWN if text.startswith(f"# {name}\n"))
    for name in ("lines_adapter.py", "test_lines_adapter.py")
)
GOOD = "import json; print(json.dumps({'time': 0.5}))"
