"""Loading of files with mistakes: valid parts are kept, and each mistake is reported exactly once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfflow.tools import registry
from perfflow.workflow.shape import keys_of
from tests.workflow.drafts import BENCH, opened, said


def test_valid_parts_of_a_file_with_mistakes_are_kept(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "name: kept\nnmae: x\nparams: {a: 1, b: [[1]], c: {default: 2, hlep: x}}\nthresholds: {action: 20%}\n"
        "stages:\n  build:\n    wroking-directory: x\n    steps: [{id: one, run: make, retries: many}]\n",
    )
    workflow = found.draft.workflow
    assert workflow.name == "kept"
    assert set(workflow.params) == {"a", "c"}
    assert found.draft.params == ("a", "b", "c")
    assert found.plan.criteria.thresholds.action == pytest.approx(0.2)
    assert workflow.stages["build"].steps[0].run == "make"
    assert len(found.draft.errors) == 5


def test_all_mistakes_of_all_parts_are_found_at_once(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "targets: {a: {time: <1 parsec}, b: 5}\n"
        "peaks: {tiem: 1s}\n"
        "stages:\n"
        "  build: [{id: x, run: 'echo ${{ params.none }}', timeout: soon, ran: y}]\n"
        "  baseline: [{id: y, uses: nothing, needs: [z]}, {id: y, run: 1}]\n",
    )
    assert said(found) == [
        "2:21 unknown unit 'parsec'",
        "2:36 `b` must be a map, not 5",
        "3:9 unknown metric `tiem` under `peaks`",
        "5:34 undefined `params.none`",
        "5:60 'soon' is not a quantity",
        "5:66 unknown key `ran`",
        "6:28 unknown tool 'nothing'",
        "6:45 unknown step `z` under `needs`",
        "6:55 duplicate step id `y`, first used in line 6",
        "6:63 `run` must be a string, not 1",
    ]


@pytest.mark.parametrize(
    ("broken", "mistake"),
    [
        ("{id: it, usse: command}", "5:16 unknown key `usse`"),
        ("{id: it, uses: comand}", "5:22 unknown tool 'comand'"),
        ("{id: it, uses: 5}", "5:22 `uses` must be a string, not 5"),
        ("{id: it, <<: *p, uses: command}", "5:16 merge keys are not supported"),
        ("{id: it, run: [x]}", "5:21 `run` must be a string, not ['x']"),
        ("{id: it, {{ x }}: y}", "5:16 a key must be a plain word"),
        ("{id: it, script: ./x}", "5:16 unknown key `script`"),
    ],
)
def test_a_broken_step_causes_no_second_complaint(broken: str, mistake: str, tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "params: &p {a: 1}\n"
        "stages:\n  baseline:\n"
        f"    - {broken}\n"
        "    - {id: other, run: 'echo ${{ steps.it.outputs.x }}', needs: [it]}\n"
        "  profile:\n    - {uses: perf, benchmark: it}\n"
        "targets: {it: {time: <1s, heap_peak: <1KB}}\n",
    )
    assert said(found) == [mistake]


def test_a_mistake_elsewhere_in_a_step_does_not_excuse_a_target(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "targets: {it: {heap_peak: <1KB}, that: {time: <1s}}\n"
        "stages: {baseline: [{id: it, uses: command, timeout: 5, with: {command: x}}]}\n",
    )
    assert [text.partition(" ")[2] for text in said(found)] == [
        "no step measures `heap_peak` of `it`",
        "no step measures `that`",
        "'5' has no unit",
    ]


def test_a_stage_that_cannot_be_read_causes_no_second_complaint(tmp_path: Path) -> None:
    found = opened(
        tmp_path, "targets: {it: {time: <1s}}\nstages:\n  baseline: {step: []}\n  verify: x\n  optimize: []\n"
    )
    assert [text for text in said(found) if "stage needs" not in text] == [
        "4:14 unknown key `step`",
        "5:11 stage `verify` must be a list of steps, or a map with `steps`",
    ]


def test_the_name_and_the_ids_have_defaults(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {baseline: [{run: a}, {id: x, run: b}, {run: c}]}\n")
    assert found.draft.workflow.name == "flow"
    assert [item.id for item in found.plan.steps] == ["baseline-1", "x", "baseline-3"]
    assert said(found) == []


def test_a_map_stage_has_defaults_and_steps(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {build: {env: {A: 1}, timeout: 3m, steps: [{run: a}]}}\n")
    stage = found.draft.workflow.stages["build"]
    assert (stage.env, stage.timeout) == ({"A": "1"}, "3m")
    assert len(stage.steps) == 1


def test_numbers_are_texts_where_texts_are_meant(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "env: {N: 1, F: 1.5, B: true, T: 'no'}\nstages: {build: [{argv: [echo, 1, 2.5, '3']}]}\n",
    )
    assert found.draft.workflow.env == {"N": "1", "F": "1.5", "B": "true", "T": "no"}
    assert found.draft.workflow.stages["build"].steps[0].argv == ["echo", "1", "2.5", "3"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("retries: '3'", "`retries` must be a whole number, not '3'"),
        ("retries: 1.5", "`retries` must be a whole number, not 1.5"),
        ("retries: true", "`retries` must be a whole number, not True"),
        ("background: 'yes'", "`background` must be true or false, not 'yes'"),
        ("background: 1", "`background` must be true or false, not 1"),
        ("env: {A: [1]}", "`A` must be a string, not [1]"),
        ("argv: echo", "`argv` must be a list, not 'echo'"),
        ("argv: [echo, [x]]", "an item of `argv` must be a string, not ['x']"),
        ("matrix: {a: 1}", "`a` must be a list, not 1"),
        ("matrix: {a: [[1]]}", "an item of `a` must be a string, a whole number, a number or true or false, not [1]"),
        ("runs: 0", "`runs` must be at least 1, not 0"),
        ("runs: [1]", "`runs` must be a whole number or a ${{ }} expression, not [1]"),
        ("confirm: 11", "`confirm` must be at most 10, not 11"),
        ("parse: null", ""),
    ],
)
def test_a_wrong_type_is_said_in_words(step: str, message: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages: {{build: [{{id: x, run: make, {step}}}], baseline: [run: x]}}\n")
    expected = [message] if message else []
    assert [text.partition(" ")[2] for text in said(found)] == expected


def test_where_text_is_wrong_in_a_union_of_maps(tmp_path: Path) -> None:
    found = opened(tmp_path, f"thresholds: {{memory: {{action: [1]}}, for: {{a: [2]}}}}\n{BENCH}")
    assert said(found) == ["2:31 `action` must be a string, not [1]", "2:46 `a` must be a map, not [2]"]


@pytest.mark.parametrize("name", registry.MODULES)
def test_keys_of_tools_are_in_kebab_case(name: str) -> None:
    tool = registry.find(name)
    assert tool
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key) for key in keys_of(tool.options))


@pytest.mark.parametrize(
    ("step", "written", "meant"),
    [
        ("uses: cargo-bench", "sample_size: 20", "sample-size"),
        ("uses: cargo-build", "default_features: false", "default-features"),
        ("uses: perf, benchmark: bench", "call_graph: fp", "call-graph"),
        ("uses: same-output", "allow_empty: true", "allow-empty"),
        ("uses: callgrind, benchmark: bench", "hash_seed: false", "hash-seed"),
    ],
)
def test_the_spelling_with_underscores_is_an_error_that_names_the_key(
    step: str, written: str, meant: str, tmp_path: Path
) -> None:
    baseline = "{id: bench, uses: command, with: {command: ./bench}}"
    found = opened(tmp_path, f"stages: {{baseline: [{baseline}], profile: [{{{step}, with: {{{written}}}}}]}}\n")
    (problem,) = (item for item in found.problems if item.message.startswith("unknown key"))
    assert problem.hint == f"write `{meant}`"
    right = opened(tmp_path, (tmp_path / "flow.yaml").read_text().replace(written.partition(":")[0], meant))
    assert not any(item.message.startswith("unknown key") for item in right.problems)
