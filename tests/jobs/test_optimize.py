"""The optimize stage on real git projects. A benchmark's cost is a number in a file, so effects are known exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Optimization, Result
from tests.repositories import git
from tests.session.project import Project

HEAD = """
name: work
targets:
  fast: {cost: <10}
stages:
  build:
    - {id: make, run: 'test ! -e broken; cp costs built'}
  baseline:
    - {id: fast, run: 'sed -n 1p built', runs: 8,
       parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
    - {id: other, run: 'sed -n 2p built', runs: 8,
       parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
  profile:
    - {id: look, run: 'true'}
  optimize:
  verify:
    - {id: tests, run: 'test ! -e wrong'}
    - {id: after, compare: baseline}
"""


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write("costs", "100\n100\n")
    project.write(".gitignore", "built\n.perfflow\nflow.yaml\n*.patch\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    return project


def patch(project: Project, name: str, **files: str) -> str:
    """Write a patch that gives files new contents, and leave the tree as it was."""
    for file, text in files.items():
        project.write(file, text)
    git(project.folder, "add", "-AN")
    project.write(f"{name}.patch", git(project.folder, "diff"))
    git(project.folder, "reset", "-q", "--hard")
    return f"patch: {name}.patch"


def workflow(*candidates: str, more: str = "", head: str = HEAD) -> str:
    steps = "".join(f"      - {{technique: memory, {text}}}\n" for text in candidates)
    before, stage, after = head.partition("  optimize:\n")
    return f"{before}{stage}{more}    steps:\n{steps}{after}"


def tried(result: Result) -> dict[str, Optimization]:
    return {item.id: item for item in result.optimizations}


def state(root: Path) -> tuple[str, ...]:
    asked = ("status", "--porcelain"), ("stash", "list"), ("worktree", "list"), ("branch", "--list", "main", "-v")
    return (*(git(root, *words) for words in asked), (root / ".git" / "index").read_bytes().hex())


def test_what_is_proven_is_kept_and_nothing_remains_of_the_rest(tree: Project) -> None:
    text = workflow(
        f"id: good, why: less work, {patch(tree, 'good', costs='80' + chr(10) + '100' + chr(10))}",
        f"id: same, {patch(tree, 'same', note='x')}",
        f"id: wrong, {patch(tree, 'wrong', wrong='x')}",
        f"id: broken, {patch(tree, 'broken', broken='x')}",
        f"id: trade, {patch(tree, 'trade', costs='50' + chr(10) + '120' + chr(10))}",
    )
    before = state(tree.folder)
    result = tree.run(text)
    found = tried(result)
    decisions = {name: item.decision for name, item in found.items()}
    assert decisions == dict.fromkeys(found, "rejected") | {"good": "accepted"}
    assert found["good"].effect is not None
    assert found["good"].effect.value == pytest.approx(0.2)
    assert (found["good"].before, found["good"].after) == (100, 80)
    assert "+80" in found["good"].diff
    assert found["same"].reason.startswith("same: ")
    assert found["wrong"].reason == "correctness does not hold: step tests: tests exited with 1"
    assert found["broken"].reason == "it does not build: step make: make exited with 1"
    # Its patch was made for the tree without the change of `good`.
    assert "does not apply" in found["trade"].reason
    assert state(tree.folder) == before
    kept = result.trees["candidate"]
    assert kept is not None
    assert git(tree.folder, "log", "--format=%s", f"main..{kept['branch']}") == "perf: less work (+20.0%)\n"
    assert git(tree.folder, "rev-parse", kept["branch"]).strip() == kept["revision"] == found["good"].revision
    row = next(item for item in result.benchmarks if item.name == "fast")
    assert row.change is not None
    assert row.change.value == pytest.approx(-0.2)


def test_the_final_effect_is_that_against_the_original(tree: Project) -> None:
    first = patch(tree, "first", costs="80\n100\n")
    tree.write("costs", "80\n100\n")
    git(tree.folder, "commit", "-qam", "two")
    second = patch(tree, "second", costs="40\n100\n")
    git(tree.folder, "reset", "-q", "--hard", "HEAD~1")
    result = tree.run(workflow(f"id: first, {first}", f"id: second, {second}"))
    effects = [item.effect.value for item in result.optimizations if item.effect]
    assert effects == [pytest.approx(0.2), pytest.approx(0.5)]
    row = next(item for item in result.benchmarks if item.name == "fast")
    assert row.change is not None
    assert row.change.value == pytest.approx(-0.6)
    assert row.baseline is not None
    assert row.baseline.value == 100


def test_a_regression_of_what_is_guarded_stands_in_the_way(tree: Project) -> None:
    text = patch(tree, "trade", costs="50\n110\n")
    rejected = tried(tree.run(workflow(f"id: trade, {text}")))["trade"]
    assert rejected.decision == "rejected"
    assert rejected.reason == "other cost regressed: -10.0% [-10.0%, -10.0%]"
    assert tried(tree.run(workflow(f"id: trade, {text}", more="    guard: [fast]\n")))["trade"].decision == "accepted"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("    forbid: [costs]\n", "needs approval: it touches costs, which `forbid: costs` protects"),
        ("    max-diff: 1\n", "needs approval: it changes 2 lines, `max-diff` is 1"),
        ("    check: grep -q 100 built\n", ""),
        ("    check: [test -e license]\n", "needs approval: `check: test -e license`: check-1 exited with 1"),
    ],
)
def test_what_the_stage_does_not_allow_needs_approval(tree: Project, more: str, reason: str) -> None:
    text = workflow(f"id: good, {patch(tree, 'good', costs='80' + chr(10) + '100' + chr(10))}", more=more)
    found = tried(tree.run(text))["good"]
    assert found.decision == ("rejected" if reason else "accepted")
    assert found.reason == reason or not reason


def test_a_change_is_a_command_or_a_revision_or_settings(tree: Project) -> None:
    git(tree.folder, "checkout", "-qb", "topic")
    tree.write("costs", "100\n60\n")
    git(tree.folder, "commit", "-qam", "topic")
    git(tree.folder, "checkout", "-q", "main")
    head = HEAD.replace("cp costs built", 'sed "s/^/${LEAD:-}/; s/^9/1/" costs > built').replace(
        "<10}", "<10, cost change: <1}"
    )
    text = workflow(
        "id: revision, ref: topic, technique: io",
        "id: edit, run: 'sed -i 1s/100/70/ costs; touch new'",
        "id: set, env: {LEAD: 9}",
        "id: failing, run: 'exit 3'",
        "id: nothing, run: 'true'",
        head=head.replace("  fast: {", "  '*': {"),
    ).replace("technique: memory, id: revision", "id: revision")
    found = tried(tree.run(text))
    assert {name: item.decision for name, item in found.items()} == {
        "edit": "accepted",
        "revision": "accepted",
        "set": "rejected",
        "failing": "rejected",
        "nothing": "rejected",
    }
    assert found["edit"].files == ["costs", "new"]
    assert found["set"].env == {"LEAD": "9"}
    assert found["failing"].reason == "its command failed: failing exited with 3"
    assert found["nothing"].reason == "it changes nothing"


def test_of_alternatives_the_best_is_kept(tree: Project) -> None:
    text = workflow("id: size, matrix: {to: [80, 60, 90]}, run: 'sed -i 1s/100/${{ matrix.to }}/ costs'")
    result = tree.run(text)
    found = {item.id: item for item in result.optimizations}
    assert {name: item.decision for name, item in found.items()} == {
        "size[to=80]": "rejected",
        "size[to=60]": "accepted",
        "size[to=90]": "rejected",
    }
    assert found["size[to=80]"].reason.startswith("another alternative is better")
    row = next(item for item in result.benchmarks if item.name == "fast")
    assert row.candidate is not None
    assert row.candidate.value == 60


def test_the_stage_ends_when_all_targets_are_met(tree: Project) -> None:
    good = patch(tree, "good", costs="5\n100\n")
    result = tree.run(workflow(f"id: good, {good}", "id: late, run: 'exit 1'"))
    found = tried(result)
    assert (found["good"].decision, found["late"].decision) == ("accepted", "skipped")
    assert found["late"].reason == "all targets are met"
    assert result.verdict == "pass"


def test_a_proposer_is_told_what_is_known_and_judged_like_any_patch(tree: Project) -> None:
    tree.write(
        "propose.py",
        "import json, sys\n"
        "brief = json.load(sys.stdin)\n"
        "open('seen-%d.json' % brief['attempt'], 'w').write(json.dumps(brief)) if brief['attempt'] < 0 else None\n"
        "number = {1: 100, 2: 70, 3: 40}.get(brief['attempt'])\n"
        "assert brief['targets'][0]['benchmark'] == 'fast' and brief['constraints']['accept'] == 0.1\n"
        "assert len(brief['ledger']) == brief['attempt'] - 1\n"
        "if brief['attempt'] == 4: sys.exit(1)\n"
        "lines = open('costs').read().split(); lines[0] = str(number)\n"
        "open('costs', 'w').write('\\n'.join(lines) + '\\n')\n",
    )
    git(tree.folder, "add", ".")
    git(tree.folder, "commit", "-qm", "proposer")
    text = workflow("id: ask, propose: python3 propose.py", more="    attempts: 5\n")
    found = tried(tree.run(text))
    assert {name: item.decision for name, item in found.items()} == {
        "ask.1": "rejected",
        "ask.2": "accepted",
        "ask.3": "accepted",
        "ask.4": "rejected",
    }
    assert found["ask.1"].reason == "it changes nothing"
    assert found["ask.4"].reason == "no proposal: its command failed: ask exited with 1"


def test_the_users_uncommitted_state_is_what_candidates_start_from(tree: Project) -> None:
    tree.write("costs", "100\n50\n")
    tree.write("untracked", "x\n")
    before = state(tree.folder)
    text = workflow("id: good, run: 'test -e untracked; sed -i 1s/100/80/ costs'")
    result = tree.run(text)
    assert tried(result)["good"].decision == "accepted"
    assert state(tree.folder) == before
    assert (tree.folder / "costs").read_text() == "100\n50\n"
    row = next(item for item in result.benchmarks if item.name == "other")
    assert row.baseline is not None
    assert row.baseline.value == 50


def test_without_git_it_is_said_before_anything_runs(project: Project) -> None:
    with pytest.raises(UserError) as raised:
        project.run(workflow("id: x, run: 'true'"))
    assert "not a git working tree" in raised.value.problems[0].message
    assert not (project.folder / ".perfflow").exists()


def test_code_that_needs_an_ignored_file_is_told_to_share_it(tree: Project) -> None:
    tree.write("built.h", "x")
    tree.write(".gitignore", "built*\n.perfflow\nflow.yaml\n*.patch\n")
    head = HEAD.replace("test ! -e broken", "test -e built.h")
    result = tree.run(workflow("id: x, run: 'sed -i 1s/100/80/ costs'", head=head))
    assert result.verdict == "fail"  # the target is missed as well
    assert tried(result)["x"].decision == "skipped"
    (why,) = (reason for reason in result.reason_texts if reason.startswith("step x: "))
    assert "does not work in a separate folder" in why
    assert "worktree: {share:" in why
    shared = head.replace("\nname: work", "\nname: work\nworktree: {share: [built.h]}")
    assert tried(tree.run(workflow("id: x, run: 'sed -i 1s/100/80/ costs'", head=shared)))["x"].decision == "accepted"


def test_the_result_alone_gives_the_same_ledger(tree: Project) -> None:
    from perfflow.jobs.rejudge.rejudge import rejudge

    finished = tree.finish(workflow("id: x, run: 'sed -i 1s/100/80/ costs'", "id: y, run: 'true'"))
    again = rejudge(finished.folder / "result.json", (), None).result
    assert again.optimizations == finished.result.optimizations
    assert json.loads((finished.folder / "result.json").read_text())["optimizations"][0]["decision"] == "accepted"


def test_a_build_that_goes_by_files_is_not_fooled_by_settings(tree: Project) -> None:
    """The build compares file times, so it takes a program built with an earlier candidate's settings as up to date."""
    head = HEAD.replace("cp costs built", 'test built -nt costs || echo "${COST:-100}" > built').replace(
        "sed -n 2p", "sed -n 1p"
    )
    rejected = "id: wrong, env: {COST: 10}, run: 'touch wrong'"
    result = tree.run(workflow(rejected, "id: none, env: {OTHER: x}", head=head))
    assert {name: item.decision for name, item in tried(result).items()} == {"wrong": "rejected", "none": "rejected"}
    again = tree.run(workflow("id: none, env: {OTHER: y}", head=head))
    assert tried(again)["none"].reason.startswith("same: ")


def test_alternatives_that_nothing_follows_are_settled_at_the_end(tree: Project) -> None:
    candidate = "id: size, matrix: {to: [80, 60, 90]}, run: 'sed -i 1s/100/${{ matrix.to }}/ costs'"
    result = tree.run(workflow(candidate), stages=("build", "baseline", "optimize"))
    assert [name for name, item in tried(result).items() if item.decision == "accepted"] == ["size[to=60]"]
    branch = (result.trees["candidate"] or {})["branch"]
    assert git(tree.folder, "show", f"{branch}:costs") == "60\n100\n"


def test_alternatives_are_settled_before_what_follows(tree: Project) -> None:
    text = workflow(
        "id: size, matrix: {to: [80, 60, 90]}, if: 'matrix.to != 90', run: 'sed -i 1s/100/${{ matrix.to }}/ costs'",
        "id: more, run: 'sed -i 1s/60/30/ costs'",
        "id: last, matrix: {to: [20, 10]}, run: 'sed -i 1s/30/${{ matrix.to }}/ costs; touch new'",
    )
    result = tree.run(text)
    kept = {item.id for item in result.optimizations if item.decision == "accepted"}
    assert kept == {"size[to=60]", "more", "last[to=10]"}
    assert tried(result)["size[to=90]"].decision == "skipped"
    branch = (result.trees["candidate"] or {})["branch"]
    assert git(tree.folder, "show", f"{branch}:costs") == "10\n100\n"
    assert git(tree.folder, "log", "--format=%s", f"main..{branch}").count("perf: ") == 3


@pytest.mark.parametrize("glob", ["costs", "./costs", "/costs", "sub", "sub/", "./sub/**", "/sub/*"])
def test_what_is_forbidden_may_be_written_in_any_way(tree: Project, glob: str) -> None:
    change = "sed -i 1s/100/80/ costs; mkdir -p sub; echo x > sub/file"
    found = tried(tree.run(workflow(f"id: x, run: '{change}'", more=f"    forbid: ['{glob}']\n")))["x"]
    assert found.reason.startswith("needs approval: it touches ")


@pytest.mark.parametrize("key", ["objective: fsat cost", "guard: [othr]"])
def test_a_goal_about_nothing_is_an_error_before_anything_is_tried(tree: Project, key: str) -> None:
    result = tree.run(workflow("id: x, run: 'sed -i 1s/100/80/ costs'", more=f"    {key}\n"))
    (why,) = (reason for reason in result.reason_texts if reason.startswith("step x: "))
    assert "matches nothing that was measured (fast, other)" in why


def test_a_candidate_that_cannot_be_prepared_is_rejected_and_the_next_is_tried(tree: Project) -> None:
    bad = "id: bad, env: {X: '${{ steps.fast.outputs.nope }}'}"
    result = tree.run(workflow(bad, "id: good, run: 'sed -i 1s/100/80/ costs'"))
    found = tried(result)
    assert (found["bad"].decision, found["good"].decision) == ("rejected", "accepted")
    assert "nope" in found["bad"].reason


def test_a_branch_that_cannot_be_made_costs_nothing_that_was_measured(tree: Project) -> None:
    git(tree.folder, "branch", "perfflow")
    finished = tree.finish(workflow("id: good, run: 'sed -i 1s/100/80/ costs'"))
    assert tried(finished.result)["good"].decision == "accepted"
    assert (finished.result.trees["candidate"] or {})["branch"] is None
    assert "80" in (finished.folder / "steps" / "good" / "change.diff").read_text()


@pytest.mark.parametrize("command", ["cat built.data", "cat built.data || true"], ids=["exits", "prints no figure"])
def test_a_benchmark_that_fails_on_the_code_as_it_stands_is_no_candidates_fault(tree: Project, command: str) -> None:
    tree.write("built.data", "100")
    tree.write(".gitignore", "built*\n.perfflow\nflow.yaml\n*.patch\n")
    result = tree.run(
        workflow("id: x, run: 'sed -i 1s/100/80/ costs'", head=HEAD.replace("'sed -n 1p built'", f"'{command}'"))
    )
    (why,) = (reason for reason in result.reason_texts if reason.startswith("step x: "))
    assert "failed on the baseline" in why
    assert "worktree: {share:" in why


def test_what_prepares_the_measuring_runs_in_every_tree(tree: Project) -> None:
    head = HEAD.replace("  baseline:\n", "  baseline:\n    - {id: prep, run: 'cp built prepared'}\n").replace(
        "'sed -n 1p built'", "'sed -n 1p prepared'"
    )
    tree.write(".gitignore", "built\nprepared\n.perfflow\nflow.yaml\n*.patch\n")
    assert tried(tree.run(workflow("id: x, run: 'sed -i 1s/100/80/ costs'", head=head)))["x"].decision == "accepted"


@pytest.mark.parametrize(
    ("guard", "decision"),
    [("other cost", "rejected"), ("** cost", "rejected"), ("fast cost", "accepted"), ("other loss", "accepted")],
)
def test_a_guard_may_be_one_metric_of_a_benchmark(tree: Project, guard: str, decision: str) -> None:
    """The candidate raises the cost of `other` by 10% and keeps its `loss`. Two metrics need more than eight pairs."""
    loss = "sed -n 2p built; echo loss=1', parse: {regex: ['^(?P<cost>\\d+)', 'loss=(?P<loss>\\d+)'], "
    head = HEAD.replace("sed -n 2p built', runs: 8,\n       parse: {regex: '(?P<cost>\\d+)', ", loss)
    head = head.replace(
        "units: {cost: '1'}, better: {cost: lower}}}\n  profile",
        "units: {cost: '1', loss: '1'}, better: {cost: lower, loss: lower}}}\n  profile",
    )
    text = patch(tree, "trade", costs="50\n110\n")
    found = tried(tree.run(workflow(f"id: trade, {text}", more=f"    guard: ['{guard}']\n", head=head)))["trade"]
    assert found.decision == decision, found.reason


def test_variants_are_compared_where_they_stand_and_not_between_trees(tree: Project) -> None:
    """Between two trees, the difference between the variants would look like the candidate's effect."""
    step = """    - id: suite
      run: 'echo x >> "$RUNS"; echo sum/old 8; echo sum/new 4'
      parse: {regex: '(?P<benchmark>\\S+) (?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
      variants: {baseline: '*/old', candidate: '*/new'}
      runs: 6
"""
    runs = tree.folder.parent / "runs"
    head = HEAD.replace("  profile:\n", step + "  profile:\n").replace(
        "stages:", f"env: {{RUNS: '{runs}'}}\nstages:", 1
    )
    result = tree.run(workflow(f"id: good, {patch(tree, 'good', costs='80' + chr(10) + '100' + chr(10))}", head=head))
    assert tried(result)["good"].decision == "accepted"
    row = next(item for item in result.benchmarks if item.name == "sum")
    assert row.change is not None
    assert row.change.value == pytest.approx(-0.5)
    # One warm-up run, and one process for each pair.
    assert runs.read_text().count("x") == 7
