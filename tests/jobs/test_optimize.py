"""The optimize stage on real git projects. A benchmark's cost is a number in a file, so effects are known exactly."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from perfflow.execute.deadline import Deadline
from perfflow.jobs.optimize.accepted_state import AcceptedState
from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.errors import UserError
from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.result import Needs, Optimization, Result
from perfflow.model.units import duration
from perfflow.report.page import taking_over
from perfflow.session.session import RunSession
from tests.long import rest_long
from tests.repositories import git
from tests.session.project import Project, both, change_of, flow, row

COST = "parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}"
AFTER = ["{id: tests, run: 'test ! -e wrong'}", "{id: after, compare: baseline}"]
HEAD = flow(
    "name: work\ntargets:\n  fast: {cost: <10}",
    build="{id: make, run: 'test ! -e broken; cp costs built'}",
    baseline=[
        f"{{id: {name}, run: 'sed -n {line}p built', runs: 8, {COST}}}" for name, line in (("fast", 1), ("other", 2))
    ],
    profile="{id: look, run: 'true'}",
    optimize=[],
    verify=AFTER,
)
CHEAPER = "run: 'sed -i 1s/100/80/ costs'"
SIZES = "matrix: {to: [80, 60, 90]}, run: 'sed -i 1s/100/${{ matrix.to }}/ costs'"


@pytest.fixture
def tree(tree: Project) -> Project:
    tree.commit({"costs": "100\n100\n"})
    return tree


def patch(project: Project, name: str, **files: str) -> str:
    """Write a patch that gives files new contents, and leave the tree as it was."""
    for file, text in files.items():
        project.write(file, text)
    project.git("add", "-AN")
    project.write(f"{name}.patch", project.git("diff"))
    project.git("reset", "-q", "--hard")
    return f"patch: {name}.patch"


def cheaper(project: Project) -> str:
    """Return the key of a patch that lowers the cost of ``fast``."""
    return patch(project, "good", costs="80\n100\n")


def workflow(*candidates: str, more: str = "", head: str = HEAD) -> str:
    steps = "".join(f"      - {{technique: memory, {text}}}\n" for text in candidates)
    before, stage, after = head.partition("  optimize:\n")
    return f"{before}{stage}{more}    steps:\n{steps}{after}"


def tried(result: Result) -> dict[str, Optimization]:
    return {item.id: item for item in result.optimizations}


def decisions(result: Result) -> dict[str, str]:
    return {item.id: item.decision for item in result.optimizations}


def accepted(result: Result) -> set[str]:
    return {name for name, decision in decisions(result).items() if decision == "accepted"}


def why_not(result: Result) -> str:
    """Return the reason of the step ``x``, which was not tried."""
    (why,) = (reason for reason in result.reason_texts if reason.startswith("step x: "))
    return why


def kept(result: Result) -> dict[str, Any]:
    return result.trees["candidate"] or {}


def state(root: Path) -> tuple[str, ...]:
    asked = ("status", "--porcelain"), ("stash", "list"), ("worktree", "list"), ("branch", "--list", "main", "-v")
    return (*(git(root, *words) for words in asked), (root / ".git" / "index").read_bytes().hex())


def test_checks_that_there_is_no_time_for_accuse_no_candidate(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    check = AcceptedState.check

    def without_time(state: AcceptedState, session: RunSession, of: str) -> None:
        monkeypatch.setattr(Deadline, "left", property(lambda _: 0.0))
        check(state, session, of)

    monkeypatch.setattr(AcceptedState, "check", without_time)
    head = HEAD.replace("test ! -e wrong", "echo 22 passed in 0.1s")
    result = tree.run(workflow(f"id: good, {cheaper(tree)}", head=head), budget=3600.0)
    assert tried(result)["good"].code is Code.OUT_OF_TIME
    assert tried(result)["good"].needs == Needs(budget="2h")


def test_what_is_proven_is_kept_and_nothing_remains_of_the_rest(tree: Project) -> None:
    text = workflow(
        f"id: good, why: less work, {cheaper(tree)}",
        f"id: same, {patch(tree, 'same', note='x')}",
        f"id: wrong, {patch(tree, 'wrong', wrong='x')}",
        f"id: broken, {patch(tree, 'broken', broken='x')}",
        f"id: trade, {patch(tree, 'trade', costs='50' + chr(10) + '120' + chr(10))}",
    )
    before = state(tree.folder)
    result = tree.run(text)
    found = tried(result)
    assert decisions(result) == dict.fromkeys(found, "rejected") | {"good": "accepted"}
    codes = {"good": Code.PROVEN, "same": Code.NO_EFFECT, "wrong": Code.CHECK_FAILED, "broken": Code.BUILD_FAILED}
    assert {name: item.code for name, item in found.items()} == codes | {"trade": Code.MALFORMED}
    assert all(item.outcome is item.code.outcome for item in found.values() if item.code)
    assert (found["good"].flags, found["same"].flags) == ([Flag.FIXED_INPUT], [])
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
    branch = kept(result)["branch"]
    assert tree.git("log", "--format=%s", f"main..{branch}") == "perf: less work (+20.0%)\n"
    assert tree.git("rev-parse", branch).strip() == kept(result)["revision"] == found["good"].revision
    assert change_of(row(result, "fast", "cost")) == pytest.approx(-0.2)


def test_what_is_forbidden_is_refused_before_anything_is_built(tree: Project) -> None:
    more, steps = "    forbid: [costs]\n", ".perfflow/runs/latest/steps/original"
    found = tried(tree.run(workflow(f"id: good, {cheaper(tree)}", more=more)))["good"]
    assert (found.code, found.outcome) == (Code.FORBIDDEN_FILE, Outcome.FORBIDDEN)
    assert not (tree.folder / steps).exists()


def test_what_more_time_could_decide_says_how_much(tree: Project) -> None:
    # Every second process costs five times as much, whichever side it is of.
    count = shlex.quote(str(tree.folder.parent / "count"))
    odd = f"echo >> {count}; echo $(($(sed -n 1p built) * (1 + $(wc -l < {count}) % 2 * 4)))"
    head = HEAD.replace("runs: 8", "budget: 0.001s").replace("sed -n 1p built", odd)
    found = tried(tree.run(workflow(f"id: good, {cheaper(tree)}", head=head)))["good"]
    assert (found.code, found.outcome, found.flags) == (Code.NOT_PROVEN, Outcome.UNDECIDED, [])
    assert found.needs
    assert duration(found.needs.budget) > 0


def test_a_change_of_the_build_and_the_number_of_attempts_are_told(tree: Project) -> None:
    text = workflow(f"id: good, {patch(tree, 'built', **{'costs': '80' + chr(10) + '100' + chr(10), 'build.rs': 'x'})}")
    found = [tried(tree.run(text))["good"] for _ in range(2)]
    first = [Flag.BUILD_SETTINGS, Flag.FIXED_INPUT]
    # Attempts of earlier runs count. Eight pairs do not bound the effect at the confidence that two ask for.
    assert [item.attempts for item in found] == [1, 2]
    assert [item.flags for item in found] == [first, [*first, Flag.MANY_ATTEMPTS]]


@pytest.mark.long  # builds and measures in several trees
def test_the_final_effect_is_that_against_the_original(tree: Project) -> None:
    first = patch(tree, "first", costs="80\n100\n")
    tree.commit({"costs": "80\n100\n"})
    second = patch(tree, "second", costs="40\n100\n")
    tree.git("reset", "-q", "--hard", "HEAD~1")
    result = tree.run(workflow(f"id: first, {first}", f"id: second, {second}"))
    effects = [item.effect.value for item in result.optimizations if item.effect]
    assert effects == [pytest.approx(0.2), pytest.approx(0.5)]
    found = row(result, "fast", "cost")
    assert change_of(found) == pytest.approx(-0.6)
    assert both(found)[0].value == 100


@pytest.mark.long  # as a guard of one metric, which this file has
def test_a_regression_of_what_is_guarded_stands_in_the_way(tree: Project) -> None:
    text = patch(tree, "trade", costs="50\n110\n")
    rejected = tried(tree.run(workflow(f"id: trade, {text}")))["trade"]
    assert rejected.decision == "rejected"
    assert rejected.reason == "other cost regressed: -10.0% [-10.0%, -10.0%]"
    assert tried(tree.run(workflow(f"id: trade, {text}", more="    guard: [fast]\n")))["trade"].decision == "accepted"


@pytest.mark.parametrize(
    ("more", "reason"),
    rest_long(
        [
            ("    forbid: [costs]\n", "needs approval: it touches costs, which `forbid: costs` protects"),
            ("    max-diff: 1\n", "needs approval: it changes 2 lines, `max-diff` is 1"),
            ("    max-diff: 2\n", ""),
            ("    check: grep -q 100 built\n", ""),
            ("    check: [test -e license]\n", "needs approval: `check: test -e license`: check-1 exited with 1"),
        ],
        keep=2,
    ),
)
def test_what_the_stage_does_not_allow_needs_approval(tree: Project, more: str, reason: str) -> None:
    found = tried(tree.run(workflow(f"id: good, {cheaper(tree)}", more=more)))["good"]
    assert found.decision == ("rejected" if reason else "accepted")
    assert found.reason == reason or not reason


def test_a_change_is_a_command_or_a_revision_or_settings(tree: Project) -> None:
    tree.branch({"costs": "100\n60\n"})
    tree.git("checkout", "-q", "main")
    head = HEAD.replace("  fast: {cost: <10}", "  '*': {cost: <10, cost change: <1}")
    result = tree.run(
        workflow(
            "id: revision, ref: topic, technique: io",
            "id: edit, run: 'sed -i 1s/100/70/ costs; touch new'",
            "id: set, env: {LEAD: 9}",
            "id: failing, run: 'exit 3'",
            "id: nothing, run: 'true'",
            head=head.replace("cp costs built", 'sed "s/^/${LEAD:-}/; s/^9/1/" costs > built'),
        ).replace("technique: memory, id: revision", "id: revision")
    )
    found = tried(result)
    assert decisions(result) == dict.fromkeys(found, "rejected") | {"edit": "accepted", "revision": "accepted"}
    assert found["edit"].files == ["costs", "new"]
    assert found["set"].env == {"LEAD": "9"}
    assert found["failing"].reason == "its command failed: failing exited with 3"
    assert found["nothing"].reason == "it changes nothing"


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param((), id="all stages"),
        pytest.param(("build", "baseline", "optimize"), id="nothing follows", marks=pytest.mark.long),
    ],
)
def test_of_alternatives_the_best_is_kept(tree: Project, stages: tuple[str, ...]) -> None:
    result = tree.run(workflow(f"id: size, {SIZES}"), stages=stages)
    sizes = {f"size[to={to}]": "accepted" if to == 60 else "rejected" for to in (80, 60, 90)}
    assert decisions(result) == sizes
    assert tried(result)["size[to=80]"].reason.startswith("another alternative is better")
    assert tree.git("show", f"{kept(result)['branch']}:costs") == "60\n100\n"
    if not stages:
        assert both(row(result, "fast", "cost"))[1].value == 60


def test_the_stage_ends_when_all_targets_are_met(tree: Project) -> None:
    good = patch(tree, "good", costs="5\n100\n")
    result = tree.run(workflow(f"id: good, {good}", "id: late, run: 'exit 1'"))
    assert decisions(result) == {"good": "accepted", "late": "skipped"}
    assert tried(result)["late"].reason == "all targets are met"
    assert result.verdict == "pass"


PROPOSER = r"""
import json, sys
brief = json.load(sys.stdin)
number = {1: 100, 2: 70, 3: 40}.get(brief['attempt'])
assert brief['targets'][0]['benchmark'] == 'fast' and brief['constraints']['accept'] == 0.1
assert len(brief['ledger']) == brief['attempt'] - 1
if brief['attempt'] == 4: sys.exit(1)
lines = open('costs').read().split(); lines[0] = str(number)
open('costs', 'w').write('\n'.join(lines) + '\n')
"""


def test_a_proposer_is_told_what_is_known_and_judged_like_any_patch(tree: Project) -> None:
    tree.commit({"propose.py": PROPOSER})
    result = tree.run(workflow("id: ask, propose: python3 propose.py", more="    attempts: 5\n"))
    said = ["rejected", "accepted", "accepted", "rejected"]
    assert decisions(result) == {f"ask.{number}": decision for number, decision in enumerate(said, 1)}
    assert tried(result)["ask.1"].reason == "it changes nothing"
    assert tried(result)["ask.4"].reason == "no proposal: its command failed: ask exited with 1"


def test_the_users_uncommitted_state_is_what_candidates_start_from(tree: Project) -> None:
    tree.write("costs", "100\n50\n")
    tree.write("untracked", "x\n")
    before = state(tree.folder)
    result = tree.run(workflow("id: good, run: 'test -e untracked; sed -i 1s/100/80/ costs'"))
    assert accepted(result) == {"good"}
    assert state(tree.folder) == before
    assert (tree.folder / "costs").read_text() == "100\n50\n"
    assert both(row(result, "other", "cost"))[0].value == 50


def test_without_git_it_is_said_before_anything_runs(project: Project) -> None:
    with pytest.raises(UserError) as raised:
        project.run(workflow("id: x, run: 'true'"))
    assert "not a git working tree" in raised.value.problems[0].message
    assert not (project.folder / ".perfflow").exists()


@pytest.mark.long  # a rare candidate
def test_code_that_needs_an_ignored_file_is_told_to_share_it(tree: Project) -> None:
    tree.write("built.h", "x")
    tree.write(".gitignore", "built*\n.perfflow\nflow.yaml\n*.patch\n")
    head = HEAD.replace("test ! -e broken", "test -e built.h")
    result = tree.run(workflow(f"id: x, {CHEAPER}", head=head))
    assert result.verdict == "fail"  # the target is missed as well
    assert decisions(result) == {"x": "skipped"}
    assert "does not work in a separate folder" in why_not(result)
    assert "worktree: {share:" in why_not(result)
    shared = head.replace("\nname: work", "\nname: work\nworktree: {share: [built.h]}")
    assert accepted(tree.run(workflow(f"id: x, {CHEAPER}", head=shared))) == {"x"}


def test_the_result_alone_gives_the_same_ledger(tree: Project) -> None:
    finished = tree.finish(workflow(f"id: x, {CHEAPER}", "id: y, run: 'true'"))
    again = rejudge(finished.folder / "result.json", (), None).result
    assert again.optimizations == finished.result.optimizations
    assert json.loads((finished.folder / "result.json").read_text())["optimizations"][0]["decision"] == "accepted"


@pytest.mark.long  # a rare candidate
def test_a_build_that_goes_by_files_is_not_fooled_by_settings(tree: Project) -> None:
    """The build compares file times, so it takes a program built with an earlier candidate's settings as up to date."""
    build = 'test built -nt costs || echo "${COST:-100}" > built'
    head = HEAD.replace("cp costs built", build).replace("sed -n 2p", "sed -n 1p")
    wrong = "id: wrong, env: {COST: 10}, run: 'touch wrong'"
    result = tree.run(workflow(wrong, "id: none, env: {OTHER: x}", head=head))
    assert decisions(result) == {"wrong": "rejected", "none": "rejected"}
    again = tree.run(workflow("id: none, env: {OTHER: y}", head=head))
    assert tried(again)["none"].reason.startswith("same: ")


