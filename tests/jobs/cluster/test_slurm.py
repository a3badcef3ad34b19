"""The parsing of the output of Slurm's commands. The lines are those of Slurm 22.05 (Debian 12)."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.cluster import slurm
from perfflow.jobs.cluster.slurm import EngineError, Node, Phase, Site, Slurm, Status, Submission, why_unsuitable
from perfflow.model.errors import UserError
from perfflow.plan.groups import ANYWHERE, NodeRequirement

Program = Callable[[str, str], Path]
SLURM = Slurm(Site(engine="slurm"))


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


def submitted(place: NodeRequirement = ANYWHERE, **site: Any) -> str:
    return Slurm(Site(engine="slurm", **site)).submit(Submission(Path("/shared/g 1"), "pf-g1-1", place, 20))


def option(said: list[str], name: str) -> str:
    """Return the word after an option."""
    return said[said.index(name) + 1]


def test_a_job_is_exclusive_has_a_limit_and_is_never_run_again(program: Program) -> None:
    words = program("sbatch", "echo 17")
    assert submitted(partition="bench", account="perf", options=["--qos=low"]) == "17"
    said = words.read_text().splitlines()
    assert {"--parsable", "--no-requeue", "--exclusive", "--mem=0", "--qos=low"} <= {*said}
    assert [option(said, name) for name in ("-t", "-p", "-A")] == ["20", "bench", "perf"]
    assert option(said, "--wrap").endswith("-P -m perfflow.jobs.cluster.agent '/shared/g 1'")


def test_a_place_becomes_options(program: Program) -> None:
    words = program("sbatch", "echo 17")
    submitted(NodeRequirement(("zen4", "bench"), 2, "h100.80gb", exclusive=False), exclude=["n9"])
    said = words.read_text().splitlines()
    options = {"--constraint": "zen4&bench", "--gres": "gpu:h100.80gb:2", "--exclude": "n9"}
    assert {name: option(said, name) for name in options} == options
    assert "--exclusive" not in said
    submitted(NodeRequirement(node="n3"), exclude=["n9"])
    said = words.read_text().splitlines()
    assert option(said, "--nodelist") == "n3"
    assert "--exclude" not in said


@pytest.mark.parametrize(
    ("script", "number"),
    [("echo 17", "17"), ("echo '17;cluster'", "17"), ("echo welcome; echo 'quota: 5'; echo '18;c'", "18")],
)
def test_the_number_is_found_behind_what_a_site_prints(program: Program, script: str, number: str) -> None:
    program("sbatch", script)
    assert submitted() == number


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1",
            r"^sbatch: Batch job submission failed: Invalid account$",
        ),
        ("echo ok", "no job number: 'ok'"),
    ],
)
def test_slurms_own_words_say_why_it_refuses(program: Program, script: str, why: str) -> None:
    program("sbatch", script)
    with pytest.raises(EngineError, match=why):
        submitted()


def test_inside_a_job_its_limits_are_not_handed_on(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    words = program("sbatch", "echo 17")
    for name in ("SLURM_JOB_ID", "SBATCH_TIMELIMIT", "SLURM_CONF"):
        monkeypatch.setenv(name, "x")
    submitted(env={"SITE": "y"})
    environment = words.with_name("sbatch.env").read_text().splitlines()
    assert {"SLURM_CONF=x", "SITE=y"} <= set(environment)
    assert not any(line.startswith(("SLURM_JOB_ID=", "SBATCH_")) for line in environment)


def test_one_question_is_asked_for_all_jobs(program: Program) -> None:
    lines = "1|RUNNING|n1|None\n2|PENDING||Resources\n3|PENDING||BadConstraints\n4|TIMEOUT|n2|TimeLimit"
    words = program("squeue", f"printf '{lines}\\n'")
    assert SLURM.poll(["1", "2", "3", "4", "5"]) == {
        "1": Status(Phase.RUNNING, "n1"),
        "2": Status(Phase.QUEUED, reason="Resources"),
        "3": Status(Phase.QUEUED, reason="BadConstraints", hopeless=True),
        "4": Status(Phase.ENDED, "n2", "TIMEOUT"),
        "5": Status(Phase.ENDED),
    }
    assert "1,2,3,4,5" in words.read_text().splitlines()


def test_a_job_that_slurm_has_forgotten_has_ended_and_a_controller_that_is_away_says_nothing(program: Program) -> None:
    program("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert SLURM.poll(["1"]) == {"1": Status(Phase.ENDED)}
    program("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert SLURM.poll(["1"])["1"].phase is Phase.UNKNOWN


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
    assert SLURM.longest() == minutes


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


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of the configuration folder, which no variable replaces."""
    monkeypatch.delenv(slurm.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "perfflow").mkdir()
    return tmp_path / "perfflow" / "executors.yaml"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that the variable names."""
    monkeypatch.setenv(slurm.VARIABLE, str(tmp_path / "executors.yaml"))
    return tmp_path / "executors.yaml"


def test_the_file_of_the_configuration_folder_is_read_if_there_is_one(configured: Path) -> None:
    assert slurm.sites() == {}
    assert slurm.site_of("local") is None
    with pytest.raises(UserError, match=r"no executor is called 'lab'[\s\S]*there is no executors.yaml"):
        slurm.site_of("lab")
    configured.write_text("executors: {lab: {engine: slurm}}")
    assert list(slurm.sites()) == ["lab"]


def test_durations_and_lengths_are_read(written: Path) -> None:
    written.write_text("executors: {lab: {engine: slurm, partition: p, group: [5m, 20m], pending: 2h, poll: 500ms}}")
    found = slurm.site_of("lab")
    assert found is not None
    assert (found.lengths, found.seconds("pending"), found.seconds("poll")) == ((300, 1200), 7200, 0.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("executors: [lab]", "has no map `executors`"),
        ("lab: {engine: slurm}", "has no map `executors`"),
        ("executors: {lab: {engine: pbs}}", "lab.engine"),
        ("executors: {lab: {engine: slurm, partitoin: p}}", "lab.partitoin"),
        ("executors: {lab: {engine: slurm, poll: soon}}", "lab: "),
        ("executors: {lab: {engine: slurm, group: [60m, 10m]}}", "the first duration must be the shorter one"),
        ("executors: {lab: {engine: slurm, group: [10m]}}", "lab"),
        ("executors: {local: {engine: slurm}}", "`local` is this machine"),
        ("executors: {lab: [}", "not YAML"),
        (None, "No such file"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(written: Path, text: str | None, told: str) -> None:
    if text is not None:
        written.write_text(text)
    with pytest.raises(UserError) as raised:
        slurm.sites()
    assert told in str(raised.value)
    assert "executors.yaml" in str(raised.value)


def test_a_name_that_is_nearly_right_is_told(written: Path) -> None:
    written.write_text("executors: {cluster: {engine: slurm}}")
    with pytest.raises(UserError, match="did you mean cluster"):
        slurm.site_of("clutser")
