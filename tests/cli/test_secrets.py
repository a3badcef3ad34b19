"""No file of a run, page or message contains the value of a secret in the environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, start, write

TOKEN, PASSWORD, CUSTOMER = "correct-horse-battery", 'pass"word with $igns', "Ada Lovelace"
LEAKY = """
params: {api_key: none}
stages:
  build:
    - {id: says, run: "echo $DB_PASS; echo err $API_TOKEN >&2; echo made=$API_TOKEN >> $PERFFLOW_OUTPUT"}
    - {id: words, argv: ["echo", "${{ env.DB_PASS }}", "${{ env.CUSTOMER }}", "${{ params.api_key }}"]}
    - {id: later, run: "echo ${{ steps.says.outputs.made }} postgres://joe:s3same$(echo 0pen)@db/x"}
    - {id: fails, run: "echo $API_TOKEN ${{ env.DB_PASS }}; exit 3", continue-on-error: true}
    - {id: wrong, run: "true", timeout: "${{ env.API_TOKEN }}", continue-on-error: true}
  baseline:
    - {id: nap, uses: command, runs: 2, with: {command: "sleep 0.01"}}
    - {id: counted, run: "echo $API_TOKEN 3 ms", runs: 2, parse: {regex: "(?P<x>[0-9]+) ms", units: {x: ms}}}
"""


def environment() -> dict[str, str]:
    return {**os.environ, "API_TOKEN": TOKEN, "DB_PASS": PASSWORD, "CUSTOMER": CUSTOMER, "RUSTFLAGS": "-Copt-level=3"}


def assert_hidden(text: str) -> None:
    for secret in (TOKEN, PASSWORD, json.dumps(PASSWORD)[1:-1], CUSTOMER, "s3same0pen", "typed-secret"):
        assert secret not in text


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_run_holds_no_secret_wherever_it_came_from(tmp_path: Path) -> None:
    write(tmp_path, LEAKY)
    words = ["run", "flow.yaml", "--set", "api_key=typed-secret"]
    done = perfflow(*words, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    assert_hidden(done.stdout + done.stderr)
    run = (tmp_path / ".perfflow/runs/latest").resolve()
    assert {"stdout", "stderr", "events.jsonl", "result.json", "receipt.json"} <= {path.name for path in files(run)}
    for path in files(tmp_path / ".perfflow"):
        assert_hidden(path.read_text(errors="replace"))
    assert (run / "steps/says/stdout").read_text() == "***\n"
    assert (run / "steps/later/stdout").read_text() == "*** postgres://***@db/x\n"
    assert perfflow("receipt", "verify", cwd=tmp_path).returncode == 0
    for command in ("report", "export"):
        shown = perfflow(command, *(["--out", "ci"] if command == "export" else []), cwd=tmp_path, env=environment())
        assert_hidden(shown.stdout + shown.stderr)
    for path in files(tmp_path / "ci"):
        assert_hidden(path.read_text(errors="replace"))


@pytest.mark.parametrize(
    "words", [["plan", "flow.yaml"], ["plan", "flow.yaml", "--format", "json"], ["run", "-n", "flow.yaml"]]
)
def test_what_would_run_is_shown_without_secrets(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, LEAKY)
    done = perfflow(*words, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    assert "***" in done.stdout
    assert_hidden(done.stdout + done.stderr)


def test_harmless_values_and_those_of_the_file_stay(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
env: {BUILD_TOKEN: written-in-the-file}
stages:
  build:
    - id: words
      argv: [echo, "${{ env.BUILD_TOKEN }}", "${{ env.RUSTFLAGS }}", "postgres://a:longpassword@h", "${{ env.HOME }}"]
""",
    )
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env={**environment(), "OTHER_TOKEN": "written-in-the-file"})
    assert done.returncode == 3, done.stderr  # it measures nothing
    result = json.loads((tmp_path / ".perfflow/runs/latest/result.json").read_text())
    home = os.environ["HOME"]
    assert result["steps"][0]["argv"][1:] == [
        "written-in-the-file",
        "-Copt-level=3",
        "postgres://a:longpassword@h",
        home,
    ]


def test_a_revision_is_no_secret(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    write(tmp_path, 'stages: {build: [{id: words, argv: [echo, "${{ env.DEPLOY_TOKEN }}", "${{ env.OTHER_TOKEN }}"]}]}')
    git("add", ".")
    git("commit", "-qm", "one")
    revision = git("rev-parse", "HEAD")
    env = {**environment(), "DEPLOY_TOKEN": revision, "OTHER_TOKEN": "0123456789abcdef" * 2 + "01234567"}
    assert perfflow("run", "flow.yaml", cwd=tmp_path, env=env).returncode == 3  # it measures nothing
    result = json.loads((tmp_path / ".perfflow/runs/latest/result.json").read_text())
    assert result["trees"]["baseline"]["revision"] == revision
    assert result["steps"][0]["argv"][1:] == [revision, "***"]


def test_commands_that_were_typed_are_not_the_words_of_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["compare", "--runs", "2", "--out", str(out), "--", f"true {TOKEN}", f"true x {TOKEN}"]
    done = perfflow(*words, cwd=tmp_path, env=environment())
    assert done.returncode in (0, 4), done.stderr
    assert_hidden(done.stdout + done.stderr)
    for path in files(out):
        assert_hidden(path.read_text(errors="replace"))


def test_a_step_whose_output_was_hidden_runs_again_when_the_run_goes_on(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
stages:
  build:
    - {id: makes, run: "echo x >> ran; echo token=$API_TOKEN >> $PERFFLOW_OUTPUT"}
    - {id: plain, run: "echo y >> ran; echo name=fine >> $PERFFLOW_OUTPUT"}
    - {id: waits, run: "touch begun; [ -e go ] || sleep 60"}
    - {id: uses, run: "[ ${{ steps.makes.outputs.token }} = $API_TOKEN ]"}
""",
    )
    os.environ["API_TOKEN"] = TOKEN
    try:
        running = start("run", "flow.yaml", cwd=tmp_path)
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        running.communicate()
        (tmp_path / "go").touch()
        done = perfflow("run", "flow.yaml", "--resume", cwd=tmp_path)
    finally:
        del os.environ["API_TOKEN"]
    assert done.returncode == 3, done.stdout + done.stderr  # it measures nothing
    assert "failed" not in done.stdout
    assert (tmp_path / "ran").read_text() == "x\ny\nx\n"