@pytest.mark.long  # a rare combination of candidates
def test_alternatives_are_settled_before_what_follows(tree: Project) -> None:
    result = tree.run(
        workflow(
            f"id: size, if: 'matrix.to != 90', {SIZES}",
            "id: more, run: 'sed -i 1s/60/30/ costs'",
            "id: last, matrix: {to: [20, 10]}, run: 'sed -i 1s/30/${{ matrix.to }}/ costs; touch new'",
        )
    )
    assert accepted(result) == {"size[to=60]", "more", "last[to=10]"}
    assert decisions(result)["size[to=90]"] == "skipped"
    branch = kept(result)["branch"]
    assert tree.git("show", f"{branch}:costs") == "10\n100\n"
    assert tree.git("log", "--format=%s", f"main..{branch}").count("perf: ") == 3


@pytest.mark.parametrize("glob", rest_long(["costs", "./costs", "/costs", "sub", "sub/", "./sub/**", "/sub/*"], keep=3))
def test_what_is_forbidden_may_be_written_in_any_way(tree: Project, glob: str) -> None:
    change = "sed -i 1s/100/80/ costs; mkdir -p sub; echo x > sub/file"
    found = tried(tree.run(workflow(f"id: x, run: '{change}'", more=f"    forbid: ['{glob}']\n")))["x"]
    assert found.reason.startswith("needs approval: it touches ")


