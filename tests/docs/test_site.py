"""The documentation builds as a site in strict mode, and reads well in a browser, offline and in any window."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.recipes import run
from tests.docs.test_documents import copy_of_the_tree
from tests.long import rest_long
from tests.report.browser import PATIENCE, Browser
from tests.report.test_page_in_browser import AXE

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "pymdownx")),
    reason="the extra docs is not installed: sh scripts/install docs",
)

HEAD = r"| `option \| other` "
ODD = f"""# Odd

{HEAD * 12}|
|{"---|" * 12}
|{" 1,234,567 of 7,654,321 |" * 12}

| key | what it is |
|---|---|
| `{"aNameOf" * 20}` | `{"/folder" * 30}` and a sentence, as the [README](../README.md) has them |
"""
"""A page whose tables are hard to fit into a window."""
LOADED = re.compile(r"""(?:src=|<link[^>]*href=|url\(|@import )["']?((?:https?:)?//[^"')]+)""")
"""What a page or a style sheet has a browser load from another host."""
BANNER = re.compile(r'<aside class="md-banner">.*?<a href="(?P<page>[^"#]+)(?:#(?P<heading>[^"]+))?"', re.DOTALL)
TOO_WIDE = """[...document.querySelectorAll('.md-content table')].filter((table) => {
  const column = table.closest('.md-content__inner').getBoundingClientRect();
  return table.getBoundingClientRect().right > column.right || table.scrollWidth > table.clientWidth + 1;
}).map((table) => table.innerText.slice(0, 80))"""


def built(tree: Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "mkdocs", "build", "--strict"], tree)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_tree(tmp_path_factory.mktemp("site") / "perfflow")


@pytest.fixture(scope="module")
def site(tree: Path) -> Path:
    """The built site, with an odd page."""
    odd = tree / "docs" / "odd.md"
    odd.write_text(ODD)
    done = built(tree)
    odd.unlink()
    assert done.returncode == 0, done.stderr
    return (tree / "site").rename(tree.with_name("built"))


def pages(site: Path) -> list[Path]:
    """All pages but the one that a server shows in place of a missing one: its links begin at the server's root."""
    found = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(found) > 10
    return found


def test_files_outside_the_site_are_named_and_not_linked(site: Path) -> None:
    for page in pages(site):
        links = re.findall(r'<a [^>]*href="(?!https:)([^"#?]+)', page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == [], page
    assert any("</code> in the repository" in page.read_text() for page in pages(site))


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    for file in [*pages(site), *site.rglob("*.css")]:
        assert LOADED.findall(file.read_text()) == [], file


def test_the_installation_is_one_click_away_from_every_page(site: Path) -> None:
    for page in pages(site):
        link = BANNER.search(page.read_text())
        assert link, page
        installation = (page.parent / link["page"]).read_text()
        assert "pip install" in re.sub("<[^>]+>", "", installation)
        assert f'id="{link["heading"] or ""}' in installation


def test_code_is_highlighted_and_a_bar_in_a_cell_is_no_escape(site: Path) -> None:
    assert '<span class="nt">perfflow</span>' in "".join(page.read_text() for page in pages(site))
    assert '<code data-whole="">option | other</code>' in (site / "odd.html").read_text()


def test_no_table_is_wider_than_its_column(shown: Browser, site: Path) -> None:
    # The scripts of the theme only put a box around each table, and take most of the time.
    for page, scripts in [(site / "odd.html", True), *((page, False) for page in pages(site))]:
        shown.open(page, width=400, scripts=scripts)
        assert shown.run("document.querySelector('.md-typeset__table') !== null") == scripts
        assert shown.run(TOO_WIDE) == [], (page, 400)
        assert shown.run("document.scrollingElement.scrollWidth") <= 400, page
        shown.call("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
        assert shown.run(TOO_WIDE) == [], (page, 1200)


def test_a_table_that_does_not_fit_is_found(shown: Browser, site: Path) -> None:
    shown.open(site / "odd.html", width=400)
    shown.run("document.querySelector('td').style.minWidth = '500px'")
    assert len(shown.run(TOO_WIDE)) == 1


def test_the_site_is_dark_where_the_system_is(shown: Browser, site: Path) -> None:
    seen = []
    for dark in (False, True):
        shown.open(site / "index.html", dark=dark)
        colour = shown.run("getComputedStyle(document.body).backgroundColor")
        seen.append(sum(map(int, re.findall(r"\d+", colour)[:3])))
    assert seen[0] > 3 * 200 > 3 * 80 > seen[1]


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (sh scripts/install tools,dev, with npm)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(shown: Browser, site: Path, dark: bool) -> None:
    for name in ("index", "readme", "how-to/gate", "how-to/questions", "reference/tools/rust"):
        shown.open(site / f"{name}.html", dark=dark)
        shown.run(AXE.read_text() + "; 0")
        found = json.loads(shown.run("axe.run({preload: false}).then((found) => JSON.stringify(found.violations))"))
        assert [(item["id"], [node["html"] for node in item["nodes"]][:3]) for item in found] == [], name


def test_the_search_needs_no_server(shown: Browser, site: Path) -> None:
    shown.open(site / "odd.html")
    shown.run("document.querySelector('[data-md-component=search-query]').focus()")
    shown.press("flame graph")
    best = ""
    until = time.monotonic() + PATIENCE
    while "flame graph" not in best:  # it also answers for the letters typed so far
        assert time.monotonic() < until, "the search finds nothing"
        best = shown.run("document.querySelector('.md-search-result__item')?.innerText.toLowerCase() ?? ''")


@pytest.mark.parametrize(
    ("link", "said"),
    rest_long(
        [
            ("[gone](gone.md)", "gone.md"),
            ("[gone](tutorial/quick-start.md#no-such-heading)", "no-such-heading"),
            ("[gone](../workflows/gone.yaml)", "gone.yaml"),
        ]
    ),
)
def test_a_broken_link_fails(link: str, said: str, tree: Path) -> None:
    page = tree / "docs" / "index.md"
    whole = page.read_text()
    page.write_text(f"{whole}\n{link}\n")
    done = built(tree)
    page.write_text(whole)
    assert done.returncode != 0
    assert said in done.stderr
