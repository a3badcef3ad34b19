"""``perfflow history build``: write the history as a folder of static HTML pages.

``in_parallel`` applies a function to many series on all processors, since hundreds of series take seconds.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from perfflow.jobs.history.overview import change_row, followed_trends
from perfflow.jobs.history.suspicion_report import TrendChange, changes_of
from perfflow.jobs.history.trends import HistoryFilter, SeriesTrend, commit_pages, parameters_of
from perfflow.model.errors import UserError
from perfflow.report.history_tables import Followed
from perfflow.report.html.history_site import (
    CHANGES,
    FOLDER,
    INDEX,
    MOST_DRAWN,
    changes_of_many,
    path_of,
    render_benchmark,
    render_change,
    render_index,
)
from perfflow.store.run_folder import write_text
from perfflow.store.write_failure import exit_of_write_failure, write_remedy

Tell = Callable[[str], None]
_PAGE = re.compile(rf"(?:{FOLDER}|{CHANGES})/[A-Za-z0-9-]+\.html")
MARK = ".perfflow-history"
"""A file that lists the pages that perfflow wrote into a folder: only these are overwritten or removed."""


def build(root: Path, folder: Path, query: HistoryFilter, tell: Tell) -> int:
    """Write the pages and return their number. Raises UserError for a folder with other files."""
    trends, order = followed_trends(root, query, tell)
    commits = commit_pages(root)
    project, of_benchmark = root.resolve().name, defaultdict[str, list[SeriesTrend]](list)
    for trend in trends:
        of_benchmark[trend.series.benchmark].append(trend)
    pages_wanted = {INDEX, *map(path_of, of_benchmark)}
    try:
        before = _written_before(folder)
        if before is None:
            hint = "name a new folder, or one that was built before"
            raise UserError.of(f"{folder}: the folder has other files", hint)
        _claim(folder, FOLDER, before, pages_wanted)
        pages = in_parallel(partial(_written, root, folder, project, order, commits), list(of_benchmark.values()))
        shown = [
            replace(item, points=trend.points[-MOST_DRAWN:])
            for (_, items), trends_of_page in zip(pages, of_benchmark.values(), strict=True)
            for item, trend in zip(items, trends_of_page, strict=True)
        ]
        changed = changes_of_many(shown)
        _claim(folder, CHANGES, before | pages_wanted, {item.path for item in changed})
        pages_wanted |= {item.path for item in changed}
        for path, text in (*(render_change(project, item, commits) for item in changed), render_index(project, shown)):
            write_text(folder / path, text)
        for left in before - pages_wanted:
            (folder / left).unlink(missing_ok=True)
        write_text(folder / MARK, json.dumps(sorted(pages_wanted), indent=1))
    except OSError as error:
        raise UserError.of(
            f"cannot write {folder}: {error.strerror}", write_remedy(error), exit_of_write_failure(error)
        ) from error
    return len(pages_wanted)


def _claim(folder: Path, part: str, own: set[str], wanted: set[str]) -> None:
    """List new pages, and make the folder that they are in. Raises UserError for a file of others, or a link."""
    if others := sorted(path for path in wanted - own if os.path.lexists(folder / path)):
        hint = "move it away, or name another folder"
        raise UserError.of(f"{folder / others[0]} was not written by `perfflow history build`", hint)
    folder.mkdir(parents=True, exist_ok=True)
    # Before the pages, so that a killed process leaves none that is not listed.
    write_text(folder / MARK, json.dumps(sorted(own | wanted), indent=1))
    if wanted:
        (folder / part).mkdir(exist_ok=True)
        if (folder / part).is_symlink():
            raise UserError.of(f"{folder / part} is a link", "delete it, or name another folder")


def _written_before(folder: Path) -> set[str] | None:
    """Return the pages that perfflow wrote into a folder, none for a new folder; None for a folder with other files.

    Only names of pages count, since a list of somebody else may name any file. Raises OSError.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    try:
        listed = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        listed = []
    names = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return {name for name in names if name == INDEX or _PAGE.fullmatch(name)}


def _written(
    root: Path, folder: Path, project: str, order: dict[str, int], commits: str, trends: Sequence[SeriesTrend]
) -> tuple[str, list[Followed]]:
    """Write the page of one benchmark. Return its path, and its series without points, for the index."""
    found = [_followed(root, trend, trends, order) for trend in trends]
    path, text = render_benchmark(project, found, commits)
    write_text(folder / path, text)
    return path, [replace(item, points=()) for item in found]


def _followed(root: Path, trend: SeriesTrend, others: Sequence[SeriesTrend], order: dict[str, int]) -> Followed:
    found = [change for change in changes_of(trend) if 0 < change.at < len(trend.points)]
    rows = [change_row(root, trend, change, order) for change in found]
    ats = [change.at for change in found]
    levels = _levels(trend, found)
    last = len(trend.points) - 1
    drifts = [(each.at, min(each.latest, last), each.before, each.after) for each in found if each.is_drift]
    return Followed(trend.series, trend.points, ats, rows, levels, trend.is_flaky, parameters_of(trend, others), drifts)


def _levels(trend: SeriesTrend, found: Sequence[TrendChange]) -> list[tuple[int, int, float]]:
    """Return (start, end, level) of each stretch between changes. A drifting stretch has no level and is left out."""
    if not found:
        return []
    starts = [0, *(change.at for change in found)]
    ends = [*starts[1:], len(trend.points)]
    levels = [found[0].before, *(change.after for change in found)]
    drifting = [False, *(change.is_drift for change in found)]
    stretches = zip(starts, ends, levels, drifting, strict=True)
    return [(start, end, level) for start, end, level, is_drift in stretches if not is_drift]


FEWEST = 40
"""The fewest items for each process. With fewer, its start would take longer than it saves."""
_TOGETHER = 8
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def in_parallel(work: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
    """Return ``work(item)`` for each item, in order. The results travel between processes, so keep them small."""
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    processes = min(free, len(items) // FEWEST)
    if processes < 2:
        return list(map(work, items))

    # A forked process has all modules and items already, and only receives indices. Forking is safe because commands
    # that read a history have no other threads.
    context = get_context("fork")
    with ProcessPoolExecutor(processes, context, _Started.begin, (work, items)) as pool:
        return list(pool.map(_Started.one, range(len(items)), chunksize=_TOGETHER))


class _Started:
    """The function and the items of a worker process, set once when it starts."""

    work: Callable[[Any], Any]
    items: Sequence[Any]

    @classmethod
    def begin(cls, work: Callable[[Any], Any], items: Sequence[Any]) -> None:
        # The terminal interrupts all processes of a command, but only the parent should report it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cls.work, cls.items = staticmethod(work), items

    @classmethod
    def one(cls, number: int) -> Any:
        return cls.work(cls.items[number])
