"""Fixtures: a Slurm cluster of two nodes on this machine, and a project whose benchmarks run there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import two_nodes
from tests.jobs.cluster.a_cluster import NO_START, PROGRAM, SCRIPT, SITE, Cluster, Project


@pytest.fixture(scope="module")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if two_nodes.missing():
        pytest.skip(two_nodes.missing())
    folder = tmp_path_factory.mktemp("slurm")
    environment = {**os.environ, two_nodes.PORT: str(two_nodes.free_port())}

    def start() -> None:
        subprocess.run(
            ["sh", str(SCRIPT), "start", str(folder)], env=environment, check=True, stdout=subprocess.DEVNULL
        )

    try:
        try:
            start()
        except subprocess.CalledProcessError:
            pytest.skip(NO_START)
        yield Cluster(folder, start)
    finally:
        subprocess.run(["sh", str(SCRIPT), "stop", str(folder)], check=True)


@pytest.fixture
def cluster(_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    """A cluster for one test, configured by environment variables as a site would do it."""
    site = tmp_path / "executors.yaml"
    site.write_text(SITE % (tmp_path / "scratch"))
    monkeypatch.setenv("SLURM_CONF", str(_cluster.folder / "slurm.conf"))
    monkeypatch.setenv("PERFFLOW_EXECUTORS", str(site))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return _cluster


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a program, and no workflow yet."""
    root = tmp_path / "project"
    root.mkdir()
    found = Project(root)
    found.git("init", "-q", "-b", "main", ".")
    (root / "work.c").write_text("#define WHICH 2\n#define EXTRA 0\n" + PROGRAM)
    (root / ".gitignore").write_text("out/\n")
    return found
