"""Commands, their outputs, environment, failures and skips, with small real programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perfflow.model.result import Gate
from perfflow.workflow.expressions import render_words
from perfflow.workflow.written_numbers import real, whole
from tests.long import rest_long
from tests.session.project import MS, Project, flow, row, samples, step


def test_outputs_of_a_build_reach_later_steps_as_single_words(project: Project) -> None:
    result = project.run("""
stages:
  build:
    - id: bins
      run: |
        mkdir 'two words'
        printf '#!/bin/sh\\necho "ms=$#"\\n' > 'two words/prog'; chmod +x 'two words/prog'
        echo "prog=./two words/prog" >> "$PERFFLOW_OUTPUT"
        echo 'evil=$(touch pwned); touch pwned' >> "$PERFFLOW_OUTPUT"
  baseline:
    - id: bench
      argv: ["${{ steps.bins.outputs.prog }}", "${{ steps.bins.outputs.evil }}", x]
      runs: 1
      warmup: 0
      parse: {regex: "ms=(?P<time>[0-9]+)", units: {time: ms}}
    - id: shell
      needs: [bins]
      run: echo ${{ steps.bins.outputs.evil }} > said
""")
    assert samples(result, "bench", "time") == [0.002]
    assert step(result, "bins").outputs["prog"] == "./two words/prog"
    assert (project.folder / "said").read_text() == "$(touch pwned); touch pwned\n"
    assert not (project.folder / "pwned").exists()
    assert result.verdict == "pass"


def test_environment_layers_the_nearest_wins_and_see_each_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_USER", "user")
    monkeypatch.setenv("MAKEFLAGS", "-j8 --jobserver-auth=3,4")
    monkeypatch.setenv("MAKELEVEL", "2")
    monkeypatch.setenv("A", "user")
    project.run("""
env: {A: workflow, B: workflow, C: workflow, D: workflow}
defaults: {env: {B: defaults, C: defaults, D: defaults}}
stages:
  build:
    env: {C: stage, D: stage}
    steps:
      - id: show
        env: {D: step, E: "${{ env.C }} of ${{ env.FROM_USER }}", N: 5, T: true}
        run: echo "$A $B $C $D $E $N $T [${MAKEFLAGS-}${MAKELEVEL-}]" > said
""")
    assert (project.folder / "said").read_text() == "workflow defaults stage step stage of user 5 true []\n"


def test_the_candidates_environment_and_parameters_hold_on_its_side_only(project: Project) -> None:
    run = """run: 'echo "$MODE ${{ params.size }}" >> said; echo ms=1'"""
    sides = "env: {MODE: slow}, candidate: {env: {MODE: fast}, params: {size: large}}"
    step = f"{{id: bench, runs: 2, warmup: 0, {run}, {sides}, {MS}}}"
    project.run(flow("params: {size: {default: small}}", baseline=step))
    lines = (project.folder / "said").read_text().splitlines()
    assert sorted(lines) == ["fast large", "fast large", "slow small", "slow small"]


def test_matrix_cells_have_their_own_outputs_and_meet_by_the_keys_they_share(project: Project) -> None:
    result = project.run("""
stages:
  build:
    - id: make
      matrix: {opt: [O1, O2]}
      run: echo "flag=-${{ matrix.opt }}" >> "$PERFFLOW_OUTPUT"
  check:
    - id: use
      matrix: {opt: [O1, O2], n: [1, 2]}
      run: echo "${{ matrix.opt }} ${{ matrix.n }} ${{ steps.make.outputs.flag }}" >> said
    - id: one
      run: echo "one ${{ steps.make[opt=O2].outputs.flag }}" >> said
    - id: all
      run: echo "all" ${{ steps | join(" ") }} >> said