@pytest.mark.parametrize("key", ["objective: fsat cost", "guard: [othr]"])
def test_a_goal_about_nothing_is_an_error_before_anything_is_tried(tree: Project, key: str) -> None:
    result = tree.run(workflow(f"id: x, {CHEAPER}", more=f"    {key}\n"))
    assert "matches nothing that was measured (fast, other)" in why_not(result)


@pytest.mark.long  # a rare candidate
def test_a_candidate_that_cannot_be_prepared_is_rejected_and_the_next_is_tried(tree: Project) -> None:
    bad = "id: bad, env: {X: '${{ steps.fast.outputs.nope }}'}"
    result = tree.run(workflow(bad, f"id: good, {CHEAPER}"))
    assert decisions(result) == {"bad": "rejected", "good": "accepted"}
    assert "nope" in tried(result)["bad"].reason


@pytest.mark.long  # builds and measures in several trees
def test_a_branch_that_cannot_be_made_costs_nothing_that_was_measured(tree: Project) -> None:
    tree.git("branch", "perfflow")
    finished = tree.finish(workflow(f"id: good, {CHEAPER}"))
    assert accepted(finished.result) == {"good"}
    assert kept(finished.result)["branch"] is None
    assert "80" in (finished.folder / "steps" / "good" / "change.diff").read_text()


