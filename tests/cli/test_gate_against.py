"""``perfflow gate --against best-Nd``: the history of this machine chooses the base, which is measured again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import past
from tests.cli.past import gate, remember
from tests.cli.shell import perfflow
from tests.repositories import git

TWO = past.NOISY + past.NOISY.splitlines()[-1].replace("id: cost", "id: other") + "\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return past.place(tmp_path, monkeypatch)


def chosen(root: Path, *words: str) -> tuple[str, str]:
    """Return the short id of the base that a gate would use, and the messages about it."""
    done = gate(root, *words, "--dry-run")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    found = re.search(r"note: base: ([0-9a-f]{12}), the best of ", said)
    assert found, said
    return found[1], said


def short(revisions: Iterable[str]) -> list[str]:
    return [revision[:12] for revision in revisions]


def test_a_slow_drift_that_each_gate_lets_pass_fails_against_the_best(root: Path) -> None:
    costs = [1000, 1040, 1080, 1120, 1160]
    commits = past.make(root, costs)
    for commit in commits:
        git(root, "checkout", "-q", commit)
        assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    assert gate(root, "--base", "HEAD~1").returncode == 0
    done = gate(root, "--against", "best-30d")
    assert done.returncode == 1, done.stderr
    said = f"base: {commits[0][:12]}, the best of 5 revisions of the last 30 days in this machine's history"
    assert f"note: {said}" in done.stderr
    assert "cost instructions was 1000 on " in done.stderr
    assert "0 days and 4 commits back, and the level is 16.0% worse now" in " ".join(done.stderr.split())
    assert said in " ".join(done.stdout.split())
    found = past.result_of(root)
    base = found["trees"]["baseline"]
    assert (base["revision"], base["name"]) == (commits[0], "best-30d")
    assert (base["best"]["benchmark"], base["best"]["value"], base["best"]["commits"]) == ("cost", 1000, 4)
    # The command to repeat it names the revision, which does not change.
    assert found["run"]["command"] == ["perfflow", "gate", "flow.yaml", f"--base={commits[0]}"]
    (row,) = found["benchmarks"]
    assert (row["baseline"]["value"], row["candidate"]["value"]) == (1000, 1160)


DRIFT = {"cost": [100, 105, 105, 105]}
LUCKY = {"cost": [120, 119, 121, 90, 120, 121, 119, 110, 109, 108, 110, 112]}
"""The fourth was lucky; the level was best around the third to last."""
LOST = {"cost": [*[100] * 3, 103, *[104] * 8], "other": [*[110] * 3, *[100] * 5, *[112] * 4]}
UNSTEADY = {
    "cost": [100, 100, 101, 101, 102, 103, 104, 105, 106, 107, 107, 108],
    "other": [100, 140, 90, 135, 95, 130, 100, 150, 90, 140, 130, 150],
}
HIGHER = {"cost": [100, 120, 120, 121, 110, 110]}
AGO = {"ago": [9, 4, 3, 2]}
CHOOSES = "1 of 2 benchmarks were best at another revision, and other has lost most since its best"


@pytest.mark.parametrize(
    ("values", "kept", "words", "bases", "said"),
    [
        pytest.param(DRIFT, AGO, "best-5d", {1, 2}, "", id="of-five-days"),
        pytest.param(DRIFT, AGO, "best-10d", {0}, "", id="of-ten-days"),
        pytest.param(LUCKY, {"width": 0.02}, "best-30d", {7, 8, 9, 10}, "", id="best-level-and-not-luckiest-value"),
        pytest.param(LOST, {}, "best-30d", {7}, "other cost was 100 on ", id="benchmark-that-lost-most"),
        pytest.param(LOST, {}, "best-30d", {7}, CHOOSES, id="why-this-benchmark-chooses"),
        pytest.param(LOST, {}, "best-30d --only cost", {2}, "", id="only-selected-benchmarks-choose"),
        pytest.param(UNSTEADY, {}, "best-30d", {0}, ": cost cost was 100 on ", id="noise-is-no-loss"),
        pytest.param(HIGHER, {"better": "higher"}, "best-30d", {3}, "cost cost was 121 on ", id="more-is-better"),
        pytest.param(HIGHER, {"better": "higher"}, "best-30d", {3}, "level is 9.1% worse now", id="how-much-was-lost"),
    ],
)
def test_the_base_is_the_revision_with_the_best_level(
    root: Path, values: dict[str, list[float | None]], kept: dict[str, Any], words: str, bases: set[int], said: str
) -> None:
    flow = (TWO if "other" in values else past.NOISY).replace("cost: lower", f"cost: {kept.get('better', 'lower')}")
    commits = past.make(root, range(len(values["cost"])), flow)
    remember(root, commits, values, **kept)
    revision, shown = chosen(root, "--against", *words.split())
    assert revision in short(commits[number] for number in bases)
    assert said in shown


def test_what_is_no_value_of_this_machine_or_of_a_commit_of_head_does_not_count(root: Path) -> None:
    commits = past.make(root, [100, 104, 108, 110], past.NOISY)
    git(root, "branch", "side", "HEAD~2")
    git(root, "checkout", "-q", "side")
    aside = past.commit(root, costs="50\n")
    git(root, "checkout", "-q", "main")
    remember(root, commits, {"cost": [104, 104, 108, 110]})
    remember(root, [commits[2]], {"cost": [10]}, machine="another")
    remember(root, [aside], {"cost": [50]})
    remember(root, ["f" * 40], {"cost": [20]})
    remember(root, [commits[2]], {"cost": [30]}, dirty=True, ago=[0.5])
    assert chosen(root, "--against", "best-30d")[0] in short(commits[:2])


def test_head_is_never_its_own_base(root: Path) -> None:
    commits = past.make(root, [100, 90], past.NOISY)
    remember(root, commits, {"cost": [100, 90]})
    assert chosen(root, "--against", "best-30d")[0] == commits[0][:12]
    # With uncommitted changes, its commit is not the measured code.
    (root / "costs").write_text("95\n")
    assert chosen(root, "--against", "best-30d")[0] == commits[1][:12]
    assert chosen(root, "--against", "best-30d", "--head", "HEAD")[0] == commits[0][:12]


def test_the_history_of_a_clone_that_was_cut_off(root: Path) -> None:
    commits = past.make(root, [100, 104, 108])
    shallow = root.parent / "shallow"
    git(root.parent, "clone", "-q", "--depth", "2", f"file://{root}", "shallow")
    remember(shallow, commits, {"cost": [100, 104, 108]}, exact=True)
    done = gate(shallow, "--against", "best-30d")
    assert done.returncode == 2
    assert f"{commits[0][:12]}, is not in this shallow clone" in done.stderr
    assert "git fetch --unshallow" in done.stderr
    git(shallow, "fetch", "-q", "--unshallow")
    assert gate(shallow, "--against", "best-30d").returncode == 0


def test_nothing_but_head_or_other_machines(root: Path) -> None:
    commits = past.make(root, [100, 104])
    remember(root, commits, {"cost": [100, 104]}, machine="another", exact=True)
    assert "values of other machines are never compared" in gate(root, "--against", "best-30d").stderr
    remember(root, commits[1:], {"cost": [104]}, exact=True)
    done = gate(root, "--against", "best-30d")
    assert done.returncode == 2
    assert "only for the code of head" in done.stderr


def test_a_gate_that_was_interrupted_goes_on_with_its_base(root: Path) -> None:
    commits = past.make(root, [100, 104, 104])
    remember(root, commits, {"cost": [100, 104, 104]}, exact=True)
    assert gate(root, "--against", "best-30d").returncode == 0
    for words in (["--against", "best-30d"], ["--base", commits[0]], []):
        done = gate(root, *words, "--resume")
        assert done.returncode == 0, done.stderr
    assert gate(root, "--base", commits[1], "--resume").returncode == 2
