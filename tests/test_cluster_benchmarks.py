"""What a cluster costs: the benchmarks run on a real Slurm; what they measure is for people to read."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import cluster_noise, two_nodes
from benchmarks.cluster_noise import WITH, WITHOUT, entries
from tests.jobs.cluster.a_cluster import NO_START
from tests.modules import ROOT, run_module

MISSING = two_nodes.missing()


def printed(module: str, *words: str, path: str = os.environ["PATH"]) -> str:
    return run_module(f"benchmarks.{module}", *words, PATH=path).stdout


@pytest.mark.parametrize("words", [["cluster"], ["cluster_noise", "no-such-log"]])
def test_without_slurm_it_is_said_what_to_install(words: list[str]) -> None:
    said = printed(*words, path="/nowhere")
    assert re.fullmatch(r"skipped: .*sbatch, srun: not installed \(Debian: apt-get install .*\)\n", said)
    assert not (ROOT / "no-such-log").exists()


@pytest.mark.long  # what it prints is told of a run of two groups in tests/jobs/cluster/test_placed_run.py
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_each_step_is_a_group_that_is_measured() -> None:
    said = printed("cluster", "--rounds", "0", "--drain", "3")
    assert "\n3 groups at once on two nodes: 3 measured, exit status 0\n" in said
    waited, job = map(float, re.findall(r"after ([\d.]+) s; a job took ([\d.]+) s", said)[0])
    # There are two nodes, so the third waits for a job to end.
    assert waited > 0 < job


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.long
def test_groups_and_commands_are_measured_beside_those_of_slurm() -> None:
    said = printed("cluster", "--rounds", "1", "--groups", "3", "--commands", "1")
    names = re.findall(r"^\| ([\w ]+?)(?:, \d)? \| -?[\d.]+ ms \|", said, re.MULTILINE)
    assert dict.fromkeys(names).keys() == {
        *("perfflow", "sbatch", "srun"),
        *("perfflow in a group", "perfflow here", "srun in a job", "batch script"),
    }


@pytest.mark.long  # a whole cluster; tests/jobs/cluster has a run on one
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_comparisons_with_daemons_and_without_are_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_noise, "SETTLE", 0.0)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    log = tmp_path / "noise.jsonl"
    try:
        cluster_noise.take(log, 1, 1, 11)
    except subprocess.CalledProcessError:
        pytest.skip(NO_START)
    assert [entry["way"] for entry in entries(log)] == [WITHOUT, WITH]
    assert len(list(cluster_noise.table(entries(log)))) >= 2 + 2 * 2
    kept = log.read_text()
    cluster_noise.take(log, 1, 1, 11)
    assert log.read_text() == kept


@pytest.mark.long
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_two_nodes_start_and_stop(tmp_path: Path) -> None:
    with two_nodes.two_nodes(tmp_path) as conf:
        assert conf.is_file()
    assert not (tmp_path / "munge.folder").exists()


@pytest.mark.long
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_parts_are_killed_one_by_one() -> None:
    said = printed("cluster_deaths", "client", "agent")
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| (\d) \| (\d+) \| (\d+) \|$", said, re.MULTILINE)
    assert rows == [("client", "1", "40", "0"), ("agent", "2", "40", "0")]
