"""Runs on a real Slurm cluster, and what happens if one of the processes involved is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import drained
from benchmarks.two_nodes import processes
from perfflow.jobs.cluster.agent import JobFolder, Worker
from tests.jobs.cluster.a_cluster import Cluster, Project, kill, until
from tests.repositories import git

ONE = '    - {id: one, uses: command, runs: %d, with: {command: "${{ steps.build.outputs.program }} 1"}}\n'


def measuring(number: int, keys: str = "") -> str:
    """Return a step that measures the program of the build."""
    command = f'{{command: "${{{{ steps.build.outputs.program }}}} {number}"}}'
    return f"    - {{id: b{number}, uses: command, with: {command}{keys}}}\n"


def held(project: Project, runs: int) -> str:
    """Return a step whose command is slow until ``let_go`` is called."""
    command = f"sh -c 'test -e {project.root.parent}/go || sleep 0.2'"
    return f'    - {{id: one, uses: command, runs: {runs}, with: {{command: "{command}"}}}}\n'


LAB = ("flow.yaml", "--executor", "lab")


def ran(project: Project, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run perfflow, by default the workflow on the cluster; it must end with this status."""
    done = project.run(*(words or ("run", *LAB)))
    assert done.returncode == status, done.stderr
    return done


def ended(process: subprocess.Popen[str], status: int = 0) -> str:
    """Wait for a process, which must end with this status; return what it said."""
    _, err = process.communicate(timeout=900)
    assert process.returncode == status, err
    return err


def site_with(folder: Path, keys: str) -> None:
    """Change the settings of the site."""
    site = folder / "executors.yaml"
    site.write_text(site.read_text().replace("engine: slurm", f"engine: slurm, {keys}"))


def let_go(project: Project) -> None:
    (project.root.parent / "go").touch()


def result(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.latest / "result.json").read_text())
    return found


def job_of(project: Project) -> dict[str, Any]:
    """Return the only job of a run."""
    (job,) = result(project)["nodes"][0]["jobs"]
    return dict(job)


def slower(project: Project, extra: int, before: str = "") -> None:
    """Commit a program that takes more steps for its second benchmark."""
    program = project.root / "work.c"
    program.write_text(before + re.sub(r"EXTRA \d+\n", f"EXTRA {extra}\n", program.read_text(), count=1))
    project.git("commit", "-qam", f"{before}{extra}")


def begun(project: Project, group: str = "g1", attempt: int = 1) -> JobFolder:
    """Wait until a job has taken samples; return its folder."""
    until((project.root / ".perfflow" / "runs" / "latest").is_symlink)
    folder = JobFolder(project.latest / "groups" / group / str(attempt))
    events = folder.run / "events.jsonl"
    until(lambda: events.is_file() and samples_of(events))
    return folder


def started(project: Project) -> tuple[subprocess.Popen[str], JobFolder, Worker]:
    """Start a run; return it with the folder and the worker of its job, which has taken samples."""
    process = project.start("run", *LAB)
    folder = begun(project)
    worker = folder.worker()
    assert worker
    return process, folder, worker


def samples_of(path: Path) -> int:
    return path.read_text().count('"event":"sample"')


def test_two_nodes_measure_a_part_each(cluster: Cluster, project: Project) -> None:
    labels = {1: "zen2", 2: "icelake"}
    project.write("".join(measuring(number, f", runs: 3, runs-on: {label}") for number, label in labels.items()))
    done = ran(project)
    found = result(project)
    nodes = {node["name"]: [job["group"] for job in node["jobs"]] for node in found["nodes"]}
    assert nodes == {"n1": ["g1"], "n2": ["g2"]}
    assert {row["name"]: row["node"] for row in found["benchmarks"]} == {"b1": "n1", "b2": "n2"}
    assert {step["id"]: step["status"] for step in found["steps"]} == dict.fromkeys(("build", "b1", "b2"), "done")
    assert "g1: measured on n1" in done.stderr
    assert "| `n1` |" in (project.latest / "report.md").read_text()
    # The settings may contain secrets, so the files that passed them to the jobs are deleted.
    assert not list(project.latest.rglob("work.json"))
    receipt = json.loads((project.latest / "receipt.json").read_text())
    partitions = [(node["name"], node["machine"]["partition"]) for node in receipt["nodes"]]
    assert partitions == [("n1", "bench"), ("n2", "bench")]
    told = drained(project.latest, 1.0, 0.5)
    assert (told.groups, told.measured) == (2, 3)
    assert told.waited > 0 < told.job


