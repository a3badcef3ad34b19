"""``perfflow history build``: the history as a folder of pages for any host of static files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from perfflow.jobs.history.changing import Change, changes_of
from perfflow.jobs.history.reading import change_row, followed_trends
from perfflow.jobs.history.trends import Asked, Trend, commit_order, parameters_of
from perfflow.model.errors import UserError
from perfflow.report.history_tables import Followed
from perfflow.report.html.document import render_site
from perfflow.store.folder import write_text
from perfflow.store.write_failure import exit_of, remedy

Tell = Callable[[str], None]
MARK = ".perfflow-history"
"""A file by which a folder is known as one that was built, and may be written again."""


def build(root: Path, folder: Path, asked: Asked, tell: Tell) -> int:
    """Write the pages and return how many. Raises UserError for a folder that holds something else."""
    found = followed_trends(root, asked, tell)
    order = commit_order(root)
    items = [_followed(root, trend, found, order) for trend in found]
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise UserError.of(
            f"{folder}: the folder holds something else", "name a new folder, or one that was built before"
        )
    written: set[Path] = set()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / MARK, "")
        for path, text in render_site(root.resolve().name, items):
            (folder / path).parent.mkdir(exist_ok=True)
            write_text(folder / path, text)
            written.add(folder / path)
        for left in set(folder.rglob("*.html")) - written:
            left.unlink()
    except OSError as error:
        raise UserError.of(f"cannot write {folder}: {error.strerror}", remedy(error), exit_of(error)) from error
    return len(written)


def _followed(root: Path, trend: Trend, others: Sequence[Trend], order: dict[str, int]) -> Followed:
    found = [change for change in changes_of(trend) if 0 < change.at < len(trend.points)]
    rows = [change_row(root, trend, change, order) for change in found]
    ats = [change.at for change in found]
    levels = _levels(trend, found)
    return Followed(trend.series, trend.points, ats, rows, levels, trend.is_flaky, parameters_of(trend, others))


def _levels(trend: Trend, found: Sequence[Change]) -> list[tuple[int, int, float]]:
    """Each stretch with its level; where a change is a drift the stretch has none."""
    if not found:
        return []
    starts = [0, *(change.at for change in found)]
    ends = [*starts[1:], len(trend.points)]
    levels = [found[0].before, *(change.after for change in found)]
    drifting = [False, *(change.is_drift for change in found)]
    stretches = zip(starts, ends, levels, drifting, strict=True)
    return [(start, end, level) for start, end, level, is_drift in stretches if not is_drift]
