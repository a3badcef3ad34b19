"""``perfflow calibrate`` with real programs, and how later runs use the result.

See also ``cases/calibrate.txt``.
"""

from __future__ import annotations

import contextlib
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
from perfflow.model.version import VERSION
from perfflow.report.sanitize import cells
from tests.cli.shell import perfflow, start, write
from tests.long import rest_long
from tests.session.test_adaptive import NOISY as PROGRAM
from tests.tools.lines_adapter import ADAPTER
from tests.tools.test_provided import install

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
      candidate: {{command: ./noisy 1 {spread}}}
      parse: {{regex: "time (?P<time>[0-9.]+)", units: {{time: us}}}}
      runs: 16
"""


def stored(folder: Path) -> list[dict[str, Any]]:
    (file,) = (folder / ".perfflow" / "calibration").glob("*.json")
    entries: list[dict[str, Any]] = json.loads(file.read_text())["entries"]
    return entries


def noisy(folder: Path, spread: float) -> str:
    program = folder / "noisy"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return str(write(folder, NOISY.format(spread=spread)))


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
        assert (entry["workflow"], entry["params"], entry["version"]) == ("demo", {"size": 10}, VERSION)
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
    flow = noisy(tmp_path, 0.01)
    with machine_alone("nightly, step decode", 10, lambda _: None):
        done = perfflow("calibrate", flow, "--trials", "1", "--lock-timeout", "1s", cwd=tmp_path)
    assert done.returncode == 3
    assert "failed bench: the machine is held by nightly, step decode (" in done.stdout
    assert "waiting for the machine, next in line: held by nightly, step decode (" in done.stderr


def test_a_later_run_expects_it_and_is_judged_again_with_the_same_bytes(tmp_path: Path) -> None:
    assert perfflow("calibrate", noisy(tmp_path, 0.002), "--trials", "3", cwd=tmp_path).returncode == 0
    (entry,) = stored(tmp_path)
    # Much noisier than at calibration: nothing is proven, and the report shows why and what to expect.
    done = perfflow("run", noisy(tmp_path, 0.5), "--json", cwd=tmp_path)
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
    assert perfflow("calibrate", noisy(tmp_path, 0.1), "--trials", "2", cwd=tmp_path).returncode == 0
    perfflow("report", cwd=tmp_path)
    assert {name: (run / name).read_bytes() for name in before} == before


@pytest.mark.long  # compares several times
def test_another_machine_and_other_parameters_expect_nothing(tmp_path: Path) -> None:
    flow = f"params: {{size: 1}}{Path(noisy(tmp_path, 0.01)).read_text().partition('perfflow: 1')[2]}"
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


def test_an_interruption_keeps_what_was_found(tmp_path: Path) -> None:
    quick = "{id: quick, uses: command, runs: 4, with: {command: sleep 0.01}}"
    nap = "{id: nap, uses: command, runs: 400, with: {command: sleep 0.02; touch started, shell: true}}"
    flow = write(tmp_path, f"stages: {{baseline: [{quick}, {nap}]}}")
    process = start("calibrate", str(flow), "--trials", "2", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    assert "quick" in out
    found = {item["finding"]["step"]: item["finding"] for item in stored(tmp_path)}
    assert set(found) == {"quick", "nap"}
    assert found["nap"]["trials"] == 0


@pytest.mark.parametrize("columns", rest_long([60, 80, 160]))
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
        # Linux reports an error where the other side is closed.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    assert process.returncode == 0
    lines = shown.decode().splitlines()
    assert "bench" in lines
    assert max(cells(line) for line in lines) <= columns


BUILD = """

def preparations(call):
    return (Invocation(("sleep", "3")),)


ADAPTER = Adapter(
    build=Builder(preparations=preparations),
"""
BUILT = ADAPTER.replace("\n\nADAPTER = Adapter(\n", BUILD).replace("import (\n", "import (\n    Builder,\n", 1)
STEP = "{{id: {}, uses: lines, runs: 3, with: {{command: [echo, '{{\"time\": 0.5}}']}}}}"


@pytest.mark.long  # builds and compares several times
def test_what_is_built_first_takes_none_of_the_budget(tmp_path: Path) -> None:
    """Either build takes longer than a step's share, and both longer than the whole budget."""
    site = tmp_path / "site"
    site.mkdir()
    install(site, "slow", {"slow_adapter": BUILT}, {"lines": "slow_adapter:ADAPTER"})
    flow = str(write(tmp_path, f"stages: {{baseline: [{STEP.format('one')}, {STEP.format('two')}]}}\n"))
    env = {"PYTHONPATH": str(site)}
    done = perfflow("calibrate", flow, "--trials", "1", "--budget", "4s", "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert {item["finding"]["step"] for item in found["entries"]} == {"one", "two"}
    assert found["skipped"] == []
