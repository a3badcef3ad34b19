"""Pages in a real browser: with a keyboard, a screen reader, on paper, on a phone, or without scripts."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.profile_pair import large_pair
from perfflow.report.html import document
from perfflow.report.html.history_site import changes_of_many, render_benchmark, render_change, render_index
from perfflow.stats.paired_test import Interval
from perfflow.store.calibrations import CalibrationEntry
from perfflow.store.sample_order import TakingOrder
from perfflow.trees.line_history import Described
from perfflow.verdict.bisection import Bisected, BisectionOutcome, Holds, JudgedRevision, Regression
from tests.long import rest_long
from tests.report.browser import Browser
from tests.report.exported import large
from tests.report.gated import gated
from tests.report.histories import changed, quiet
from tests.report.optimized import optimized
from tests.report.pictured import followed, growing, over_layouts
from tests.report.results import CALIBRATED, everything, kernels

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
        CalibrationEntry("codec", {"size": 10}, "2026-01-02T03:04:05Z", 1, "0.1.0", "quiet", row) for row in CALIBRATED
    ]
    return document.render_calibration(entries, "0123456789abcdef")


PAGES: dict[str, Callable[[], str]] = {
    "run": lambda: document.render(everything(), NOWHERE),
    "gate": lambda: document.render(gated(), NOWHERE),
    "optimize": lambda: document.render(optimized(), NOWHERE),
    "flames": lambda: document.render(
        everything(), NOWHERE, [replace(each, benchmark="decode") for each in large_pair()]
    ),
    "roofline": lambda: document.render(kernels(), NOWHERE),
    "growth": lambda: document.render(growing(), NOWHERE),
    "heap": lambda: document.render(followed(), NOWHERE),
    "layouts": lambda: document.render(over_layouts(), NOWHERE),
    "bisect": lambda: document.render_bisection(bisected()),
    "calibrate": calibrated,
    "history": lambda: render_index("project", [changed(), quiet()])[1],
    "benchmark": lambda: render_benchmark("project", [changed()])[1],
    "change": lambda: render_change("project", changes_of_many([changed()])[0])[1],
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
@pytest.mark.parametrize("dark", rest_long([False, True]), ids=["light", "dark"])
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


def test_figures_are_in_sight_on_a_phone(shown: Browser, files: dict[str, Path]) -> None:
    shown.open(files["run"], width=400)
    shown.run("for (const each of document.querySelectorAll('details')) each.open = true")
    metric = "document.querySelector('td.name:first-child + td.name:has(+ .number)')"
    shown.run(f"{metric}.textContent = 'time without core waits capped mean'; 0")
    assert shown.run(f"{metric}.nextSibling.getBoundingClientRect().right") <= 400


def test_a_page_without_a_verdict_has_the_colour_of_none(shown: Browser, files: dict[str, Path]) -> None:
    shown.open(files["history"])
    colours = [f"getComputedStyle(document.querySelector('{each}')" for each in ("header", "h2")]
    assert shown.run(f"{colours[0]}).borderLeftColor") == shown.run(f"{colours[1]}).borderBottomColor")


@pytest.mark.parametrize("width", [360, 400, 1024, 1600])
def test_no_page_is_wider_than_its_window(shown: Browser, files: dict[str, Path], width: int) -> None:
    """Neither folded nor with all that can be opened."""
    for name, file in files.items():
        shown.open(file, width=width)
        assert shown.run("document.scrollingElement.scrollWidth") <= width, name
        shown.run("for (const each of document.querySelectorAll('details')) each.open = true")
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
        assert shown.run("[...document.querySelectorAll('nav')].every((each) => !each.offsetParent)")
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
    shown.run("document.querySelector('#benchmarks').parentElement.open = true")
    shown.run("document.querySelector('#benchmarks th button').focus()")
    shown.press("Enter")
    assert shown.run("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"


def test_the_first_screen_has_the_verdict_what_to_do_and_the_changes(shown: Browser, files: dict[str, Path]) -> None:
    """All else is folded; a link to it opens it."""
    shown.open(files["gate"], width=1600)
    seen = "(each) => each.checkVisibility({contentVisibilityAuto: true}) && each.getBoundingClientRect().top < 900"
    wanted = [".verdict", "#why", "#next", "#changes", "#change-1", "#change-4"]
    assert shown.run(f"{json.dumps(wanted)}.filter((each) => ({seen})(document.querySelector(each)))") == wanted
    assert (
        shown.run("[...document.querySelectorAll('main table')].filter((each) => each.checkVisibility()).length") == 0
    )
    shown.run("document.querySelector('nav a[href=\"#verification\"]').click()")
    shown.settle()
    assert shown.run("document.querySelector('#verification table').checkVisibility()")


def test_a_point_of_a_picture_tells_its_value(shown: Browser, files: dict[str, Path]) -> None:
    """By arrow keys, or by a pointer near it."""
    shown.open(files["gate"])
    shown.run("document.querySelector('#change-2').open = true")
    shown.run("document.querySelector('#change-2 .scroll').focus()")
    tip = "document.querySelector('#change-2 .tip')"
    assert shown.run(f"{tip}.hidden")
    shown.press("ArrowRight")
    first = shown.run(f"{tip}.textContent")
    assert re.fullmatch(r"(base|head) [\d.]+ ms", first)
    shown.press("ArrowRight", "ArrowLeft")
    assert shown.run(f"{tip}.textContent") == first
    shown.press("Escape")
    assert shown.run(f"{tip}.hidden")
    box = "document.querySelector('#change-2 .order .dots').getBoundingClientRect()"
    x, y = shown.run(f"[{box}.left, {box}.top + 3]")
    shown.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert shown.run(f"!{tip}.hidden && {tip}.textContent.startsWith('base ')")


def test_a_history_tells_its_commits_and_zooms_to_a_range(shown: Browser, files: dict[str, Path]) -> None:
    """By buttons, by keys, and by drawing over a range."""
    shown.open(files["benchmark"])
    ends = "['first', 'last'].map((name) => document.querySelector('.labels .' + name).textContent)"
    whole = shown.run(ends)
    assert whole == ["2026-01-01", "2026-05-08"]
    box = "document.querySelector('svg.whole').getBoundingClientRect()"
    left, right, y = shown.run(f"[{box}.left, {box}.right, {box}.top + 20]")
    middle = (left + right) / 2
    for kind, x in (("mousePressed", left + 2), ("mouseMoved", middle), ("mouseReleased", middle)):
        shown.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    first, last = shown.run(ends)
    assert (first, last) == ("2026-01-01", "2026-03-04")
    shown.run("document.querySelector('.told').focus()")
    tip = "document.querySelector('.tip').textContent"
    shown.press("ArrowLeft")
    assert shown.run(tip) == "+20.0% since 2026-03-05 (aaaaaaaaa)"
    shown.press("ArrowLeft")
    assert re.fullmatch(r"2026-03-04 0{9} [\d.]+ ms \[[\d.]+ ms, [\d.]+ ms\]", shown.run(tip))
    shown.press("0")
    assert shown.run(ends) == whole
    shown.run(
        "[...document.querySelectorAll('.controls button')].find((each) => each.textContent === 'Zoom in').click()"
    )
    assert shown.run(ends) != whole


def test_a_long_table_begins_with_what_changed_and_has_all_rows(shown: Browser, tmp_path: Path) -> None:
    names = [str(number) for number in range(600)]
    file = tmp_path / "long.html"
    result = large(names, ["met"], [("same", None)] * 9 + [("improved", None)], "")
    file.write_text(document.render(result, NOWHERE))
    seen = (
        "[...document.querySelectorAll('[data-filter=\"Only changed\"] tbody tr')]"
        ".filter((row) => row.getClientRects().length).length"
    )
    unfolded = "for (const each of document.querySelectorAll('details')) each.open = true"
    shown.open(file)
    shown.run(unfolded)
    assert shown.run(seen) == 60
    shown.run(
        "document.querySelectorAll('.controls input[type=checkbox]').forEach((box) => box.checked && box.click())"
    )
    assert shown.run(seen) == 600
    shown.open(file, scripts=False)
    shown.run(unfolded)
    assert shown.run("document.querySelectorAll('.controls').length") == 0
    assert shown.run(seen) == 600


# ---- pages look as before: coarse screenshots, compared if the installed fonts are the same ----

STORED = Path(__file__).parent / "golden" / "screens"
PROBE = STORED / "letters.json"
WIDTHS = (360, 1024, 1440)
HIGHEST, SCALE, QUALITY = 4000, 0.25, 40
"""Most pixels of the page in height, the scale of a picture, and its WebP quality."""
CELL = 2
"""Width in pixels of a cell whose colours are averaged, so that the edges of letters do not count."""
FAR, SHARE = 24, 0.002
"""Levels of 255 by which a cell's colour may differ, and the share of cells that may differ by more."""
LETTERS = Path(__file__).parent / "golden" / "letters.html"
"""Text whose width depends on the installed fonts."""
COMPARE = """(async (stored, taken, cell, far) => {
  const pixels = async (data) => {
    const image = new Image();
    image.src = "data:image/webp;base64," + data;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(image.width / cell);
    canvas.height = Math.ceil(image.height / cell);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return context.getImageData(0, 0, canvas.width, canvas.height);
  };
  const [one, other] = [await pixels(stored), await pixels(taken)];
  if (one.width !== other.width || one.height !== other.height) return 1;
  let apart = 0;
  for (let at = 0; at < one.data.length; at += 4)
    apart += [0, 1, 2].some((channel) => Math.abs(one.data[at + channel] - other.data[at + channel]) > far);
  return apart / (one.data.length / 4);
})"""


