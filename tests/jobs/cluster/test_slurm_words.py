"""The parsing of the output of Slurm's commands. The lines are those of Slurm 22.05 (Debian 12)."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.jobs.cluster.slurm import EngineError, Node, Phase, Site, Slurm, Status, Submission, why_unsuitable
from perfflow.plan.groups import ANYWHERE, NodeRequirement

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a function that puts a fake command on PATH, which stores its arguments and environment and runs a script.

    The tests need outputs of real clusters that a cluster of two nodes does not produce.
    """
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(name: str, script: str) -> Path:
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {path}.words\nenv > {path}.env\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return tmp_path / f"{name}.words"

    return put


def submitted(site: Site, place: NodeRequirement = ANYWHERE) -> str:
    return Slurm(site).submit(Submission(Path("/shared/g 1"), "pf-g1-1", place, 20))


def test_a_job_is_exclusive_has_a_limit_and_is_never_run_again(program: Program) -> None:
    words = program("sbatch", "echo 17")

    assert submitted(Site(engine="slurm", partition="bench", account="perf", options=["--qos=low"])) == "17"

    said = words.read_text().splitlines()
    for word in ("--parsable", "--no-requeue", "--exclusive", "--mem=0", "--qos=low"):
        assert word in said
    assert said[said.index("-t") + 1] == "20"
    assert said[said.index("-p") + 1] == "bench"
    assert said[said.index("-A") + 1] == "perf"
    assert said[said.index("--wrap") + 1].endswith("-P -m perfflow.jobs.cluster.agent '/shared/g 1'")


def test_a_place_becomes_options(program: Program) -> None:
    words = program("sbatch", "echo 17")

    submitted(Site(engine="slurm", exclude=["n9"]), NodeRequirement(("zen4", "bench"), 2, "h100.80gb", exclusive=False))

    said = words.read_text().splitlines()
    assert said[said.index("--constraint") + 1] == "zen4&bench"
    assert said[said.index("--gres") + 1] == "gpu:h100.80gb:2"
    assert said[said.index("--exclude") + 1] == "n9"
    assert "--exclusive" not in said
    submitted(Site(engine="slurm", exclude=["n9"]), NodeRequirement(node="n3"))
    said = words.read_text().splitlines()
    assert said[said.index("--nodelist") + 1] == "n3"
    assert "--exclude" not in said


@pytest.mark.parametrize(
    ("script", "number"),
    [("echo 17", "17"), ("echo '17;cluster'", "17"), ("echo welcome; echo 'quota: 5'; echo '18;c'", "18")],
)
def test_the_number_is_found_behind_what_a_site_prints(program: Program, script: str, number: str) -> None:
    program("sbatch", script)
    assert submitted(Site(engine="slurm")) == number


def test_slurms_own_words_say_why_it_refuses(program: Program) -> None:
    program("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1")
    with pytest.raises(EngineError, match=r"^sbatch: Batch job submission failed: Invalid account$"):
        submitted(Site(engine="slurm"))
    program("sbatch", "echo ok")
    with pytest.raises(EngineError, match="no job number: 'ok'"):
        submitted(Site(engine="slurm"))


def test_inside_a_job_its_limits_are_not_handed_on(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    words = program("sbatch", "echo 17")
    for name in ("SLURM_JOB_ID", "SBATCH_TIMELIMIT", "SLURM_CONF"):
        monkeypatch.setenv(name, "x")

    submitted(Site(engine="slurm", env={"SITE": "y"}))

    environment = words.with_name("sbatch.env").read_text().splitlines()
    assert {"SLURM_CONF=x", "SITE=y"} <= set(environment)
    assert not any(line.startswith(("SLURM_JOB_ID=", "SBATCH_")) for line in environment)


def test_one_question_is_asked_for_all_jobs(program: Program) -> None:
    lines = "1|RUNNING|n1|None\n2|PENDING||Resources\n3|PENDING||BadConstraints\n4|TIMEOUT|n2|TimeLimit"
    words = program("squeue", f"printf '{lines}\\n'")

    found = Slurm(Site(engine="slurm")).poll(["1", "2", "3", "4", "5"])

    assert found == {
        "1": Status(Phase.RUNNING, "n1"),
        "2": Status(Phase.QUEUED, reason="Resources"),
        "3": Status(Phase.QUEUED, reason="BadConstraints", hopeless=True),
        "4": Status(Phase.ENDED, "n2", "TIMEOUT"),
        "5": Status(Phase.ENDED),
    }
    assert "1,2,3,4,5" in words.read_text().splitlines()


def test_a_job_that_slurm_has_forgotten_has_ended_and_a_controller_that_is_away_says_nothing(program: Program) -> None:
    program("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert Slurm(Site(engine="slurm")).poll(["1"]) == {"1": Status(Phase.ENDED)}
    program("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert Slurm(Site(engine="slurm")).poll(["1"])["1"].phase is Phase.UNKNOWN


def test_a_command_that_is_not_there_is_told_with_its_package(program: Program) -> None:
    folder = program("sbatch", "echo 1").parent
    with pytest.raises(EngineError, match="sinfo is not on PATH; install Slurm's client"):
        Slurm(Site(engine="slurm", env={"PATH": str(folder)})).nodes()


@pytest.mark.parametrize(
    ("limits", "minutes"),
    [("1:00:00", 60), ("infinite", None), ("7-12:30:00", 10_830), ("30:00", 30), ("10:00\n1:00:00", 60), ("", None)],
)
def test_the_longest_job_is_what_the_partition_allows(program: Program, limits: str, minutes: int | None) -> None:
    program("sinfo", f"printf '{limits}\\n'")
    assert Slurm(Site(engine="slurm")).longest() == minutes


def test_nodes_are_read_with_their_labels_and_state(program: Program) -> None:
    lines = "n1|zen2,bench|(null)|idle\nn2|icelake|gpu:h100:2(S:0)|drain*\nn3|(null)|(null)|down\nn3|(null)|(null)|down"
    program("sinfo", f"printf '{lines}\\n'")

    one, two, three = Slurm(Site(engine="slurm")).nodes()

    assert one == Node("n1", ("zen2", "bench"), "", "idle", usable=True)
    assert (two.gpus, two.usable) == ("gpu:h100:2(S:0)", False)
    assert (three.labels, three.usable) == ((), False)


NODES = (Node("n1", ("a", "b"), "", "idle", usable=True), Node("n2", ("c",), "gpu:h100:2", "idle", usable=True))


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (ANYWHERE, ""),
        (NodeRequirement(("a", "b")), ""),
        (NodeRequirement(("c",), 1, "h100"), ""),
        (NodeRequirement(("a", "c")), "no node has all of the labels a, c; labels: a, b, c"),
        (NodeRequirement(("a",), 1), "no node with these labels has a GPU"),
        (NodeRequirement((), 1, "a100"), "no node with these labels has a GPU a100"),
        (NodeRequirement(node="n3"), "there is no node n3; nodes: n1, n2"),
    ],
)
def test_a_place_that_is_none_is_told_before_anything_is_queued(place: NodeRequirement, why: str) -> None:
    assert why_unsuitable(place, NODES) == why
