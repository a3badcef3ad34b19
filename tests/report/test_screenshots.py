"""Pages look as before: coarse screenshots are compared with stored ones, if the installed fonts are the same."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.report.html import document
from perfflow.report.html.history_site import render_index
from perfflow.store.sample_order import TakingOrder
from tests.report.browser import Browser
from tests.report.gated import gated
from tests.report.histories import changed, quiet
from tests.report.results import everything

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not on PATH")
STORED = Path(__file__).parent / "golden" / "screens"
PROBE = STORED / "letters.json"
PAGES: dict[str, Callable[[], str]] = {
    "run": lambda: document.render(everything(), TakingOrder({})),
    "gate": lambda: document.render(gated(), TakingOrder({})),
    "history": lambda: render_index("project", [changed(), quiet()])[1],
}
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


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, render in PAGES.items():
        (folder / f"{name}.html").write_text(render())
    return {name: folder / f"{name}.html" for name in PAGES}


def picture(shown: Browser, width: int) -> bytes:
    """Return a small screenshot of the page."""
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
@pytest.mark.parametrize("name", PAGES)
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
