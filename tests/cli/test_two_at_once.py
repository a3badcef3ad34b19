"""Several perfflow processes in one project at the same time: each has its own run, and nothing is lost."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from perfflow.store import calibrations
from perfflow.store.calibrations import CalibrationEntry, CalibrationFinding
from tests.cli.running import samples_of
from tests.cli.shell import perfflow, start, write

AT_ONCE = 4
# A process that measures at the same time as another finds its file.
FLOW = """
name: beside
stages:
  baseline:
    - id: bench
      run: |
        mkdir alone || exit 9
        sleep 0.02
        rmdir alone
        echo ms=1
      candidate: {env: {SIDE: candidate}}
      runs: 4
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
"""


def at_once(folder: Path, *words: str) -> list[tuple[int, str, str]]:
    """Start a command several times, and return the status, output and errors of each."""
    processes = [start(*words, cwd=folder) for _ in range(AT_ONCE)]
    said = [process.communicate(timeout=900) for process in processes]
    return [(process.returncode, *texts) for process, texts in zip(processes, said, strict=True)]


def test_runs_at_once_have_folders_of_their_own_and_measure_one_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    ended = at_once(tmp_path, "run", "flow.yaml", "--json", "--unproven=pass", "--progress", "off")
    assert [status for status, _, _ in ended] == [0] * AT_ONCE, ended
    ids = {json.loads(out)["run"]["id"] for _, out, _ in ended}
    runs = tmp_path / ".perfflow/runs"
    assert {path.name for path in runs.iterdir()} == ids | {"latest"}
    assert len(ids) == AT_ONCE
    assert (runs / "latest").resolve().name in ids
    for name in ids:
        assert [event["pair"] for event in samples_of(runs / name)] == list(range(4))


@pytest.mark.long  # as runs at once
def test_of_runs_into_one_folder_one_is_made(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    ended = at_once(tmp_path, "run", "flow.yaml", "--out", "there", "--unproven=pass", "--progress", "off")
    assert sorted(status for status, _, _ in ended) == [0, *[2] * (AT_ONCE - 1)], ended
    assert perfflow("report", "there", "--unproven=pass", cwd=tmp_path).returncode == 0


def test_of_baselines_saved_at_once_under_one_name_one_is_kept(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    assert perfflow("run", "flow.yaml", "--unproven=pass", cwd=tmp_path).returncode == 0
    ended = at_once(tmp_path, "baseline", "save", "same")
    assert sorted(status for status, _, _ in ended) == [0, *[2] * (AT_ONCE - 1)], ended
    assert sum("a baseline called same already exists" in err for _, _, err in ended) == AT_ONCE - 1
    assert perfflow("baseline", "show", "same", cwd=tmp_path).returncode == 0
    assert [path.name for path in (tmp_path / ".perfflow/baselines/same").iterdir()] == ["baseline.json"]


def _store(root: Path, name: str) -> None:
    for number in range(20):
        finding = CalibrationFinding(f"step{number}", "bench", "time", noise=0.01)
        entry = CalibrationEntry(name, {}, "2026-01-01T00:00:00Z", 1, "0", "quiet", finding)
        calibrations.store(root, "machine", [entry], whole=False)


def test_calibrations_stored_at_once_are_all_kept(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_store, args=(tmp_path, f"flow{number}")) for number in range(AT_ONCE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = {(entry.workflow, entry.finding.step) for entry in calibrations.load(tmp_path, "machine")}
    assert found == {(f"flow{name}", f"step{number}") for name in range(AT_ONCE) for number in range(20)}