def picture(shown: Browser, width: int) -> bytes:
    """Return a small screenshot of the page with all its parts."""
    shown.run("for (const each of document.querySelectorAll('.part')) each.open = true")
    high = min(HIGHEST, shown.run("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": SCALE}
    shown.call("Emulation.setScrollbarsHidden", hidden=True)
    taken = shown.call("Page.captureScreenshot", format="webp", quality=QUALITY, clip=clip, captureBeyondViewport=True)
    return base64.b64decode(taken["data"])


def apart(shown: Browser, stored: bytes, taken: bytes) -> float:
    """Return the share of cells in which two pictures differ; 1 if their sizes differ."""
    # The policy of our own pages forbids loading pictures.
    shown.open(LETTERS)
    given = ", ".join([*(json.dumps(base64.b64encode(each).decode()) for each in (stored, taken)), f"{CELL}, {FAR}"])
    found = shown.run(f"{COMPARE}({given})")
    assert isinstance(found, int | float)
    return found


@pytest.fixture(scope="module")
def letters(shown: Browser) -> list[int]:
    """Return the width of letters on this machine, in pixels."""
    shown.open(LETTERS)
    found = shown.run("[...document.querySelectorAll('span')].map((each) => Math.round(each.offsetWidth))")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["run", "gate", "history"])
