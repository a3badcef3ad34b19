"""Real ``nsys`` (some 600 MB, if it is on PATH) without a GPU: ranges and calls of the operating system."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from tests.cli.shell import perfflow
from tests.tools.harness import call_of as call
from tests.tools.harness import parsed_of, run, why
from tests.tools.nsys import headers

SECRET = "planted-4c6f-in-the-environment"  # noqa: S105 (what must be found nowhere)
pytestmark = pytest.mark.skipif(
    not shutil.which("nsys"),
    reason="nsys is not on PATH (apt-get install nsight-systems from Debian's non-free); captured reports stand in",
)


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> str:
    try:
        return str(headers.build(tmp_path_factory.mktemp("nvtx") / "ranges"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture
def alone() -> Iterator[None]:
    """Check that no process and no private folder of nsys remain after the test."""
    before = _agents(), set(Path(tempfile.gettempdir()).glob("perfflow-nsys-*"))
    yield
    end = time.monotonic() + 10
    while _agents() - before[0] and time.monotonic() < end:
        time.sleep(0.1)
    assert not _agents() - before[0]
    assert set(Path(tempfile.gettempdir()).glob("perfflow-nsys-*")) <= before[1]


def _agents() -> set[int]:
    """Return the running processes of nsys that this user can inspect."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            name = str((entry / "exe").readlink()) if entry.name.isdecimal() else ""
        except OSError:
            continue
        if Path(name).name in ("nsys", "nsys-launcher"):
            found.add(int(entry.name))
    return found


@pytest.mark.usefixtures("alone")
def test_ranges_and_calls(ranges: str, tmp_path: Path) -> None:
    parsed = parsed_of(run("nsys", tmp_path / "out", ranges))
    report = json.loads((tmp_path / "out" / "nsys.json").read_text())
    assert {row["name"]: row["calls"] for row in report["ranges"]} == {"epoch": 1, "load": 3, "step": 3, "whole": 1}
    assert [(row["name"], row["calls"]) for row in report["os"] if row["name"] == "usleep"] == [("usleep", 7)]
    assert {spot.location for spot in parsed.hotspots} == {"epoch", "load", "step"}
    assert any("no kernel was recorded" in warning for warning in parsed.warnings)


def test_only_a_range(ranges: str, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"trace": ["nvtx", "osrt"], "capture-range": "nvtx:load"}
    run("nsys", tmp_path / "out", ranges, **keys).parse()
    report = json.loads((tmp_path / "out" / "nsys.json").read_text())
    assert {row["name"]: row["calls"] for row in report["ranges"]} == {"load": 1}
    ran = run("nsys", tmp_path / "never", ranges, **{**keys, "capture-range": "nvtx:absent"})
    with pytest.raises(ToolOutputError, match="was never entered"):
        ran.parse()


@pytest.mark.usefixtures("alone")
def test_a_duration_ends_the_program(tmp_path: Path) -> None:
    ran = run("nsys", tmp_path / "out", "/bin/sh", "-c", "while :; do sleep 0.1; done", trace=["osrt"], duration="1s")
    assert ran.status == 0
    ran.parse()


def test_a_program_that_fails(tmp_path: Path) -> None:
    assert "exit status 3" in why("nsys", call("nsys", tmp_path / "out", "/bin/sh", "-c", "exit 3"))
    assert "exit status" in why("nsys", call("nsys", tmp_path / "bad", "/bin/true", trace=["no-such-thing"]))


def _flow(folder: Path, **keys: object) -> None:
    step = {"id": "gpu", "uses": "nsys", "with": {"command": "/bin/sleep 0.1", **keys}}
    (folder / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"baseline": [step]}}))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("keep", [False, True])
def test_the_environment_reaches_no_file_of_a_run(keep: bool, tmp_path: Path) -> None:
    _flow(tmp_path, **{"keep-report": keep})
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, env={"PLANTED": SECRET}, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert sorted(file.name for file in files) == (["report.nsys-rep", "report.sqlite"] if keep else [])
    assert ("all its secrets: do not publish" in (tmp_path / "out" / "result.json").read_text()) == keep


@pytest.mark.usefixtures("alone")
def test_a_time_limit_leaves_nothing_behind(tmp_path: Path) -> None:
    step = {"id": "gpu", "uses": "nsys", "timeout": "3s", "with": {"command": "/bin/sleep 61.5"}}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"baseline": [step]}}))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, env={"PLANTED": SECRET}, measured=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "time limit of 3 s" in done.stdout + done.stderr
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file() and SECRET in file.read_text()]
    asleep = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    assert not [entry for entry in asleep if b"61.5" in _command_line(entry)]


@pytest.mark.usefixtures("alone")
def test_a_killed_run_leaves_no_recording(tmp_path: Path) -> None:
    """SIGKILL of perfflow leaves no recording of nsys, which would contain the environment."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$TMPDIR" > began\nexec sleep 62.5\n')
    program.chmod(0o755)
    step = {"id": "gpu", "uses": "nsys", "with": {"command": "./program"}}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"baseline": [step]}}))
    theirs, run_by = tmp_path / "theirs", [sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", "out"]
    theirs.mkdir()
    env = {**os.environ, "TMPDIR": str(theirs), "PLANTED": SECRET, "PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    with subprocess.Popen(run_by, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        end = time.monotonic() + 60
        while not (tmp_path / "began").exists() and time.monotonic() < end:
            time.sleep(0.05)
        child.kill()
    assert (tmp_path / "began").read_text().strip() == str(theirs)
    end = time.monotonic() + 20
    while (left := [file for file in theirs.rglob("*") if file.is_file()]) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file() and SECRET in file.read_text()]


def _command_line(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""