""")
    assert sorted((project.folder / "said").read_text().splitlines()) == [
        *("O1 1 -O1", "O1 2 -O1", "O2 1 -O2", "O2 2 -O2"),
        "all make[opt=O1] make[opt=O2] use[opt=O1,n=1] use[opt=O1,n=2] use[opt=O2,n=1] use[opt=O2,n=2] one make use",
        "one -O2",
    ]
    assert [item.id for item in result.steps][:2] == ["make[opt=O1]", "make[opt=O2]"]


def test_matrix_values_that_look_alike_as_file_names_keep_apart(project: Project) -> None:
    run = "run: 'echo path=${{ matrix.path }} >> \"$PERFFLOW_OUTPUT\"; sleep 0.1'"
    result = project.run(flow(build=f'{{id: make, matrix: {{path: [a/b, a_b, "a b"]}}, {run}}}'), jobs=3)
    assert [item.outputs["path"] for item in result.steps] == ["a/b", "a_b", "a b"]
    assert len({item.log for item in result.steps}) == 3


def test_a_failing_build_names_itself_and_its_last_words(project: Project) -> None:
    build = '{id: make, run: "echo error: no such header; exit 2"}'
    bench = '{id: bench, uses: command, with: {command: "true"}}'
    result = project.run(flow("targets: {bench: {time: <1s}}", build=build, baseline=bench))
    assert (result.verdict, result.gate) == ("error", Gate(status="fail"))
    assert "step make: make exited with 2" in result.reason_texts
    assert step(result, "bench").status == "skipped"
    assert result.targets[0].status == "not measured"
    assert "step bench: `make` failed" in result.targets[0].detail
    assert project.told.ended_steps[0].tail == ["error: no such header"]
    assert step(result, "make").log == "steps/make/stdout"
    result = project.run("stages: {build: [{id: make, run: 'echo wrong >&2; exit 2'}]}")
    assert step(result, "make").log == "steps/make/stderr"


@pytest.mark.parametrize(
    ("check", "verdict", "status"),
    [
        ("run: exit 1", "fail", "failed"),
        ("argv: [./none]", "error", "failed"),
        ("run: sleep 60, timeout: 200ms", "error", "timeout"),
    ],
)
def test_a_failing_check_fails_and_one_that_cannot_run_is_an_error(
    project: Project, check: str, verdict: str, status: str
) -> None:
    result = project.run(flow(verify=f"{{id: tests, {check}}}"))
    assert (result.verdict, step(result, "tests").status) == (verdict, status)
    if verdict == "fail":
        assert result.verification[0].status == "failed"
    assert step(result, "tests").not_started == (check == "argv: [./none]")


def test_retries_say_how_often_it_failed(project: Project) -> None:
    result = project.run(flow(setup='{id: flaky, retries: 3, run: "echo x >> tries; test $(wc -l < tries) = 3"}'))
    assert step(result, "flaky").status == "done"
    assert step(result, "flaky").warnings == [f"try {number} failed: flaky exited with 1" for number in (1, 2)]


def test_conditions_over_outputs_and_a_missing_one_is_the_steps_failure(project: Project) -> None:
    conditions = {
        "fast": "steps.probe.outputs.kind == 'fast'",
        "slow": "steps.probe.outputs.kind == 'slow'",
        "typo": "steps.probe.outputs.knd == 'slow'",
        "clean": "always()",
    }
    steps = [f'{{id: {name}, if: "{text}", run: "true"}}' for name, text in conditions.items()]
    result = project.run(flow(build=["{id: probe, run: 'echo kind=fast >> \"$PERFFLOW_OUTPUT\"'}", *steps]))
    assert [item.status for item in result.steps] == ["done", "done", "skipped", "failed", "done"]
    assert "knd" in step(result, "typo").reason
    assert result.verdict == "error"


REQUIREMENTS = {
    "{gpu: 1}": "",
    "{gpu: 2}": "needs 2 GPUs, 1 found",
    "{tool: probe>=2.9}": "",
    "{tool: [probe>=2.11, bash]}": "needs probe>=2.11, found 2.10.1",
    "{tool: no-such-tool}": "no-such-tool is not on PATH",
    "{label: big-memory}": "",
    "{label: [fast, quiet]}": "label 'quiet' is not in PERFFLOW_LABELS",
}


def test_requirements_that_are_not_met_are_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("bin/nvidia-smi", "#!/bin/sh\necho 'GPU 0: Made up (UUID: x)'\n", executable=True)
    project.write("bin/probe", "#!/bin/sh\necho probe 2.10.1\n", executable=True)
    monkeypatch.setenv("PATH", f"{project.folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("PERFFLOW_LABELS", "fast, big-memory")
    steps = [f'{{id: s{number}, run: "true", requires: {text}}}' for number, text in enumerate(REQUIREMENTS)]
    assert [item.reason for item in project.run(flow(build=steps)).steps] == list(REQUIREMENTS.values())


def test_missing_tools_are_all_named_before_anything_runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = project.folder / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    a, b, c = (
        f"{{id: {name}, uses: {tool}, with: {{command: /bin/true}}}}"
        for name, tool in (("a", "hyperfine"), ("b", "perf-stat"), ("c", "massif"))
    )
    result = project.run(flow(build="{id: make, argv: [/bin/touch, made]}", baseline=[a, b], profile=c))
    assert result.verdict == "error"
    assert not (project.folder / "made").exists()
    reasons = {item.id: (item.status, item.reason) for item in result.steps}
    assert reasons["a"] == ("failed", "hyperfine is not on PATH; install it: apt-get install hyperfine")
    assert reasons["b"][1].startswith("perf is not on PATH")
    assert reasons["make"] == reasons["c"] == ("skipped", "nothing was run, because a tool is missing")


def test_a_tool_on_the_workflows_own_path_is_found(project: Project) -> None:
    program = project.write("bin/hyperfine", '#!/bin/sh\nexec /usr/bin/hyperfine "$@"\n', executable=True)
    bench = "{id: a, uses: hyperfine, runs: 1, warmup: 0, with: {command: /bin/true}}"
    found = step(project.run(flow('env: {PATH: "bin:/bin"}', baseline=bench)), "a")
    assert found.status == "done", found.reason
    assert found.argv[0] == str(program)


def test_a_missing_or_failing_profiler_changes_no_verdict(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("bash", "true", "sh"):
        (project.folder / program).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", str(project.folder))
    profiles = [
        "{id: missing, uses: massif, with: {command: /bin/true}}",
        "{id: failing, uses: cprofile, with: {command: ./none.py}}",
    ]
    result = project.run(flow(profile=profiles, verify='{id: tests, run: "true"}'))
    assert result.verdict == "pass"
    assert (step(result, "missing").status, step(result, "failing").status) == ("skipped", "failed")
    assert "valgrind" in step(result, "missing").reason


@pytest.mark.parametrize(
    ("keys", "reason"),
    rest_long(
        [
            ("runs: '${{ params.n }}'", "`runs` is 0, but at least 1 is needed"),
            ("warmup: '${{ params.word }}'", "`warmup` is 'word', not a whole number"),
            ("ops: '${{ params.word }}'", "`ops` is 'word', not a whole number"),
            ("timeout: '${{ params.word }}'", "is not a quantity"),
            ("working-directory: '${{ params.word }}'", "no such folder"),
            ("shell: ' '", "the command is empty"),
            ("env: {X: '${{ 1 / params.n }}'}", "division by zero"),
        ],
        keep=3,
    ),
)
def test_what_a_template_renders_to_is_checked(project: Project, keys: str, reason: str) -> None:
    bench = f"{{id: bench, run: echo ms=1, {MS}, {keys}}}"
    result = project.run(flow("params: {n: {default: 0}, word: {default: word}}", baseline=bench))
    assert reason in step(result, "bench").reason
    assert result.verdict == "error"


def test_an_empty_list_is_no_command(project: Project) -> None:
    result = project.run("params: {words: {default: []}}\nstages: {build: [{id: a, argv: ['${{ params.words }}']}]}")
    assert step(result, "a").reason == "the command is empty"


def test_a_value_that_is_not_utf_8_does_not_break_the_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "caf\udce9")
    result = project.run("stages: {build: [{id: a, argv: [touch, '${{ env.WORD }}']}]}")
    assert (project.folder / "caf\udce9").exists()
    assert step(result, "a").argv == ["touch", "caf?"]


def test_steps_side_by_side_and_a_time_limit_of_one_does_not_end_the_other(project: Project) -> None:
    steps = [
        '{id: long, needs: [], run: "sleep 1; touch made"}',
        '{id: short, needs: [], run: "sleep 300", timeout: 200ms, continue-on-error: true}',
    ]
    result = project.run(flow(build=steps), jobs=2)
    assert (step(result, "long").status, step(result, "short").status) == ("done", "timeout")
    assert (project.folder / "made").exists()
    assert result.reason_texts[0].startswith("nothing was measured")


def test_the_tree_is_the_git_tree_of_the_workflow_or_a_folder(project: Project) -> None:
    text = "stages: {build: [{id: a, run: 'true'}]}"
    assert project.run(text).trees["baseline"] == {"kind": "folder", "revision": None, "dirty": None}
    project.git("init", "-q")
    revision = project.commit({".gitignore": ".perfflow\nflow.yaml\n", "code": "1"})
    tree = project.run(flow(build="{id: a, run: 'echo ${{ git.revision }} > revision'}")).trees["baseline"] or {}
    assert (tree["kind"], tree["dirty"], tree["revision"]) == ("working tree", False, revision)
    assert (project.folder / "revision").read_text().strip() == revision
    assert project.git("status", "--porcelain") == "?? revision\n"
    project.write("code", "2")
    assert (project.run(text).trees["baseline"] or {})["dirty"]


def test_selected_steps_only_and_the_others_say_so(project: Project) -> None:
    bench = '{id: bench, uses: command, runs: 1, with: {command: "true"}}'
    text = flow("targets: {bench: {time: <10s}}", build="{id: make, run: touch made}", baseline=bench)
    result = project.run(text, only=["make"])
    assert (step(result, "bench").status, step(result, "bench").reason) == ("skipped", "not selected")
    assert result.targets[0].detail == "step bench was not selected"
    result = project.run(text, stages=["baseline"])
    assert step(result, "make").reason == "not selected"
    assert row(result, "bench", "time").baseline


def test_declared_data_is_hashed_into_receipt_and_result(project: Project, tmp_path: Path) -> None:
    project.write("data/a.txt", "abc")
    outside = tmp_path / "outside.txt"
    outside.write_text("abc")
    finished = project.finish(f"data: ['data/*.txt', '{outside}']\nstages: {{build: [{{id: a, run: 'true'}}]}}")
    receipt = json.loads((finished.folder / "receipt.json").read_text())
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert receipt["data"] == {"data/a.txt": abc, str(outside): abc}
    assert finished.result.data == receipt["data"]


WRITTEN = (
    *("1.10", "1e3", "0x10", "0o17", "010", "007", "1_000", "+1", ".5", "1.", "-0", "1E+2", "0xFF", "1e400"),
    *("yes", "on", "Yes", "No", "y", "2026-01-02", "12:30:45", "1_0.5", "0b11"),
)


def _printed(project: Project, name: str) -> str:
    (folder,) = (project.folder / ".perfflow/runs/latest/steps").glob(f"{name}*")
    return (folder / "stdout").read_text().strip()


@pytest.mark.parametrize("text", WRITTEN)
def test_a_value_is_passed_as_written(text: str, project: Project) -> None:
    value, several, changed, cell = (
        f"${{{{ {name} }}}}" for name in ("params.value", "params.several", "params.changed", "matrix.cell")
    )
    steps = [
        f'{{id: argv, argv: [echo, {text}, "{value}", "{several}", "{changed}"]}}',
        f'{{id: text, env: {{GIVEN: {text}, OWN: "{value}"}}, run: "echo $GIVEN $OWN {value} {several}"}}',
        f'{{id: cells, matrix: {{cell: [{text}]}}, run: "echo {cell}"}}',
    ]
    params = f"params: {{value: {text}, several: [{text}], changed: {text}}}"
    result = project.run(flow(params, build=steps), f"changed={text}")
    assert _printed(project, "argv") == _printed(project, "text") == " ".join([text] * 4)
    assert _printed(project, "cells") == text
    assert str(result.run.params["value"]) == text, "the command that repeats the run"


@pytest.mark.parametrize("text", ["true", "True", "FALSE"])
def test_a_boolean_for_a_program_is_passed_as_written(text: str, project: Project) -> None:
    for keys in (f"argv: [printenv, GIVEN], env: {{GIVEN: {text}}}", f"argv: [echo, {text}]"):
        project.run(flow(build=f"{{id: argv, {keys}}}"))
        assert _printed(project, "argv") == text


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("params.a * 2", "2.2"),
        ("params.b + 1", "1001.0"),
        ("params.c + 1", "17"),
        ("params.c // 3", "5"),
        ("-params.d", "-1"),
        ("params.b | int", "1000"),
        ("params.a == 1.1", "true"),
        ("[params.a, params.b] | max", "1e3"),
        ("params.a ~ 'x'", "1.10x"),
    ],
)
def test_expressions_calculate_with_numbers(expression: str, printed: str) -> None:
    params = {"a": real("1.10"), "b": real("1e3"), "c": whole("0x10"), "d": whole("+1")}
    assert render_words("echo ${{ " + expression + " }}", {"params": params}) == ["echo", printed]


def test_the_command_of_a_tool_gets_numbers_as_written(project: Project) -> None:
    options = '{command: [/bin/echo, 1.10, "${{ params.size }}"]}'
    project.run(
        flow("params: {size: 1e3}", baseline=f"{{id: one, uses: command, runs: 1, stdout: out, with: {options}}}")
    )
    assert Path("out").read_text() == "1.10 1e3\n"


def test_options_of_a_tool_file_get_numbers_as_written(project: Project) -> None:
    project.write(
        "tools/mine.yaml",
        """perfflow-tool: 1
