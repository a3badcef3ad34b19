"""Files removed or moved during a run: it stops with their name, and the samples are kept."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import samples_of
from tests.cli.shell import ROOT, perfflow

# After the sixth pair, during the next one, a part of the run is removed.
FLOW = """
perfflow: 1
name: vanished
stages:
  baseline:
    - id: bench
      run: |
        echo run >> $COUNTER
        n=$(wc -l < $COUNTER)
        if test $n = 14; then eval "$FAULT"; fi
        echo ms=$n
      candidate: {env: {SIDE: candidate}}
      runs: 10
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
"""
RUN = "run=$(readlink -f .perfflow/runs/latest); "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "flow.yaml").write_text(FLOW)
    return folder


def run(project: Path, fault: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the workflow with a fault. The counter lies beside the project, as the fault may remove that."""
    env = {"COUNTER": str(project.parent / "counter"), "FAULT": fault}
    return perfflow("run", "flow.yaml", "--progress", "off", *words, cwd=project, env=env)


def word_after(option: str, text: str) -> str:
    """Return the shell word after an option in a hint."""
    return shlex.split(text[text.index(option) + len(option) :].split(" goes on", maxsplit=1)[0])[0]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (RUN + "rm -rf $run", "was removed during the run"),
        pytest.param("rm -rf .perfflow", "was removed during the run", marks=pytest.mark.long),
        (RUN + "rm -rf $run; echo > $run", "was removed during the run"),
        (RUN + "rm $run/events.jsonl", "was removed during the run"),
        (RUN + "mv $run ../moved", "was moved to"),
    ],
    ids=["run", "all-runs", "file-in-its-place", "events", "moved"],
)
def test_a_run_whose_folder_vanishes_stops_keeps_its_samples_and_goes_on(project: Path, fault: str, said: str) -> None:
    stopped = run(project, fault)
    assert stopped.returncode == 3, stopped.stderr
    assert said in stopped.stderr
    assert "perfflow report" in stopped.stderr
    left = word_after("--resume=", stopped.stderr)
    before = samples_of(Path(left))
    assert len(before) in (5, 6)
    report = perfflow("report", left, "--json", cwd=project)
    assert len(json.loads(report.stdout)["benchmarks"][0]["baseline"]["samples"]) == len(before)
    done = run(project, "", f"--resume={left}", "--unproven=pass")
    assert done.returncode in (0, 1), done.stderr
    after = samples_of(Path(left))
    assert after[: len(before)] == before
    assert [event["pair"] for event in after] == list(range(10))
    values = [event[side][0]["value"] for event in after for side in ("baseline", "candidate")]
    assert len(set(values)) == 20


def test_a_step_whose_own_files_vanish_fails_by_name_and_can_be_gone_on_with(project: Path) -> None:
    failed = run(project, RUN + "rm -rf $run/steps", "--json")
    assert failed.returncode == 3, failed.stderr
    (step,) = json.loads(failed.stdout)["steps"]
    assert step["status"] == "failed"
    assert step["reason"].endswith("steps/bench was removed while the step ran")
    done = run(project, "", "--resume", "--unproven=pass")
    assert done.returncode in (0, 1), done.stderr
    assert [event["pair"] for event in samples_of(project / ".perfflow/runs/latest")] == list(range(10))


def test_a_project_that_vanishes_is_said_and_what_was_measured_is_elsewhere(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    failed = run(project, f"rm -rf {project}", "--out", str(out), "--json")
    assert failed.returncode == 3, failed.stderr
    (step,) = json.loads(failed.stdout)["steps"]
    assert step["reason"] == f"{project}: no such folder"
    assert len(samples_of(out)) in (5, 6)
    assert (out / "report.md").is_file()


def test_a_folder_that_is_gone_before_the_start_is_bad_usage(project: Path) -> None:
    text = f"rm -rf {project}; PYTHONPATH={ROOT} {sys.executable} -m perfflow compare -- true false"
    done = subprocess.run(["bash", "-c", text], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr == "error: the current folder was removed\n  hint: change to an existing folder\n"


@pytest.mark.long  # as a run whose folder vanishes, which this file has
def test_a_comparison_whose_folder_vanishes_says_where_its_samples_are(tmp_path: Path) -> None:
    out, counter = tmp_path / "out", tmp_path / "counter"
    text = f"echo >> {counter}; test $(wc -l < {counter}) != 11 || rm -rf {out}"
    done = perfflow("compare", "--runs", "10", "--out", str(out), "--", text, f"{text} #", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert f"{out} was removed during the run" in done.stderr
    assert "--resume" not in done.stderr
    assert perfflow("report", str(out), cwd=tmp_path).returncode in (3, 4)
    assert len(samples_of(out)) == 3


def test_a_calibration_whose_folder_vanishes_stops_by_name(project: Path, tmp_path: Path) -> None:
    env = {"COUNTER": str(tmp_path / "counter"), "FAULT": "rm -rf .perfflow"}
    done = perfflow("calibrate", "flow.yaml", "--trials", "2", cwd=project, env=env)
    assert done.returncode == 3, done.stderr
    assert "defect" not in done.stderr
