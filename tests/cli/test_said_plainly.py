"""Common mistakes of users: each message names the mistake and the correct form."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, start, write
from tests.execute.test_child import DEADLINE

LONG = """
name: long
stages:
  baseline:
    - {id: bench, uses: command, with: {command: "sleep 0.01"}, candidate: "sleep 0.01", runs: 2000}
"""
QUICK = """
name: quick
stages:
  baseline:
    - {id: bench, uses: command, with: {command: "true"}, runs: 6}
"""


def stored_names(folder: Path, *names: str) -> None:
    times = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98]
    (folder / "old.json").write_text(json.dumps({"results": [{"command": "a", "times": times}]}))
    for name in names:
        assert perfflow("baseline", "save", name, "old.json", cwd=folder).returncode == 0


def test_a_hang_up_is_an_interruption(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    process = started(tmp_path)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, err
    assert "--resume=" in err
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["run"]["interrupted"] is True
    assert result["benchmarks"][0]["baseline"]["n"] >= 3


def test_a_terminal_that_is_closed_loses_nothing(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    main, other = os.openpty()
    process = subprocess.Popen(
        ["setsid", "-c", "-w", sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", "out"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    wait_for_samples(tmp_path)
    os.close(main)
    assert process.wait(DEADLINE) == 130
    assert json.loads((tmp_path / "out" / "result.json").read_text())["run"]["interrupted"] is True


def test_after_nohup_a_hang_up_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    process = started(tmp_path, as_nohup=True)
    process.send_signal(signal.SIGHUP)
    before = samples(tmp_path)
    ends = time.monotonic() + DEADLINE
    while samples(tmp_path) < before + 5:
        assert process.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 130


def started(folder: Path, *, as_nohup: bool = False) -> subprocess.Popen[str]:
    """A run with its first samples. Signals ignored here are also ignored in its child processes."""
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN if as_nohup else signal.SIG_DFL)
    try:
        process = start("run", "flow.yaml", "--out", "out", cwd=folder)
    finally:
        signal.signal(signal.SIGHUP, earlier)
    wait_for_samples(folder)
    return process


def samples(folder: Path) -> int:
    events = folder / "out" / "events.jsonl"
    return events.read_text().count('"sample"') if events.exists() else 0


def wait_for_samples(folder: Path) -> None:
    ends = time.monotonic() + DEADLINE
    while samples(folder) < 3:
        assert time.monotonic() < ends, "nothing was sampled"
        time.sleep(0.02)


@pytest.mark.parametrize("closed", ["2>&-", "2>&- >&-"])
def test_a_closed_stderr_is_no_defect(closed: str, tmp_path: Path) -> None:
    write(tmp_path, QUICK)
    words = f"{sys.executable} -m perfflow run flow.yaml --progress live {closed}"
    assert subprocess.run(["bash", "-c", words], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / ".perfflow/runs/latest/result.json").is_file()


SUITE = """
name: globs
targets: {"*parse*": {time: <1s}}
stages:
  baseline:
    - id: bench
      run: "echo core/parse 1"
      parse: {regex: '(?P<benchmark>\\S+) (?P<time>\\d+)', units: {time: ms}}
