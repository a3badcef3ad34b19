"""How long a large history takes: the benchmark runs, and the page has the figures of the log that is kept of it."""

from __future__ import annotations

import re

import pytest

from tests.long import rest_long
from tests.modules import ROOT, run_module
from tests.store.history.databases import has_server

LOG = ROOT / "dev" / "experiments" / "history-size.txt"
PAGE = ROOT / "dev" / "performance.md"
TIMES = r"([\d.]+ m?s \([\d.]+ m?s\))"
LINES = (
    *(rf"import: {TIMES}, [\d,]+ points/s, [\d.]+x json\.loads", rf"bare inserts of these points: {TIMES}"),
    *(rf"index: {TIMES} for .*, [\d.]+x bare queries", rf"rows of `perfflow history`, .*: {TIMES}"),
    *(rf"all points: {TIMES}", rf"changes: {TIMES} for one series .* for all", rf"changes: .* points, {TIMES} for all"),
    *(rf"build: {TIMES} for \d+ pages, index [\d,]+ kB", r"size: \d+ MiB, (\d+ B) for each point"),
)


def _figures(text: str) -> list[str]:
    found = [re.search(rf"^{line}$", text, re.MULTILINE) for line in LINES]
    assert all(found), text
    return [match[1] for match in found if match]


@pytest.mark.parametrize("store", rest_long(["SQLite", "PostgreSQL"]))
def test_a_history_is_measured(store: str) -> None:
    in_server = store == "PostgreSQL"
    if in_server and not has_server():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    done = run_module("benchmarks.history", "20", "3", *(["--postgresql"] if in_server else []))
    assert re.match(rf"20 runs x 3 benchmarks, \d+ MiB, {store}\n", done.stdout)
    assert len(_figures(done.stdout)) == len(LINES)


def test_the_page_has_the_figures_of_the_log() -> None:
    logs = re.split(r"^\$ .*\n", LOG.read_text(), flags=re.MULTILINE)[1:]
    section = PAGE.read_text().partition("## A large history\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.split("|")[2:-1]] for row in section.splitlines() if row.startswith("| ")]
    heads, *shown = rows
    assert heads == [re.sub(r", \d+ MiB", "", text.splitlines()[0]) for text in logs]
    assert shown == [list(row) for row in zip(*map(_figures, logs), strict=True)]
