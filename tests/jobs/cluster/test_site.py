"""The file ``executors.yaml``, which lists where jobs can go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.jobs.cluster import slurm
from perfflow.model.errors import UserError


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    path = tmp_path / "executors.yaml"
    monkeypatch.setenv(slurm.VARIABLE, str(path))
    return path.write_text


def test_there_need_be_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(slurm.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert slurm.sites() == {}
    assert slurm.site_of("local") is None
    with pytest.raises(UserError, match=r"no executor is called 'lab'[\s\S]*there is no executors.yaml"):
        slurm.site_of("lab")


def test_the_file_of_the_configuration_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(slurm.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "perfflow").mkdir()
    (tmp_path / "perfflow" / "executors.yaml").write_text("executors: {lab: {engine: slurm}}")
    assert list(slurm.sites()) == ["lab"]


def test_durations_and_lengths_are_read(written: Callable[[str], int]) -> None:
    written("executors: {lab: {engine: slurm, partition: p, group: [5m, 20m], pending: 2h, poll: 500ms}}")
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
    ],
)
def test_what_is_wrong_is_told_with_the_file(written: Callable[[str], int], text: str, told: str) -> None:
    written(text)
    with pytest.raises(UserError) as raised:
        slurm.sites()
    assert told in str(raised.value)
    assert "executors.yaml" in str(raised.value)


def test_a_name_that_is_nearly_right_is_told(written: Callable[[str], int]) -> None:
    written("executors: {cluster: {engine: slurm}}")
    with pytest.raises(UserError, match="did you mean cluster"):
        slurm.site_of("clutser")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slurm.VARIABLE, str(tmp_path / "none.yaml"))
    with pytest.raises(UserError, match="No such file"):
        slurm.sites()
