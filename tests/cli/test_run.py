"""``perfflow run`` end to end: exit codes, streams, files, interruption."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow, start, write

TOP_LEVEL = {
    *("schema", "run", "verdict", "gate", "evidence", "machine", "trees", "steps", "benchmarks", "targets"),
    *("profiles", "hotspots", "optimizations", "verification", "recommendations", "confirmations", "routes"),
}
SLEEPY = """
stages:
  baseline:
    - {id: nap, uses: command, runs: 400, with: {command: sleep 0.02}}
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled example, run once in a copy of the clone."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "cli", folder / "examples" / "cli", ignore=shutil.ignore_patterns("build"))
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    done = perfflow("run", "cli-command", "--json", "--seed", "7", cwd=folder, measured=True)
    (folder / "stdout.json").write_text(done.stdout)
    assert done.returncode == 0, done.stderr
    return folder


def latest(folder: Path) -> Path:
    return (folder / ".perfflow" / "runs" / "latest").resolve()


def test_json_has_every_key_of_the_contract_and_is_the_file(example: Path) -> None:
    text = (example / "stdout.json").read_text()
    assert set(json.loads(text)) >= TOP_LEVEL
    assert text == (latest(example) / "result.json").read_text()


def test_the_planted_gains_are_found(example: Path) -> None:
    result = json.loads((example / "stdout.json").read_text())
    times = ("time", "cpu", "uncontended")
    rows = {row["name"]: row for row in result["benchmarks"] if row["metric"] in times and row["gating"]}
    for name in ("wordfreq", "wordfreq/hyperfine", "summarize"):
        row = rows[name]
        assert row["decision"] == "improved"
        assert -0.6 < row["change"]["value"] < -0.2
        assert row["pairs"] == len(row["baseline"]["samples"]) >= 10


def test_the_profilers_name_the_planted_hotspots(example: Path) -> None:
    spots = json.loads((example / "stdout.json").read_text())["hotspots"]
    found = {(spot["source"], spot["location"]) for spot in spots if spot["tree"] == "baseline"}
    assert ("perf", "find_in_list") in found
    assert ("py-spy", "remember_in_list") in found
    assert ("cprofile", "remember_in_list") in found
    assert ("massif", "allocate") in found


def test_every_target_is_judged_and_every_check_passed(example: Path) -> None:
    result = json.loads((example / "stdout.json").read_text())
    assert [target["status"] for target in result["targets"]] == ["met"] * 5
    assert {check["id"]: check["status"] for check in result["verification"]} == {
        "same-counts": "passed",
        "same-summary": "passed",
    }