@pytest.mark.parametrize("command", ["cat built.data", "cat built.data || true"], ids=["exits", "prints no figure"])
def test_a_benchmark_that_fails_on_the_code_as_it_stands_is_no_candidates_fault(tree: Project, command: str) -> None:
    tree.write("built.data", "100")
    tree.write(".gitignore", "built*\n.perfflow\nflow.yaml\n*.patch\n")
    result = tree.run(workflow(f"id: x, {CHEAPER}", head=HEAD.replace("'sed -n 1p built'", f"'{command}'")))
    assert "failed on the baseline" in why_not(result)
    assert "worktree: {share:" in why_not(result)


@pytest.mark.long  # builds and measures in several trees
def test_what_prepares_the_measuring_runs_in_every_tree(tree: Project) -> None:
    head = HEAD.replace("  baseline:\n", "  baseline:\n    - {id: prep, run: 'cp built prepared'}\n")
    tree.write(".gitignore", "built\nprepared\n.perfflow\nflow.yaml\n*.patch\n")
    text = workflow(f"id: x, {CHEAPER}", head=head.replace("'sed -n 1p built'", "'sed -n 1p prepared'"))
    assert accepted(tree.run(text)) == {"x"}


@pytest.mark.parametrize(
    ("guard", "decision"),
    rest_long(
        [("other cost", "rejected"), ("** cost", "rejected"), ("fast cost", "accepted"), ("other loss", "accepted")],
        keep=2,
    ),
)
def test_a_guard_may_be_one_metric_of_a_benchmark(tree: Project, guard: str, decision: str) -> None:
    """The candidate raises the cost of `other` by 10% and keeps its `loss`. Two metrics need more than eight pairs."""
    parse = (
        "parse: {regex: ['^(?P<cost>\\d+)', 'loss=(?P<loss>\\d+)'], "
        "units: {cost: '1', loss: '1'}, better: {cost: lower, loss: lower}}"
    )
    head = HEAD.replace(f"sed -n 2p built', runs: 8, {COST}", f"sed -n 2p built; echo loss=1', {parse}")
    text = patch(tree, "trade", costs="50\n110\n")
    found = tried(tree.run(workflow(f"id: trade, {text}", more=f"    guard: ['{guard}']\n", head=head)))["trade"]
    assert found.decision == decision, found.reason


