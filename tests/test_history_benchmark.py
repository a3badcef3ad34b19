"""How long a large history takes: the benchmark runs, and the page has the figures of the log that is kept of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOG = ROOT / "docs" / "experiments" / "history-size.txt"
PAGE = ROOT / "docs" / "performance.md"
LINES = (
    *(r"import: ([\d.]+) s, [\d,]+ points/s", r" +[\d.]+x json\.loads, ([\d.]+)x bare inserts of these rows"),
    *(r"index: (\d+) ms for .*, [\d.]+x the bare query", r"rows of `perfflow history`, .*: ([\d.]+) s"),
    *(r"all points: ([\d.]+) s", r"changes: ([\d.]+) s for one series .*, [\d.]+ s for all"),
    *(r"build: ([\d.]+) s for \d+ pages, index [\d,]+ kB", r"file: \d+ MiB, (\d+) B for each point"),
)


def _figures(text: str) -> list[str]:
    found = [re.search(rf"^{line}$", text, re.MULTILINE) for line in LINES]
    assert all(found), text
    return [match[1] for match in found if match]


def test_a_history_is_measured() -> None:
    script = [sys.executable, "-m", "benchmarks.history", "20", "3"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("20 runs x 3 benchmarks, ")
    assert len(_figures(done.stdout)) == len(LINES)


def test_the_page_has_the_figures_of_the_log() -> None:
    long, wide = re.split(r"^\$ .*\n", LOG.read_text(), flags=re.MULTILINE)[1:]
    section = PAGE.read_text().partition("## A large history\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.split("|")[2:-1]] for row in section.splitlines() if row.startswith("| ")]
    heads, *shown = rows
    assert heads == [text.splitlines()[0].rpartition(", ")[0] for text in (long, wide)]
    numbers = [[re.match(r"[\d.]+", cell)[0] for cell in row] for row in shown]  # type: ignore[index]
    assert numbers == [list(pair) for pair in zip(_figures(long), _figures(wide), strict=True)]
