"""The Makefile fragment, under the real make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow, write
from tests.docs.console import blocks

MAKEFILE = """\
PERF_SOURCES = source.txt
PERFFLOW_FLAGS = --progress off
include perf.mk
all:
\t@echo all is built
"""
# Variables of make that a step sees.
CLEAN = "env | grep -E '^(MAKEFLAGS|MFLAGS|MAKEOVERRIDES|MAKELEVEL|CARGO_MAKEFLAGS)=' && exit 1; true"


def workflow(folder: Path, name: str, command: str, head: str = "", suffix: str = ".yaml") -> None:
    (folder / "workflows").mkdir(exist_ok=True)
    stem = Path(name).stem
    text = f"{head}stages:\n  baseline:\n    - {{id: {stem}-one, run: ls, runs: 1, warmup: 0}}\n"
    text += f"  verify:\n    - id: {stem}-check\n      run: |\n        {command}\n"
    write(folder / "workflows", text, name + suffix)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tmp_path /= "a project"
    tmp_path.mkdir()
    (tmp_path / "source.txt").write_text("one\n")
    workflow(tmp_path, "good", f"echo good >> ran; {CLEAN}")
    workflow(tmp_path, "short", "echo short >> ran", suffix=".yml")
    (tmp_path / "workflows" / "base.txt").write_text("perfflow: 1\nstages: {verify: [{id: b, run: 'true'}]}\n")
    workflow(tmp_path, "heir", "echo heir >> ran", "extends: base.txt\n")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    print_fragment(tmp_path)
    return tmp_path


def print_fragment(folder: Path, *names: str) -> None:
    done = perfflow("make", *names, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "perf.mk").write_text(done.stdout)


def make(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    env |= {"PERFFLOW": f"{sys.executable} -m perfflow", "CARGO_MAKEFLAGS": "-j --jobserver-fds=3,4", **more}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=900
    )


def ran(folder: Path) -> list[str]:
    """Return the workflows that ran since the last call."""
    log = folder / "ran"
    found = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def test_each_workflow_runs_once_and_a_second_make_does_nothing(project: Path) -> None:
    done = make(project, "perf")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ran(project) == ["good", "heir", "short"]
    again = make(project, "perf")
    assert (again.returncode, ran(project)) == (0, [])
    assert "Nothing to be done" in again.stdout


def test_a_question_is_answered_and_runs_nothing(project: Path) -> None:
    assert make(project, "-q", "perf").returncode == 1
    assert not (project / ".perfflow").exists()
    make(project, "perf")
    ran(project)
    assert make(project, "-q", "perf").returncode == 0
    later = newest_stamp(project) + 10
    os.utime(project / "workflows" / "good.yaml", (later, later))
    assert make(project, "-q", "perf").returncode == 1
    assert make(project, "-q", "perf-short").returncode == 0
    assert ran(project) == []


def test_a_folder_below_the_top_has_a_makefile_of_its_own(project: Path) -> None:
    below = project / "part with spaces" / "one"
    below.mkdir(parents=True)
    (project / ".git").mkdir()
    (below / "Makefile").write_text("include perf.mk\n")
    print_fragment(below)
    done = make(below, "-j8", "perf")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ran(project) == ["good", "heir", "short"]
    # Both Makefiles see which workflows passed.
    assert make(project, "-q", "perf", "PERF_SOURCES=").returncode == 0
    assert not (below / ".perfflow").exists()


def test_the_lines_that_the_page_shows(project: Path) -> None:
    (shown,) = blocks(ROOT / "docs" / "library.md", "make")
    (project / "src").mkdir()
    (project / "src" / "main.c").write_text("int main(void) { return 0; }\n")
    (project / "Makefile").write_text(f"all: program\nprogram: src/main.c\n\tcp $< $@; echo built >> ran\n{shown}")
    assert make(project, "perf").returncode == 0
    assert ran(project) == ["built", "good", "heir", "short"]
    assert make(project, "perf").returncode == 0
    assert ran(project) == []
    later = newest_stamp(project) + 10
    os.utime(project / "src" / "main.c", (later, later))
    assert make(project, "-j4", "perf-good").returncode == 0
    assert ran(project) == ["built", "good"]


def test_the_projects_own_makefile_includes_what_is_printed_now() -> None:
    printed = perfflow("make", cwd=ROOT)
    assert printed.stdout == (ROOT / "perf.mk").read_text(), "run `make fragment`"
    done = make(ROOT, "-n", "-B", "perf-cli-command")
    assert done.returncode == 0, done.stderr
    assert "run workflows/cli-command.yaml" in done.stdout


def newest_stamp(project: Path) -> float:
    """Return the time (s) of the newest stamp. On a busy machine, two of one ``make`` are many seconds apart."""
    return max(path.stat().st_mtime for path in (project / ".perfflow" / "make").glob("*.pass"))


def test_what_changed_runs_again(project: Path) -> None:
    make(project, "perf")
    ran(project)
    later = newest_stamp(project) + 10
    os.utime(project / "workflows" / "base.txt", (later, later))
    make(project, "perf")
    assert ran(project) == ["heir"]
    os.utime(project / "source.txt", (later + 10, later + 10))
    make(project, "perf")
    assert ran(project) == ["good", "heir", "short"]


def test_one_of_them_by_name(project: Path) -> None:
    assert make(project, "perf-good").returncode == 0
    assert ran(project) == ["good"]
    (project / "perf-short").write_text("a file of the target's name")
    assert make(project, "perf-short").returncode == 0
    assert ran(project) == ["short"]


@pytest.mark.parametrize("flags", [("-k", "-j4"), ()])
def test_a_verdict_that_fails_fails_make_and_leaves_no_stamp(flags: tuple[str, ...], project: Path) -> None:
    assert make(project, "perf").returncode == 0
    ran(project)
    workflow(project, "good", "echo bad >> ran; false")
    later = newest_stamp(project) + 10
    os.utime(project / "source.txt", (later, later))
    done = make(project, *flags, "perf")
    assert done.returncode == 2
    stamps = {path.name for path in (project / ".perfflow" / "make").glob("*.pass")}
    assert "good.pass" not in stamps
    if flags:
        assert stamps == {"short.pass", "heir.pass"}
        assert ran(project) == ["bad", "heir", "short"]
    assert (project / ".perfflow" / "runs" / "latest" / "report.md").is_file()


def test_a_dry_run_runs_nothing(project: Path) -> None:
    done = make(project, "-n", "perf")
    assert done.returncode == 0
    assert "run workflows/good.yaml" in done.stdout
    assert ran(project) == []
    assert not (project / ".perfflow").exists()


@pytest.mark.parametrize("flags", [("-j4",), ("-j4", "-k", "X=3")])
def test_workflows_run_one_after_another_and_see_no_make(flags: tuple[str, ...], project: Path) -> None:
    alone = "mkdir inside || exit 1; sleep 0.3; rmdir inside; "
    for name in ("good", "heir"):
        workflow(project, name, f"{alone} {CLEAN}")
    done = make(project, *flags, "perf")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("order", ["first", "last", "twice"])
def test_the_default_goal_stays_what_it_is(order: str, project: Path) -> None:
    goal = "all:\n\t@echo all is built\n"
    text = {"first": f"include perf.mk\n{goal}", "last": f"{goal}include perf.mk\n"}
    (project / "Makefile").write_text(text.get(order, f"include perf.mk\n{goal}include perf.mk\n"))
    done = make(project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all is built\n", "")


@pytest.mark.parametrize("name", ["two words", "$(shell touch made)", "a:b", "per%cent", "hash#", "ü", "-n", "a;b"])
def test_a_name_that_make_would_take_apart_is_refused(name: str, project: Path) -> None:
    workflow(project, name, "true")
    done = perfflow("make", cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert "make cannot have" in done.stderr
    print_fragment(project, "good")
    assert make(project, "perf").returncode == 0
    assert ran(project) == ["good"]


UNABLE = """perfflow: 1
stages:
  setup:
    - {{id: {name}-there, run: "{there}"}}
  baseline:
    - id: {name}-run
      requires: {{{requires}}}
      runs: 1
      run: "echo cost 1; echo {name} >> ran"
      parse: {{regex: '(?P<cost>\\d+)', units: {{cost: '1'}}}}