@pytest.mark.long  # a rare combination of candidates
def test_variants_are_compared_where_they_stand_and_not_between_trees(tree: Project) -> None:
    """Between two trees, the difference between the variants would look like the candidate's effect."""
    step = """    - id: suite
      run: 'echo x >> "$RUNS"; echo sum/old 8; echo sum/new 4'
      parse: {regex: '(?P<benchmark>\\S+) (?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
      variants: {baseline: '*/old', candidate: '*/new'}
      runs: 6
"""
    runs = tree.folder.parent / "runs"
    head = HEAD.replace("  profile:\n", f"{step}  profile:\n").replace(
        "stages:", f"env: {{RUNS: '{runs}'}}\nstages:", 1
    )
    result = tree.run(workflow(f"id: good, {cheaper(tree)}", head=head))
    assert accepted(result) == {"good"}
    assert change_of(row(result, "sum", "cost")) == pytest.approx(-0.5)
    # One warm-up run, and one process for each pair.
    assert runs.read_text().count("x") == 7


IGNORED = HEAD.replace("cp costs built", "cat override costs > built 2>/dev/null || cp costs built")


@pytest.fixture
def ignoring(tree: Project) -> Project:
    tree.commit({".gitignore": "built\noverride\nshared\n/out/\n/new/\n.perfflow\nflow.yaml\n"})
    return tree


