"""``run`` and ``argv`` in a stage that measures: timed as ``uses: command``, bash only if needed, and ``prepare``."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.jobs.catalog.descriptions import preview
from perfflow.model.errors import Severity
from perfflow.model.result import Result
from perfflow.report.plan_text import plan_lines
from perfflow.session.open_workflow import open_workflow
from perfflow.tools.adapter import Role
from tests.cli.shell import perfflow
from tests.long import rest_long
from tests.session.project import MS, Project, flow, row, samples, step

NOT_COUNTED = "the start of bash itself"


def measured(project: Project, text: str) -> tuple[list[str], list[str]]:
    """Return the argv and the warnings of the only step, after one run without a warm-up."""
    found = project.run(flow(baseline=f"{{id: one, {text}, runs: 1, warmup: 0}}"))
    assert step(found, "one").tool == "command"
    assert samples(found, "one", "time")
    return step(found, "one").argv, step(found, "one").warnings


def committed(project: Project, workflow: str, program: str, ignored: str = "") -> None:
    """Commit a workflow and a program of it."""
    project.git("init", "-q", "-b", "main")
    project.commit({".gitignore": f".perfflow\n{ignored}", "flow.yaml": f"perfflow: 1\n{workflow}", "prog": program})


def gate(project: Project) -> subprocess.CompletedProcess[str]:
    return perfflow("gate", "flow.yaml", "--base", "main", "--progress", "off", cwd=project.folder)


def test_the_three_forms_of_a_timed_step_are_the_same(project: Project) -> None:
    forms = ("run: 'true 1 \"2 3\"'", "argv: ['true', 1, 2 3]", "uses: command, with: {command: 'true 1 \"2 3\"'}")
    ran = [measured(project, form) for form in forms]
    assert ran[0][0] == ran[1][0] == ran[2][0]
    assert ran[0][0][1:] == ["1", "2 3"]


def test_text_with_shell_syntax_runs_in_bash_whose_start_is_said_and_not_counted(project: Project) -> None:
    # bash reads this file when it starts, before it runs the text.
    slow = project.write("start.sh", "sleep 0.3\nexport FOUND=yes\n")
    text = 'test "$FOUND" = yes && test "$BASH_ENV" = "$OWN" && ! (: >&60) 2> /dev/null'
    env = f"env: {{BASH_ENV: {slow}, OWN: {slow}}}"
    result = project.run(flow(baseline=f"{{id: one, run: {json.dumps(text)}, {env}, runs: 1, warmup: 0}}"))
    found = step(result, "one")
    assert result.verdict == "pass"
    assert found.argv[-2:] == ["-c", text]
    assert NOT_COUNTED in found.warnings[-1]
    # The start took longer than this by itself, so a slow machine does not matter: it is outside of the clock.
    assert samples(result, "one", "time")[0] < 0.3 or "(0.3" not in found.warnings[-1]
    assert found.seconds > 0.3


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        # In this mode bash reads no file when it starts, so it is timed from its start.
        ("run: 'true | true', shell: bash --posix", ["--posix", "-c", "true | true"]),
        ("run: 'print(1)', shell: python3 -c", ["-c", "print(1)"]),
        ("run: 'true 1', shell: bash -e", ["1"]),
    ],
)
def test_the_author_s_shell_is_the_program_unless_it_is_bash(project: Project, text: str, argv: list[str]) -> None:
    found, warnings = measured(project, text)
    assert found[1:] == argv
    assert not any(NOT_COUNTED in text for text in warnings)


def test_values_are_words_or_quoted_and_a_whole_parameter_is_split(project: Project) -> None:
    project.write("show", '#!/bin/sh\nprintf "%s|" "$@" >> shown\n', executable=True)
    runs = ("./show ${{ params.name }}", "./show ${{ params.name }} > /dev/null", "${{ params.command }}")
    steps = [f'{{id: s{number}, run: "{text}", runs: 1, warmup: 0}}' for number, text in enumerate(runs)]
    project.run(flow('params: {name: "a b; touch pwned", command: ./show c d}', baseline=steps))
    assert (project.folder / "shown").read_text() == "a b; touch pwned|a b; touch pwned|c|d|"
    assert not (project.folder / "pwned").exists()


@pytest.mark.parametrize(
    "candidate", rest_long(["./wait 0.05", "[./wait, 0.05]", "{command: ./wait 0.05}", "'./wait 0.05; true'"])
)
def test_a_candidate_is_compared(candidate: str, project: Project) -> None:
    project.write("wait", "#!/usr/bin/env python3\nimport sys, time\ntime.sleep(float(sys.argv[1]))\n", executable=True)
    found = row(
        project.run(flow(baseline=f"{{id: one, run: ./wait 0, runs: 12, candidate: {candidate}}}")), "one", "time"
    )
    assert (found.pairs, found.decision) == (12, "regressed")


def test_a_gate_times_run_in_both_trees(project: Project) -> None:
    committed(project, "stages: {baseline: [{id: one, run: ./prog, runs: 8}]}\n", "#!/bin/sh\nsleep 0.01\n")
    project.write("prog", "#!/bin/sh\nsleep 0.1\n", executable=True)
    done = gate(project)
    assert done.returncode == 1
    assert "regressed" in done.stdout
    # No profile of CPU time shows where it waits.
    assert "one (+" in done.stdout
    assert "the program waits longer, which no profile of CPU time explains; `uses: strace` counts" in done.stdout
    assert "attribution" not in done.stdout
    assert " in " not in next(line for line in done.stdout.splitlines() if "why:" in line)


def test_what_is_not_timed_in_a_stage_that_measures(project: Project) -> None:
    steps = [
        f'{{id: parsed, run: "echo ms=1", {MS}}}',
        f'{{id: checked, run: "echo ms=1", {MS}, assert: {{time: <1s}}}}',
        '{id: service, run: "sleep 9", background: true, ready: {port: 1}}',
        '{id: timed, run: "true"}',
    ]
    planned = project.open(flow(baseline=steps)).plan.steps
    assert {item.id: (item.role, item.tool.name if item.tool else "") for item in planned} == {
        "parsed": (Role.MEASURE, ""),
        "checked": (Role.CHECK, ""),
        "service": (Role.WORK, ""),
        "timed": (Role.MEASURE, "command"),
    }


def test_prepare_runs_before_every_sample_and_is_not_timed(project: Project) -> None:
    project.write("prog", "#!/bin/sh\necho run >> order; test ! -e built; touch built\n", executable=True)
    prepare = 'prepare: ["rm -f ${{ params.cache }}", "echo prepare $SIDE >> order"]'
    sides = "env: {SIDE: baseline}, candidate: {env: {SIDE: candidate}}"
    text = f"{{id: one, run: ./prog, {prepare}, {sides}, runs: 2, warmup: 1}}"
    found = project.run(flow("params: {cache: built}", baseline=text))
    assert found.verdict != "error"
    lines = (project.folder / "order").read_text().splitlines()
    # Beside the warm-ups and the samples, one run may check that the program behaves the same without /dev/null.
    assert set(lines[1::2]) == {"run"}
    assert set(lines[::2]) == {"prepare baseline", "prepare candidate"}
    assert len(lines) >= 12


def test_a_failing_prepare_fails_the_step_with_its_output(project: Project) -> None:
    result = project.run(flow(baseline='{id: one, run: "true", prepare: "echo no cache to drop >&2; exit 7"}'))
    found = step(result, "one")
    assert (result.verdict, found.status) == ("error", "failed")
    assert "`prepare` exited with 7" in found.reason
    assert found.tail == ["no cache to drop"]
    assert "no cache" in shlex.join(found.argv) or found.log


@pytest.mark.long  # profiles what other tests of this file run
def test_profiles_and_checks_of_a_timed_run_run_it_with_its_preparation(project: Project) -> None:
    project.write("prog", "#!/bin/sh\ntest ! -e built || exit 9\ntouch built\necho out\n", executable=True)
    steps = [
        "{id: one, run: ./prog | cat, prepare: rm -f built, runs: 1, warmup: 0}",
        "{id: counted, uses: callgrind, benchmark: one}",
    ]
    check = "{id: same, uses: same-output, benchmark: one, with: {runs: 2}}"
    found = project.run(flow(baseline=steps, verify=check))
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


def test_a_gate_that_compares_nothing_ends_with_3(project: Project) -> None:
    committed(project, "stages: {build: [{id: a, run: 'true'}]}\n", "")
    project.write("more", "x")
    done = gate(project)
    assert done.returncode == 3, done.stdout
    assert "nothing was measured" in done.stdout


def test_if_one_side_needs_bash_both_run_in_it(project: Project) -> None:
    steps = [
        '{id: text, run: "${{ params.c }}", candidate: ./show | cat}',
        '{id: words, argv: [./show, "b  c"], candidate: ./show; true}',
        '{id: neither, run: ./show x, candidate: [./show, "b  c"]}',
    ]
    opened = project.open(flow("params: {c: \"./show a 'b  c'\"}", baseline=steps))
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    assert {item["id"]: item["argv"] for item in preview(opened, ["text", "words", "neither"])} == {
        "text": {"baseline": [*bash, "./show a 'b  c'"], "candidate": [*bash, "./show | cat"]},
        "words": {"baseline": [*bash, "./show 'b  c'"], "candidate": [*bash, "./show; true"]},
        "neither": {"baseline": ["./show", "x"], "candidate": ["./show", "b  c"]},
    }


def test_a_program_that_is_missing_is_found_before_the_run_waits(project: Project) -> None:
    found = project.run("stages: {baseline: [{id: one, run: ./no-such-program, prepare: touch prepared}]}\n")
    assert "./no-such-program: not found" in step(found, "one").reason
    assert not (project.folder / "prepared").exists()


def test_the_plan_shows_prepare_and_names_a_side_only_if_they_differ(project: Project) -> None:
    steps = [
        "{id: one, run: ./prog, prepare: [rm -f a, rm -f b], candidate: ./prog2}",
        '{id: two, run: ./prog, prepare: "rm ${{ params.file }}", candidate: {params: {file: new file}}}',
    ]
    opened = project.open(flow("params: {file: old}", baseline=steps))
    shown = plan_lines(preview(opened, ["one", "two"]), 100)
    assert [line.strip() for line in shown if "every sample" in line] == [
        "before every sample: rm -f a",
        "before every sample: rm -f b",
        "baseline, before every sample: rm old",
        "candidate, before every sample: rm 'new file'",
    ]


@pytest.mark.parametrize(
    ("step", "message", "hint"),
    [
        ("command: ./prog", "unknown key `command`", "write `run: ./prog`"),
        ("run: 'echo a=1 >> $PERFFLOW_OUTPUT'", "is timed has no outputs", "stage `build`"),
        ("run: make, retries: 2", "cannot have `retries`", "stage `build`"),
        ("run: ./prog, prepare: ' '", "`prepare` is empty", "prepare: make clean"),
        ("build: run: make, prepare: ls", "`prepare` has no effect", "`setup` or `build`"),
        ("verify: run: make, prepare: ls", "`prepare` has no effect", "`setup` or `build`"),
        ("run: ./a, candidate: {with: {command: ./b}}", "`candidate.with`", "`candidate: COMMAND`"),
        ("run: ./a, prepare: 'rm ${{ params.nothing }}'", "nothing", ""),
    ],
)
def test_mistakes_around_a_timed_step_name_the_remedy(step: str, message: str, hint: str, project: Project) -> None:
    stage, _, keys = step.partition(": ") if step.startswith(("build: ", "verify: ")) else ("baseline", "", step)
    path = project.write("flow.yaml", f"perfflow: 1{flow(**{stage: f'{{id: one, {keys}}}'})}")
    (found,) = [problem for problem in open_workflow(str(path)).problems if problem.severity is Severity.ERROR]
    assert message in found.message
    assert hint in found.hint


def test_a_gate_prepares_each_sample_in_its_own_tree(project: Project) -> None:
    step = "{id: one, run: ./prog, prepare: git clean -qfdx -e .perfflow, runs: 8}"
    program = "#!/bin/sh\ntest ! -e built || exit 9\necho x > built\n"
    committed(project, flow(baseline=step), program, ignored="built\n")
    project.write("prog", program.replace("x >", "y >"), executable=True)
    done = gate(project)
    assert done.returncode in (0, 4), done.stdout
    assert not (project.folder / "built").exists()


def test_a_value_with_shell_syntax_starts_nothing_unless_it_is_raw(project: Project) -> None:
    build = """{id: make, run: 'echo "command=true; touch pwned" >> "$PERFFLOW_OUTPUT"'}"""
    text = flow(build=build, baseline='{id: one, run: "${{ steps.make.outputs.command VALUE}}", runs: 1}')
    found = project.run(text.replace("VALUE", ""))
    assert found.verdict == "error"
    assert "`| raw`" in step(found, "one").reason
    assert not (project.folder / "pwned").exists()
    assert project.run(text.replace("VALUE", "| raw ")).verdict == "pass"
    assert (project.folder / "pwned").exists()


MANAGER = """#!/usr/bin/env bash
echo "$@" >> "{log}"
case "$1" in
which) echo "{root}/versions/3/bin/$2";;
version-name) echo 3;;
exec) shift; name=$1; shift; PATH="{root}/versions/3/bin:$PATH" exec "{root}/versions/3/bin/$name" "$@";;
env) shift 2; CHOSEN=3 "$@";;
esac
"""
PYENV = """#!/usr/bin/env bash
set -e
program="${{0##*/}}"
exec "{root}/libexec/{name}" exec "$program" "$@"
"""
ASDF = '#!/usr/bin/env bash\n# asdf-plugin: tool 3\nexec {root}/libexec/asdf exec "tool" "$@"\n'
LAUNCHER = """#!/usr/bin/env bash
[ "$1" != {word} ] || shift
if [ "$1" = -c ]; then set -- bash -c "$2"; fi
export LAUNCHED=yes PATH="{place}:$PATH"
"$@"
exit $?
"""
TOOL = '#!/bin/sh\necho "$0|$@|$LAUNCHED$CHOSEN$PYENV_VERSION$RBENV_VERSION" >> told\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the first of PATH."""
    found = tmp_path / "place"
    found.mkdir()
    monkeypatch.setenv("PATH", f"{found}{os.pathsep}{os.environ['PATH']}")
    return found


