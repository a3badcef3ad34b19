"""``perfflow gate --against best-Nd``: the history of this machine chooses the base, which is measured again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

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


def test_only_the_last_days_count(root: Path) -> None:
    commits = past.make(root, [1, 2, 3, 4], past.NOISY)
    remember(root, commits, {"cost": [100, 105, 105, 105]}, ago=[9, 4, 3, 2])
    assert chosen(root, "--against", "best-5d")[0] in short(commits[1:3])
    assert chosen(root, "--against", "best-10d")[0] == commits[0][:12]


def test_the_best_level_counts_and_not_the_luckiest_value(root: Path) -> None:
    commits = past.make(root, range(100, 112), past.NOISY)
    # The fourth was lucky; the level was best around the third to last.
    values = [120, 119, 121, 90, 120, 121, 119, 110, 109, 108, 110, 112]
    remember(root, commits, {"cost": values}, width=0.02)
    assert chosen(root, "--against", "best-30d")[0] in short(commits[7:11])


def test_the_benchmark_that_lost_most_since_its_best_chooses(root: Path) -> None:
    commits = past.make(root, range(100, 112), TWO)
    values = {"cost": [*[100] * 3, 103, *[104] * 8], "other": [*[110] * 3, *[100] * 5, *[112] * 4]}
    remember(root, commits, values)
    _, said = chosen(root, "--against", "best-30d")
    assert "other cost was 100 on " in said
    assert "1 of 2 benchmarks were best at another revision, and other has lost most since its best" in said
    # Without the step of one benchmark, the other one chooses.
    assert chosen(root, "--against", "best-30d", "--only", "cost")[0] == commits[2][:12]


def test_noise_is_no_loss(root: Path) -> None:
    flow = TWO.replace("other", "noisy")
    commits = past.make(root, range(100, 112), flow)
    noisy = [100, 140, 90, 135, 95, 130, 100, 150, 90, 140, 130, 150]
    steady = [100, 100, 101, 101, 102, 103, 104, 105, 106, 107, 107, 108]
    remember(root, commits, {"noisy": noisy, "cost": steady})
    assert ": cost cost was 100 on " in chosen(root, "--against", "best-30d")[1]


def test_more_is_better_where_the_metric_says_so(root: Path) -> None:
    commits = past.make(root, [100, 120, 120, 121, 110, 110], past.NOISY.replace("cost: lower", "cost: higher"))
    remember(root, commits, {"cost": [100, 120, 120, 121, 110, 110]}, better="higher")
    revision, said = chosen(root, "--against", "best-30d")
    assert revision == commits[3][:12]
    assert "cost cost was 121 on " in said
    assert "and the level is 9.1% worse now" in said


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--against", "best"], "is not best-Nd"),
        (["--against", "best-0d"], "write --against best-30d"),
        (["--against", "best-30d", "--base", "main"], "leave out all but one"),
        (["--against", "best-30d"], "the history has no value of costs from the last 30 days, by this machine"),
        (["--against", "best-30d", "--dry-run"], "`perfflow run` adds values"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(words: list[str], says: str, root: Path) -> None:
    past.make(root, [100, 104])
    done = gate(root, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "hint: " in done.stderr


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