# -- ignored files


@pytest.mark.long  # a rare candidate
def test_ignored_files_of_a_candidate_are_rejected_with_it_and_removed(ignoring: Project) -> None:
    text = workflow(
        "id: cheat, run: 'touch note; echo 10 > override'",
        "id: failing, run: 'echo 10 > override; mkdir -p new; touch new/x; exit 3'",
        "id: folder, run: 'touch note; mkdir new; echo x > new/x'",
        "id: nothing-more, run: 'touch other-note; test ! -e override -a ! -e new'",
        f"id: good, {CHEAPER}",
        head=IGNORED,
    )
    result = ignoring.run(text)
    found = tried(result)
    assert decisions(result) == dict.fromkeys(found, "rejected") | {"good": "accepted"}
    assert found["cheat"].reason == "it wrote ignored files override, which cannot be committed"
    assert found["failing"].reason == "its command failed: failing exited with 3"
    assert found["folder"].reason == "it wrote ignored files new/, which cannot be committed"
    # The earlier candidates left no files, so it was built and measured as if it were the first.
    assert found["nothing-more"].reason.startswith("same: ")
    assert found["good"].after == both(row(result, "fast", "cost"))[1].value == 80


def test_a_proposers_ignored_files_are_rejected_too(ignoring: Project) -> None:
    text = workflow("id: ask, propose: 'echo 10 > override'", more="    attempts: 1\n", head=IGNORED)
    found = tried(ignoring.run(text))["ask.1"]
    assert found.reason == "no proposal: it wrote ignored files override, which cannot be committed"


@pytest.mark.long  # a rare candidate
def test_a_command_may_build_what_the_build_makes_and_write_to_what_is_shared(ignoring: Project) -> None:
    (ignoring.folder / "shared").mkdir()
    head = HEAD.replace("cp costs built", "mkdir -p out; cp costs built")
    head = head.replace("\nname: work", "\nname: work\nworktree: {share: [shared]}")
    change = "sed -i 1s/100/80/ costs; echo 1 > built; mkdir -p out; touch out/log shared/seen"
    found = tried(ignoring.run(workflow(f"id: good, run: '{change}'", head=head)))["good"]
    assert (found.decision, found.after) == ("accepted", 80)
    assert (ignoring.folder / "shared" / "seen").exists()


# -- guards


THREE = "parse: {regex: '(?P<time>\\d+) (?P<rss>\\d+) (?P<seen>\\d+)', units: {time: ms, rss: KB, seen: '1'}}"
TIMED = flow(
    "name: work",
    build="{id: make, run: 'cp costs built'}",
    baseline=f"{{id: fast, run: 'head -1 built', runs: 8, layouts: off, {THREE}}}",
    profile="{id: look, run: 'true'}",
    optimize=[],
    verify=["{id: tests, run: 'true'}", "{id: after, compare: baseline}"],
)


COUNT = f'perfflow-tool: 1\nargv: ["${{{{ command }}}}"]\n{COST}\n'


@pytest.fixture
def timed(tree: Project) -> Project:
    """A program that prints its time, its memory and another figure."""
    tree.commit({"costs": "100 100 100\n"})
    return tree


@pytest.mark.long  # a rare combination of candidates
def test_a_guard_holds_for_every_metric_with_a_direction(timed: Project) -> None:
    trade = "id: trade, run: 'echo 50 120 200 > costs'"
    found = tried(timed.run(workflow(trade, head=TIMED)))["trade"]
    assert (found.decision, found.reason) == ("rejected", "fast rss regressed: -20.0% [-21.1%, -18.9%]")
    harmless = "id: harmless, run: 'echo 50 102 200 > costs'"
    assert accepted(timed.run(workflow(harmless, head=TIMED))) == {"harmless"}
    parsed = "parse: {regex: '(?P<time>\\d+)', units: {time: ms}}"
    other = f"    - {{id: other, run: 'echo 5', runs: 8, layouts: off, {parsed}}}\n  profile:\n"
    result = timed.run(workflow(trade, head=TIMED.replace("  profile:\n", other), more="    guard: [other]\n"))
    assert accepted(result) == {"trade"}
    assert not any(row.gating for row in result.benchmarks if row.metric == "rss")


