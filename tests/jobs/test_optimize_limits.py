"""Limits of candidates on real git projects: ignored files, guards, checks, and repeated work."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from perfflow.report.page import taking_over
from tests.jobs.test_optimize import HEAD, tried, workflow
from tests.repositories import git
from tests.session.project import Project

CHEAPER = "run: 'sed -i 1s/100/80/ costs'"
IGNORED = HEAD.replace("cp costs built", "cat override costs > built 2>/dev/null || cp costs built")


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write("costs", "100\n100\n")
    project.write(".gitignore", "built\noverride\nshared\n/out/\n/new/\n.perfflow\nflow.yaml\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    return project


# -- ignored files


def test_ignored_files_of_a_candidate_are_rejected_with_it_and_removed(tree: Project) -> None:
    text = workflow(
        "id: cheat, run: 'touch note; echo 10 > override'",
        "id: failing, run: 'echo 10 > override; mkdir -p new; touch new/x; exit 3'",
        "id: folder, run: 'touch note; mkdir new; echo x > new/x'",
        "id: nothing-more, run: 'touch other-note; test ! -e override -a ! -e new'",
        f"id: good, {CHEAPER}",
        head=IGNORED,
    )
    result = tree.run(text)
    found = tried(result)
    assert found["cheat"].decision == "rejected"
    assert found["cheat"].reason == "it wrote ignored files override, which cannot be committed"
    assert found["failing"].reason == "its command failed: failing exited with 3"
    assert found["folder"].reason == "it wrote ignored files new/, which cannot be committed"
    # The earlier candidates left no files, so it was built and measured as if it were the first.
    assert found["nothing-more"].reason.startswith("same: ")
    assert (found["good"].decision, found["good"].after) == ("accepted", 80)
    row = next(item for item in result.benchmarks if item.name == "fast")
    assert row.candidate is not None
    assert row.candidate.value == 80


def test_a_proposers_ignored_files_are_rejected_too(tree: Project) -> None:
    text = workflow("id: ask, propose: 'echo 10 > override'", more="    attempts: 1\n", head=IGNORED)
    found = tried(tree.run(text))["ask.1"]
    assert found.reason == "no proposal: it wrote ignored files override, which cannot be committed"


def test_a_command_may_build_what_the_build_makes_and_write_to_what_is_shared(tree: Project) -> None:
    (tree.folder / "shared").mkdir()
    head = HEAD.replace("cp costs built", "mkdir -p out; cp costs built").replace(
        "\nname: work", "\nname: work\nworktree: {share: [shared]}"
    )
    text = workflow(
        "id: good, run: 'sed -i 1s/100/80/ costs; echo 1 > built; mkdir -p out; touch out/log shared/seen'",
        head=head,
    )
    result = tree.run(text)
    assert (tried(result)["good"].decision, tried(result)["good"].after) == ("accepted", 80)
    assert (tree.folder / "shared" / "seen").exists()


# -- guards


TIMED = """
name: work
stages:
  build:
    - {id: make, run: 'cp costs built'}
  baseline:
    - {id: fast, run: 'head -1 built', runs: 8, layouts: off,
       parse: {regex: '(?P<time>\\d+) (?P<rss>\\d+) (?P<seen>\\d+)', units: {time: ms, rss: KB, seen: '1'}}}
  profile:
    - {id: look, run: 'true'}
  optimize:
  verify:
    - {id: tests, run: 'true'}
    - {id: after, compare: baseline}
