"""The gate on real git projects. The cost of a benchmark is a number in a file."""

from __future__ import annotations

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from tests.repositories import git
from tests.session.project import Project, row, step

FLOW = """
name: gate
stages:
  setup:
    - {id: once, run: 'echo set >> ../setups'}
  build:
    - {id: make, run: 'test ! -e broken; cp costs built; echo out=$(head -n 1 costs) >> "$PERFFLOW_OUTPUT"'}
  baseline:
    - id: one
      run: 'test "$(head -n 1 built)" = ${{ steps.make.outputs.out }}; head -n 1 built'
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
    - {id: two, run: 'tail -n 1 built', parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
  profile:
    - {id: look, uses: cprofile, benchmark: one, with: {command: python3 -c pass}}
  optimize:
    - {id: candidate, technique: memory, run: 'true'}
  verify:
    - {id: tests, run: 'test ! -e wrong'}
    - {id: after, compare: baseline}
"""


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository with the branch ``topic`` checked out. ``main`` has a newer commit than the branch point."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", "built\n.perfflow\nflow.yaml\n")
    commit(project, "100\n100\n")
    git(project.folder, "checkout", "-qb", "topic")
    git(project.folder, "checkout", "-q", "main")
    commit(project, "10\n10\n")
    git(project.folder, "checkout", "-q", "topic")
    return project


def commit(project: Project, costs: str) -> None:
    project.write("costs", costs)
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "costs")


def statuses(result: Result) -> dict[str, str]:
    return {item.id: item.status for item in result.steps}


@pytest.mark.parametrize(("cost", "status"), [(120, "done"), (130, "skipped")])
def test_a_condition_reads_the_outputs_of_head(tree: Project, cost: int, status: str) -> None:
    commit(tree, f"{cost}\n99\n")
    condition = "{id: two, if: \"steps.make.outputs.out == '120'\", run:"
    result = tree.run(FLOW.replace("{id: two, run:", condition), base="main")
    assert statuses(result)["two"] == status


def test_head_is_compared_with_where_it_parted_from_the_base(tree: Project) -> None:
    commit(tree, "120\n99\n")
    result = tree.run(FLOW, base="main")
    assert result.verdict == "fail"
    one, two = row(result, "one", "cost"), row(result, "two", "cost")
    assert (one.decision, one.level, one.paired) == ("regressed", "action", True)
    assert one.change is not None
    assert one.change.value == pytest.approx(0.2)
    assert two.decision == "same"
    assert statuses(result) == dict.fromkeys(statuses(result), "done") | {"candidate": "skipped", "after": "skipped"}
    base, head = result.trees["baseline"], result.trees["candidate"]
    assert base is not None
    assert head is not None
    assert base["revision"] == git(tree.folder, "merge-base", "main", "topic").strip()
    assert (head["revision"], head["dirty"]) == (git(tree.folder, "rev-parse", "topic").strip(), False)
    assert (tree.folder.parent / "setups").read_text() == "set\n"
    assert git(tree.folder, "status", "--porcelain") == ""


def test_a_build_that_has_the_machine_alone_does_not_wait_for_itself(tree: Project) -> None:
    commit(tree, "120\n99\n")
    result = tree.run(FLOW.replace("{id: make, run:", "{id: make, alone: true, run:"), base="main", lock_timeout=3)
    assert step(result, "make").status == "done", step(result, "make").reason
    assert result.verdict == "fail"


def test_what_did_not_regress_is_not_profiled(tree: Project) -> None:
    commit(tree, "90\n100\n")
    result = tree.run(FLOW, base="main")
    assert result.verdict == "pass"
    assert row(result, "one", "cost").decision == "improved"
    assert step(result, "look").reason == "no benchmark that it profiles regressed"


def test_the_tree_as_it_stands_is_head_unless_a_revision_is_named(tree: Project) -> None:
    tree.write("costs", "150\n100\n")
    result = tree.run(FLOW, base="main")
    assert row(result, "one", "cost").decision == "regressed"
    assert (result.trees["candidate"] or {})["dirty"] is True
    said = "head is the working tree with its uncommitted changes; `--head HEAD` leaves them out"
    assert said in result.run.warnings
    assert tree.told.notes == [said]
    assert tree.run(FLOW, base="main", head="topic").verdict == "pass"
    assert tree.told.notes.count(said) == 1


def test_a_step_alone_is_measured_on_what_was_built_of_both_trees(tree: Project) -> None:
    """The slots contain an earlier gate's build of other code, which must not be measured."""
    commit(tree, "120\n120\n")
    assert row(tree.run(FLOW, base="main"), "two", "cost").decision == "regressed"
    commit(tree, "100\n100\n")
    result = tree.run(FLOW, base="main", only=["two"])
    assert row(result, "two", "cost").decision == "same"
    assert {name for name, status in statuses(result).items() if status == "done"} == {"make", "two"}
    commit(tree, "130\n130\n")
    assert row(tree.run(FLOW, base="main", stages=["baseline"]), "two", "cost").decision == "regressed"


def test_correctness_is_that_of_head(tree: Project) -> None:
    tree.write("wrong", "x")
    commit(tree, "100\n100\n")
    result = tree.run(FLOW, base="main")
    assert result.reason_texts == ["correctness step failed: tests: tests exited with 1"]


def test_a_base_that_does_not_build_is_an_error_by_name(tree: Project) -> None:
    git(tree.folder, "checkout", "-q", "main")
    tree.write("broken", "x")
    commit(tree, "100\n100\n")
    git(tree.folder, "checkout", "-qb", "later")
    git(tree.folder, "rm", "-q", "broken")
    git(tree.folder, "commit", "-qm", "mended")
    result = tree.run(FLOW, base="main")
    assert result.verdict == "error"
    assert "step make: the base does not build: make exited with 1" in result.reason_texts


def test_an_unknown_base_is_told_before_anything_runs(tree: Project) -> None:
    with pytest.raises(UserError) as raised:
        tree.run(FLOW, base="mian")
    assert "did you mean main?" in raised.value.problems[0].hint
    assert not (tree.folder / ".perfflow").exists()
