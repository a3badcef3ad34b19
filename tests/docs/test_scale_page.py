"""The page about clusters: its commands run on a real Slurm, its keys are the file's, its figures the logs'."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from benchmarks import cluster_noise
from perfflow.jobs.cluster.slurm import Site
from tests.docs.console import blocks
from tests.jobs.cluster.a_cluster import Cluster, Project
from tests.jobs.cluster.conftest import _cluster, cluster, project

__all__ = ["_cluster", "cluster", "project"]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "scale.md"
COSTS = ROOT / "dev" / "cluster.md"
EXPERIMENTS = ROOT / "dev" / "experiments"


def section(title: str, page: Path = PAGE) -> str:
    return page.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]


def file(name: str) -> str:
    (found,) = (text for text in blocks(PAGE, "yaml") if text.startswith(f"# {name}\n"))
    return found


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.long  # a whole cluster; tests/jobs/cluster has a run on one
def test_the_commands_run_on_a_cluster(
    cluster: Cluster, project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path / "shown.yaml"
    site.write_text(file("executors.yaml").replace("/local/perfflow", str(tmp_path / "scratch")))
    monkeypatch.setenv("PERFFLOW_EXECUTORS", str(site))
    (project.root / "nodes.yaml").write_text(file("nodes.yaml"))
    project.git("add", "-A")
    project.git("commit", "-qm", "one")
    commands = [line for text in blocks(PAGE, "sh") for line in text.splitlines()]
    own = [shlex.split(line)[1:] for line in commands if line.startswith("perfflow ")]
    # Those of the script are what the cluster of this test was started by.
    assert [line.split()[:3] for line in commands if not line.startswith("perfflow ")] == [
        ["sh", "scripts/slurm", word] for word in ("start", "stop")
    ]
    said = {}
    for words in own:
        done = project.run(*words)
        assert done.returncode == 0, done.stderr
        said[shlex.join(words)] = done.stdout + done.stderr
    assert re.search(r"lab +n1 +zen2, bench", said["executors"])
    assert "--resume" in said["run nodes.yaml --executor lab --detach"]
    for command in ("run nodes.yaml --executor lab", "run nodes.yaml --resume"):
        assert "sum[node=zen2]" in said[command]
        assert "sum[node=icelake]" in said[command]


def test_every_key_of_an_executor_is_on_the_page() -> None:
    shown = {name for row in cells(section("For administrators"))[1:] for name in re.findall(r"`([\w-]+)`", row[0])}
    assert shown == {field.alias or name for name, field in Site.model_fields.items()}


def test_the_figures_of_commands_are_those_of_the_log() -> None:
    log = EXPERIMENTS.joinpath("cluster.txt").read_text()
    text = section("What it costs", COSTS)
    measured = [(row[2], row[4]) for row in cells(log) if len(row) == 5 and row[0] and "," not in row[0]]
    shown = [(row[1], row[2]) for row in cells(text) if len(row) == 3 and row[1] != "wall"]
    assert shown == measured
    groups, wall, cpu, last = re.findall(
        r"^(\d+) groups at once.*: \1 measured, exit status 0\nall: ([\d.]+ s), .*: ([\d.]+ s)\n.*after ([\d.]+ s);",
        log,
        re.MULTILINE,
    )[0]
    words = " ".join(text.split())
    assert f"all {groups} were measured in {wall}, and the last had a node after {last}" in words
    assert f"took {cpu} of CPU" in words


def test_what_happens_when_a_part_dies_is_what_the_log_says() -> None:
    log = {row[0]: row for row in cells(EXPERIMENTS.joinpath("cluster-deaths.txt").read_text())[2:]}
    shown = {row[0]: (row[2], row[3]) for row in cells(section("When something dies"))[2:]}
    assert shown == {name: (row[1], row[2]) for name, row in log.items()}
    assert {(row[3], row[4]) for row in log.values()} == {("40", "0")}


def test_the_figures_of_noise_are_those_of_the_log() -> None:
    text = section("What it costs", COSTS)
    for line in cluster_noise.table(cluster_noise.entries(EXPERIMENTS / "cluster-noise.jsonl")):
        assert line in text


@pytest.mark.long  # reads a large log
def test_the_figures_of_a_night_are_those_of_the_log() -> None:
    log = EXPERIMENTS.joinpath("placement.txt").read_text()
    text = section("A night with 10,000 benchmarks", COSTS)
    assert cells(text) == cells(log)
