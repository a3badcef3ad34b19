"""The folder of a job: only one worker can claim it, and its result is written atomically."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.jobs.cluster.agent import CLAIM, ENDED, WORK, Builds, JobEnd, JobFolder, JobWork, Worker, environment_of
from perfflow.jobs.cluster.placed_run import own_copies, with_part
from perfflow.plan.groups import Benchmarks, Group, NodeRequirement

WORK_OF = JobWork("/root", "w.yaml", "d", "/source", {"head": "1"}, settings=("token=x",), budget=100)
GROUP = Group("g2", ("build", "b"), NodeRequirement(("x",), gpus=2), 30, {"b": Benchmarks((), ("a",))})


def test_what_is_to_be_done_is_read_as_it_was_written_and_by_the_user_alone(tmp_path: Path) -> None:
    work = with_part(WORK_OF, GROUP)
    folder = JobFolder(tmp_path / "g2" / "2")
    folder.write(work)
    assert folder.work() == work
    assert (work.steps, work.labels, work.gpus) == (("build", "b"), ("x",), 2)
    assert work.budget == 100, "each group has the whole budget"
    assert stat.S_IMODE((folder.path / WORK).stat().st_mode) == 0o600


def test_of_many_one_claims_a_job(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    workers = [Worker(f"n{number}", number) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(folder.claim, workers))

    assert claimed.count(True) == 1
    assert folder.worker() == workers[claimed.index(True)]


def test_what_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    assert (folder.worker(), folder.ended(), folder.last_beat()) == (None, None, None)
    (tmp_path / CLAIM).write_text('{"node": "n')
    (tmp_path / ENDED).write_text("[]")
    assert (folder.worker(), folder.ended()) == (None, None)
    assert folder.last_beat() is not None

    ended = JobEnd("done", Worker("n1", 1), 0, 2.5, machine={"identity": "a"})
    folder.end(ended)

    assert folder.ended() == ended


def test_a_job_sees_its_gpus_its_labels_and_what_the_user_has_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = tmp_path / "own" / "perfflow" / "library"
    (fetched / "item").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    monkeypatch.setenv("PERFFLOW_LABELS", "quiet")
    work = replace(with_part(WORK_OF, GROUP), scratch=str(tmp_path / "scratch"))

    for _ in range(2):
        seen = environment_of(work)

    assert (seen["CUDA_VISIBLE_DEVICES"], seen["PERFFLOW_LABELS"]) == ("4,5", "quiet x")
    lent = Path(seen["XDG_CACHE_HOME"]) / "perfflow" / "library"
    assert seen["XDG_CACHE_HOME"].startswith(work.scratch)
    assert (lent / "item").is_dir()


@pytest.mark.parametrize("kind", ["owner", "writable", "link"])
def test_a_job_ends_without_starting_if_others_can_change_its_scratch_folder(tmp_path: Path, kind: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    mine = shared / f"perfflow-{os.getuid()}"
    if kind == "writable":
        mine.mkdir()
        mine.chmod(0o777)
    elif os.geteuid():
        pytest.skip("only root can give a folder to another user")
    elif kind == "owner":
        mine.mkdir(0o700)
        os.chown(mine, 65534, 65534)
    else:
        (tmp_path / "elsewhere").mkdir()
        mine.symlink_to(tmp_path / "elsewhere")
        os.chown(mine, 65534, 65534, follow_symlinks=False)
    job = JobFolder(tmp_path / "job")
    job.write(replace(with_part(WORK_OF, GROUP), scratch=str(shared)))

    argv = [sys.executable, "-P", "-m", "perfflow.jobs.cluster.agent", str(job.path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    ended = job.ended()
    assert ended is not None, done.stderr
    assert (ended.state, ended.status) == ("done", 3)
    assert f"perfflow-{os.getuid()} is not safe from other users: " in ended.reason
    assert not (job.path / "log").exists()


def test_no_other_user_can_read_the_files_of_a_job(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        job = JobFolder(tmp_path / "group" / "1")
        job.write(WORK_OF)
        copies = own_copies(tmp_path)
    finally:
        os.umask(old)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (job.path, copies)] == [0o700, 0o700]


def test_a_claim_that_another_waiter_made_meanwhile_stays(tmp_path: Path) -> None:
    builds = Builds(JobWork("/root", "w.yaml", "d", str(tmp_path / "source"), {"head": "1"}), tmp_path)
    claim = tmp_path / "builder"
    claim.touch()
    os.utime(claim, (1000, 1000))
    dead = claim.stat().st_mtime
    assert builds._taken_over(claim, dead)
    assert not claim.exists()
    # The other waiter has removed the dead one's claim, too late for this one to see it, and made its own.
    claim.touch()
    assert builds._taken_over(claim, dead)
    assert claim.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["builder"]
    claim.unlink()
    assert builds._taken_over(claim, dead)