def _manager(project: Project, place: Path, name: str) -> Path:
    root = place.parent / f".{name}"
    program = root / "versions/3/bin/tool"
    project.write(str(root / "libexec" / name), MANAGER.format(root=root, log=place / "asked"), executable=True)
    project.write(str(program), TOOL, executable=True)
    shim = (ASDF if name == "asdf" else PYENV).format(root=root, name=name)
    project.write(str(place / "tool"), shim, executable=True)
    return program


def _asked(place: Path) -> set[str]:
    """Return what the manager was asked for."""
    return {line.split()[0] for line in (place / "asked").read_text().splitlines()}


def _run(project: Project, command: str) -> tuple[list[str], set[str]]:
    """Return the warnings of a step, and what its program printed."""
    found = project.run(flow(baseline=f"{{id: one, run: '{command}', runs: 2}}"))
    assert len(samples(found, "one", "cpu")) == 2
    return step(found, "one").warnings, set((project.folder / "told").read_text().splitlines())


@pytest.mark.parametrize("name", ["pyenv", "rbenv", "asdf"])
def test_the_program_behind_a_shim_is_started(name: str, project: Project, place: Path) -> None:
    real = _manager(project, place, name)
    warnings, told = _run(project, "tool 1 2")
    assert told == {f"{real}|1 2|3"}
    assert "exec" not in _asked(place)
    notes = [text for text in warnings if "shim" in text]
    assert notes == [f"{real} is started and timed directly, without the {name} shim `tool`"]


