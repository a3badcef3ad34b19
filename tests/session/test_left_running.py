"""Work that a measured command leaves in the background does not count as a gain."""

from __future__ import annotations

import json
import sys

import pytest

from tests.session.project import Project, row, step

BENCH = """
stages:
  baseline:
    - id: bench
      uses: command
      runs: 3
      {keys}
      with: {{command: "{command}", shell: true}}
"""


def test_what_is_left_running_fails_the_step_and_is_named(project: Project) -> None:
    result = project.run(BENCH.format(keys="", command="sleep 60 & sleep 61 & true"))
    failed = step(result, "bench")
    assert (failed.status, result.verdict, result.benchmarks) == ("failed", "error", [])
    assert "it left processes running when it ended, and what they do is not measured: " in failed.reason
    assert "`sleep 60`" in failed.reason
    assert "`sleep 61`" in failed.reason
    assert "allow: {left-running: WHY}" in failed.reason


def test_the_side_that_leaves_something_is_the_one_that_fails(project: Project) -> None:
    command = f"{sys.executable} -c 'sum(range(2000000))'"
    text = BENCH.format(keys=f"candidate: {json.dumps(command + ' &')}", command=command)
    result = project.run(text)
    assert result.verdict == "error"
    assert result.benchmarks == []
    assert f"not measured: `{sys.executable} -c sum(range(2000000))`" in step(result, "bench").reason


def test_what_left_its_session_and_its_environment_is_found(project: Project) -> None:
    result = project.run(BENCH.format(keys="", command="(setsid env -i sleep 60 &)"))
    assert "`sleep 60`" in step(result, "bench").reason


def test_what_is_allowed_is_named_once_and_goes_on(project: Project) -> None:
    # The second and third run fail if the process of the first one was ended.
    script = project.write(
        "serve.sh",
        "if test -e pid; then kill -0 $(cat pid); else setsid sleep 60 & echo $! > pid; fi\n",
    )
    keys = "allow: {left-running: the compiler's cache}"
    result = project.run(BENCH.format(keys=keys, command=f"bash {script}"))
    assert step(result, "bench").status == "done", step(result, "bench").reason
    assert row(result, "bench", "time").baseline is not None
    others = ("hostile machine", "the start of bash itself")
    (said,) = [text for text in step(result, "bench").warnings if not any(other in text for other in others)]
    assert said.startswith("it left processes running (left-running: the compiler's cache): `")


@pytest.mark.parametrize(
    "command",
    [
        "cat big > >(cat > copy)",
        "python3 tracked.py",
        "sleep 0.02 & sleep 0.02 & wait",
    ],
)
def test_what_is_only_ending_is_waited_for(project: Project, command: str) -> None:
    project.write("big", "x" * 100_000)
    tracked = "from multiprocessing.shared_memory import SharedMemory\n"
    project.write("tracked.py", tracked + "found = SharedMemory(create=True, size=9)\nfound.close()\nfound.unlink()\n")
    result = project.run(BENCH.format(keys="", command=command))
    assert step(result, "bench").status == "done", step(result, "bench").reason


def test_a_run_that_is_parsed_is_measured_too(project: Project) -> None:
    result = project.run("""
stages:
  baseline:
    - {id: bench, run: "echo 5; sleep 60 &", parse: {regex: "(?P<time>.+)", units: {time: s}}, runs: 2}
""")
    assert "`sleep 60`" in step(result, "bench").reason