with: {short: 1e3, version: 1.10, text: {default: x, type: string}, several: {default: [1.50], type: list}}
argv: [sh, -c, 'echo "$@" > given; echo 1', "${{ with.short }}", "${{ with.version }}", "${{ with.text }}", end,
  "${{ with.several }}"]
parse: {regex: "(?P<figure>[0-9]+)", units: {figure: "1"}}
""",
    )
    steps = "{id: one, uses: ./tools/mine.yaml, runs: 1, with: {version: 2.50, text: 0x10}}"
    project.run(f"stages: {{baseline: [{steps}]}}\n")
    assert Path("given").read_text() == "2.50 0x10 end 1.50\n"


def test_numbers_that_are_equal_are_duplicates_in_a_matrix(project: Project) -> None:
    with pytest.raises(Exception, match="quote them as texts"):
        project.open("stages: {build: [{id: x, matrix: {v: [1.1, 1.10]}, run: 'true'}]}\n")
    project.open("stages: {build: [{id: x, matrix: {v: ['1.1', '1.10']}, run: 'true'}]}\n")


def test_written_numbers_are_numbers_elsewhere(project: Project) -> None:
    parse = 'parse: {regex: "n (?P<loops>[0-9]+)", units: {loops: "1"}}'
    one = f'{{id: one, run: echo n 10, runs: "${{{{ params.count }}}}", warmup: 0x0, {parse}}}'
    result = project.run(flow("params: {count: 0x2}\ntargets: {one: {loops: {min: 1e1}}}", baseline=one))
    assert [target.requirement for target in result.targets] == ["min 1e1"]
    assert step(result, "one").status == "done"
    assert [row.baseline.n for row in result.benchmarks if row.baseline] == [2]
