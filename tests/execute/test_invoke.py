"""Checks of exit status, fresh output and content, with real programs under a test adapter."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.execute import invoke
from perfflow.execute.child import MARK, Spawner
from perfflow.execute.invoke import Failure, Invoked, require_fresh, tail
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.readings import Side
from perfflow.tools.adapter import Call, CommandOptions
from tests.execute.adapter import bash_tool
from tests.execute.plans import item


def ready(folder: Path, *texts: str, command: tuple[str, ...] = (), python: bool = False) -> ReadyProcess:
    tool = bash_tool(*texts, python=python)
    call = Call(CommandOptions(), folder, command=command)
    env = {**os.environ, MARK: "invoke"}
    return ReadyProcess(replace(item("bench"), tool=tool), Side.BASELINE, command, env, folder, None, tool, call)


def plain(folder: Path, *argv: str) -> ReadyProcess:
    return ReadyProcess(item("make"), Side.BASELINE, argv, {**os.environ, MARK: "invoke"}, folder, None)


def run(keeper: Spawner, folder: Path, *texts: str) -> Invoked:
    return invoke.run(keeper, ready(folder, *texts), folder)


def failure(keeper: Spawner, process: ReadyProcess) -> Failure:
    with pytest.raises(Failure) as caught:
        invoke.run(keeper, process, process.cwd)
    return caught.value


def test_a_good_run_is_parsed(keeper: Spawner, tmp_path: Path) -> None:
    done = run(keeper, tmp_path, "echo 12 > $FOLDER/figure")
    assert done.parsed.readings[0].value == 12
    assert done.exit_code == 0


FIGURE = "echo 12 > $FOLDER/figure"


@pytest.mark.parametrize(
    ("texts", "reason", "status"),
    [
        # What an earlier run left is removed.
        (["true"], "the tool left no figure", None),
        ([": > $FOLDER/figure"], "the tool left an empty figure", None),
        ([f"{FIGURE}; touch -d '1 hour ago' $FOLDER/figure"], "figure is older than the run", None),
        (["echo many > $FOLDER/figure"], "figures: the figure is 'many'", 0),
        # Good output does not excuse a bad status, which the tool's own words explain.
        ([f"{FIGURE}; exit 3"], "bash exited with 3", 3),
        (["echo gone wrong > $FOLDER/figure; exit 3"], "figures: the figure is 'gone wrong' (exit status 3)", 3),
        ([f"{FIGURE}; kill -9 $$"], "bash was killed by signal 9", -9),
        (["exit 4", "echo 1 > $FOLDER/figure"], "figures: no figure (exit status 4)", 4),
    ],
)
def test_what_is_wrong_with_a_run_is_said(
    keeper: Spawner, tmp_path: Path, texts: list[str], reason: str, status: int | None
) -> None:
    (tmp_path / "figure").write_text("99")
    found = failure(keeper, ready(tmp_path, *texts))
    assert (found.reason, found.exit_code) == (reason, status)


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_a_tool_runs_makes_its_output_no_older(
    keeper: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    real = time.time
    set_now = tmp_path / "set"
    # The clock is off by an hour until it is set; files carry the corrected time.
    monkeypatch.setattr(time, "time", lambda: real() - (0 if set_now.exists() else step))
    done = run(keeper, tmp_path, f"echo > {set_now}; {FIGURE}")
    assert done.parsed.readings[0].value == 12
    set_now.unlink()
    stale = f"echo > {set_now}; {FIGURE}; touch -d '3 hours ago' $FOLDER/figure"
    assert failure(keeper, ready(tmp_path, stale)).reason == "figure is older than the run"


def test_converters_run_in_order_and_the_usage_is_the_first_ones(keeper: Spawner, tmp_path: Path) -> None:
    convert = "cat $FOLDER/raw $FOLDER/raw | wc -l > $FOLDER/figure"
    done = run(keeper, tmp_path, "sleep 0.2; echo 1 > $FOLDER/raw", convert)
    assert done.parsed.readings[0].value == 2
    assert done.usage.wall >= 0.2


def test_a_time_limit_is_told_apart(keeper: Spawner, tmp_path: Path) -> None:
    found = failure(keeper, replace(ready(tmp_path, "sleep 300"), timeout=0.2))
    assert (found.timeout, found.reason) == (True, "bash ran into the time limit of 0.2 s")


def test_a_plain_command_keeps_its_output_and_names_itself(keeper: Spawner, tmp_path: Path) -> None:
    done = invoke.run(keeper, plain(tmp_path, "echo", "said"), tmp_path)
    assert (tmp_path / "stdout").read_text() == "said\n"
    assert (done.exit_code, done.parsed.readings) == (0, ())
    found = failure(keeper, plain(tmp_path, "no-such-program"))
    assert (found.reason, found.exit_code) == ("no-such-program: not found or not executable", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo to-err >&2; echo to-out; exit 1", "to-err"), ("echo FAILED test_x; exit 1", "FAILED test_x")],
)
def test_the_log_of_a_failure_is_the_stream_that_says_something(
    keeper: Spawner, tmp_path: Path, text: str, said: str
) -> None:
    found = failure(keeper, plain(tmp_path, "bash", "-c", text))
    assert (found.reason, list(tail(found.log))) == ("make exited with 1", [said])


def test_the_tail_is_short_and_shows_what_terminals_would_act_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(5000)) + b"\x1b[31mred\x07\xff\n")
    lines = list(tail(log))
    assert len(lines) == invoke.TAIL_LINES
    assert lines[-1] == "\\x1b[31mred\\x07�"
    assert lines[-2] == "line 4999"
    assert list(tail(None)) == list(tail(tmp_path / "none")) == []


def program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_the_interpreter_behind_a_shim_is_found(keeper: Spawner, tmp_path: Path) -> None:
    for name in (program(tmp_path, f'#!/bin/bash\nexec {sys.executable} "$@"\n'), sys.executable):
        prepared = ready(tmp_path, "basename $0 >&2; echo 1 > $FOLDER/figure", command=(name,), python=True)
        invoke.run(keeper, prepared, tmp_path)
        assert (tmp_path / "stderr").read_text().startswith("python")


@pytest.mark.parametrize(
    ("text", "why"),
    [("#!/bin/bash\nexit 0\n", "is not a Python interpreter"), ("#!/no/such/interpreter\n", "cannot start")],
)
def test_what_is_no_interpreter_is_said(keeper: Spawner, tmp_path: Path, text: str, why: str) -> None:
    prepared = ready(tmp_path, "echo 1 > $FOLDER/figure", command=(program(tmp_path, text),), python=True)
    assert why in failure(keeper, prepared).reason


def test_freshness_of_a_file_that_a_command_writes(tmp_path: Path) -> None:
    path, log = tmp_path / "out.json", tmp_path / "log"
    with pytest.raises(Failure, match=r"^the tool left no out\.json$"):
        require_fresh(path, time.time(), log)
    path.write_text("{}")
    require_fresh(path, time.time(), log)
    os.utime(path, (1, 1))
    with pytest.raises(Failure, match=r"^out\.json is older than the run$"):
        require_fresh(path, time.time(), log)
