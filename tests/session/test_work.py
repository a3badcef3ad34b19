"""Commands, their outputs, environment, failures and skips, with small real programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perfflow.model.result import Gate
from tests.session.project import Project, row, samples, step


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
    project.run("""
params: {size: {default: small}}
stages:
  baseline:
    - id: bench
      runs: 2
      warmup: 0
      env: {MODE: slow}
      run: echo "$MODE ${{ params.size }}" >> said; echo ms=1
      candidate: {env: {MODE: fast}, params: {size: large}}
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
""")
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
    result = project.run(
        """
stages:
  build:
    - id: make
      matrix: {path: [a/b, a_b, "a b"]}
      run: echo path=${{ matrix.path }} >> "$PERFFLOW_OUTPUT"; sleep 0.1
""",
        jobs=3,
    )
    assert [item.outputs["path"] for item in result.steps] == ["a/b", "a_b", "a b"]
    assert len({item.log for item in result.steps}) == 3


def test_a_failing_build_names_itself_and_its_last_words(project: Project) -> None:
    result = project.run("""
stages:
  build:
    - {id: make, run: "echo error: no such header; exit 2"}
  baseline:
    - {id: bench, uses: command, with: {command: "true"}}
targets: {bench: {time: <1s}}
""")
    assert result.verdict == "error"
    assert result.gate == Gate(status="fail")
    assert "step make: make exited with 2" in result.reason_texts
    assert step(result, "bench").status == "skipped"
    assert result.targets[0].status == "not measured"
    assert "step bench: `make` failed" in result.targets[0].detail
    assert project.told.ended_steps[0].tail == ["error: no such header"]
    assert step(result, "make").log == "steps/make/stdout"
    result = project.run("stages: {build: [{id: make, run: 'echo wrong >&2; exit 2'}]}")
    assert step(result, "make").log == "steps/make/stderr"


def test_a_failing_check_fails_and_one_that_cannot_run_is_an_error(project: Project) -> None:
    result = project.run("stages: {verify: [{id: tests, run: exit 1}]}")
    assert (result.verdict, result.verification[0].status) == ("fail", "failed")
    result = project.run("stages: {verify: [{id: tests, argv: [./none]}]}")
    assert result.verdict == "error"
    result = project.run("stages: {verify: [{id: tests, run: sleep 60, timeout: 200ms}]}")
    assert result.verdict == "error"
    assert (step(result, "tests").status, step(result, "tests").not_started) == ("timeout", False)


def test_retries_say_how_often_it_failed(project: Project) -> None:
    result = project.run("""
stages:
  setup:
    - {id: flaky, retries: 3, run: "echo x >> tries; test $(wc -l < tries) = 3"}
""")
    assert step(result, "flaky").status == "done"
    assert step(result, "flaky").warnings == [f"try {number} failed: flaky exited with 1" for number in (1, 2)]


def test_conditions_over_outputs_and_a_missing_one_is_the_steps_failure(project: Project) -> None:
    result = project.run("""
stages:
  build:
    - {id: probe, run: 'echo kind=fast >> "$PERFFLOW_OUTPUT"'}
    - {id: fast, if: "steps.probe.outputs.kind == 'fast'", run: "true"}
    - {id: slow, if: "steps.probe.outputs.kind == 'slow'", run: "true"}
    - {id: typo, if: "steps.probe.outputs.knd == 'slow'", run: "true"}
    - {id: clean, if: always(), run: "true"}
""")
    assert [item.status for item in result.steps] == ["done", "done", "skipped", "failed", "done"]
    assert "knd" in step(result, "typo").reason
    assert result.verdict == "error"


def test_requirements_that_are_not_met_are_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("bin/nvidia-smi", "#!/bin/sh\necho 'GPU 0: Made up (UUID: x)'\n", executable=True)
    project.write("bin/probe", "#!/bin/sh\necho probe 2.10.1\n", executable=True)
    monkeypatch.setenv("PATH", f"{project.folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("PERFFLOW_LABELS", "fast, big-memory")
    result = project.run("""
stages:
  build:
    - {id: gpu, run: "true", requires: {gpu: 1}}
    - {id: gpus, run: "true", requires: {gpu: 2}}
    - {id: new, run: "true", requires: {tool: probe>=2.9}}
    - {id: newer, run: "true", requires: {tool: [probe>=2.11, bash]}}
    - {id: none, run: "true", requires: {tool: no-such-tool}}
    - {id: label, run: "true", requires: {label: big-memory}}
    - {id: labels, run: "true", requires: {label: [fast, quiet]}}
""")
    reasons = {item.id: item.reason for item in result.steps}
    assert reasons == {
        "gpu": "",
        "gpus": "needs 2 GPUs, 1 found",
        "new": "",
        "newer": "needs probe>=2.11, found 2.10.1",
        "none": "no-such-tool is not on PATH",
        "label": "",
        "labels": "label 'quiet' is not in PERFFLOW_LABELS",
    }


def test_missing_tools_are_all_named_before_anything_runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = project.folder / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    result = project.run("""
stages:
  build:
    - {id: make, argv: [/bin/touch, made]}
  baseline:
    - {id: a, uses: hyperfine, with: {command: /bin/true}}
    - {id: b, uses: perf-stat, with: {command: /bin/true}}
  profile:
    - {id: c, uses: massif, with: {command: /bin/true}}
