"""The documentation builds as a site in strict mode: each link and each anchor leads somewhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.recipes import run
from tests.docs.test_documents import copy_of_the_tree
from tests.long import rest_long

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="the extra docs is not installed: sh scripts/install docs"
)


def built(tree: Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "mkdocs", "build", "--strict"], tree)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_tree(tmp_path_factory.mktemp("site") / "perfflow")


def test_the_site_is_built(tree: Path) -> None:
    done = built(tree)
    assert done.returncode == 0, done.stderr
    assert (tree / "site" / "reference" / "commands" / "index.html").is_file()
    # What the site does not hold is named with its place, and not linked.
    page = (tree / "site" / "explanation" / "evidence" / "index.html").read_text()
    assert "<code>dev/experiments/referee.md</code> in the repository" in page
    assert 'experiments/referee.md"' not in page


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