def test_profiles_are_files_with_their_hashes(example: Path) -> None:
    import hashlib

    profiles = json.loads((example / "stdout.json").read_text())["profiles"]
    assert {profile["step"] for profile in profiles} == {"cpu", "heap", "sampled", "calls"}
    for profile in profiles:
        content = (latest(example) / profile["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == profile["sha256"]


def test_judging_the_stored_samples_again_gives_the_same_bytes(example: Path) -> None:
    before = {name: (latest(example) / name).read_bytes() for name in ("result.json", "report.md")}
    outputs = [perfflow("report", cwd=example).stdout for _ in range(2)]
    assert outputs[0] == outputs[1] != ""
    assert {name: (latest(example) / name).read_bytes() for name in before} == before


def test_judging_its_result_alone_gives_the_same_bytes(example: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(latest(example) / "result.json", tmp_path / "artifact.json"))
    assert perfflow("report", str(alone), "--json", cwd=tmp_path).stdout == alone.read_text()
    assert list(tmp_path.iterdir()) == [alone]


def test_a_missing_hyperfine_exits_3_with_the_install_command(example: Path, tmp_path: Path) -> None:
    """Every program but hyperfine stays on PATH."""
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tmp_path / program.name
            if program.name != "hyperfine" and not link.is_symlink():
                link.symlink_to(program)
    done = perfflow("run", "cli-command", cwd=example, path=str(tmp_path))
    assert done.returncode == 3
    assert "apt-get install hyperfine" in done.stdout + done.stderr
    assert done.stdout.startswith("✗ ERROR")


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ("verify: [{id: tests, run: exit 3}]", 1),
        ("build: [{id: make, run: exit 3}]", 3),
        ("baseline: [{id: bench, uses: command, with: {command: ./none}}]", 3),
        ("baseline: [{id: bench, uses: command, with: {command: 'false'}}]", 3),
        ("build: [{id: slow, run: sleep 60, timeout: 200ms}]", 3),
        ("build: [{id: make, run: exit 3, continue-on-error: true}]", 3),
        ("build: [{id: make, run: exit 3, continue-on-error: true}], baseline: [run: ls]", 0),
        ("profile: [{id: cpu, uses: py-spy, with: {command: 'false'}}]", 3),
        ("build: [{id: make, run: 'true'}]", 3),
    ],
)
def test_exit_codes(steps: str, status: int, tmp_path: Path) -> None:
    write(tmp_path, f"stages: {{{steps}}}\n")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_failing_step_shows_its_last_lines_and_its_log(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  build:\n    - {id: make, run: 'echo no rule to make target >&2; exit 2'}\n")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert "no rule to make target" in done.stderr
    assert "log: " in done.stderr
    assert "steps/make/stderr" in done.stderr
    assert "step make: make exited with 2" in done.stdout


def test_unproven_exits_4_unless_it_is_allowed(tmp_path: Path) -> None:
    """Four samples give no 95% interval of the median, so the target is neither met nor missed."""
    write(tmp_path, "targets: {nap: {time: <10s}}\n" + SLEEPY.replace("runs: 400", "runs: 4").lstrip())
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 4
    assert perfflow("run", "flow.yaml", "--unproven=pass", cwd=tmp_path).returncode == 0


def test_a_dry_run_executes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  build:\n    - {id: touch, run: touch was-here}\n")
    for arguments in (["run", "-n", "flow.yaml"], ["plan", "flow.yaml"], ["validate", "flow.yaml"], ["list"]):
        assert perfflow(*arguments, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "was-here").exists()
    assert not (tmp_path / ".perfflow").exists()


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "json"])
def test_plan_has_four_forms(form: str, tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  build:\n    - {id: a, run: 'true'}\n    - {id: b, run: 'true'}\n")
    done = perfflow("plan", "flow.yaml", "--format", form, cwd=tmp_path)
    assert done.returncode == 0
    if form == "json":
        assert json.loads(done.stdout)["steps"][1]["needs"] == ["a"]
    else:
        assert "a" in done.stdout


def test_a_plan_says_how_long_it_takes_by_limits_and_then_by_earlier_runs(tmp_path: Path) -> None:
    nap = "{id: nap, uses: command, budget: 4s, with: {command: sleep 0.1}}"
    off = "{id: off, run: 'true', if: 'false'}"
    write(tmp_path, f"stages: {{build: [{{id: make, run: 'true'}}], baseline: [{nap}], profile: [{off}]}}")
    shown = perfflow("plan", "flow.yaml", cwd=tmp_path).stdout
    assert "       sleep 0.1\n       time: at most 4 s\n" in shown
    assert shown.endswith("total time: at most 4 s, for nap; unknown until the first run: make\n")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path).returncode == 0
    data = json.loads(perfflow("plan", "flow.yaml", "--format", "json", cwd=tmp_path).stdout)
    result = json.loads((tmp_path / ".perfflow" / "runs" / "latest" / "result.json").read_text())
    took = {step["id"]: step["seconds"] for step in result["steps"]}
    known = {step["id"]: step["expected"] for step in data["steps"]}
    assert (known["nap"]["seconds"], known["nap"]["from"], known["nap"]["runs"]) == (took["nap"], "runs", 1)
    assert known["off"] is None
    assert data["expected"]["seconds"] == pytest.approx(took["make"] + took["nap"])
    assert (data["expected"]["limit"], data["expected"]["unknown"]) == (False, [])
    dry = perfflow("run", "-n", "flow.yaml", "--budget", "2s", cwd=tmp_path).stdout
    assert ", from the last run with another budget" in dry
    assert dry.endswith(", from the last run\n")


