"""Takes screenshots of reports for the docs: ``python -m scripts.screenshots [--look] NAME=FOLDER ...``.

Each FOLDER contains the report.html of a run, such as from ``perfflow run workflows/NAME.yaml --out FOLDER``. The top
of the page is written to docs/images/NAME-light.webp and NAME-dark.webp, 1024 pixels wide. With --look, the whole page
is written to FOLDER instead, as PNG files 360, 1024 and 1440 pixels wide, to review changes of the page.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from tests.report.browser import Browser, browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HIGHEST = 1024, 1600
"""Width and largest height of a picture in the docs, in pixels."""
WIDTHS = (360, 1024, 1440)
QUALITY = 55
"""WebP quality, 0 to 100: text is sharp, and every picture is smaller than 100 kB."""
THEMES = {"light": False, "dark": True}


def main(words: list[str]) -> None:
    """Take the screenshots given on the command line."""
    looking = "--look" in words
    named = [word.partition("=") for word in words if word != "--look"]
    if not named or not all(folder for _, _, folder in named):
        sys.exit(f"{__doc__}")
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as found:
        for name, _, folder in named:
            page = Path(folder).resolve() / "report.html"
            for theme, dark in THEMES.items():
                if looking:
                    _whole(found, page, theme, dark=dark)
                else:
                    _top(found, page, IMAGES / f"{name}-{theme}.webp", dark=dark)


def _whole(found: Browser, page: Path, theme: str, *, dark: bool) -> None:
    for width in WIDTHS:
        found.open(page, width=width, dark=dark)
        found.screenshot(page.with_name(f"report-{width}-{theme}.png"))


def _top(found: Browser, page: Path, picture: Path, *, dark: bool) -> None:
    found.open(page, width=WIDTH, dark=dark)
    high = min(HIGHEST, found.run("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": high, "scale": 1}
    found.call("Emulation.setScrollbarsHidden", hidden=True)
    taken = found.call("Page.captureScreenshot", format="webp", quality=QUALITY, clip=clip, captureBeyondViewport=True)
    picture.parent.mkdir(exist_ok=True)
    picture.write_bytes(base64.b64decode(taken["data"]))
    print(f"{picture.relative_to(Path.cwd())}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
