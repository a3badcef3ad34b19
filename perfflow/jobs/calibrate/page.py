"""Write the page about this machine's calibration from the stored entries. Nothing is measured."""

from __future__ import annotations

from pathlib import Path

from perfflow.machine.facts import facts
from perfflow.model.errors import UserError
from perfflow.report.html import document
from perfflow.store import run_calibration, run_folder
from perfflow.store.run_calibration import Entry


def known_of_this_machine(root: Path) -> tuple[str, list[Entry]]:
    """Return this machine's identity and its stored entries. Raises UserError if there are none."""
    identity = str(facts()["identity"])
    entries = run_calibration.load(root, identity)
    if not entries:
        text = f"{run_calibration.path(root, identity)}: this machine is not calibrated"
        raise UserError.of(text, "run `perfflow calibrate WORKFLOW` first")
    return identity, entries


def write_page(root: Path, identity: str) -> Path | None:
    """Write the page of a machine; return None if it has no entries or the folder cannot be written."""
    entries = run_calibration.load(root, identity)
    if not entries:
        return None

    page = run_calibration.page(root)
    try:
        run_folder.write_text(page, document.render_calibration(entries, identity))
    except OSError:
        # The entries are stored, so the page can be written at any later time.
        return None
    return page