@pytest.mark.long
def test_nodes_measure_the_chosen_benchmarks(cluster: Cluster, project: Project) -> None:
    figures = 'parse: {regex: "(?P<benchmark>.*)=(?P<time>.*)", units: {time: ms}}'
    project.write(f"    - {{id: suite, run: printf 'a=1\\nb=2\\n', runs: 2, {figures}}}\n{ONE % 2}")
    ran(project, "run", *LAB, "--benchmark", "b")
    assert {row["name"] for row in result(project)["benchmarks"]} == {"b"}


def test_a_gate_fails_as_it_does_here(cluster: Cluster, project: Project) -> None:
    # Figures that a program reads from the tree: how the nodes' time passes decides nothing.
    parsed = 'parse: {regex: "(?P<time>.+)", units: {time: ms}}'
    project.write(f"    - {{id: one, run: cat figure, {parsed}}}\n")
    for figure in ("10", "15"):
        (project.root / "figure").write_text(figure)
        project.git("add", "-A")
        project.git("commit", "-qm", figure)
    words = ("gate", "flow.yaml", "--base", "HEAD~1", "--seed", "7", "--json")
    both = [json.loads(ran(project, *words, *more, status=1).stdout) for more in ((), ("--executor", "lab"))]
    for one in both:
        assert {row["name"]: row["decision"] for row in one["benchmarks"]} == {"one": "regressed"}
    assert [len(one["nodes"]) for one in both] == [0, 1]


@pytest.mark.long  # measures until it is known that two benchmarks are the same, minutes on a busy machine
def test_a_gate_decides_as_it_does_here(cluster: Cluster, project: Project) -> None:
    project.write("".join(measuring(number) for number in (1, 2)))
    slower(project, 200_000)
    words = ("gate", "flow.yaml", "--base", "HEAD~1", "--seed", "7", "--json")
    both = [json.loads(ran(project, *words, *more, status=1).stdout) for more in ((), ("--executor", "lab"))]
    decided = [{row["name"]: row["decision"] for row in one["benchmarks"] if row["gating"]} for one in both]
    assert decided[0] == decided[1] == {"b1": "same", "b2": "regressed"}
    # The second gate may reuse the base that the first one built.
    bases = [{key: value for key, value in one["trees"]["baseline"].items() if key != "built"} for one in both]
    assert bases[0] == bases[1]
    assert [both[0]["nodes"], len(both[1]["nodes"])] == [[], 2]


@pytest.mark.parametrize("killed", ["agent", pytest.param("what measures", marks=pytest.mark.long)])
def test_who_is_killed_on_a_node_is_replaced_once(cluster: Cluster, project: Project, killed: str) -> None:
    project.write(held(project, 20))
    process, folder, worker = started(project)
    (measures,) = set(processes(f"node_run\0{worker.pid}\0{folder.path}"))
    kill(worker.pid if killed == "agent" else measures)
    let_go(project)
    assert "lost" in ended(process)
    assert not processes(str(project.latest))
    job = job_of(project)
    assert (job["attempt"], job["state"]) == (2, "done")
    assert job["lost"]
    (row,) = [row for row in result(project)["benchmarks"] if row["metric"] == "time"]
    assert row["baseline"]["n"] == 20
    assert any("measured again" in text for text in row["warnings"]), row["warnings"]


@pytest.mark.long
def test_a_supervisor_that_is_killed_leaves_nothing_that_measures(cluster: Cluster, project: Project) -> None:
    project.write(held(project, 20))
    process, folder, worker = started(project)
    (pid,) = processes(f"slurmstepd: [{worker.job}.")
    kill(pid)
    until(lambda: not processes(str(folder.path)))
    ended(process)
    assert job_of(project)["attempt"] == 2


