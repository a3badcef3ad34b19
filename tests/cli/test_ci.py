"""Outside text in a CI log never acts as a command of the service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfflow.cli.ci import (
    MOST_ANNOTATIONS,
    Bare,
    GitHubActions,
    GitLab,
    annotation_lines,
    dressing,
    escaped,
    without_commands,
)
from tests.cli.shell import perfflow, write
from tests.report.results import HOSTILE, hostile
from tests.verdict.records import criteria, ended, judged, pairs, planned

ATTACK = "::error title=pwned::x"
FLOW = """
stages:
  build:
    - {id: fine, run: 'true'}
  baseline:
    - {id: one, run: ls, runs: 1, warmup: 0}
  verify:
    - id: tests
      run: |
        echo '::error title=pwned::x'
        echo '##[error]pwned'
        echo '::stop-commands::guess'
        printf '\\r::add-mask::perfflow\\033[0Ksection_end:1:x\\r\\033[0K\\n'
        exit 3
"""


def acted_on(log: str) -> list[str]:
    """Return the commands that a runner executes in a log. While commands are stopped, only the token ends that."""
    found, token = [], ""
    for line in re.split(r"\r\n|\r|\n", log):
        match = re.match(r"\s*::(?P<name>[^ :]+)(?: [^:]*)?::(?P<data>.*)", line) or re.search(
            r"##\[(?P<name>\w+)\](?P<data>.*)", line
        )
        if token:
            token = "" if match and match["name"] == token else token
        elif match and match["name"] == "stop-commands":
            token = match["data"]
        elif match:
            found.append(line.strip())
    assert not token, "commands stay off"
    return found


def test_a_hostile_program_acts_on_nothing_in_github(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env={"GITHUB_ACTIONS": "true"})
    assert done.returncode == 1
    assert "    | ::error title=pwned::x\n" in done.stderr
    assert acted_on(done.stderr) == [
        "::group::verify tests: tests exited with 3",
        "::endgroup::",
        "::error title=perfflow flow%3A fail::correctness step failed: tests: tests exited with 3",
    ]
    assert acted_on(done.stdout) == []
    assert done.stdout.startswith("✗ FAIL")


def test_gitlab_gets_a_section_around_a_failure_and_none_from_the_program(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env={"GITLAB_CI": "true", "GITHUB_ACTIONS": ""})
    # Python treats a carriage return as a line end.
    marks = re.findall(r"\x1b\[0Ksection_(start|end):\d+:([\w.-]+)\n\x1b\[0K", done.stderr)
    assert [word for word, _ in marks] == ["start", "end"]
    assert marks[0][1] == marks[1][1]


def test_lines_for_programs_are_not_on_a_terminal(tmp_path: Path) -> None:
    write(tmp_path, "stages: {baseline: [{id: nap, uses: command, runs: 2, with: {command: 'true'}}]}\n")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path).returncode == 0
    terminal, theirs = os.openpty()
    words = [sys.executable, "-m", "perfflow", "report", "latest"]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, "CI": "true"}, stdout=theirs, check=True, timeout=900)
    os.close(theirs)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert "PASS" in shown
    assert not [line for line in shown.splitlines() if line.startswith(("review:gate:perf", "perf: "))]


@pytest.mark.parametrize("name", [*HOSTILE, ATTACK, "##[error]x", "::stop-commands::x"], ids=ascii)
def test_no_name_acts(name: str) -> None:
    result = hostile(name)
    lines = annotation_lines(result)
    assert acted_on("\n".join(lines)) == [line.strip() for line in lines]
    assert all(line.startswith("::error title=perfflow") for line in lines)
    assert acted_on(without_commands(f"  {name}\n{name}\n")) == []


def test_each_block_has_a_token_of_its_own() -> None:
    shown = GitHubActions()
    first, second = (shown.block("title", [ATTACK]) for _ in range(2))
    assert first[1] != second[1]
    assert first[3] == f"::{first[1].rpartition('::')[2]}::"
    assert shown.lines(["nothing special"]) == ["nothing special"]
    assert acted_on("\n".join(shown.lines([f"  {ATTACK}", "x ##[error]y"]))) == []


def test_lines_of_the_services() -> None:
    assert GitHubActions().block("title", []) == []
    assert GitLab().block("title", []) == []
    assert Bare().block("title", ["a"]) == ["a"]
    shown = GitLab(wall=lambda: 12.5)
    assert shown.block("a: b", ["x"])[0] == "\x1b[0Ksection_start:12:perfflow_1_a__b\r\x1b[0Ka: b"
    assert shown.block("a: b", ["x"])[2] == "\x1b[0Ksection_end:12:perfflow_2_a__b\r\x1b[0K"
    assert escaped("50%\r\na: b, c") == "50%25%0D%0Aa: b, c"
    assert escaped("a: b, 1%", title=True) == "a%3A b%2C 1%25"
    assert isinstance(dressing({"GITHUB_ACTIONS": "true"}), GitHubActions)
    assert isinstance(dressing({"GITLAB_CI": "true"}), GitLab)
    assert isinstance(dressing({}), Bare)


def test_annotations_are_few_and_name_what_is_left_out() -> None:
    names = [f"b{number}" for number in range(30)]
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    wanted = criteria({name: {"time": "<0.5s"} for name in names})
    lines = annotation_lines(judged(*events, wanted=wanted, steps=[planned(name) for name in names]))
    assert len(lines) == MOST_ANNOTATIONS
    assert lines[-1].endswith("::21 more reasons are in the report")
    assert all(line.startswith("::error title=") for line in lines)


STEADY = [1.0 + 0.001 * (number % 3) for number in range(14)]


@pytest.mark.parametrize(
    ("events", "wanted", "verdict", "said"),
    [
        (pairs("b", [1.0] * 3, None), {"b": {"time": "<2s"}}, "unproven", ""),
        (
            pairs("b", STEADY, [value + 0.07 for value in STEADY]),
            {},
            "pass",
            "concern: b time +7.0%25, over the concern threshold of 5%25 (action threshold 10%25)",
        ),
    ],
    ids=["unproven-target", "concern-that-passes"],
)
def test_what_does_not_fail_is_a_warning(
    events: list[dict[str, Any]], wanted: dict[str, dict[str, str]], verdict: str, said: str
) -> None:
    result = judged(*events, ended("b"), wanted=criteria(wanted))
    assert result.verdict == verdict
    (line,) = annotation_lines(result)
    assert line.startswith("::warning title=")
    assert said in line
