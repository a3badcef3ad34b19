"""``perfflow compare -- OLD NEW``: an answer without a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfflow.machine.lock import machine_alone
from tests.cli.shell import perfflow, start

ENV = "XDG_CACHE_HOME"


def compare(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = perfflow("compare", *arguments, cwd=folder, env={ENV: str(folder / "cache")})
    return done.returncode, done.stdout, done.stderr


def test_the_slower_one_is_named_and_fails(tmp_path: Path) -> None:
    status, stdout, _ = compare(tmp_path, "--", "sleep 0.01", "sleep 0.03")
    assert status == 1
    assert stdout.startswith("the second is ")
    assert "x slower [" in stdout.splitlines()[0]
    assert "judged by time without core waits" in stdout


def test_the_faster_one_passes_and_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    status, stdout, _ = compare(tmp_path, "--", "sleep 0.03", "sleep 0.01")
    assert status == 0
    assert "x faster [" in stdout.splitlines()[0]
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_json_is_a_whole_result(tmp_path: Path) -> None:
    status, stdout, _ = compare(tmp_path, "--json", "--runs", "8", "--seed", "3", "--", "true", "true")
    result = json.loads(stdout)
    assert result["run"]["seed"] == 3
    assert {row["pairs"] for row in result["benchmarks"] if row["metric"] == "time"} == {8}
    assert result["run"]["budget"] is None
    assert status in (0, 4)


def test_the_budget_is_that_of_the_whole_comparison(tmp_path: Path) -> None:
    _, stdout, _ = compare(tmp_path, "--json", "--runs", "2", "--budget", "1m", "--", "true", "/bin/true")
    run = json.loads(stdout)["run"]
    assert (run["budget"], run["command"][:4]) == (60, ["perfflow", "compare", "--budget", "1m"])


def test_a_pipeline_runs_in_a_shell_and_is_judged_by_wall_time(tmp_path: Path) -> None:
    old = "seq 60000 | sort -n | tail -1"
    status, stdout, stderr = compare(tmp_path, "--json", "--runs", "8", "--", old, old)
    assert status in (0, 1, 4), stderr
    gating = [row["metric"] for row in json.loads(stdout)["benchmarks"] if row["gating"]]
    assert gating == ["time"]


def test_expressions_of_workflows_mean_nothing_here(tmp_path: Path) -> None:
    _, stdout, stderr = compare(tmp_path, "--json", "--runs", "1", "--", "echo ${{ env.HOME }}", "echo '${{'")
    argv = json.loads(stdout)["steps"][0]["argv"]
    assert Path(argv[0]).name == "bash", stderr
    assert argv[-1] == "echo ${{ env.HOME }}"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--", "false", "true"], 3, "false exited with 1"),
        (["--", "nonesuch-program", "true"], 3, "nonesuch-program: not found"),
        (["--", "echo 'x", "true"], 2, "No closing quotation"),
        ([".", "."], 2, ".: "),
        (["--", ".", "."], 3, "."),
        (["--", "true"], 2, "compare takes two commands or two stored results, not 1"),
        (["--", "true", ""], 2, "one of the commands is empty"),
        (["--", "sleep", "0.01"], 2, "perfflow compare -- 'sleep 0.01' 'NEW COMMAND'"),
        (["--", "sleep", "0.01", "sleep", "0.02"], 2, "perfflow compare -- 'sleep 0.01' 'sleep 0.02'"),
        (["--", "ls", "-l", "/"], 2, "perfflow compare -- 'ls -l /' 'NEW COMMAND'"),
        (["--budget", "20", "--", "true", "true"], 2, "20s"),
    ],
)
def test_what_cannot_be_compared_says_why(arguments: list[str], status: int, said: str, tmp_path: Path) -> None:
    code, stdout, stderr = compare(tmp_path, *arguments)
    assert code == status, stdout + stderr
    assert said in stdout + stderr
    assert "Traceback" not in stderr


def test_devices_among_the_arguments_are_not_read_to_their_end(tmp_path: Path) -> None:
    command = "head -c 1000 /dev/zero"
    status, _, stderr = compare(tmp_path, "--runs", "2", "--", command, command)
    assert status in (0, 1, 4), stderr


def script(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(
        f"#!/bin/sh\nn=$(($(cat {folder}/count 2>/dev/null || echo 0) + 1)); echo $n > {folder}/count\n{text}\n"
    )
    path.chmod(0o755)
    return str(path)


def test_a_command_that_fails_midway_has_no_winner_beside_it(tmp_path: Path) -> None:
    late = script(tmp_path, 'test "$n" -le 15 && sleep 0.03')
    status, stdout, _ = compare(tmp_path, "--runs", "20", "--", late, "sleep 0.001")
    assert status == 3
    first = stdout.splitlines()[0]
    assert first == "comparison failed: program exited with 1; results so far:"
    assert "faster" not in stdout


def test_an_interrupted_comparison_says_so(tmp_path: Path) -> None:
    process = start("compare", "--runs", "1000", "--out", "run", "--", "sleep 0.01", "sleep 0.01", cwd=tmp_path)
    events = tmp_path / "run" / "events.jsonl"
    while not events.exists() or events.read_text().count('"sample"') < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=900)
    assert process.returncode == 130
    assert stdout.startswith("interrupted before the difference was settled; results so far:")


def test_commands_may_hold_any_character_but_damaged_ones(tmp_path: Path) -> None:
    status, stdout, stderr = compare(tmp_path, "--json", "--runs", "1", "--", "echo 😀 'ü'", "true # nothing")
    assert status == 4, stderr
    assert [row["pairs"] for row in json.loads(stdout)["benchmarks"] if row["metric"] == "time"] == [1]
    status, stdout, stderr = compare(tmp_path, "--runs", "1", "--", "echo \udcff", "true")
    assert (status, stdout) == (2, "")
    assert "not UTF-8" in stderr


def test_a_builtin_of_the_shell_is_a_command(tmp_path: Path) -> None:
    assert compare(tmp_path, "--runs", "1", "--", ": x", "cd /")[0] == 4


def test_a_misspelt_option_is_not_a_command(tmp_path: Path) -> None:
    status, _, stderr = compare(tmp_path, "--budgte", "5s", "--", "true", "true")
    assert status == 2
    assert "--budget" in stderr


def test_output_to_nowhere_is_no_defect(tmp_path: Path) -> None:
    words = f"{sys.executable} -m perfflow compare --out run --runs 1 -- true true >&-"
    assert subprocess.run(["bash", "-c", words], cwd=tmp_path, check=False).returncode == 4


def test_waiting_for_the_machine_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    with machine_alone("the other", 10, lambda _: None):
        process = start("compare", "--runs", "1", "--", "true", "true", cwd=tmp_path)
        assert process.stderr is not None
        said = process.stderr.readline()
    assert "held by the other" in said
    assert process.wait(timeout=900) == 4
    process.communicate()


def test_a_comparison_looks_for_its_programs_before_it_waits_and_waits_as_long_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    with machine_alone("the other", 10, lambda _: None):
        status, stdout, stderr = compare(tmp_path, "--", "true", "./no-such-program")
        assert status == 3
        assert "./no-such-program: not found or not executable" in stdout
        assert "waiting" not in stderr
        status, stdout, stderr = compare(tmp_path, "--lock-timeout", "1s", "--", "true", "true")
        assert status == 3
        assert "the machine is held by the other (" in stdout
        assert "waiting for the machine, next in line: held by the other (" in stderr
    status, _, stderr = compare(tmp_path, "--lock-timeout", "soon", "--", "true", "true")
    assert status == 2
    assert "--lock-timeout: " in stderr


def test_work_left_in_the_background_is_no_gain(tmp_path: Path) -> None:
    slow = f"{sys.executable} -c 'sum(range(3_000_000))'"
    status, stdout, _ = compare(tmp_path, "--runs", "3", "--", slow, f"{slow} &")
    assert status == 3
    assert "faster" not in stdout
    assert "--allow-left-running WHY" in stdout
    status, stdout, _ = compare(tmp_path, "--runs", "3", "--allow-left-running", "a cache", "--", slow, f"{slow} &")
    assert status in (0, 4)
    assert "it left processes running (left-running: a cache): `" in stdout


def test_output_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("xxxxxxxxx yyyyyyyy\n" * 1_000_000)
    commands = ("--runs", "3", "--", "grep x big", "grep -c x big")
    _, stdout, _ = compare(tmp_path, *commands)
    assert "grep x big` behaves differently when its output goes to /dev/null" in stdout
    _, stdout, _ = compare(tmp_path, "--stdout", "pipe", *commands)
    assert "/dev/null" not in stdout
    compare(tmp_path, "--stdout", "found", *commands)
    assert (tmp_path / "found").stat().st_size in (19_000_000, len("1000000\n"))
    status, _, stderr = compare(tmp_path, "--stdout", "pip", *commands)
    assert status == 2
    assert "did you mean pipe?" in stderr


def test_the_question_can_be_asked_again(tmp_path: Path) -> None:
    options = ["--runs", "1", "--stdout", "pipe", "--allow-left-running", "why not"]
    _, stdout, _ = compare(tmp_path, "--json", *options, "--", "true", "true")
    assert json.loads(stdout)["run"]["command"] == ["perfflow", "compare", *options, "--", "true", "true"]