@pytest.mark.long  # runs npx and other launchers
def test_a_profiler_starts_the_program_behind_a_shim_too(project: Project, place: Path) -> None:
    real = _manager(project, place, "pyenv")
    real.write_text(f"#!{sys.executable}\nprint(sum(number % 7 for number in range(3_000_000)))\n")
    text = flow(baseline="{id: one, run: tool, runs: 2}", profile="{id: where, uses: auto, benchmark: one}")
    assert step(project.run(text), "where").status == "done"
    assert "exec" not in _asked(place)


def test_the_interpreter_of_a_script_may_be_a_shim(project: Project, place: Path) -> None:
    real = _manager(project, place, "pyenv")
    project.write("script", "#!/usr/bin/env tool\n", executable=True)
    _, told = _run(project, "./script 1")
    assert told == {f"{real}|{project.folder}/script 1|3"}


@pytest.mark.parametrize(
    ("command", "word", "left_out"),
    [
        ("uv run", "run", True),
        ("poetry run", "run", True),
        ("bundle exec", "exec", True),
        # With options it is started as it is written.
        ("uv run --frozen", "run", False),
    ],
)
def test_the_program_behind_a_launcher_is_started_in_its_environment(
    command: str, word: str, left_out: bool, project: Project, place: Path
) -> None:
    launcher = LAUNCHER if left_out else LAUNCHER.replace("shift", "shift 2", 1)
    project.write(str(place / "bin/tool"), TOOL, executable=True)
    project.write(
        str(place / command.split(maxsplit=1)[0]), launcher.format(word=word, place=place / "bin"), executable=True
    )
    warnings, told = _run(project, f"{command} tool 1")
    assert told == {f"{place}/bin/tool|1|yes"}
    assert any(f"without `{command}`" in text for text in warnings) == left_out
    assert any("without" in text for text in warnings) == left_out