"""


def test_a_star_that_stops_at_a_slash_is_explained(tmp_path: Path) -> None:
    write(tmp_path, SUITE)
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "hint: `*` does not cross `/`; write `**parse*` (benchmarks: core/parse)" in done.stderr
    write(tmp_path, QUICK.replace("id: bench", "id: bench, benchmark: core/parse") + "targets: {'*parse': {time: <1s}}")
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "hint: `*` does not cross `/`; write `**parse`" in done.stderr + done.stdout


def test_a_result_of_another_version_or_tool_is_called_that(tmp_path: Path) -> None:
    write(tmp_path, QUICK)
    assert perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path).returncode == 0
    text = (tmp_path / "out" / "result.json").read_text()
    (tmp_path / "later.json").write_text(text.replace("perfflow.result/2", "perfflow.result/3"))
    stored_names(tmp_path)
    (tmp_path / "report.json").write_text((tmp_path / "old.json").read_text())
    for arguments in (["report", "later.json"], ["compare", "later.json", "later.json"]):
        done = perfflow(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert (
            "its schema is 'perfflow.result/3', and this version of perfflow reads 'perfflow.result/2'" in done.stderr
        )
        assert "truncated" not in done.stderr
    done = perfflow("report", "report.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "a result file of hyperfine, not of perfflow" in done.stderr
    assert "perfflow compare OLD-RESULT NEW-RESULT" in done.stderr


def test_a_required_tool_that_is_missing_comes_with_its_install_command(tmp_path: Path) -> None:
    write(tmp_path, QUICK.replace("runs: 6", "requires: {tool: [valgrind, nonesuch]}"))
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "true"):
        (folder / name).symlink_to(str(shutil.which(name)))
    done = perfflow("run", "flow.yaml", cwd=tmp_path, path=str(folder))
    assert "valgrind is not on PATH; install it: apt-get install valgrind; nonesuch is not on PATH" in done.stdout


@pytest.mark.parametrize("given", ["bin", "${{ steps.first.outputs.folder }}", "none"])
def test_a_plan_looks_for_programs_where_the_workflow_says(given: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nonesuch").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "nonesuch").chmod(0o755)
    first = "{id: first, run: 'echo folder=bin >> \"$PERFFLOW_OUTPUT\"'}"
    second = f"{{id: second, run: 'true', env: {{PATH: '{given}:/usr/bin:/bin'}}, requires: {{tool: nonesuch}}}}"
    write(tmp_path, f"name: flow\nstages: {{setup: [{first}], build: [{second}]}}\n")
    done = perfflow("plan", "flow.yaml", cwd=tmp_path)
    assert ("missing: nonesuch is not on PATH" in done.stdout) == (given == "none")


def test_data_that_are_not_there_are_named_and_not_compared(tmp_path: Path) -> None:
    write(tmp_path, f"data: [in.txt, 'none/*.txt']{QUICK}")
    (tmp_path / "in.txt").write_text("1")
    done = perfflow("run", "flow.yaml", "--out", "without", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = "data: `none/*.txt` matches no file"
    assert f"note: {said}" in done.stdout
    result = json.loads((tmp_path / "without" / "result.json").read_text())
    assert result["run"]["data_missing"] == ["none/*.txt"]
    page = (tmp_path / "without" / "report.md").read_text()
    assert said in page.replace("\\", "")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "1.txt").write_text("1")
    done = perfflow("run", "flow.yaml", "--out", "there", cwd=tmp_path)
    assert "matches no file" not in done.stdout
    for words in (("without", "there"), ("there", "without")):
        done = perfflow("compare", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "without was measured without the data it declares: no file matched none/*.txt" in done.stderr
    assert perfflow("compare", "without", "without", cwd=tmp_path).returncode == 0


def test_a_missing_pytest_is_the_reason_of_the_step(tmp_path: Path) -> None:
    program = tmp_path / "bare"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    program.chmod(0o755)
    (tmp_path / "test_a.py").write_text("def test_a(benchmark):\n    benchmark(sum, [1])\n")
    write(
        tmp_path,
        'stages: {baseline: [{id: suite, uses: pytest-benchmark, benchmark: "*", candidate: {env: {A: b}},'
        " with: {python: ./bare, paths: test_a.py}}]}",
    )
    done = perfflow("run", "flow.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 3
    (step,) = json.loads(done.stdout)["steps"]
    said = "pytest is not installed for this python: pip install pytest pytest-benchmark"
    assert step["reason"] == f"bare exited with 1: {said}"


def test_a_long_comparison_shows_that_it_goes_on_and_a_short_one_says_nothing(tmp_path: Path) -> None:
    # A separate lock: a run that waits for another test would print that.
    alone = {"PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    done = perfflow("compare", "--runs", "4", "--", "sleep 0.5", "sleep 0.5 ", cwd=tmp_path, env=alone)
    assert "measuring: " in done.stderr
    assert "measuring: " not in done.stdout
    done = perfflow("compare", "--runs", "2", "--", "true", "true", cwd=tmp_path, env=alone)
    assert done.stderr == ""


def test_a_program_that_is_missing_where_an_earlier_step_points_has_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.mojo").write_text("def main(): pass\n")
    write(
        tmp_path,
        "stages:\n  setup:\n    - {id: where, run: 'echo folder=/no >> \"$PERFFLOW_OUTPUT\"'}\n"
        "  baseline:\n    env: {PATH: '${{ steps.where.outputs.folder }}:/usr/bin:/bin'}\n    steps:\n"
        "      - {id: kernels, uses: mojo-bench, with: {file: a.mojo}}\n",
    )
    done = perfflow("run", "flow.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 3
    reason = json.loads(done.stdout)["steps"][1]["reason"]
    assert reason == "mojo is not on PATH; install it: pip install mojo"
