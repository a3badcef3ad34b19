"""Destination of the output of measured programs, and warnings about programs that do less if it is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.sanitize import NO_EDGE
from tests.session.project import Project, row, step

SEARCH = """
stages:
  baseline:
    - id: search
      uses: command
      runs: 3
      {keys}
      with: {{command: grep x big}}
"""
LAZY = "behaves differently when its output goes to /dev/null"


def warnings(result: Result) -> list[str]:
    """Warnings of the step, without those about the machine."""
    return [text for text in step(result, "search").warnings if "hostile machine" not in text]


def with_big_file(project: Project) -> Project:
    """Input of which GNU grep without a reader stops at the first match."""
    project.write("big", "xxxxxxxxx yyyyyyyy\n" * 2_000_000)
    return project


def test_a_program_that_does_less_without_a_reader_is_warned_of(project: Project) -> None:
    result = with_big_file(project).run(SEARCH.format(keys=""))
    (said,) = warnings(result)
    assert "grep x big` " + LAZY in said
    assert "use `stdout: pipe`" in said
    screen = terminal.render(result, width=NO_EDGE, color=False, unicode=True)
    assert screen.count(LAZY) == 1
    assert markdown.render(result).count(LAZY) == 1


@pytest.mark.parametrize("keys", ["stdout: pipe", "stdout: found.txt"])
def test_output_that_somebody_reads_is_all_there(project: Project, keys: str) -> None:
    asked_for = with_big_file(project).run(SEARCH.format(keys="stdout: discard"))
    assert warnings(asked_for) == []
    unread = row(asked_for, "search", "cpu").baseline
    result = project.run(SEARCH.format(keys=keys))
    read = row(result, "search", "cpu").baseline
    assert warnings(result) == []
    assert unread
    assert read
    # 1 ms against 60 ms: a clear difference under any load of the machine.
    assert min(read.samples) > 5 * max(unread.samples)


def test_a_file_is_written_anew_by_each_run_in_the_working_directory(project: Project) -> None:
    project.write("inner/old.txt", "what was there before, and is longer")
    project.run("""
params: {name: old}
stages:
  baseline:
    - id: bench
      uses: command
      runs: 3
      working-directory: inner
      stdout: ${{ params.name }}.txt
      with: {command: echo baseline}
      candidate: {command: echo other, stdout: other.txt}
""")
    assert (project.folder / "inner" / "old.txt").read_text() == "baseline\n"
    assert (project.folder / "inner" / "other.txt").read_text() == "other\n"


def test_each_side_of_a_comparison_is_looked_at(project: Project) -> None:
    flow = SEARCH.replace("grep x big", "wc -l big").format(keys="candidate: grep x big")
    (said,) = warnings(with_big_file(project).run(flow))
    assert "grep x big`" in said


def test_a_program_that_always_does_its_work_is_not_warned_of(project: Project) -> None:
    program = project.write("work.py", "print('x' * 100_000)\nfor _ in range(100_000): pass\n")
    result = project.run(SEARCH.format(keys="").replace("grep x big", f"python3 {program}"))
    assert warnings(result) == []


def test_a_program_that_only_a_reader_makes_too_slow_is_measured_all_the_same(project: Project) -> None:
    script = project.write(
        "slow.py",
        "import os, stat, time\nif stat.S_ISFIFO(os.fstat(1).st_mode): time.sleep(60)\n",
    )
    result = project.run(SEARCH.format(keys="timeout: 1s").replace("grep x big", f"python3 {script}"))
    assert step(result, "search").status == "done", step(result, "search").reason


def test_a_profile_of_what_is_measured_has_its_output_where_that_has_it(project: Project) -> None:
    project.run("""
stages:
  baseline:
    - {id: bench, uses: command, runs: 1, warmup: 0, stdout: said.txt, with: {command: "true"}, candidate: echo other}
    - {id: calls, uses: strace, benchmark: bench}
""")
    assert (project.folder / "said.txt").read_text() == "other\n"


def test_hyperfine_is_told_where_output_goes(project: Project) -> None:
    result = project.run("""
stages:
  baseline:
    - {id: bench, uses: hyperfine, runs: 1, stdout: said.txt, with: {command: echo hello}}
""")
    assert step(result, "bench").status == "done", step(result, "bench").reason
    assert (project.folder / "said.txt").read_text() == "hello\n"


def test_a_fifo_is_not_waited_for(project: Project) -> None:
    import os

    os.mkfifo(project.folder / "queue")
    result = project.run(SEARCH.format(keys="stdout: queue"))
    assert "stdout: 'queue' is not a file" in step(result, "search").reason


def test_dev_null_by_name_is_a_file_like_any_other(project: Project) -> None:
    result = project.run(SEARCH.format(keys="stdout: /dev/null").replace("grep x big", "echo x"))
    assert step(result, "search").status == "done"
    assert Path("/dev/null").is_char_device()