"""


@pytest.fixture
def unable(tmp_path: Path) -> Path:
    """Three workflows that this machine cannot run, and one that it can run."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "programs").mkdir()
    for name, there, requires in (
        ("graphics", "true", "gpu: 64"),
        ("tool", "true", "tool: a-program-that-is-not-there"),
        ("package", "echo no torch here >&2; test -e torch || exit 77", ""),
    ):
        text = UNABLE.format(name=name, there=there, requires=requires)
        (tmp_path / "workflows" / f"{name}.yaml").write_text(text)
    workflow(tmp_path, "good", "echo good >> ran")
    (tmp_path / "Makefile").write_text("PERFFLOW_FLAGS = --progress plain\ninclude perf.mk\n")
    print_fragment(tmp_path)
    return tmp_path


def test_what_this_machine_cannot_run_is_left_out_and_said_in_one_line_each(unable: Path) -> None:
    path = f"{unable / 'programs'}:{os.environ['PATH']}"
    done = make(unable, "perf", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ran(unable) == ["good"]
    left_out = [line for line in done.stdout.splitlines() if "left out" in line]
    assert len(left_out) == 3
    assert left_out[0].startswith("graphics: left out: needs 64 GPUs")
    assert left_out[1:] == [
        "package: left out: no torch here",
        "tool: left out: a-program-that-is-not-there is not on PATH",
    ]
    for name in ("graphics", "tool", "package"):
        assert f"{name}-" not in done.stdout + done.stderr
    again = make(unable, "perf", PATH=path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "make: Nothing to be done for 'perf'.\n", "")
    assert make(unable, "-q", "perf", PATH=path).returncode == 0
    # Requested by name, a workflow that cannot be measured does not pass.
    assert make(unable, "perf-tool", PATH=path).returncode == 2
    assert make(unable, "perf-package", PATH=path).returncode == 2
    # After a program was installed, skipped workflows are tried again.
    program = unable / "programs" / "a-program-that-is-not-there"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    later = (unable / ".perfflow" / "make" / "graphics.out").stat().st_mtime + 10
    os.utime(program.parent, (later, later))
    (unable / "torch").touch()
    done = make(unable, "perf", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(ran(unable)) == {"package", "tool"}
    assert [line.split(":")[0] for line in done.stdout.splitlines() if "left out" in line] == ["graphics"]


def test_a_workflow_that_was_added_is_named_and_not_run(project: Path) -> None:
    make(project, "perf")
    ran(project)
    workflow(project, "later", "echo later >> ran")
    workflow(project, "$(shell touch made);touch made", "true")
    done = make(project, "perf")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("new workflows, not run: ")
    assert "workflows/later.yaml" in line
    assert "perfflow make > perf.mk" in line
    assert not (project / "made").exists()
    print_fragment(project, "later", "good")
    make(project, "perf")
    assert ran(project) == ["later"]
    assert "Nothing to be done" in make(project, "perf").stdout


def test_without_workflows_the_remedy_is_named(tmp_path: Path) -> None:
    done = perfflow("make", cwd=tmp_path)
    assert done.returncode == 2
    assert "perfflow init" in done.stderr


def test_a_workflow_of_the_library_is_none_of_the_projects(project: Path) -> None:
    assert "not one of the project's workflows" in perfflow("make", "python-cpu", cwd=project).stderr
