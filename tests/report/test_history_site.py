"""The pages of a history: links have targets, and no name can run or load anything."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from perfflow.jobs.history import site
from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.trends import HistoryFilter
from perfflow.model.errors import UserError
from perfflow.report.history_tables import ChangeRow, Followed, Shift
from perfflow.report.html.history_site import path_of as site_path
from perfflow.report.table import Tone
from perfflow.store.history.summary import RunSummary
from tests.report.histories import a_point, a_series, changed, quiet
from tests.report.histories import site as site_of
from tests.report.results import HOSTILE
from tests.report.test_html import checked
from tests.store.history.summaries import summary


def _silent(text: str) -> None:
    pytest.fail(text)


def stored(folder: Path, *summaries: RunSummary) -> Path:
    """Keep runs in the history of a folder."""
    with opened(folder, _silent) as history:
        history.add(summaries)
    return folder


def build(folder: Path, name: str = "site", **asked: str) -> int:
    return site.build(folder, folder / name, HistoryFilter(**asked), _silent)  # type: ignore[arg-type]


def test_an_index_and_a_page_for_each_benchmark() -> None:
    pages = site_of("project", [changed("parse/a b", 80), quiet("parse a/b"), quiet("write", 1)])
    assert len(pages) == 5
    index = pages["index.html"]
    links = re.findall(r'<a href="((?:benchmarks|changes)/[^"]+)"', index)
    assert set(links) == set(pages) - {"index.html"}
    assert "+20.0% since 2026-03-05" in index
    (page,) = (text for path, text in pages.items() if path.startswith("benchmarks/parse-a-b") and "aaa..bbb" in text)
    assert 'href="../index.html"' in page
    assert "changed by +20.0%" in page
    assert "perfflow bisect w --good aaa --bad bbb" in page


def test_there_is_a_column_of_remarks_only_if_there_are_any() -> None:
    assert "Remark" not in site_of("project", [changed("parse", 80)])["index.html"]
    noisy = replace(changed("parse", 80), is_flaky=True)
    assert "Remark" in site_of("project", [noisy])["index.html"]
    assert site_of("project", [noisy]) == site_of("project", [noisy])


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_a_page(name: str) -> None:
    for path, text in site_of(name, [changed(name, 12), quiet("other")]).items():
        assert re.fullmatch(r"[A-Za-z0-9./-]+", path), path
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in path
        checked(text, links=r"\.\./index\.html|(\.\./)?(benchmarks|changes)/[A-Za-z0-9-]+\.html")


def test_an_empty_history_has_an_index() -> None:
    ((path, text),) = site_of("p", []).items()
    assert path == "index.html"
    assert "No run is stored yet" in text


def test_a_folder_is_written_again_and_another_is_left_alone(tmp_path: Path) -> None:
    assert build(stored(tmp_path, summary(1), summary(2))) == 3
    pages = tmp_path / "site" / "benchmarks"
    mine, thesis = pages / "mine.html", tmp_path / "other" / "thesis.html"
    thesis.parent.mkdir()
    for own in (mine, thesis):
        own.write_text("x")
    before = sorted(pages.iterdir())
    assert len(before) == 3
    assert build(tmp_path, benchmark="b0") == 2
    (left,) = (path for path in pages.iterdir() if path != mine)
    assert left in before
    with pytest.raises(UserError, match="the folder has other files"):
        build(tmp_path, "other")
    assert mine.read_text() == thesis.read_text() == "x"


def test_what_changed_at_one_commit_is_on_one_page(tmp_path: Path) -> None:
    """Two series change at the same commit; the page goes when the change is no longer in the history."""
    noise = [0.002 * ((number * 7) % 5) for number in range(28)]
    stored(
        tmp_path,
        *(summary(n, (1.0 if n < 14 else 1.5) + noise[n], started=f"2026-01-{n + 1:02}T00:00:00Z") for n in range(28)),
    )
    assert build(tmp_path) == 4
    (page,) = (tmp_path / "site" / "changes").iterdir()
    text = page.read_text()
    assert set(re.findall(r'href="\.\./(benchmarks/b\d)-', text)) == {"benchmarks/b0", "benchmarks/b1"}
    for name in ("index.html", *(f"benchmarks/{path.name}" for path in (tmp_path / "site" / "benchmarks").iterdir())):
        assert f"changes/{page.name}" in (tmp_path / "site" / name).read_text()
    for link in re.findall(r'href="([^"#]+)"', text):
        assert (page.parent / link).is_file()
    assert build(tmp_path, metric="rss") == 1
    assert list((tmp_path / "site" / "changes").iterdir()) == []


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://token:secret@example.org/owner/name.git", "https://example.org/owner/name/commit/"),
        ("git@example.org:owner/name.git", "https://example.org/owner/name/commit/"),
        ("ssh://git@example.org:2222/group/owner/name", "https://example.org/group/owner/name/commit/"),
        ("../elsewhere", ""),
        ("file:///srv/name.git", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_commits_are_links_to_the_pages_of_the_remote(tmp_path: Path, remote: str, address: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", remote], check=True)
    build(stored(tmp_path, summary(1), summary(2)))
    page = next((tmp_path / "site" / "benchmarks").iterdir()).read_text()
    wanted = [f"{address}{number:040x}" for number in (2, 1)] if address else []
    assert re.findall(r'href="([^"#.][^"]*)"', page) == wanted


def test_a_slow_drift_is_a_sloped_line_and_a_remark() -> None:
    points = [a_point(at, 1.0 + 0.01 * at) for at in range(40)]
    series, shift = a_series("drifts"), Shift(0.2, "2026-01-11T03:00:00Z", "d" * 40, Tone.BAD)
    row = ChangeRow(series, 1.1, 1.3, (0.2, 0.2, 0.2), shift, "slow drift", "", "")
    drift = Followed(series, points, [10], [row], [(0, 10, 1.05)], is_flaky=False, drifts=[(10, 30, 1.1, 1.3)])
    pages = site_of("p", [drift])
    ((left, foot, right, top),) = re.findall(
        r'class="drift" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', pages[site_path("drifts")]
    )
    assert float(left) < float(right)
    assert float(foot) > float(top)
    assert "slow drift" in pages["index.html"]


def test_many_pages_made_by_several_processes_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path, *(summary(number, 1.0 + number, benchmarks=2 * site.FEWEST) for number in range(3)))
    for name, processors in (("one", {0}), ("two", {0, 1})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, processors=processors: processors)
        assert build(tmp_path, name) == 2 * site.FEWEST + 1
    one, two = (sorted((tmp_path / name).rglob("*.html")) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    # A page that another process cannot write is told.
    page = next((tmp_path / "two" / "benchmarks").iterdir())
    page.unlink()
    page.mkdir()
    with pytest.raises(UserError, match="cannot write"):
        build(tmp_path, "two")


def test_each_point_and_interval_is_drawn_where_it_belongs() -> None:
    """All points are one path; its segments start at the heights of the values, in order."""
    page = site_of("p", [quiet(points=3)])[site_path("write")]
    (dots,) = re.findall(r'<path class="dots" d="([^"]+)"', page)
    (error,) = re.findall(r'<path class="error" d="([^"]+)"', page)
    places = [tuple(map(float, pair)) for pair in re.findall(r"M([\d.]+) ([\d.]+)h", dots)]
    ends = [tuple(map(float, each)) for each in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", error)]
    assert [x for x, _ in places] == [x for x, _, _ in ends] == sorted(x for x, _ in places)
    assert len(places) == 3
    assert all(low > y > high for (_, y), (_, low, high) in zip(places, ends, strict=True))
