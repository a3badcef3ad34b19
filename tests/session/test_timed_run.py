"""``run`` and ``argv`` in a stage that measures: timed as ``uses: command``, bash only if needed, and ``prepare``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from perfflow.jobs.catalog.descriptions import preview
from perfflow.model.errors import Severity
from perfflow.report.plan_text import plan_lines
from perfflow.session.open_workflow import open_workflow
from perfflow.tools.adapter import Role
from tests.cli.shell import perfflow
from tests.repositories import git
from tests.session.project import Project, row, samples, step

BUSY = "#!/usr/bin/env python3\nimport sys, time\ntime.sleep(float(sys.argv[1]))\n"
NOT_COUNTED = "the start of bash itself"


def measured(project: Project, text: str, stage: str = "baseline", **keys: str) -> list[list[str]]:
    """Return the argv and the metrics of the only step, after one run without a warm-up."""
    more = "".join(f", {key}: {value}" for key, value in keys.items())
    found = project.run(f"stages: {{{stage}: [{{id: one, {text}, runs: 1, warmup: 0{more}}}]}}\n")
    assert step(found, "one").tool == "command"
    assert samples(found, "one", "time")
    return [step(found, "one").argv, step(found, "one").warnings]


def test_the_three_forms_of_a_timed_step_are_the_same(project: Project) -> None:
    forms = ("run: 'true 1 \"2 3\"'", "argv: ['true', 1, 2 3]", "uses: command, with: {command: 'true 1 \"2 3\"'}")
    ran = [measured(project, form) for form in forms]
    assert ran[0][0] == ran[1][0] == ran[2][0]
    assert ran[0][0][1:] == ["1", "2 3"]


def test_text_with_shell_syntax_runs_in_bash_whose_start_is_said_and_not_counted(project: Project) -> None:
    # bash reads this file when it starts, before it runs the text.
    slow = project.write("start.sh", "sleep 0.3\nexport FOUND=yes\n")
    text = 'test "$FOUND" = yes && test "$BASH_ENV" = "$OWN" && ! (: >&60) 2> /dev/null'
    found = project.run(f"""
stages:
  baseline:
    - id: one
      run: {json.dumps(text)}
      env: {{BASH_ENV: {slow}, OWN: {slow}}}
      runs: 1
      warmup: 0
""")
    assert found.verdict == "pass"
    assert step(found, "one").argv[-2:] == ["-c", text]
    assert NOT_COUNTED in step(found, "one").warnings[-1]
    # The start took longer than this by itself, so a slow machine does not matter: it is outside of the clock.
    assert samples(found, "one", "time")[0] < 0.3 or "(0.3" not in step(found, "one").warnings[-1]
    assert step(found, "one").seconds > 0.3


def test_bash_that_never_says_that_it_is_ready_is_timed_from_its_start(project: Project) -> None:
    # In this mode bash reads no file when it starts.
    argv, warnings = measured(project, "run: 'true | true', shell: bash --posix")
    assert argv == ["bash", "--posix", "-c", "true | true"] or argv[1:] == ["--posix", "-c", "true | true"]
    assert not any(NOT_COUNTED in text for text in warnings)


def test_the_author_s_shell_is_the_program_unless_it_is_bash(project: Project) -> None:
    argv, warnings = measured(project, "run: 'print(1)', shell: python3 -c")
    assert argv[1:] == ["-c", "print(1)"]
    assert not any(NOT_COUNTED in text for text in warnings)
    argv, _ = measured(project, "run: 'true 1', shell: bash -e")
    assert argv[1:] == ["1"]


def test_values_are_words_or_quoted_and_a_whole_parameter_is_split(project: Project) -> None:
    project.write("show", '#!/bin/sh\nprintf "%s|" "$@" >> shown\n', executable=True)
    project.run("""
params: {name: "a b; touch pwned", command: ./show c d}
stages:
  baseline:
    - {id: word, run: "./show ${{ params.name }}", runs: 1, warmup: 0}
    - {id: quoted, run: "./show ${{ params.name }} > /dev/null", runs: 1, warmup: 0}
    - {id: split, run: "${{ params.command }}", runs: 1, warmup: 0}
""")
    assert (project.folder / "shown").read_text() == "a b; touch pwned|a b; touch pwned|c|d|"
    assert not (project.folder / "pwned").exists()


@pytest.mark.parametrize("candidate", ["./wait 0.05", "[./wait, 0.05]", "{command: ./wait 0.05}", "./wait 0.05; true"])
def test_a_candidate_is_compared(candidate: str, project: Project) -> None:
    project.write("wait", BUSY, executable=True)
    found = project.run(
        f"""
stages:
  baseline:
    - {{id: one, run: ./wait 0, runs: 12, candidate: {candidate!r}}}
