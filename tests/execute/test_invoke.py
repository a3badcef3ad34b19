"""Checks of exit status, fresh output and content, with real programs under a test adapter."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def keeper() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


def ready(folder: Path, *texts: str, command: tuple[str, ...] = (), python: bool = False) -> ReadyProcess:
    tool = bash_tool(*texts, python=python)
    call = Call(CommandOptions(), folder, command=command)
    planned = replace(item("bench"), tool=tool)
    env = {**os.environ, MARK: "invoke"}
    return ReadyProcess(planned, Side.BASELINE, command, env, folder, None, tool, call)


def run(keeper: Spawner, folder: Path, *texts: str) -> Invoked:
    return invoke.run(keeper, ready(folder, *texts), folder)


def reason(keeper: Spawner, folder: Path, *texts: str) -> Failure:
    with pytest.raises(Failure) as caught:
        run(keeper, folder, *texts)
    return caught.value


def test_a_good_run_is_parsed(keeper: Spawner, tmp_path: Path) -> None:
    done = run(keeper, tmp_path, "echo 12 > $FOLDER/figure")
    assert done.parsed.readings[0].value == 12
    assert done.exit_code == 0


def test_status_0_without_output_is_a_failure(keeper: Spawner, tmp_path: Path) -> None:
    assert reason(keeper, tmp_path, "true").reason == "the tool left no figure"
    assert reason(keeper, tmp_path, ": > $FOLDER/figure").reason == "the tool left an empty figure"


def test_output_of_an_earlier_run_is_removed_before_this_one(keeper: Spawner, tmp_path: Path) -> None:
    (tmp_path / "figure").write_text("99")
    assert reason(keeper, tmp_path, "true").reason == "the tool left no figure"


def test_output_that_is_older_than_the_run_is_stale(keeper: Spawner, tmp_path: Path) -> None:
    text = "echo 12 > $FOLDER/figure; touch -d '1 hour ago' $FOLDER/figure"
    assert reason(keeper, tmp_path, text).reason == "figure is older than the run"


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_a_tool_runs_makes_its_output_no_older(
    keeper: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    real = time.time
    set_now = tmp_path / "set"
    # The clock is off by an hour until it is set; files carry the corrected time.
    monkeypatch.setattr(time, "time", lambda: real() - (0 if set_now.exists() else step))
    done = run(keeper, tmp_path, f"echo > {set_now}; echo 12 > $FOLDER/figure")
    assert done.parsed.readings[0].value == 12
    set_now.unlink()
    stale = f"echo > {set_now}; echo 12 > $FOLDER/figure; touch -d '3 hours ago' $FOLDER/figure"
    assert reason(keeper, tmp_path, stale).reason == "figure is older than the run"


def test_output_that_makes_no_sense_is_a_failure_with_status_0(keeper: Spawner, tmp_path: Path) -> None:
    failure = reason(keeper, tmp_path, "echo many > $FOLDER/figure")
    assert (failure.reason, failure.exit_code) == ("figures: the figure is 'many'", 0)


def test_good_output_does_not_excuse_a_bad_status(keeper: Spawner, tmp_path: Path) -> None:
    failure = reason(keeper, tmp_path, "echo 12 > $FOLDER/figure; exit 3")
    assert (failure.reason, failure.exit_code) == ("bash exited with 3", 3)


def test_the_tools_own_words_explain_a_bad_status(keeper: Spawner, tmp_path: Path) -> None:
    failure = reason(keeper, tmp_path, "echo gone wrong > $FOLDER/figure; exit 3")
    assert failure.reason == "figures: the figure is 'gone wrong' (exit status 3)"


def test_a_signal_is_named(keeper: Spawner, tmp_path: Path) -> None:
    failure = reason(keeper, tmp_path, "echo 12 > $FOLDER/figure; kill -9 $$")
    assert (failure.reason, failure.exit_code) == ("bash was killed by signal 9", -9)


def test_converters_run_in_order_and_the_usage_is_the_first_ones(keeper: Spawner, tmp_path: Path) -> None:
    prepared = ready(
        tmp_path, "sleep 0.2; echo 1 > $FOLDER/raw", "cat $FOLDER/raw $FOLDER/raw | wc -l > $FOLDER/figure"
    )
    done = invoke.run(keeper, prepared, tmp_path)
    assert done.parsed.readings[0].value == 2
    assert done.usage.wall >= 0.2
    failure = reason(keeper, tmp_path, "exit 4", "echo 1 > $FOLDER/figure")
    assert "exit status 4" in failure.reason


def test_a_time_limit_is_told_apart(keeper: Spawner, tmp_path: Path) -> None:
    prepared = replace(ready(tmp_path, "sleep 300"), timeout=0.2)
    with pytest.raises(Failure) as caught:
        invoke.run(keeper, prepared, tmp_path)
    assert caught.value.timeout
    assert caught.value.reason == "bash ran into the time limit of 0.2 s"


def plain(folder: Path, *argv: str) -> ReadyProcess:
    return ReadyProcess(item("make"), Side.BASELINE, argv, {**os.environ, MARK: "invoke"}, folder, None)


def test_a_plain_command_keeps_its_output_and_names_itself(keeper: Spawner, tmp_path: Path) -> None:
    done = invoke.run(keeper, plain(tmp_path, "echo", "said"), tmp_path)
    assert (tmp_path / "stdout").read_text() == "said\n"
    assert (done.exit_code, done.parsed.readings) == (0, ())
    with pytest.raises(Failure) as caught:
        invoke.run(keeper, plain(tmp_path, "no-such-program"), tmp_path)
    assert caught.value.reason == "no-such-program: not found or not executable"
    assert caught.value.exit_code is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo to-err >&2; echo to-out; exit 1", "to-err"), ("echo FAILED test_x; exit 1", "FAILED test_x")],
)
def test_the_log_of_a_failure_is_the_stream_that_says_something(
    keeper: Spawner, tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(Failure) as caught:
        invoke.run(keeper, plain(tmp_path, "bash", "-c", text), tmp_path)
    assert caught.value.reason == "make exited with 1"
    assert list(tail(caught.value.log)) == [said]


def test_the_tail_is_short_and_shows_what_terminals_would_act_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(5000)) + b"\x1b[31mred\x07\xff\n")
    lines = list(tail(log))
    assert len(lines) == invoke.TAIL_LINES
    assert lines[-1] == "\\x1b[31mred\\x07�"
    assert lines[-2] == "line 4999"
    assert list(tail(None)) == list(tail(tmp_path / "none")) == []


SHIM = '#!/bin/bash\nexec {python} "$@"\n'


def test_the_interpreter_behind_a_shim_is_found(keeper: Spawner, tmp_path: Path) -> None:
    shim = tmp_path / "shim"
    shim.write_text(SHIM.format(python=sys.executable))
    shim.chmod(0o755)
    for program in (str(shim), sys.executable):
        prepared = ready(tmp_path, "basename $0 >&2; echo 1 > $FOLDER/figure", command=(program,), python=True)
        invoke.run(keeper, prepared, tmp_path)
        assert (tmp_path / "stderr").read_text().startswith("python")


@pytest.mark.parametrize(
    ("text", "why"),
    [("#!/bin/bash\nexit 0\n", "is not a Python interpreter"), ("#!/no/such/interpreter\n", "cannot start")],
)
def test_what_is_no_interpreter_is_said(keeper: Spawner, tmp_path: Path, text: str, why: str) -> None:
    program = tmp_path / "other"
    program.write_text(text)
    program.chmod(0o755)
    prepared = ready(tmp_path, "echo 1 > $FOLDER/figure", command=(str(program),), python=True)
    with pytest.raises(Failure) as caught:
        invoke.run(keeper, prepared, tmp_path)
    assert why in caught.value.reason


def test_freshness_of_a_file_that_a_command_writes(tmp_path: Path) -> None:
    path, log = tmp_path / "out.json", tmp_path / "log"
    with pytest.raises(Failure) as caught:
        require_fresh(path, time.time(), log)
    assert caught.value.reason == "the tool left no out.json"
    path.write_text("{}")
    require_fresh(path, time.time(), log)
    os.utime(path, (1, 1))
    with pytest.raises(Failure) as caught:
        require_fresh(path, time.time(), log)
    assert caught.value.reason == "out.json is older than the run"