@pytest.mark.long
@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd.n1"])
def test_a_daemon_that_is_killed_loses_no_job(cluster: Cluster, project: Project, daemon: str) -> None:
    project.write(held(project, 25).replace("}}", "}, runs-on: zen2}"))
    process, _, _ = started(project)
    kill(cluster.daemon(daemon))
    _, err = process.communicate(timeout=900)
    cluster.start()
    assert process.returncode == 0, err
    job = job_of(project)
    assert (job["attempt"], job["state"]) == (1, "done")


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_who_watches_may_be_killed(cluster: Cluster, project: Project) -> None:
    project.write(held(project, 20))
    process, folder, _ = started(project)
    kill(process.pid)
    process.communicate()
    let_go(project)
    until(folder.ended)
    taken = samples_of(folder.run / "events.jsonl")
    ran(project, "run", "flow.yaml", "--resume")
    job = job_of(project)
    assert (job["attempt"], job["state"]) == (1, "done")
    assert samples_of(folder.run / "events.jsonl") == taken


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_an_interrupted_run_ends_its_jobs_and_goes_on_later(cluster: Cluster, project: Project) -> None:
    # Not alone on the machine, so that the other step need not wait for it.
    project.write(ONE % 3 + held(project, 60).replace("id: one", "id: two, alone: false"))
    # Uncommitted files are sent as well, and count as the same code when the run is resumed.
    (project.root / "more.txt").write_text("new")
    process = project.start("run", *LAB)
    begun(project, "g2")
    until(JobFolder(project.latest / "groups" / "g1" / "1").ended)
    process.send_signal(signal.SIGINT)
    assert "--resume=" in ended(process, 130)
    assert not processes(str(project.latest))
    assert {row["name"] for row in result(project)["benchmarks"]} == {"one", "two"}

    let_go(project)
    ran(project, "run", "flow.yaml", "--resume")
    attempts = {job["group"]: job["attempt"] for node in result(project)["nodes"] for job in node["jobs"]}
    assert attempts == {"g1": 1, "g2": 2}
    counts = {row["name"]: row["baseline"]["n"] for row in result(project)["benchmarks"] if row["metric"] == "time"}
    assert counts == {"one": 3, "two": 60}


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_a_job_sees_the_gpus_that_it_asked_for_and_its_labels(cluster: Cluster, project: Project) -> None:
    said = project.root.parent / "said"
    command = f"sh -c 'echo $CUDA_VISIBLE_DEVICES $PERFFLOW_LABELS > {said}'"
    place = "{labels: icelake, gpus: 1, gpu-type: h100}"
    project.write(f'    - {{id: one, uses: command, runs: 1, with: {{command: "{command}"}}, runs-on: {place}}}\n')
    ran(project)
    # To a job with the whole node, Slurm shows both GPUs.
    assert said.read_text().split() == ["0", "icelake"]
    assert result(project)["nodes"][0]["machine"]["gpus"] == "0"


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_jobs_work_in_a_folder_of_the_site_with_what_the_workflow_shares(
    cluster: Cluster, project: Project, tmp_path: Path
) -> None:
    site_with(tmp_path, f"trees: path, folder: {tmp_path}/jobs")
    (project.root / ".gitignore").write_text("out/\ndata\n")
    (project.root / "data").write_text("shared")
    project.write(ONE.replace("${{ steps.build.outputs.program }} 1", "grep -q shared data") % 3)
    flow = project.root / "flow.yaml"
    flow.write_text(flow.read_text().replace("name: placed\n", "name: placed\nworktree: {share: [data]}\n"))
    ran(project)
    assert (project.latest / "groups" / "g1" / "1" / "run" / "events.jsonl").is_file()
    assert not list((tmp_path / "jobs").iterdir())


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_detached_jobs_are_watched_later(cluster: Cluster, project: Project) -> None:
    project.write(ONE % 3)
    assert "--resume=" in ran(project, "run", *LAB, "--detach").stderr
    # As if the submitting process had been killed before it stored the job's number.
    events = project.latest / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    (number,) = [json.loads(line)["job"] for line in lines if '"event":"submitted"' in line]
    events.write_text("".join(line for line in lines if '"event":"submitted"' not in line))
    ran(project, "run", "flow.yaml", "--resume")
    job = job_of(project)
    assert (job["state"], job["attempt"], job["id"]) == ("done", 1, number)


def test_a_place_that_no_node_is_stops_before_anything_runs(cluster: Cluster, project: Project) -> None:
    project.write(ONE.replace("}}\n", "}, runs-on: zen9}\n") % 3)
    done = ran(project, status=3)
    assert "no node has all of the labels zen9; labels: bench, icelake, zen2" in done.stderr
    assert not (project.root / ".perfflow" / "runs").exists()


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_what_does_not_build_there_is_named(cluster: Cluster, project: Project) -> None:
    project.write(ONE % 3)
    (project.root / "work.c").write_text("int main(")
    project.git("commit", "-qam", "broken")
    done = ran(project, status=3)
    assert "step build: " in done.stdout
    assert "groups/g1/1/build/steps/build" in done.stderr


