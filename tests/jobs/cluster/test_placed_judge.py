"""Batches of patches on a real Slurm cluster."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.two_nodes import processes
from perfflow.jobs.cluster.agent import JobFolder
from tests.jobs.cluster.a_cluster import SITE, Cluster, Project, kill, until
from tests.repositories import git

FLOW = """perfflow: 1
name: work
stages:
  build:
    - {id: make, run: 'cp costs built; test ! -e slow || sh slow'}
  baseline:
    - id: cost
      run: cat built
      runs: 8
      layouts: off
      parse: {regex: '(?P<cost>\\d+)', units: {cost: "1"}, better: {cost: lower}}
  profile:
    - {id: look, run: "true"}
  optimize:
    objective: cost cost
    forbid: [flow.yaml]
  verify:
    - {id: right, run: "! grep -q 7 built"}
"""
JUDGE = ("judge", "-", "--workflow", "flow.yaml", "--isolate", "off", "--json", "--budget", "2m")
LAB = (*JUDGE, "--executor", "lab")


@pytest.fixture
def costs(cluster: Cluster, project: Project) -> Project:
    """A project whose program prints the costs in a file, and an executor that gives two patches to a job."""
    site = project.root.parent / "executors.yaml"
    site.write_text(SITE.replace("[1s, 5s]", "[1s, 4m]") % (project.root.parent / "scratch"))
    for name, text in {"flow.yaml": FLOW, "costs": "100\n", ".gitignore": "built\n"}.items():
        (project.root / name).write_text(text)
    project.git("add", "-A")
    project.git("commit", "-qm", "first")
    return project


def patches(project: Project, contents: Mapping[str, Mapping[str, str]]) -> str:
    """Return lines of JSON with patches, by name: the files that each writes."""
    lines = []
    for name, files in contents.items():
        for file, text in files.items():
            (project.root / file).write_text(text)
        project.git("add", "-AN")
        lines.append(json.dumps({"id": name, "patch": git(project.root, "diff")}))
        project.git("reset", "-q", "--hard")
    return "\n".join(lines)


def decided(printed: str) -> dict[str, tuple[Any, ...]]:
    """Return what was decided of each patch, without what differs from run to run."""
    lines = [json.loads(line) for line in printed.splitlines()]
    return {line["patch"]: tuple(line[key] for key in ("decision", "code", "effect", "flags")) for line in lines}


def test_jobs_judge_a_batch_as_this_machine_does(costs: Project) -> None:
    contents = {str(cost): {"costs": f"{cost}\n"} for cost in (50, 120, 80)}
    given = patches(costs, {**contents, "wrong": {"costs": "70\n"}, "rules": {"flow.yaml": f"{FLOW}#\n"}})
    given += '\n{"id": "no patch", "patch": "nothing"}\n'
    # The patches are on top of the tree as it is, with what is not committed.
    (costs.root / "more.txt").write_text("new")
    here, there = costs.run(*JUDGE, given=given), costs.run(*LAB, given=given)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert decided(there.stdout).keys() == {"50", "80", "120", "wrong", "rules", "no patch"}
    assert {name: row[:3] for name, row in decided(here.stdout).items()} == {
        name: row[:3] for name, row in decided(there.stdout).items()
    }
    answers = {answer["patch"]: answer for answer in map(json.loads, there.stdout.splitlines())}
    assert len({answer["run"] for answer in answers.values()} - {""}) == 2
    for name in ("50", "80"):
        assert git(costs.root, "show", f"{answers[name]['revision']}:costs").strip() == name
        run = answers[name]["run"]
        assert answers[name]["revision"] in git(costs.root, "for-each-ref", f"refs/heads/perfflow/{run}/")
        assert "kept" in costs.run("report", run).stdout
        # Four patches here and four there, although the job had two.
        tried = json.loads((costs.root / ".perfflow" / "runs" / run / "result.json").read_text())["optimizations"]
        assert {item["attempts"] for item in tried if item["pairs"]} == {8}
    assert not git(costs.root, "diff", "HEAD")
    assert not list((costs.root / ".perfflow" / "placed").iterdir())


def held(project: Project) -> tuple[subprocess.Popen[str], str]:
    """Judge two patches in one job, the second of which builds until ``let_go``; return the process and the first."""
    flow = project.root / "flow.yaml"
    flow.write_text(FLOW.replace("runs: 8", "runs: 8\n      runs-on: zen2"))
    project.git("commit", "-qam", "one node")
    slow = f"until test -e {project.root.parent}/go; do sleep 0.1; done\n"
    given = patches(project, {"50": {"costs": "50\n"}, "slow": {"costs": "80\n", "slow": slow}})
    process = project.start(*LAB, given=given)
    assert process.stdout
    first = json.loads(process.stdout.readline())
    assert (first["patch"], first["decision"]) == ("50", "kept")
    # At once, while the job goes on.
    assert git(project.root, "show", f"{first['revision']}:costs") == "50\n"
    return process, first["run"]


def kill_job(project: Project, attempt: int) -> None:
    """Kill what measures in an attempt at the only group, as soon as it runs."""

    def measuring() -> list[int]:
        jobs = [JobFolder(claim.parent) for claim in project.root.parent.glob(f"**/g1/{attempt}/claim")]
        return [pid for job in jobs if (who := job.worker()) for pid in processes(f"node_run\0{who.pid}\0{job.path}")]

    until(measuring)
    (pid,) = measuring()
    kill(pid)


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
@pytest.mark.parametrize(("kills", "keys"), [(1, "folder: %s/jobs, "), (2, "")])
def test_what_a_dead_job_had_answered_is_not_judged_again(costs: Project, kills: int, keys: str) -> None:
    site = costs.root.parent / "executors.yaml"
    site.write_text(site.read_text().replace("engine:", f"{keys.replace('%s', str(site.parent))}engine:"))
    process, run = held(costs)
    for attempt in range(kills):
        kill_job(costs, attempt + 1)
    (costs.root.parent / "go").touch()
    rest, err = process.communicate(timeout=900)
    (answer,) = map(json.loads, rest.splitlines())
    assert (answer["patch"], "lost" in err) == ("slow", True)
    expected = ("kept", "proven", 0) if kills == 1 else ("cannot-judge", "job-lost", 3)
    assert (answer["decision"], answer["code"], process.returncode) == expected, err
    assert (costs.root / ".perfflow" / "runs" / run / "events.jsonl").is_file()


@pytest.mark.long  # a rare case, and a job of a cluster takes seconds
def test_an_interrupt_cancels_the_jobs(costs: Project) -> None:
    process, run = held(costs)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert (process.returncode, out) == (130, "")
    assert "interrupted; 1 of 2 patches were not judged" in err
    assert not processes(str(costs.root / ".perfflow"))
    assert "kept" in costs.run("report", run).stdout


def test_parts_and_folders_are_not_for_executors(costs: Project) -> None:
    done = costs.run(*LAB, "--shard", "1/2", given=patches(costs, {"50": {"costs": "50\n"}}))
    assert (done.returncode, "leave out --shard and --out" in done.stderr) == (2, True)
