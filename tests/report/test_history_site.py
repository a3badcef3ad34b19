"""The pages of a history: that their links lead somewhere, and that no name can run or load anything."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from perfflow.jobs.history import site
from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.trends import Asked
from perfflow.model.errors import UserError
from perfflow.report.html.document import render_site
from tests.report.histories import changed, quiet
from tests.report.results import HOSTILE
from tests.report.test_html import checked
from tests.store.history.test_database import summary


def _silent(text: str) -> None:
    pytest.fail(text)


def test_an_index_and_a_page_for_each_benchmark() -> None:
    pages = dict(render_site("project", [changed("parse/a b", 80), quiet("parse a/b"), quiet("write", 1)]))
    assert len(pages) == 4
    index = pages["index.html"]
    links = re.findall(r'<a href="(benchmarks/[^"]+)"', index)
    assert sorted(links) == sorted(set(pages) - {"index.html"})
    assert "+20.0% since 2026-03-05" in index
    (page,) = (text for path, text in pages.items() if path.startswith("benchmarks/parse-a-b") and "aaa..bbb" in text)
    assert 'href="../index.html"' in page
    assert "changed by +20.0%" in page
    assert "perfflow bisect w --good aaa --bad bbb" in page


def test_the_same_history_gives_the_same_bytes() -> None:
    assert list(render_site("p", [changed(), quiet()])) == list(render_site("p", [changed(), quiet()]))


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_a_page(name: str) -> None:
    for path, text in render_site(name, [changed(name, 12), quiet("other")]):
        assert re.fullmatch(r"[A-Za-z0-9./-]+", path), path
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in path
        checked(text, links=r"\.\./index\.html|benchmarks/[A-Za-z0-9-]+\.html")


def test_an_empty_history_has_an_index() -> None:
    ((path, text),) = render_site("p", [])
    assert path == "index.html"
    assert "No run is stored yet" in text


def test_a_folder_is_written_again_and_another_is_left_alone(tmp_path: Path) -> None:
    with opened(tmp_path, _silent) as history:
        history.add([summary(1), summary(2)])
    assert site.build(tmp_path, tmp_path / "site", Asked(), _silent) == 3
    (tmp_path / "site" / "benchmarks" / "gone.html").write_text("of a benchmark that is no more")
    assert site.build(tmp_path, tmp_path / "site", Asked(), _silent) == 3
    assert not (tmp_path / "site" / "benchmarks" / "gone.html").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.html").write_text("x")
    with pytest.raises(UserError, match="holds something else"):
        site.build(tmp_path, tmp_path / "mine", Asked(), _silent)
    assert (tmp_path / "mine" / "thesis.html").read_text() == "x"
