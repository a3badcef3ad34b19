"""``extends`` with one parent: merging, replacing, and the places of problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.workflow.extends import merge
from tests.workflow.drafts import document

BASE = """\
perfflow: 1
description: base
env: {A: 1, B: 2}
data: [a, b]
stages:
  build:
    - {id: make, run: make, timeout: 3m}
    - {id: install, run: make install}
  verify:
    steps: [{id: tests, run: make test}]
"""


def opened(folder: Path, child: str, base: str = BASE) -> Opened:
    (folder / "base.yaml").write_text(base)
    (folder / "child.yaml").write_text(f"perfflow: 1\nextends: base.yaml\n{child}")
    return open_workflow(str(folder / "child.yaml"))


def lines(found: Opened) -> list[str]:
    return [
        f"{Path(problem.place.file).name}:{problem.place.line}:{problem.place.column} {problem.message}"
        for problem in found.problems
        if problem.place
    ]


def test_maps_merge_by_key_and_lists_are_replaced(tmp_path: Path) -> None:
    workflow = opened(tmp_path, "env: {B: 3, C: 4}\ndata: [c]\n").draft.workflow
    assert workflow.env == {"A": "1", "B": "3", "C": "4"}
    assert workflow.data == ["c"]
    assert workflow.description == "base"
    assert workflow.name == "child"


def test_steps_merge_by_id_and_new_ones_follow(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  build: [{id: install, retries: 2}, {id: last, run: x}]\n"
        "  verify: [{run: no id}, {id: tests, name: T}]\n  baseline: [{run: x}]\n",
    )
    build, verify = (found.draft.workflow.stages[name].steps for name in ("build", "verify"))
    assert [(step.id, step.run, step.retries) for step in build] == [
        ("make", "make", None),
        ("install", "make install", 2),
        ("last", "x", None),
    ]
    assert [(step.id, step.run, step.name) for step in verify] == [
        ("tests", "make test", "T"),
        ("verify-2", "no id", ""),
    ]
    assert lines(found) == []


def test_a_value_for_a_parameter_keeps_its_type_and_help(tmp_path: Path) -> None:
    base = BASE + "params: {n: {type: integer, help: how many}, m: {default: a, enum: [a, b]}, k: 1, l: [x]}\n"
    found = opened(tmp_path, "params: {n: 3, m: b, k: {help: short}, l: [y, z]}\n", base)
    params = found.draft.workflow.params
    assert [(params[name].default, params[name].type, params[name].help) for name in "nmkl"] == [
        (3, "integer", "how many"),
        ("b", None, ""),
        (1, None, "short"),
        (["y", "z"], None, ""),
    ]
    assert params["m"].enum == ["a", "b"]
    wrong = opened(tmp_path, "params:\n  n: many\n  m: c\n", base)
    assert [line.split(" ")[0] for line in lines(wrong)] == ["child.yaml:4:6", "child.yaml:5:6"]


def test_a_new_stage_takes_its_place_in_the_usual_order(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {own: [], profile: [], setup: [], baseline: []}\n")
    assert list(found.draft.workflow.stages) == ["setup", "build", "baseline", "profile", "verify", "own"]


def test_what_a_step_does_is_replaced_and_not_added(tmp_path: Path) -> None:
    base = "perfflow: 1\nstages: {baseline: [{id: a, uses: command, with: {command: x, shell: true}, runs: 5}]}\n"
    same = opened(tmp_path, "stages: {baseline: [{id: a, uses: command, with: {command: y}}]}\n", base)
    assert same.draft.workflow.stages["baseline"].steps[0].with_ == {"command": "y", "shell": True}
    other = opened(tmp_path, "stages: {baseline: [{id: a, uses: hyperfine, with: {command: y}}]}\n", base)
    assert other.draft.workflow.stages["baseline"].steps[0].with_ == {"command": "y"}
    script = (
        opened(tmp_path, "stages: {baseline: [{id: a, run: y}]}\n", base).draft.workflow.stages["baseline"].steps[0]
    )
    assert (script.run, script.uses, script.with_, script.runs) == ("y", None, {}, 5)


def test_a_mistake_stands_in_the_file_that_makes_it(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "env: {A: [1], A: 2}\nstages: {build: [{id: install, needs: [mak]}]}\n",
        BASE.replace("timeout: 3m", "timeout: 3").replace("description", "desription"),
    )
    assert lines(found) == [
        "base.yaml:2:1 unknown key `desription`",
        "base.yaml:7:38 '3' has no unit",
        "child.yaml:3:10 `A` must be a string, not [1]",
        "child.yaml:3:15 duplicate key 'A', first written in line 3",
        "child.yaml:4:40 unknown step `mak` under `needs`",
    ]


def test_keys_that_are_no_words_are_reported_in_both_files(tmp_path: Path) -> None:
    found = opened(tmp_path, "{{ x }}: 1\n", BASE + "{{ y }}: 2\n")
    assert [text.partition(" ")[2] for text in lines(found)] == ["a key must be a plain word"] * 2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"child": "nowhere.yaml"}, "nowhere.yaml: no such file"),
        ({"child": "."}, "is a directory"),
        ({"child": "child.yaml"}, "circular `extends`: child.yaml -> child.yaml"),
        (
            {"child": "b.yaml", "b": "./child.yaml"},
            "circular `extends`: child.yaml -> b.yaml -> child.yaml",
        ),
        ({"child": '"a\\0b"'}, "NUL"),
        ({"child": "lib:../x"}, "the library has no '../x'"),
        ({"child": '"lib:"'}, "the library has no ''"),
    ],
)
def test_what_cannot_be_extended_is_said_where_it_is_named(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, target in files.items():
        (tmp_path / f"{name}.yaml").write_text(f"perfflow: 1\nextends: {target}\nstages: {{}}\n")
    with pytest.raises(UserError) as raised:
        open_workflow(str(tmp_path / "child.yaml"))
    (problem,) = raised.value.problems
    assert message in problem.message
    assert problem.place
    assert (problem.place.line, problem.place.column) == (2, 10)


def test_a_chain_of_files_is_limited(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"f{number}.yaml").write_text(f"perfflow: 1\nextends: f{number + 1}.yaml\n")
    with pytest.raises(UserError, match="more than 10 files extend each other"):
        open_workflow(str(tmp_path / "f0.yaml"))


def test_a_parent_that_is_no_yaml_is_shown_itself(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"base\.yaml:1:5: error: a value is missing"):
        opened(tmp_path, "", "a: [")


def test_an_alias_that_holds_itself_on_both_sides_ends() -> None:
    parent, child = (document("a: &x {a: *x}\n").root for _ in range(2))
    assert merge(parent, child).start_mark == child.start_mark


CANDIDATES = """\
perfflow: 1
stages:
  baseline: [{id: program, uses: command, with: {command: ./program}}]
  profile: [{id: cpu, uses: perf, benchmark: program}]
  optimize:
    - {technique: algorithm, why: a better way, run: ./first}
    - {id: named, technique: memory, why: less of it, run: ./second}
  verify: [{id: tests, run: ./tests}]