""".replace("'[", "[")
        .replace("]'", "]")
        .replace("'{", "{")
        .replace("}'", "}")
    )
    assert row(found, "one", "time").pairs == 12
    assert row(found, "one", "time").decision == "regressed"


def test_a_gate_times_run_in_both_trees(project: Project) -> None:
    git(project.folder, "init", "-q", "-b", "main")
    project.write("prog", "#!/bin/sh\n" + "sleep 0.01\n", executable=True)
    project.write(".gitignore", ".perfflow\n")
    project.write("flow.yaml", "perfflow: 1\nstages: {baseline: [{id: one, run: ./prog, runs: 8}]}\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    project.write("prog", "#!/bin/sh\n" + "sleep 0.1\n", executable=True)
    done = perfflow("gate", "flow.yaml", "--base", "main", "--progress", "off", cwd=project.folder)
    assert done.returncode == 1
    assert "regressed" in done.stdout
    # No profile of CPU time shows where it waits.
    assert "one (+" in done.stdout
    assert "the program waits longer, which no profile of CPU time explains; `uses: strace` counts" in done.stdout
    assert "attribution" not in done.stdout
    assert " in " not in next(line for line in done.stdout.splitlines() if "why:" in line)


def test_what_is_not_timed_in_a_stage_that_measures(project: Project) -> None:
    opened = project.open("""
stages:
  baseline:
    - {id: parsed, run: "echo ms=1", parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}}
    - {id: checked, run: "echo ms=1", parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}, assert: {time: <1s}}
    - {id: service, run: "sleep 9", background: true, ready: {port: 1}}
    - {id: timed, run: "true"}
""")
    roles = {item.id: (item.role, item.tool.name if item.tool else "") for item in opened.plan.steps}
    assert roles == {
        "parsed": (Role.MEASURE, ""),
        "checked": (Role.CHECK, ""),
        "service": (Role.WORK, ""),
        "timed": (Role.MEASURE, "command"),
    }


def test_prepare_runs_before_every_sample_and_is_not_timed(project: Project) -> None:
    project.write("prog", "#!/bin/sh\necho run >> order; test ! -e built; touch built\n", executable=True)
    found = project.run("""
params: {cache: built}
stages:
  baseline:
    - id: one
      run: ./prog
      prepare: ["rm -f ${{ params.cache }}", "echo prepare $SIDE >> order"]
      candidate: {env: {SIDE: candidate}}
      env: {SIDE: baseline}
      runs: 2
      warmup: 1
""")
    assert found.verdict != "error"
    lines = (project.folder / "order").read_text().split("\n")[:-1]
    # Beside the warm-ups and the samples, one run may check that the program behaves the same without /dev/null.
    assert set(lines[1::2]) == {"run"}
    assert set(lines[::2]) == {"prepare baseline", "prepare candidate"}
    assert len(lines) >= 12


def test_a_failing_prepare_fails_the_step_with_its_output(project: Project) -> None:
    found = project.run("""
stages: {baseline: [{id: one, run: "true", prepare: "echo no cache to drop >&2; exit 7"}]}
""")
    assert found.verdict == "error"
    assert step(found, "one").status == "failed"
    assert "`prepare` exited with 7" in step(found, "one").reason
    assert step(found, "one").tail == ["no cache to drop"]
    assert "no cache" in shlex.join(step(found, "one").argv) or step(found, "one").log


def test_profiles_and_checks_of_a_timed_run_run_it_with_its_preparation(project: Project) -> None:
    project.write(
        "prog", "#!/bin/sh\necho x >> ran\ntest ! -e built || exit 9\ntouch built\necho out\n", executable=True
    )
    found = project.run("""
stages:
  baseline:
    - {id: one, run: ./prog | cat, prepare: rm -f built, runs: 1, warmup: 0}
    - {id: counted, uses: callgrind, benchmark: one}
  verify:
    - {id: same, uses: same-output, benchmark: one, with: {runs: 2}}
""")
    assert found.verdict == "pass", found.reason_texts
    assert row(found, "one", "instructions").baseline


def test_a_run_that_measures_nothing_ends_with_3_and_names_the_stages(tmp_path: Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("perfflow: 1\nstages: {build: [{id: a, run: 'true'}], verify: [{id: b, run: 'true'}]}\n")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert "PASS" not in done.stdout
    assert "the stage `baseline`, or into a stage with `role: measure`" in " ".join(done.stdout.split())
    assert "no step measures anything" in perfflow("validate", "flow.yaml", cwd=tmp_path).stderr
    flow.write_text(flow.read_text().replace("verify:", "baseline:"))
    assert perfflow("run", "flow.yaml", "--stage", "build", cwd=tmp_path).returncode == 3
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0


def test_a_gate_that_compares_nothing_ends_with_3(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "flow.yaml").write_text("perfflow: 1\nstages: {build: [{id: a, run: 'true'}]}\n")
    (tmp_path / ".gitignore").write_text(".perfflow\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "more").write_text("x")
    done = perfflow("gate", "flow.yaml", "--base", "main", "--progress", "off", cwd=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "nothing was measured" in done.stdout


def test_if_one_side_needs_bash_both_run_in_it(project: Project) -> None:
    opened = project.open("""
