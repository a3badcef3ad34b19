"""The folder of a bisection: samples of many revisions, bisect.json and a page, but no verdict."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.store.run_folder import EVENTS, events

FILE = "bisect.json"


def is_bisection(path: Path) -> bool:
    """Return whether a folder is that of a bisection, even of a killed one. Raises UserError for damaged events."""
    if not (path / EVENTS).is_file():
        return (path / FILE).is_file()
    run = next(events(path), {}).get("run")
    return isinstance(run, dict) and "bisect" in run


def require_verdict(path: Path) -> None:
    """Raise UserError if a folder is that of a bisection, which has neither a verdict nor a receipt."""
    if is_bisection(path):
        text = f"{path}: a bisection, which has no verdict, no result.json and no receipt"
        hint = f"its files are {FILE} and report.md; `perfflow report {path} --out DIR` judges good against bad"
        raise UserError.of(text, hint)