""")
    assert result.verdict == "error"
    assert not (project.folder / "made").exists()
    reasons = {item.id: (item.status, item.reason) for item in result.steps}
    assert reasons["a"] == ("failed", "hyperfine is not on PATH; install it: apt-get install hyperfine")
    assert reasons["b"][1].startswith("perf is not on PATH")
    for other in ("make", "c"):
        assert reasons[other] == ("skipped", "nothing was run, because a tool is missing")


def test_a_tool_on_the_workflows_own_path_is_found(project: Project) -> None:
    project.write("bin/hyperfine", '#!/bin/sh\nexec /usr/bin/hyperfine "$@"\n', executable=True)
    result = project.run("""
env: {PATH: "bin:/bin"}
stages:
  baseline:
    - {id: a, uses: hyperfine, runs: 1, warmup: 0, with: {command: /bin/true}}
""")
    assert step(result, "a").status == "done", step(result, "a").reason
    assert step(result, "a").argv[0] == str(project.folder / "bin" / "hyperfine")


def test_a_missing_or_failing_profiler_changes_no_verdict(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("bash", "true", "sh"):
        (project.folder / program).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", str(project.folder))
    result = project.run("""
stages:
  profile:
    - {id: missing, uses: massif, with: {command: /bin/true}}
    - {id: failing, uses: cprofile, with: {command: ./none.py}}
  verify:
    - {id: tests, run: "true"}
""")
    assert result.verdict == "pass"
    assert (step(result, "missing").status, step(result, "failing").status) == ("skipped", "failed")
    assert "valgrind" in step(result, "missing").reason


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("runs: '${{ params.n }}'", "`runs` is 0, but at least 1 is needed"),
        ("warmup: '${{ params.word }}'", "`warmup` is 'word', not a whole number"),
        ("ops: '${{ params.word }}'", "`ops` is 'word', not a whole number"),
        ("timeout: '${{ params.word }}'", "is not a quantity"),
        ("working-directory: '${{ params.word }}'", "no such folder"),
        ("shell: ' '", "the command is empty"),
        ("env: {X: '${{ 1 / params.n }}'}", "division by zero"),
    ],
)
def test_what_a_template_renders_to_is_checked(project: Project, keys: str, reason: str) -> None:
    result = project.run(f"""
params: {{n: {{default: 0}}, word: {{default: word}}}}
stages:
  baseline:
    - id: bench
      run: echo ms=1
      parse: {{regex: "ms=(?P<time>.*)", units: {{time: ms}}}}
      {keys}
""")
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
    result = project.run(
        """
stages:
  build:
    - {id: long, needs: [], run: "sleep 1; touch made"}
    - {id: short, needs: [], run: "sleep 300", timeout: 200ms, continue-on-error: true}
""",
        jobs=2,
    )
    assert (step(result, "long").status, step(result, "short").status) == ("done", "timeout")
    assert (project.folder / "made").exists()
    assert result.reason_texts[0].startswith("nothing was measured")


def test_the_tree_is_the_git_tree_of_the_workflow(project: Project) -> None:
    git = ["git", "-C", str(project.folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    project.write("code", "1")
    subprocess.run([*git, "add", "code"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    result = project.run("stages: {build: [{id: a, run: 'echo ${{ git.revision }} > revision'}]}")
    tree = result.trees["baseline"]
    assert tree is not None
    assert (tree["kind"], tree["dirty"]) == ("working tree", False)
    assert (project.folder / "revision").read_text().strip() == tree["revision"]
    assert subprocess.run(
        [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout.split() == [*("??", "flow.yaml", "??", "revision")]
    project.write("code", "2")
    changed = project.run("stages: {build: [{id: a, run: 'true'}]}").trees["baseline"]
    assert changed is not None
    assert changed["dirty"]


def test_without_git_the_tree_is_a_folder(project: Project) -> None:
    assert project.run("stages: {build: [{id: a, run: 'true'}]}").trees["baseline"] == {
        "kind": "folder",
        "revision": None,
        "dirty": None,
    }


def test_selected_steps_only_and_the_others_say_so(project: Project) -> None:
    text = """
targets: {bench: {time: <10s}}
stages:
  build: [{id: make, run: touch made}]
  baseline: [{id: bench, uses: command, runs: 1, with: {command: "true"}}]
"""
    result = project.run(text, only=["make"])
    assert (step(result, "bench").status, step(result, "bench").reason) == ("skipped", "not selected")
    assert result.targets[0].detail == "step bench was not selected"
    result = project.run(text, stages=["baseline"])
    assert step(result, "make").reason == "not selected"
    assert row(result, "bench", "time").baseline


def test_declared_data_is_hashed_into_receipt_and_result(project: Project, tmp_path: Path) -> None:
    import json

    project.write("data/a.txt", "abc")
    outside = tmp_path / "outside.txt"
    outside.write_text("abc")
    finished = project.finish(f"data: ['data/*.txt', '{outside}']\nstages: {{build: [{{id: a, run: 'true'}}]}}")
    receipt = json.loads((finished.folder / "receipt.json").read_text())
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert receipt["data"] == {"data/a.txt": abc, str(outside): abc}
    assert finished.result.data == receipt["data"]