@pytest.mark.long  # runs npx and other launchers
@pytest.mark.skipif(not shutil.which("npx"), reason="needs npx")
def test_npx_is_left_out_only_for_an_installed_package(project: Project) -> None:
    project.write("package.json", '{"name": "x", "version": "1.0.0"}')
    project.write("node_modules/.bin/tool", TOOL, executable=True)
    warnings, told = _run(project, "npx tool 1")
    assert {line.split("|")[0] for line in told} == {f"{project.folder}/node_modules/.bin/tool"}
    assert any("without `npx`" in text for text in warnings)


BUSY = f"{sys.executable} -c 'sum(range(12000000))'"
"""About 0.4 s of work, of which a new process that waits for a core is a small part on a busy machine."""


def _clock(project: Project, script: str) -> tuple[str, Result]:
    """Return the metric that decides about a script, and the result."""
    project.write("script", f"#!/bin/bash\n{script}\n", executable=True)
    found = project.run(flow(baseline="{id: one, run: ./script, runs: 2}"))
    return next(item.metric for item in found.benchmarks if item.gating), found


@pytest.mark.long  # measures as the test of wall time in this file
def test_cpu_time_decides_about_processes_that_take_turns(project: Project) -> None:
    metric, found = _clock(project, f"{BUSY}\n{BUSY}")
    assert metric == "cpu"
    assert row(found, "one", "turns").baseline


@pytest.mark.parametrize("script", rest_long([f"{BUSY} &\n{BUSY}\nwait", f"{BUSY}\nsleep 0.3\n:"]))
def test_wall_time_decides_about_processes_that_run_at_once_or_wait(script: str, project: Project) -> None:
    assert _clock(project, script)[0] == "time"