def test_settings_stages_and_single_steps(tmp_path: Path) -> None:
    write(
        tmp_path,
        "params: {word: {default: none}}\n"
        "stages:\n"
        "  build:\n"
        "    - {id: say, run: 'echo ${{ params.word }} > said.txt'}\n"
        "    - {id: more, run: echo more >> said.txt}\n"
        "  verify:\n"
        "    - {id: check, run: grep more said.txt}\n",
    )
    # These runs measure nothing.
    hostile = "a'; touch pwned; echo '$(touch pwned)"
    assert perfflow("run", "flow.yaml", "--only", "say", "--set", f"word={hostile}", cwd=tmp_path).returncode == 3
    assert (tmp_path / "said.txt").read_text() == hostile + "\n"
    assert not (tmp_path / "pwned").exists()
    assert perfflow("run", "flow.yaml", "--stage", "build", cwd=tmp_path).returncode == 3
    assert perfflow("run", "flow.yaml", "--from", "more", cwd=tmp_path).returncode == 3
    done = perfflow("run", "flow.yaml", "--set", "wrod=x", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean `word`?" in done.stderr


def test_out_must_be_new_or_empty(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  build:\n    - {id: a, run: 'true'}\n")
    assert perfflow("run", "flow.yaml", "--out", "kept", cwd=tmp_path).returncode == 3
    done = perfflow("run", "flow.yaml", "--out", "kept", cwd=tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr


def wait_for_samples(folder: Path, count: int) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for events in (folder / ".perfflow" / "runs").glob("2*/events.jsonl"):
            if events.read_text().count('"event":"sample"') >= count:
                return events
        time.sleep(0.05)
    raise AssertionError("no samples appeared")


def test_interruption_keeps_what_was_measured(tmp_path: Path) -> None:
    write(tmp_path, SLEEPY)
    process = start("run", "flow.yaml", cwd=tmp_path)
    wait_for_samples(tmp_path, 5)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 130, stderr
    result = json.loads((latest(tmp_path) / "result.json").read_text())
    assert result["run"]["interrupted"]
    assert len(result["benchmarks"][0]["baseline"]["samples"]) >= 5
    assert "Traceback" not in stdout + stderr


def test_after_kill_9_the_finished_samples_are_there_and_nothing_runs(tmp_path: Path) -> None:
    marker = "sleep 0.0217"
    write(tmp_path, SLEEPY.replace("sleep 0.02", marker))
    process = start("run", "flow.yaml", cwd=tmp_path)
    wait_for_samples(tmp_path, 5)
    process.kill()
    process.communicate(timeout=900)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and subprocess.run(["pgrep", "-f", marker], check=False).returncode == 0:
        time.sleep(0.1)
    assert subprocess.run(["pgrep", "-f", marker], check=False).returncode == 1
    done = perfflow("report", cwd=tmp_path)
    result = json.loads((latest(tmp_path) / "result.json").read_text())
    assert len(result["benchmarks"][0]["baseline"]["samples"]) >= 5
    assert done.returncode in (0, 3, 4), done.stderr


def test_list_json_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    write(tmp_path / "workflows", "description: one line\nstages:\n  build:\n    - {id: a, run: 'true'}\n", "own.yaml")
    found = json.loads(perfflow("list", "--json", cwd=tmp_path).stdout)
    own = {"name": "own", "path": str(tmp_path / "workflows" / "own.yaml"), "description": "one line"}
    assert own | {"origin": "project"} in found["workflows"]
    tools = {tool["name"]: tool for tool in found["tools"]}
    assert tools["hyperfine"]["available"]
    assert tools["hyperfine"]["version"][0].isdigit()
    assert {"name", "available", "version"} <= set(tools["command"])


def test_no_colour_and_no_cursor_movement_in_a_pipe(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  baseline:\n    - {id: a, run: 'true', runs: 2}\n")
    for env in ({}, {"CI": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        done = perfflow("run", "flow.yaml", cwd=tmp_path, env=env)
        assert "\x1b" not in done.stdout + done.stderr
    assert "\x1b[1;32m" in perfflow("run", "flow.yaml", "--color", "always", cwd=tmp_path).stdout
    for env in ({"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1", "CI": "1"}):
        done = perfflow("run", "flow.yaml", cwd=tmp_path, env=env)
        assert "\x1b[1;32m" in done.stdout
        # Only colours: nothing moves the cursor or erases text.
        assert not re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr).count("\x1b")


def test_a_part_of_a_workflow_does_not_pass_for_the_whole(tmp_path: Path) -> None:
    write(tmp_path, "targets: {nap: {time: <10s}}\n" + SLEEPY.lstrip() + "  verify:\n    - {id: check, run: 'true'}\n")
    done = perfflow("run", "flow.yaml", "--stage", "verify", cwd=tmp_path)
    assert done.returncode == 3
    assert "step nap was not selected" in done.stdout
    assert done.stdout.startswith("✗ ERROR")


def test_sigterm_is_an_interruption(tmp_path: Path) -> None:
    write(tmp_path, SLEEPY)
    process = start("run", "flow.yaml", cwd=tmp_path)
    wait_for_samples(tmp_path, 5)
    process.terminate()
    _, stderr = process.communicate(timeout=900)
    assert process.returncode == 130, stderr
    assert json.loads((latest(tmp_path) / "result.json").read_text())["run"]["interrupted"]


def test_skipped_steps_are_named_at_the_end(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  verify:\n    - {id: gpu-check, run: 'false', requires: {tool: nosuchtool}}\n")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    # The only step with a result did not run.
    assert done.returncode == 3
    assert "why: nothing was measured" in done.stdout
    assert "skipped: gpu-check: nosuchtool is not on PATH" in done.stdout


def test_a_selection_without_any_step_runs_nothing(tmp_path: Path) -> None:
    build, check = "{id: make, run: touch made}", "{id: check, run: 'true'}"
    write(tmp_path, f"stages:\n  build: [{build}]\n  verify: [{check}]\n")
    done = perfflow("run", "flow.yaml", "--from", "check", "--stage", "build", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from and --stage have no step in common" in done.stderr
    assert not (tmp_path / ".perfflow").exists()
    for words in (["--stage", "build"], ["--only", "make"]):
        done = perfflow("run", "flow.yaml", *words, cwd=tmp_path)
        assert done.returncode == 3
        assert "nothing measured" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        # The candidate writes nothing, so the output of the baseline must not be used as its figure.
        (
            (
                "      run: echo '{\"t\":1.5}' > o.json\n      runs: 4\n"
                "      parse: {file: o.json, json: {time: t}, units: {time: ms}}\n      candidate: 'true'\n"
            ),
            "did not write o.json",
        ),
        (
            (
                "      uses: command\n      runs: 2\n      ops: [1, 3]\n"
                "      with: {command: \"bash -c 'sleep 0.0$((4-${{ ops }}))'\"}\n"
            ),
            "noise hides the difference",
        ),
    ],
    ids=["a file left from before", "a slope lost in noise"],
)
def test_what_is_no_measurement(step: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, f"stages:\n  baseline:\n    - id: a\n{step}")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stdout


def test_keep_going_runs_what_does_not_depend_on_a_failure(tmp_path: Path) -> None:
    write(
        tmp_path,
        "stages:\n  verify:\n    - {id: a, run: exit 1}\n    - {id: b, run: touch b}\n"
        "    - {id: c, run: touch c, needs: a}\n",
    )
    assert perfflow("run", "flow.yaml", "-k", cwd=tmp_path).returncode == 1
    assert (tmp_path / "b").exists()
    assert not (tmp_path / "c").exists()


def test_a_reader_that_goes_away_changes_no_exit_status(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  verify:\n    - {id: tests, run: exit 3}\n")
    process = start("run", "flow.yaml", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=900) == 1
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
