"""``perfflow calibrate`` with real programs, and how later runs use the result."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perfflow.machine.lock import machine_alone
from perfflow.report.sanitize import cells
from tests.cli.shell import perfflow, start, write
from tests.session.test_adaptive import NOISY as PROGRAM

FLOW = """
name: demo
params: {size: 10}
stages:
  build:
    - {id: make, run: "echo 'BEGIN { for (i = 0; i < 90000; i++) s += i }' > prog.awk"}
  baseline:
    - {id: bench, uses: command, budget: 1s, with: {command: awk -f prog.awk}, candidate: "false"}
    - {id: count, uses: cachegrind, with: {command: /bin/true}}
  verify:
    - {id: tests, run: exit 3}
"""
# Its printed figures have known noise, independent of the machine.
NOISY = """
name: noisy
stages:
  baseline:
    - id: bench
      run: ./noisy 1 {spread}
      candidate: {{command: ./noisy 1 {other}}}
      parse: {{regex: "time (?P<time>[0-9.]+)", units: {{time: us}}}}
      runs: 16
"""


def stored(folder: Path) -> list[dict[str, Any]]:
    (file,) = (folder / ".perfflow" / "calibration").glob("*.json")
    entries: list[dict[str, Any]] = json.loads(file.read_text())["entries"]
    return entries


def noisy(folder: Path, spread: float, other: float) -> str:
    program = folder / "noisy"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return str(write(folder, NOISY.format(spread=spread, other=other)))


def test_each_step_is_compared_with_itself_and_what_is_found_is_kept(tmp_path: Path) -> None:
    """The candidate and the correctness step fail, but a calibration runs neither."""
    flow = write(tmp_path, FLOW)
    done = perfflow("calibrate", str(flow), "--trials", "3", "--seed", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["entries"] == stored(tmp_path)
    assert (said["schema"], said["workflow"], said["seed"], said["failed"]) == ("perfflow.calibration/1", "demo", 5, [])
    found = {(item["finding"]["benchmark"], item["finding"]["metric"]): item["finding"] for item in said["entries"]}
    bench = found["bench", "cpu"]
    assert bench["noise"] > 0
    assert bench["trials"] == 3
    assert 0 < bench["alarm_bound"] <= 1
    assert 0 <= bench["same"] <= 3
    assert 10 <= bench["pairs"] <= 4096
    assert bench["seconds"] > 0
    judged = [item for item in found.values() if item["judged"]]
    assert len(judged) == 1
    assert judged[0]["metric"] in ("cpu", "uncontended", "time")
    assert judged[0]["why"]
    assert found["count", ""]["exact"]
    for entry in said["entries"]:
        assert (entry["workflow"], entry["params"], entry["version"]) == ("demo", {"size": 10}, "0.1.0")
    # The folder in which the steps ran is removed. The runs are kept.
    names = {path.suffix: path.name for path in (tmp_path / ".perfflow" / "calibration").iterdir()}
    assert set(names) == {".json", ".html"}
    page = tmp_path / ".perfflow" / "calibration" / names[".html"]
    assert said["report"] == str(page)
    text = page.read_text()
    page.unlink()
    shown = perfflow("report", "calibration", "--html", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (0, ".perfflow/calibration/report.html\n"), shown.stderr
    assert page.read_text() == text
    assert "bench" in perfflow("report", "calibration", cwd=tmp_path).stdout
    assert not (tmp_path / ".perfflow" / "runs").exists()
    assert (tmp_path / ".perfflow" / ".gitignore").read_text() == "*\n"


@pytest.mark.long
def test_a_suite_whose_benchmarks_disturb_each_other_has_a_process_for_each(tmp_path: Path) -> None:
    (tmp_path / "test_bench.py").write_text(
        "def work(n): return sum(i * i for i in range(n))\n"
        "def test_disturbed(benchmark, request): benchmark(work, 1000 * len(request.session.items))\n"
        "def test_other(benchmark): benchmark(work, 1000)\n"
    )
    step = "{id: bench, uses: pytest-benchmark, budget: 4s, candidate: {env: {SIDE: b}}}"
    flow = str(write(tmp_path, f"name: x\nstages: {{baseline: [{step}]}}"))
    assert perfflow("calibrate", flow, "--trials", "1", "--trust", cwd=tmp_path).returncode == 0
    alone = {item["finding"]["benchmark"]: item["finding"]["alone"] for item in stored(tmp_path)}
    judged = {item["finding"]["benchmark"]: item["finding"] for item in stored(tmp_path) if item["finding"]["judged"]}
    assert judged["test_bench.py::test_disturbed"]["alone"] < -0.3
    assert judged["test_bench.py::test_other"]["alone"] is None
    assert set(alone) == set(judged)
    done = perfflow("run", flow, "--trust", "--json", cwd=tmp_path)
    (bench,) = json.loads(done.stdout)["steps"]
    assert any("disturb each other" in text for text in bench["warnings"])
    assert '"together"' not in (tmp_path / ".perfflow/runs/latest/events.jsonl").read_text()


def test_a_calibration_waits_for_the_machine_as_long_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    flow = noisy(tmp_path, 0.01, 0.01)
    with machine_alone("nightly, step decode", 10, lambda _: None):
        done = perfflow("calibrate", flow, "--trials", "1", "--lock-timeout", "1s", cwd=tmp_path)
    assert done.returncode == 3
    assert "failed bench: the machine is held by nightly, step decode (" in done.stdout
    assert "waiting for the machine, next in line: held by nightly, step decode (" in done.stderr


def test_a_later_run_expects_it_and_is_judged_again_with_the_same_bytes(tmp_path: Path) -> None:
    assert perfflow("calibrate", noisy(tmp_path, 0.002, 0.002), "--trials", "3", cwd=tmp_path).returncode == 0
    (entry,) = stored(tmp_path)
    # Much noisier than at calibration: nothing is proven, and the report shows why and what to expect.
    done = perfflow("run", noisy(tmp_path, 0.5, 0.5), "--json", cwd=tmp_path)
    (row,) = json.loads(done.stdout)["benchmarks"]
    assert row["expected"] == {
        **{key: entry["finding"][key] for key in ("noise", "smallest_change", "within")},
        "calibrated": entry["calibrated"],
    }
    assert any(text.startswith("noisier than when calibrated: ±") for text in row["warnings"])
    run = (tmp_path / ".perfflow" / "runs" / "latest").resolve()
    assert row["decision"] == "unproven"
    assert "on this machine changes of " in (run / "report.md").read_text()
    before = {name: (run / name).read_bytes() for name in ("result.json", "report.md")}
    # Calibrated again in between: the expectation of the run is in its events.
    assert perfflow("calibrate", noisy(tmp_path, 0.1, 0.1), "--trials", "2", cwd=tmp_path).returncode == 0
    perfflow("report", cwd=tmp_path)
    assert {name: (run / name).read_bytes() for name in before} == before


def test_another_machine_and_other_parameters_expect_nothing(tmp_path: Path) -> None:
    flow = f"params: {{size: 1}}{Path(noisy(tmp_path, 0.01, 0.01)).read_text().partition('perfflow: 1')[2]}"
    path = str(write(tmp_path, flow))
    assert perfflow("calibrate", path, "--trials", "1", cwd=tmp_path).returncode == 0

    def expected(*arguments: str) -> object:
        done = perfflow("run", path, "--json", *arguments, cwd=tmp_path)
        return json.loads(done.stdout)["benchmarks"][0]["expected"]

    assert expected() is not None
    assert expected("--set", "size=2") is None
    (file,) = (tmp_path / ".perfflow" / "calibration").glob("*.json")
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "identity": "0123456789abcdef"}))
    assert expected() is None


def test_a_damaged_calibration_is_not_replaced_and_only_a_warning_of_a_run(tmp_path: Path) -> None:
    flow = noisy(tmp_path, 0.01, 0.01)
    assert perfflow("calibrate", flow, "--trials", "1", cwd=tmp_path).returncode == 0
    (file,) = (tmp_path / ".perfflow" / "calibration").glob("*.json")
    file.write_text("{")
    done = perfflow("calibrate", flow, cwd=tmp_path)
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert "perfflow calibrate" in done.stderr
    done = perfflow("run", flow, "--json", cwd=tmp_path)
    assert done.returncode in (0, 4), done.stderr
    (warning,) = json.loads(done.stdout)["run"]["warnings"]
    assert str(file) in warning


def test_one_step_leaves_what_is_known_of_the_others(tmp_path: Path) -> None:
    flow = write(
        tmp_path,
        """