def test_executors_are_checked(cluster: Cluster, project: Project) -> None:
    local, lab = json.loads(ran(project, "executors", "--json").stdout)["executors"]
    assert (local["name"], local["usable"]) == ("local", True)
    assert lab["usable"]
    nodes = {node["name"]: node["labels"] for node in lab["nodes"]}
    assert nodes == {"n1": ["zen2", "bench"], "n2": ["icelake", "bench"]}


@pytest.mark.long
def test_a_bisection_on_another_machine_finds_the_commit(cluster: Cluster, project: Project) -> None:
    project.write(measuring(2))
    for number, extra in enumerate((0, 200_000, 200_000)):
        slower(project, extra, f"/* {number} */\n")
    done = ran(project, "bisect", "flow.yaml", "--good", "HEAD~3", "--executor", "lab", "--json")
    assert "/* 1 */" in json.loads(done.stdout)["first_bad"]["subject"]
    assert "runs on n" in done.stderr
    assert (project.latest / "bisect.json").is_file()
    assert not list((project.root / ".perfflow" / "placed").iterdir())


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_a_calibration_of_another_machine_is_kept_here(cluster: Cluster, project: Project, tmp_path: Path) -> None:
    site_with(tmp_path, f"folder: {tmp_path}/jobs")
    project.write(ONE.replace("runs: %d, ", ""))
    done = ran(project, "calibrate", *LAB, "--trials", "2", "--budget", "1s", "--json")
    found = json.loads(done.stdout)
    (file,) = (project.root / ".perfflow" / "calibration").glob("*.json")
    assert file.stem == found["identity"]
    assert not list((project.root / ".perfflow" / "placed").iterdir())
    assert found["entries"][0]["finding"]["benchmark"] == "one"
    # The folder of the site had the code and the settings, which may contain secrets.
    assert not list((tmp_path / "jobs").iterdir())


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_a_command_whose_job_is_refused_says_why_and_leaves_no_files(
    cluster: Cluster, project: Project, tmp_path: Path
) -> None:
    site_with(tmp_path, f"options: [--begin=never], folder: {tmp_path}/jobs")
    project.write(ONE.replace("runs: %d, ", ""))
    done = ran(project, "calibrate", *LAB, "--json", status=3)
    assert "the job did not finish: sbatch: " in done.stderr
    assert not list((tmp_path / "jobs").iterdir())


@pytest.mark.long
def test_the_trees_are_built_once_for_a_kind_of_machine(cluster: Cluster, project: Project) -> None:
    project.write("".join(measuring(number, ", runs: 3") for number in (1, 2, 3, 4)))
    flow = project.root / "flow.yaml"
    counted = project.root.parent / "builds"
    flow.write_text(flow.read_text().replace("mkdir -p out", f"mkdir -p out; echo built >> {counted}"))
    project.git("commit", "-qam", "count the builds")
    flow.write_text(flow.read_text() + "# other code\n")
    project.git("commit", "-qam", "other code")
    done = project.run("gate", "flow.yaml", "--base", "HEAD~1", "--executor", "lab", "--json")
    assert done.returncode in (0, 4), done.stderr
    found = json.loads(done.stdout)
    clones = {path.parent.name for path in (project.root.parent / "scratch").glob("*/cache/perfflow/clones/*/*/.git")}
    assert sum(len(node["jobs"]) for node in found["nodes"]) == 4
    # Two trees for each clone. On a real cluster, each kind of node has one clone.
    assert counted.read_text().count("built") == 2 * len(clones)


OPTIMIZE = """  optimize:
    objective: one
    steps:
      - {id: less, technique: algorithm, why: fewer rounds, run: "sed -i s/400000/150000/ work.c"}
  verify:
    - {id: right, run: out/work 1}
    - {id: after, compare: baseline}
"""


@pytest.mark.long
def test_what_was_kept_of_candidates_comes_home_as_a_branch(cluster: Cluster, project: Project) -> None:
    measured = ONE.replace("runs: %d", "budget: 5s")
    profile = "  profile:\n    - {id: profile, uses: callgrind, benchmark: one}\n"
    project.write(measured + profile + OPTIMIZE)
    # Also on top of what the user's repository has not committed.
    (project.root / "more.txt").write_text("new")
    kept = json.loads(ran(project, "run", *LAB, "--json").stdout)["trees"]["candidate"]
    assert "150000" in git(project.root, "show", f"{kept['branch']}:work.c")
