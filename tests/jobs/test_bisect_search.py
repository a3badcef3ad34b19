"""The search alone, on a linear history: which commit is tried next, and how many tries are needed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perfflow.jobs.bisect.bisect import Search, Trials
from perfflow.model.criteria import Criteria
from perfflow.store import run_folder
from perfflow.trees.line_history import BisectionCandidate, described
from perfflow.trees.repository import open_repository
from perfflow.verdict.bisection import Holds, JudgedRevision
from tests.repositories import git


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