stages:
  baseline:
    - {id: one, uses: command, runs: 3, with: {command: sleep 0.01}}
    - {id: two, uses: command, runs: 3, with: {command: sleep 0.01}}
""",
    )
    assert perfflow("calibrate", str(flow), "--trials", "1", "--seed", "1", cwd=tmp_path).returncode == 0
    done = perfflow("calibrate", str(flow), "--trials", "1", "--seed", "2", "--only", "two", cwd=tmp_path)
    assert done.returncode == 0
    assert {(item["finding"]["step"], item["seed"]) for item in stored(tmp_path)} == {("one", 1), ("two", 2)}


def test_expensive_commands_stop_at_the_budget(tmp_path: Path) -> None:
    """Two warm-up runs and ten measured runs take 5 s. The budget covers some of them."""
    flow = str(write(tmp_path, "stages: {baseline: [{id: nap, uses: command, with: {command: sleep 0.4}}]}"))
    done = perfflow("calibrate", flow, "--budget", "200ms", cwd=tmp_path)
    assert done.returncode == 3
    assert "not calibrated nap: the budget ran out before there were" in done.stdout
    assert "--budget" in done.stdout
    assert not list((tmp_path / ".perfflow" / "calibration").iterdir())
    done = perfflow("calibrate", flow, "--budget", "3.8s", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    (row,) = [item["finding"] for item in json.loads(done.stdout)["entries"] if item["finding"]["metric"] == "time"]
    assert row["noise"] is not None
    assert row["trials"] == 0
    assert row["alarm_bound"] is None


@pytest.mark.parametrize(
    ("steps", "status", "said"),
    [
        ("baseline: [{id: bad, uses: command, with: {command: 'false'}}]", 3, "failed bad: "),
        ("build: [{id: make, run: exit 7}], baseline: [{id: b, uses: command, with: {command: 'true'}}]", 3, "make"),
        ("baseline: [{id: bad, uses: command, with: {command: ./none}}]", 3, "failed bad: "),
        ("baseline: [{id: bad, uses: command, typo: 1, with: {command: 'true'}}]", 2, "typo"),
        ("build: [{id: make, run: 'true'}]", 2, "measures nothing"),
    ],
)
def test_what_cannot_be_measured_has_the_exit_status_of_a_run(
    tmp_path: Path, steps: str, status: int, said: str
) -> None:
    done = perfflow("calibrate", str(write(tmp_path, f"stages: {{{steps}}}")), cwd=tmp_path)
    assert done.returncode == status
    assert said in done.stdout + done.stderr
    assert not list((tmp_path / ".perfflow").glob("calibration/*.json"))


def test_a_benchmark_of_a_suite_that_fails_is_named_and_the_others_are_calibrated(tmp_path: Path) -> None:
    suite = Path(__file__).parent / "programs" / "suite"
    step = f"{{id: s, uses: google-benchmark, with: {{command: sh {suite}}}, budget: 300ms}}"
    flow = str(write(tmp_path, f"stages: {{baseline: [{step}]}}"))
    (tmp_path / "one").write_text("100")
    (tmp_path / "two").write_text("broken")
    done = perfflow("calibrate", flow, "--trials", "2", cwd=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "failed s: two: " in done.stdout
    assert {item["finding"]["benchmark"] for item in stored(tmp_path)} == {"one"}


def test_usage(tmp_path: Path) -> None:
    flow = str(write(tmp_path, FLOW))
    for arguments, said in [
        (("--only", "make"), "`make` measures nothing"),
        (("--only", "bench2"), "no step 'bench2'"),
        (("--budget", "soon"), "--budget soon"),
        (("--trials", "0"), "--trials"),
        (("--set", "nothing=1"), "nothing"),
    ]:
        done = perfflow("calibrate", flow, *arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert said in done.stderr


def test_an_interruption_keeps_what_was_found(tmp_path: Path) -> None:
    flow = write(
        tmp_path,
        """
stages:
  baseline:
    - {id: quick, uses: command, runs: 4, with: {command: sleep 0.01}}
    - {id: nap, uses: command, runs: 400, with: {command: sleep 0.02; touch started, shell: true}}
""",
    )
    process = start("calibrate", str(flow), "--trials", "2", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    assert "quick" in out
    steps = {item["finding"]["step"] for item in stored(tmp_path)}
    assert steps == {"quick", "nap"}
    nap = next(item["finding"] for item in stored(tmp_path) if item["finding"]["step"] == "nap")
    assert nap["trials"] == 0


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_the_table_fits_the_terminal(tmp_path: Path, columns: int) -> None:
    flow = write(tmp_path, "stages: {baseline: [{id: bench, uses: command, runs: 3, with: {command: sleep 0.01}}]}")
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "perfflow", "calibrate", str(flow), "--trials", "1"],
        cwd=tmp_path,
        env=env,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    lines = shown.decode().splitlines()
    assert "bench" in lines
    assert max(cells(line) for line in lines) <= columns