"""


COUNT = """
perfflow-tool: 1
argv: ["${{ command }}"]
parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
"""


def figures(tree: Project, text: str) -> None:
    tree.write("costs", f"{text}\n")
    git(tree.folder, "commit", "-qam", text)


def test_a_guard_holds_for_every_metric_with_a_direction(tree: Project) -> None:
    figures(tree, "100 100 100")
    trade = "id: trade, run: 'echo 50 120 200 > costs'"
    found = tried(tree.run(workflow(trade, head=TIMED)))["trade"]
    assert (found.decision, found.reason) == ("rejected", "fast rss regressed: -20.0% [-21.1%, -18.9%]")
    harmless = "id: harmless, run: 'echo 50 102 200 > costs'"
    assert tried(tree.run(workflow(harmless, head=TIMED)))["harmless"].decision == "accepted"
    parsed = "parse: {regex: '(?P<time>\\d+)', units: {time: ms}}"
    other = f"    - {{id: other, run: 'echo 5', runs: 8, layouts: off, {parsed}}}\n  profile:\n"
    unguarded = workflow(trade, head=TIMED.replace("  profile:\n", other), more="    guard: [other]\n")
    result = tree.run(unguarded)
    assert tried(result)["trade"].decision == "accepted"
    assert not any(row.gating for row in result.benchmarks if row.metric == "rss")


def test_an_objective_need_have_no_target(tree: Project) -> None:
    figures(tree, "100 100 100")
    text = workflow("id: small, run: 'echo 100 80 200 > costs'", head=TIMED, more="    objective: fast rss\n")
    found = tried(tree.run(text))["small"]
    assert (found.decision, found.metric, found.after) == ("accepted", "rss", 80_000)


def test_what_is_guarded_gates_in_the_last_comparison(tree: Project) -> None:
    figures(tree, "100 100 100")
    result = tree.run(workflow("id: good, run: 'echo 50 100 200 > costs'", head=TIMED, more="    guard: [fast]\n"))
    gating = {row.metric for row in result.benchmarks if row.gating}
    assert gating == {"time", "rss"}
    plain = tree.run(workflow("id: good, run: 'echo 50 100 200 > costs'", head=TIMED))
    assert {row.metric for row in plain.benchmarks if row.gating} == {"time"}


# -- messages, and the printed command that applies the changes


def test_where_the_same_files_are_executed_it_is_asked_whether_it_was_built(tree: Project) -> None:
    tree.write("count.yaml", COUNT)
    tree.write("prog", "#!/bin/sh\necho 100\n", executable=True)
    git(tree.folder, "add", ".")
    git(tree.folder, "commit", "-qm", "two")
    head = TIMED.replace("cp costs built", "cp prog built")
    start, end = head.index("    - {id: fast"), head.index("  profile:")
    head = f"{head[:start]}    - {{id: fast, uses: ./count.yaml, with: {{command: ./built}}}}\n{head[end:]}"
    text = workflow(
        "id: note, run: 'touch note'", "id: set, env: {LEAD: 9}", head=head, more="    objective: fast cost\n"
    )
    found = tried(tree.run(text))
    assert found["note"].reason.endswith(" (both sides execute the same files: was it built?)")
    assert found["note"].reason.startswith("same: ")
    # A candidate that only changes settings has nothing to build.
    assert found["set"].reason.endswith(" (both sides execute the same files)")


@pytest.mark.parametrize("change", ["tracked", "untracked", "none"])
def test_the_printed_command_takes_over_what_was_kept(tree: Project, change: str) -> None:
    tree.write("more", "x\n")
    git(tree.folder, "add", "more")
    git(tree.folder, "commit", "-qm", "two")
    if change == "tracked":
        tree.write("more", "mine\n")
    elif change == "untracked":
        tree.write("mine", "x\n")
    result = tree.run(workflow(f"id: one, {CHEAPER}", "id: two, run: 'sed -i 1s/80/60/ costs'"))
    assert [item.decision for item in result.optimizations] == ["accepted", "accepted"]
    before = git(tree.folder, "status", "--porcelain")
    command = taking_over(result)
    assert command is not None
    assert command.startswith("git merge " if change == "none" else "git cherry-pick ")
    git(tree.folder, *shlex.split(command)[1:])
    assert (tree.folder / "costs").read_text() == "60\n100\n"
    assert git(tree.folder, "status", "--porcelain") == before
    subjects = git(tree.folder, "log", "-2", "--format=%s").splitlines()
    assert subjects == ["perf: two (+25.0%)", "perf: one (+20.0%)"]


# -- steps that run for every candidate


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


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
    tree.write("wanted", "here\n")
    git(tree.folder, "add", "wanted")
    git(tree.folder, "commit", "-qm", "two")
    result = tree.run(workflow(f"id: good, {CHEAPER}", head=HEAD.rstrip() + later))
    assert tried(result)["good"].decision == "accepted"
    assert {item.id: item.status for item in result.steps}["smoke"] == "done"
    # On the original, on the candidate, and at the end on the accepted state.
    assert {file.name: lines_of(file) for file in seen.iterdir()} == {"upload": 1, "named": 3, "told": 3}
