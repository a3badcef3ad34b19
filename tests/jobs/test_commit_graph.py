"""The order of a history's revisions follows the commit graph, and git walks no more of it than needed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perfflow.jobs.bisect.bisect import Search, Trials
from perfflow.jobs.history.trends import commit_order
from perfflow.model.criteria import Criteria
from perfflow.store import run_folder
from perfflow.trees.line_history import BisectionCandidate, described
from perfflow.trees.repository import open_repository
from perfflow.verdict.bisection import Holds, JudgedRevision
from tests.repositories import git

_DAY = 86_400


def _repository(root: Path, days: Sequence[float]) -> list[str]:
    """Create one commit for each day in ``days``; return their ids, oldest first."""
    git(root, "init", "-q", "-b", "main")
    dates = [1_700_000_000 + int(day * _DAY) for day in days]
    stream = [
        f"commit refs/heads/main\nmark :{number + 1}\ncommitter A <a@example.org> {date} +0000\n"
        "data 1\nx\n"
        + (f"from :{number}\n" if number else "")
        + f"M 100644 inline f\ndata {len(str(number))}\n{number}\n"
        for number, date in enumerate(dates)
    ]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input="".join(stream), text=True, check=True)
    return git(root, "rev-list", "--reverse", "main").split()


def test_parents_come_first_and_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    commits = _repository(tmp_path, range(20))
    wanted = [commits[3], commits[17], commits[9]]
    random.Random(1).shuffle(wanted)
    order = commit_order(tmp_path, [*wanted, "f" * 40, commits[4][:12], "--all", "^main", ""])
    assert sorted(order, key=order.__getitem__) == [commits[3], commits[9], commits[17]]
    assert commit_order(tmp_path, []) == {}
    assert commit_order(tmp_path / "none", wanted) == {}


def test_commits_older_than_the_oldest_are_not_walked(tmp_path: Path) -> None:
    """The first commit is deleted, so that walking the whole history fails."""
    # Two of the requested commits have dates in the opposite order.
    commits = _repository(tmp_path, [*range(25), 25.5, 25.2, *range(27, 30)])
    first = commits[0]
    (tmp_path / ".git/objects" / first[:2] / first[2:]).unlink()
    whole = subprocess.run(["git", "rev-list", "main"], cwd=tmp_path, capture_output=True, check=False)
    assert whole.returncode != 0
    order = commit_order(tmp_path, commits[20:])
    assert sorted(order, key=order.__getitem__) == commits[20:]


def test_clocks_that_go_backwards_change_nothing(tmp_path: Path) -> None:
    commits = _repository(tmp_path, [0, 1, 2, 30, 31, 4, 5, 40])
    order = commit_order(tmp_path, [commits[7], commits[2], commits[5], commits[3]])
    assert sorted(order, key=order.__getitem__) == [commits[2], commits[3], commits[5], commits[7]]
    # The limit is the date of the fifth commit. Its younger ancestors are only found by walking the whole graph.
    order = commit_order(tmp_path, [commits[5], commits[4], commits[3]])
    assert sorted(order, key=order.__getitem__) == [commits[3], commits[4], commits[5]]


def order(bad: str, good: Sequence[str]) -> list[BisectionCandidate]:
    """Return the order of git for a linear history with numbered commits."""
    first, last = max(map(int, good)) + 1, int(bad)
    count = last - first + 1
    found = [BisectionCandidate(str(n), min(n - first + 1, last - n)) for n in range(first, last + 1)]
    assert count == len(found)
    return sorted(found, key=lambda item: (-item.distance, int(item.commit)))


def walked(count: int, told: Callable[[int], Holds]) -> tuple[Search, list[Holds]]:
    search = Search(order, str(count), ["0"])
    heard = []
    while (commit := search.next()) is not None:
        heard.append(told(int(commit)))
        search.learn(commit, heard[-1])
    return search, heard


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40, 64])
def test_every_commit_is_found_in_the_fewest_tries(count: int) -> None:
    for first in range(1, count + 1):
        search, heard = walked(count, lambda n, first=first: Holds.YES if n >= first else Holds.NO)  # type: ignore[misc]
        assert search.left() == [str(first)]
        assert len(heard) <= (count - 1).bit_length()


def test_what_cannot_be_tried_costs_no_further_tries_in_a_history_with_room() -> None:
    chance = random.Random(5)
    for _ in range(200):
        first = chance.randint(1, 40)
        start = chance.randint(1, 39)
        broken = set(range(start, min(start + chance.randint(1, 6), first)))

        def told(n: int, first: int = first, broken: set[int] = broken) -> Holds:
            return Holds.SKIPPED if n in broken else Holds.YES if n >= first else Holds.NO

        search, heard = walked(40, told)
        left = set(map(int, search.left()))
        assert first in left
        # The other remaining commits are those right before it, which cannot be tried.
        assert left - {first} <= broken
        assert sum(what is not Holds.SKIPPED for what in heard) <= 8


def test_where_all_is_unproven_everything_is_left() -> None:
    search, heard = walked(9, lambda _: Holds.UNPROVEN)
    assert len(search.left()) == 9
    assert len(heard) == 8


def test_after_what_cannot_be_tried_the_next_one_is_some_way_off() -> None:
    search = Search(order, "40", ["0"])
    tried = []
    for _ in range(4):
        commit = search.next()
        assert commit is not None
        tried.append(int(commit))
        search.learn(commit, Holds.SKIPPED)
    assert abs(tried[3] - tried[0]) > 3


def test_what_is_noted_is_what_a_stored_bisection_says(tmp_path: Path) -> None:
    """Otherwise a page made later would have other figures: 0.05004 s is 0.1 s, and 0.05 s is 0.0 s."""
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        git(tmp_path, *words)
    with run_folder.create(tmp_path, None) as opened:
        told: list[JudgedRevision] = []
        repository = open_repository(tmp_path)
        trials = Trials(opened, repository, Criteria(), told.append)
        noted = trials.note(
            JudgedRevision(described(repository, git(tmp_path, "rev-parse", "HEAD").strip()), Holds.NO, seconds=0.05004)
        )
        (event,) = run_folder.events(opened.path)
    assert event["seconds"] == noted.seconds == told[0].seconds == 0.05
