"""The edits of the experiment on code layout: they compile, and change no instruction of the hot code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.layout_experiment import judges, proof, trials
from benchmarks.layout_experiment.edits import KINDS, PROGRAMS, Edit, Program
from benchmarks.layout_experiment.projects import Project
from benchmarks.verdict_experiment.log import Entry

IN_C = {program.name: program for program in PROGRAMS if program.language == "c"}
WORDS = next(program for program in PROGRAMS if program.name == "words")


@pytest.fixture(scope="module")
def sorting(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.create(IN_C["sorting"], tmp_path_factory.mktemp("layouts"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_moves_code_and_changes_no_instruction_of_it(sorting: Project, kind: str) -> None:
    old, new = (sorting.executable(name) for name in sorting.commit(Edit(sorting.program, kind, 1)))
    assert old.read_bytes() != new.read_bytes()
    assert proof.same_code(old, new, sorting.program.hot)
    assert subprocess.check_output([old]) == subprocess.check_output([new])


def test_more_work_is_seen_where_it_is_done_and_nowhere_else(sorting: Project) -> None:
    edit = Edit(sorting.program, "pad", 1, percent=20)
    old, new = (sorting.executable(name) for name in sorting.commit(edit))
    assert edit.factor() == pytest.approx(1.2)
    assert proof.same_code(old, new, ["sort"])
    assert not proof.same_code(old, new, ["main"])


def test_a_changed_loop_is_not_taken_for_the_same(sorting: Project, tmp_path: Path) -> None:
    text = sorting.program.files()["sorting.c"]
    (tmp_path / "other.c").write_text(text.replace("items[at - gap] > item", "items[at - gap] >= item"))
    subprocess.run(["cc", "-O2", "-o", tmp_path / "other", tmp_path / "other.c"], check=True)
    assert not proof.same_code(sorting.executable("base"), tmp_path / "other", ["sort"])
    with pytest.raises(proof.NoFunctionError, match="no function nothing"):
        proof.instructions(tmp_path / "other", "nothing")


def test_an_edit_that_is_undone_is_the_base_that_a_head_stands_on(sorting: Project) -> None:
    sides = sorting.commit(Edit(sorting.program, "unused", 1), reverse=True)
    found = subprocess.check_output(["git", "merge-base", *sides], cwd=sorting.root, text=True)
    assert found == subprocess.check_output(["git", "rev-parse", sides.base], cwd=sorting.root, text=True)
    assert sorting.executable(sides.head).read_bytes() == sorting.executable("base").read_bytes()
    assert sorting.executable(sides.base).read_bytes() != sorting.executable("base").read_bytes()


@pytest.mark.parametrize("program", IN_C.values(), ids=lambda program: str(program.name))
def test_every_program_in_c_has_its_hot_functions(program: Program, tmp_path: Path) -> None:
    project = Project.create(program, tmp_path)
    assert all(proof.instructions(project.executable("base"), name) for name in program.hot)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_in_rust_compiles(kind: str, tmp_path: Path) -> None:
    files = WORDS.files() | Edit(WORDS, kind, 0, percent=5).files()
    for name in (WORDS.extra, WORDS.file):
        crate = Path(name).parts[0]
        (tmp_path / f"{crate}.rs").write_text(files[name])
        uses = [] if name == WORDS.extra else ["--extern", "extra=libextra.rlib"]
        argv = ["rustc", "--edition=2021", "--crate-type=rlib", "-D", "warnings", *uses, f"{crate}.rs"]
        subprocess.run(argv, cwd=tmp_path, check=True)
    assert "ROUNDS: usize = 21" in files[WORDS.file]


@pytest.mark.long  # measures; what an edit does is tried beside it
def test_hyperfine_is_asked_about_both_builds(sorting: Project) -> None:
    found = judges.hyperfine(sorting, sorting.commit(Edit(sorting.program, "pad", 1, percent=900)))
    assert found["called"]
    assert found["change"][0] > 1


def test_programs_take_turns_and_what_is_not_proven_is_left_out() -> None:
    looked: list[Entry] = [
        {"screened": "c/a/pad/0", "ratios": [1.01]},
        {"screened": "c/a/pad/1", "ratios": [1.2, 1.19]},
        {"screened": "c/a/pad/2", "ratios": [1.2, 1.01]},
        {"screened": "c/a/pad/4", "ratios": [1.2, 0.8]},
        {"screened": "c/a/pad/3", "same_code": False},
        {"screened": "c/b/pad/0", "ratios": [0.8, 0.9]},
    ]
    chosen = {"c/a/pad/1": True, "c/b/pad/0": True}
    assert trials.select(looked, 5) == {**chosen, "c/a/pad/0": False, "c/a/pad/2": False, "c/a/pad/4": False}
    assert trials.select(looked, 1) == {"c/a/pad/0": False}