def test_an_objective_need_have_no_target(timed: Project) -> None:
    text = workflow("id: small, run: 'echo 100 80 200 > costs'", head=TIMED, more="    objective: fast rss\n")
    found = tried(timed.run(text))["small"]
    assert (found.decision, found.metric, found.after) == ("accepted", "rss", 80_000)


@pytest.mark.parametrize(("more", "gating"), rest_long([("    guard: [fast]\n", {"time", "rss"}), ("", {"time"})]))
def test_what_is_guarded_gates_in_the_last_comparison(timed: Project, more: str, gating: set[str]) -> None:
    result = timed.run(workflow("id: good, run: 'echo 50 100 200 > costs'", head=TIMED, more=more))
    assert {row.metric for row in result.benchmarks if row.gating} == gating


# -- messages, and the printed command that applies the changes


@pytest.mark.long  # a rare candidate
def test_where_the_same_files_are_executed_it_is_asked_whether_it_was_built(tree: Project) -> None:
    tree.commit({"count.yaml": COUNT, "prog": "#!/bin/sh\necho 100\n"})
    head = TIMED.replace("cp costs built", "cp prog built")
    start, end = head.index("    - {id: fast"), head.index("  profile:")
    head = f"{head[:start]}    - {{id: fast, uses: ./count.yaml, with: {{command: ./built}}}}\n{head[end:]}"
    more = "    objective: fast cost\n"
    found = tried(tree.run(workflow("id: note, run: 'touch note'", "id: set, env: {LEAD: 9}", head=head, more=more)))
    assert found["note"].reason.endswith(" (both sides execute the same files: was it built?)")
    assert found["note"].reason.startswith("same: ")
    # A candidate that only changes settings has nothing to build.
    assert found["set"].reason.endswith(" (both sides execute the same files)")


@pytest.mark.parametrize("change", rest_long(["tracked", "untracked", "none"]))
def test_the_printed_command_takes_over_what_was_kept(tree: Project, change: str) -> None:
    tree.commit({"more": "x\n"})
    if change != "none":
        tree.write("more" if change == "tracked" else "mine", "mine\n")
    result = tree.run(workflow(f"id: one, {CHEAPER}", "id: two, run: 'sed -i 1s/80/60/ costs'"))
    assert accepted(result) == {"one", "two"}
    before = tree.git("status", "--porcelain")
    command = taking_over(result)
    assert command is not None
    assert command.startswith("git merge " if change == "none" else "git cherry-pick ")
    tree.git(*shlex.split(command)[1:])
    assert (tree.folder / "costs").read_text() == "60\n100\n"
    assert tree.git("status", "--porcelain") == before
    subjects = tree.git("log", "-2", "--format=%s").splitlines()
    assert subjects == ["perf: two (+25.0%)", "perf: one (+20.0%)"]


# -- steps that run for every candidate


@pytest.mark.long  # builds and measures in several trees
def test_work_after_the_stage_runs_once_unless_a_check_needs_it(
    tree: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = tmp_path_factory.mktemp("seen")
    later = f"""
  deliver:
    - {{id: upload, run: 'echo x >> {seen}/upload'}}
    - {{id: named, needs: [], run: 'echo x >> {seen}/named'}}
    - {{id: told, needs: [], run: 'echo x >> {seen}/told; echo where=here >> "$PERFFLOW_OUTPUT"'}}
    - {{id: smoke, needs: [named], uses: same-output, with: {{command: 'echo ${{{{ steps.told.outputs.where }}}}',
       expected: wanted}}}}
"""
    tree.commit({"wanted": "here\n"})
    result = tree.run(workflow(f"id: good, {CHEAPER}", head=HEAD.rstrip() + later))
    assert accepted(result) == {"good"}
    assert {item.id: item.status for item in result.steps}["smoke"] == "done"
    # On the original, on the candidate, and at the end on the accepted state.
    counts = {file.name: len(file.read_text().splitlines()) for file in seen.iterdir()}
    assert counts == {"upload": 1, "named": 3, "told": 3}
