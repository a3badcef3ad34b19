"""Pages in a real browser: with a keyboard, a screen reader, on paper, on a phone, or without scripts."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfflow.report.html import document
from perfflow.report.html.history_site import render_benchmark, render_index
from perfflow.stats.paired_test import Interval
from perfflow.store.result_file import CalibrationEntry
from perfflow.store.sample_order import TakingOrder
from perfflow.trees.line_history import Described
from perfflow.verdict.bisection import Bisected, BisectionOutcome, Holds, JudgedRevision, Regression
from tests.report.browser import Browser
from tests.report.exported import large
from tests.report.gated import gated
from tests.report.histories import changed, quiet
from tests.report.optimized import optimized
from tests.report.pictured import followed, growing, over_layouts
from tests.report.results import everything, kernels
from tests.report.test_calibration_page import ROWS

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not on PATH")
NOWHERE = TakingOrder({})
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
AXE = CACHE / "perfflow" / "axe-core-4.14.1" / "node_modules" / "axe-core" / "axe.min.js"
A4 = (595, 842)
"""Points."""
TEXT_WIDTH = 680
"""Pixels of A4 inside margins of 15 mm."""


def bisected() -> Bisected:
    good, bad = (Described(letter * 40, ("0" * 40,), "A. Author", "2026-01-02", "Read faster") for letter in "ab")
    change = Interval(0.3, 0.28, 0.32)
    tried = (
        JudgedRevision(good, Holds.NO, Interval(0, -0.01, 0.01), 14),
        JudgedRevision(bad, Holds.YES, change, 14, seconds=3.0),
    )
    found = Regression("decode", "cpu", "bench", change, change, 0.99)
    return Bisected(BisectionOutcome.FOUND, "codec", good, bad, "", found, tried, (bad,), ("src/decode.c",))


def calibrated() -> str:
    entries = [
        CalibrationEntry("codec", {"size": 10}, "2026-01-02T03:04:05Z", 1, "0.1.0", "quiet", row) for row in ROWS
    ]
    return document.render_calibration(entries, "0123456789abcdef")


PAGES: dict[str, Callable[[], str]] = {
    "run": lambda: document.render(everything(), NOWHERE),
    "gate": lambda: document.render(gated(), NOWHERE),
    "optimize": lambda: document.render(optimized(), NOWHERE),
    "roofline": lambda: document.render(kernels(), NOWHERE),
    "growth": lambda: document.render(growing(), NOWHERE),
    "heap": lambda: document.render(followed(), NOWHERE),
    "layouts": lambda: document.render(over_layouts(), NOWHERE),
    "bisect": lambda: document.render_bisection(bisected()),
    "calibrate": calibrated,
    "history": lambda: render_index("project", [changed(), quiet()])[1],
    "benchmark": lambda: render_benchmark("project", [changed()])[1],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each page as a file."""
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in PAGES}
    for name, file in found.items():
        file.write_text(PAGES[name]())
    return found


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (sh scripts/install tools,dev, with npm)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(shown: Browser, files: dict[str, Path], dark: bool) -> None:
    for name, file in files.items():
        shown.open(file, dark=dark)
        # Folded parts are checked as well.
        shown.run("for (const each of document.querySelectorAll('details')) each.open = true")
        shown.run(AXE.read_text() + "; 0")
        # The dark theme differs only in colours.
        options = "{runOnly: ['color-contrast']}" if dark else "{}"
        found = json.loads(shown.run(f"axe.run({options}).then((found) => JSON.stringify(found))"))
        told = [(item["id"], [node["html"] for node in item["nodes"]][:3]) for item in found["violations"]]
        assert told == [], name
        assert any(item["id"] == "color-contrast" for item in found["passes"]), name
    assert shown.complaints == []


@pytest.mark.parametrize("width", [360, 1024, 1440])
def test_no_page_is_wider_than_its_window(shown: Browser, files: dict[str, Path], width: int) -> None:
    for name, file in files.items():
        shown.open(file, width=width)
        assert shown.run("document.scrollingElement.scrollWidth") <= width, name


def test_letters_of_pictures_can_be_read_on_a_telephone(shown: Browser, files: dict[str, Path]) -> None:
    scale = "svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    for name, file in files.items():
        shown.open(file, width=360)
        scales = shown.run(f"[...document.querySelectorAll('svg.chart')].map({scale}).filter(found => found > 0)")
        # Of letters of 11 pixels.
        assert all(found > 0.6 for found in scales), name


def test_paper_holds_every_page(shown: Browser, files: dict[str, Path]) -> None:
    """Nothing is cut off at the right, controls for the screen are hidden, and the paper is A4."""
    for name, file in files.items():
        shown.open(file, width=TEXT_WIDTH)
        shown.call("Emulation.setEmulatedMedia", media="print")
        wide = shown.run("document.scrollingElement.scrollWidth")
        assert wide <= TEXT_WIDTH, name
        assert shown.run("getComputedStyle(document.querySelector('nav')).display") == "none"
        printed = shown.call("Page.printToPDF", preferCSSPageSize=True)["data"]
        shown.call("Emulation.setEmulatedMedia", media="")
        boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", base64.b64decode(printed))
        assert boxes, name
        assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {A4}, name


def test_the_page_is_worked_by_keyboard_alone(shown: Browser, files: dict[str, Path]) -> None:
    """The first tab stop skips to the content, the others follow the page, and a heading sorts its table."""
    shown.open(files["gate"])
    shown.press("Tab")
    assert shown.run("document.activeElement.className") == "skip"
    shown.press("Enter")
    assert shown.run("location.hash") == "#content"
    stops: list[Any] = []
    for _ in range(8):
        shown.press("Tab")
        place = "[...document.querySelectorAll('*')].indexOf(document.activeElement)"
        stops.append(shown.run(f"document.querySelector('main').contains(document.activeElement) ? {place} : -1"))
    assert stops == sorted(stops)
    assert -1 not in stops
    assert len(set(stops)) == len(stops)
    shown.run("document.querySelector('th button').focus()")
    shown.press("Enter")
    assert shown.run("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"


def test_a_long_table_begins_with_what_changed_and_has_all_rows(shown: Browser, tmp_path: Path) -> None:
    names = [str(number) for number in range(600)]
    file = tmp_path / "long.html"
    result = large(names, ["met"], [("same", None)] * 9 + [("improved", None)], "")
    file.write_text(document.render(result, NOWHERE))
    seen = (
        "[...document.querySelectorAll('[data-filter=\"Only changed\"] tbody tr')]"
        ".filter((row) => row.getClientRects().length).length"
    )
    shown.open(file)
    assert shown.run(seen) == 60
    shown.run(
        "document.querySelectorAll('.controls input[type=checkbox]').forEach((box) => box.checked && box.click())"
    )
    assert shown.run(seen) == 600
    shown.open(file, scripts=False)
    assert shown.run("document.querySelectorAll('.controls').length") == 0
    assert shown.run(seen) == 600