params: {c: "./show a 'b  c'"}
stages:
  baseline:
    - {id: text, run: "${{ params.c }}", candidate: ./show | cat}
    - {id: words, argv: [./show, "b  c"], candidate: ./show; true}
    - {id: neither, run: ./show x, candidate: [./show, "b  c"]}
""")
    texts = {item["id"]: item["argv"] for item in preview(opened, ["text", "words", "neither"])}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    assert texts == {
        "text": {"baseline": [*bash, "./show a 'b  c'"], "candidate": [*bash, "./show | cat"]},
        "words": {"baseline": [*bash, "./show 'b  c'"], "candidate": [*bash, "./show; true"]},
        "neither": {"baseline": ["./show", "x"], "candidate": ["./show", "b  c"]},
    }


def test_a_program_that_is_missing_is_found_before_the_run_waits(project: Project) -> None:
    found = project.run("stages: {baseline: [{id: one, run: ./no-such-program, prepare: touch prepared}]}\n")
    assert "./no-such-program: not found" in step(found, "one").reason
    assert not (project.folder / "prepared").exists()


def test_the_plan_shows_prepare_and_names_a_side_only_if_they_differ(project: Project) -> None:
    opened = project.open("""
stages:
  baseline:
    - {id: one, run: ./prog, prepare: [rm -f a, rm -f b], candidate: ./prog2}
    - {id: two, run: ./prog, prepare: "rm ${{ params.file }}", candidate: {params: {file: new file}}}
params: {file: old}
""")
    shown = list(plan_lines(preview(opened, ["one", "two"]), 100))
    told = [line.strip() for line in shown if "every sample" in line]
    assert told == [
        "before every sample: rm -f a",
        "before every sample: rm -f b",
        "baseline, before every sample: rm old",
        "candidate, before every sample: rm 'new file'",
    ]


@pytest.mark.parametrize(
    ("stages", "message", "hint"),
    [
        ("baseline: [{id: one, command: ./prog}]", "unknown key `command`", "write `run: ./prog`"),
        ("baseline: [{id: one, run: 'echo a=1 >> $PERFFLOW_OUTPUT'}]", "is timed has no outputs", "stage `build`"),
        ("baseline: [{id: one, run: make, retries: 2}]", "cannot have `retries`", "stage `build`"),
        ("baseline: [{id: one, run: ./prog, prepare: ' '}]", "`prepare` is empty", "prepare: make clean"),
        ("build: [{id: one, run: make, prepare: ls}]", "`prepare` has no effect", "`setup` or `build`"),
        ("verify: [{id: one, run: make, prepare: ls}]", "`prepare` has no effect", "`setup` or `build`"),
        (
            "baseline: [{id: one, run: ./a, candidate: {with: {command: ./b}}}]",
            "`candidate.with`",
            "`candidate: COMMAND`",
        ),
        ("baseline: [{id: one, run: ./a, prepare: 'rm ${{ params.nothing }}'}]", "nothing", ""),
    ],
)
def test_mistakes_around_a_timed_step_name_the_remedy(stages: str, message: str, hint: str, project: Project) -> None:
    path = project.write("flow.yaml", f"perfflow: 1\nstages: {{{stages}}}\n")
    (found,) = [problem for problem in open_workflow(str(path)).problems if problem.severity is Severity.ERROR]
    assert message in found.message
    assert hint in found.hint


def test_a_gate_prepares_each_sample_in_its_own_tree(project: Project) -> None:
    git(project.folder, "init", "-q", "-b", "main")
    project.write("prog", "#!/bin/sh\ntest ! -e built || exit 9\necho x > built\n", executable=True)
    project.write(".gitignore", ".perfflow\nbuilt\n")
    project.write(
        "flow.yaml",
        "perfflow: 1\nstages: {baseline: [{id: one, run: ./prog, prepare: git clean -qfdx -e .perfflow, runs: 8}]}\n",
    )
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    project.write("prog", "#!/bin/sh\ntest ! -e built || exit 9\necho y > built\n", executable=True)
    done = perfflow("gate", "flow.yaml", "--base", "main", "--progress", "off", cwd=project.folder)
    assert done.returncode in (0, 4), done.stdout
    assert not (project.folder / "built").exists()


def test_a_value_with_shell_syntax_starts_nothing_unless_it_is_raw(project: Project) -> None:
    flow = """
stages:
  build: [{id: make, run: echo "command=true; touch pwned" >> "$PERFFLOW_OUTPUT"}]
  baseline: [{id: one, run: "${{ steps.make.outputs.command VALUE}}", runs: 1}]
"""
    found = project.run(flow.replace("VALUE", ""))
    assert found.verdict == "error"
    assert "`| raw`" in step(found, "one").reason
    assert not (project.folder / "pwned").exists()
    assert project.run(flow.replace("VALUE", "| raw ")).verdict == "pass"
    assert (project.folder / "pwned").exists()