"""


def test_a_candidate_without_an_id_is_called_by_its_place_in_the_whole_stage(tmp_path: Path) -> None:
    own = ["{technique: caching, why: once, run: ./third}", "{id: named, why: none of it}"]
    found = opened(tmp_path, "stages:\n  optimize:\n" + "".join(f"    - {item}\n" for item in own), CANDIDATES)
    assert lines(found) == []
    steps = found.draft.workflow.stages["optimize"].steps
    assert [(step.id, step.why) for step in steps] == [
        ("optimize-1", "a better way"),
        ("named", "none of it"),
        ("optimize-3", "once"),
    ]


@pytest.mark.parametrize(
    ("item", "said", "hint"),
    [
        (
            "{id: optimize-1, why: other}",
            "`optimize-1` is the default id of the step in BASE:6, which has no `id`",
            "in BASE;",
        ),
        (
            "optimize-1: null",
            "cannot remove `optimize-1`: stage `optimize` inherits no such step",
            "the step in BASE:6 has no `id`: give",
        ),
        ("{id: program, why: other}", "duplicate step id `program`, first used in BASE:3", "choose another id"),
    ],
)
def test_what_cannot_be_changed_says_why(item: str, said: str, hint: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages:\n  optimize:\n    - {item}\n", CANDIDATES)
    base = str(tmp_path / "base.yaml")
    (problem,) = [each for each in found.problems if each.message == said.replace("BASE", base)]
    assert hint.replace("BASE", base) in problem.hint
    assert problem.place
    assert (Path(problem.place.file).name, problem.place.line) == ("child.yaml", 5)