def test_a_page_looks_as_it_did(
    shown: Browser, files: dict[str, Path], letters: list[int], name: str, width: int, dark: bool
) -> None:
    """To accept a change: look at the .got file, then move it over the stored one."""
    if letters != json.loads(PROBE.read_text()):
        pytest.skip("other fonts are installed here than where the pictures were taken")
    shown.open(files[name], width=width, dark=dark)
    taken = picture(shown, width)
    stored = STORED / f"{name}-{width}-{'dark' if dark else 'light'}.webp"
    got = stored.with_suffix(".webp.got")
    found = apart(shown, stored.read_bytes(), taken) if stored.is_file() else 1.0
    if found > SHARE:
        got.write_bytes(taken)
    assert found <= SHARE, f"{got} differs from {stored.name} in {found:.1%} of its cells"


def test_a_page_that_lost_a_colour_or_a_column_is_seen(shown: Browser, files: dict[str, Path]) -> None:
    shown.open(files["gate"], width=1024)
    usual = picture(shown, 1024)
    assert apart(shown, usual, usual) == 0
    for change in ("td:nth-child(3) { visibility: hidden }", "body { font-size: 17px }"):
        shown.open(files["gate"], width=1024)
        page = files["gate"].read_text()
        changed_page = files["gate"].with_name("changed.html")
        changed_page.write_text(page.replace("</style>", f"{change}</style>").replace("Content-Security-Policy", "x"))
        shown.open(changed_page, width=1024)
        assert apart(shown, usual, picture(shown, 1024)) > SHARE
