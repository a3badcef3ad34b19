"""The order of a history's revisions follows the commit graph, and git walks no more of it than needed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from perfflow.jobs.history.trends import commit_order
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
