"""The gate on real git projects, whose benchmarks print numbers that are known."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.jobs.run.run import RunRequest, run
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.sampling import sampling
from perfflow.session import bench
from perfflow.session.open_workflow import open_workflow
from perfflow.session.suite_clock import SuiteClock
from perfflow.store.run_folder import reopen
from perfflow.workflow.load import load
from tests.repositories import git
from tests.session.project import Project, both, change_of, cut, flow, row, step

PARSE = "parse: {regex: '(?P<cost>[\\d.]+)', units: {cost: '1'}, better: {cost: lower}}"


def statuses(result: Result) -> dict[str, str]:
    return {item.id: item.status for item in result.steps}


def decisions(result: Result) -> dict[str, str | None]:
    return {item.name: item.decision for item in result.benchmarks}


def prints(value: str) -> str:
    return f"#!/bin/sh\necho {value}\n"


def one(name: str = "one", keys: str = "") -> str:
    """Return a step that measures a program of the tree that prints its cost."""
    return f"{{id: {name}, run: ./{name}, {keys}{PARSE}}}"


def gated(
    tree: Project, base: dict[str, str], head: dict[str, str], *steps: str, keys: str = "", budget: float | None = None
) -> Result:
    """Commit the files of base and of head, and compare them."""
    tree.commit(base)
    tree.branch(head)
    return tree.run(flow(keys, baseline=steps or one()), base="main", budget=budget)


# -- base and head

MAKE = """test ! -e broken; cp costs built; echo out=$(head -n 1 costs) >> "$PERFFLOW_OUTPUT\""""
CHECKED = 'test "$(head -n 1 built)" = "${{ steps.make.outputs.out }}"'
FLOW = flow(
    "name: gate",
    setup="{id: once, run: 'echo set >> ../setups'}",
    build=f"{{id: make, run: '{MAKE}'}}",
    baseline=[
        f"{{id: one, run: '{CHECKED}; head -n 1 built', {PARSE}}}",
        f"{{id: two, run: 'tail -n 1 built', {PARSE}}}",
    ],
    profile="{id: look, uses: cprofile, benchmark: one, with: {command: python3 -c pass}}",
    optimize="{id: candidate, technique: memory, run: 'true'}",
    verify=["{id: tests, run: 'test ! -e wrong'}", "{id: after, compare: baseline}"],
)


@pytest.fixture
def parted(tree: Project) -> Project:
    """A repository with the branch ``topic`` checked out. ``main`` has a newer commit than the branch point."""
    tree.commit({"costs": "100\n100\n"})
    tree.git("branch", "topic")
    tree.commit({"costs": "10\n10\n"})
    tree.git("checkout", "-q", "topic")
    return tree


def costing(tree: Project, costs: str, text: str = FLOW, **asked: object) -> Result:
    """Commit the costs of both benchmarks, and compare with ``main``."""
    tree.commit({"costs": costs})
    return tree.run(text, base="main", **asked)


@pytest.mark.parametrize(("cost", "status"), [(120, "done"), (130, "skipped")])
def test_a_condition_reads_the_outputs_of_head(parted: Project, cost: int, status: str) -> None:
    condition = "{id: two, if: \"steps.make.outputs.out == '120'\", run:"
    result = costing(parted, f"{cost}\n99\n", FLOW.replace("{id: two, run:", condition))
    assert statuses(result)["two"] == status


def test_head_is_compared_with_where_it_parted_from_the_base(parted: Project) -> None:
    result = costing(parted, "120\n99\n")
    assert result.verdict == "fail"
    found = row(result, "one", "cost")
    assert (found.decision, found.level, found.paired) == ("regressed", "action", True)
    assert change_of(found) == pytest.approx(0.2)
    assert row(result, "two", "cost").decision == "same"
    assert statuses(result) == dict.fromkeys(statuses(result), "done") | {"candidate": "skipped", "after": "skipped"}
    base, head = (result.trees[side] or {} for side in ("baseline", "candidate"))
    assert base["revision"] == parted.git("merge-base", "main", "topic").strip()
    assert (head["revision"], head["dirty"]) == (parted.git("rev-parse", "topic").strip(), False)
    assert (parted.folder.parent / "setups").read_text() == "set\n"
    assert parted.git("status", "--porcelain") == ""


def test_a_build_that_has_the_machine_alone_does_not_wait_for_itself(parted: Project) -> None:
    text = FLOW.replace("{id: make, run:", "{id: make, alone: true, run:")
    result = costing(parted, "120\n99\n", text, lock_timeout=3)
    assert step(result, "make").status == "done", step(result, "make").reason
    assert result.verdict == "fail"


def test_what_did_not_regress_is_not_profiled(parted: Project) -> None:
    result = costing(parted, "90\n100\n")
    assert result.verdict == "pass"
    assert row(result, "one", "cost").decision == "improved"
    assert step(result, "look").reason == "no benchmark that it profiles regressed"


def test_the_tree_as_it_stands_is_head_unless_a_revision_is_named(parted: Project) -> None:
    parted.write("costs", "150\n100\n")
    result = parted.run(FLOW, base="main")
    assert row(result, "one", "cost").decision == "regressed"
    assert (result.trees["candidate"] or {})["dirty"] is True
    said = "head is the working tree with its uncommitted changes; `--head HEAD` leaves them out"
    assert said in result.run.warnings
    assert parted.told.notes == [said]
    assert parted.run(FLOW, base="main", head="topic").verdict == "pass"
    assert parted.told.notes.count(said) == 1


@pytest.mark.long  # waits for what runs side by side, or in turn
def test_a_step_alone_is_measured_on_what_was_built_of_both_trees(parted: Project) -> None:
    """The slots contain an earlier gate's build of other code, which must not be measured."""
    assert row(costing(parted, "120\n120\n"), "two", "cost").decision == "regressed"
    result = costing(parted, "100\n100\n", only=["two"])
    assert row(result, "two", "cost").decision == "same"
    assert {name for name, status in statuses(result).items() if status == "done"} == {"make", "two"}
    assert row(costing(parted, "130\n130\n", stages=["baseline"]), "two", "cost").decision == "regressed"


def test_correctness_is_that_of_head(parted: Project) -> None:
    parted.commit({"wrong": "x"})
    result = parted.run(FLOW, base="main")
    assert result.reason_texts == ["correctness step failed: tests: tests exited with 1"]


def test_a_base_that_does_not_build_is_an_error_by_name(parted: Project) -> None:
    parted.git("checkout", "-q", "main")
    parted.commit({"broken": "x"})
    parted.git("checkout", "-qb", "later")
    parted.git("rm", "-q", "broken")
    parted.commit()
    result = parted.run(FLOW, base="main")
    assert result.verdict == "error"
    assert "step make: the base does not build: make exited with 1" in result.reason_texts


def test_an_unknown_base_is_told_before_anything_runs(parted: Project) -> None:
    with pytest.raises(UserError) as raised:
        parted.run(FLOW, base="mian")
    assert "did you mean main?" in raised.value.problems[0].hint
    assert not (parted.folder / ".perfflow").exists()


def test_base_and_head_that_are_the_same_code_are_measured_and_it_is_said(tree: Project) -> None:
    tree.commit({"one": prints("100")})
    result = tree.run(flow(baseline=one()), base="main")
    assert (result.verdict, row(result, "one", "cost").decision) == ("pass", "same")
    said = "base and head are the same code: any difference between them is noise"
    assert said in result.run.warnings
    assert tree.told.notes == [said]


# -- benchmarks that exist or fail in only one of the trees


def test_a_crash_on_head_is_told_with_the_benchmark(tree: Project) -> None:
    text = f"{{id: one, benchmark: core/loop, run: ./loop, {PARSE}}}"
    result = gated(tree, {"loop": prints("1")}, {"loop": "kill -ABRT $$"}, text)
    assert result.verdict == "error"
    assert [text for text in result.reason_texts if text.startswith("step one (core/loop): on head: ")], (
        result.reason_texts
    )


def test_a_program_that_only_head_has_is_new_and_one_that_only_base_has_is_removed(tree: Project) -> None:
    tree.commit({"old": prints("1"), "both": prints("1")})
    tree.git("rm", "-q", "old")
    tree.branch({"fresh": prints("1")})
    result = tree.run(flow(baseline=[one(name) for name in ("old", "both", "fresh")]), base="main")
    assert decisions(result) == {"old": "removed", "both": "same", "fresh": "new"}
    assert (result.verdict, result.reason_texts) == ("error", ["no longer measured: old cost"])


@pytest.mark.parametrize(("base", "head", "where"), [("exit 3", "echo 1", "base"), ("echo 1", "exit 3", "head")])
def test_a_program_that_fails_on_one_side_is_neither_new_nor_removed(
    tree: Project, base: str, head: str, where: str
) -> None:
    before = {"one": f"#!/bin/sh\n{base}\n", "two": prints("100")}
    after = {"one": f"#!/bin/sh\n{head}\n", "two": prints("150")}
    result = gated(tree, before, after, one(), one("two"))
    # The regressed benchmark beside it is judged, and its reason comes first.
    assert result.verdict == "fail"
    assert f"step one: on {where}: one exited with 3" in result.reason_texts
    assert [item.name for item in result.benchmarks] == ["two"]


def test_a_check_of_two_commands_that_are_compared_runs_where_they_are(tree: Project) -> None:
    tree.commit({"README": "before the program was written\n"})
    tree.branch({"slow": prints("7"), "quick": prints("7")})
    pair = "{id: pair, uses: command, runs: 6, with: {command: ./slow}, candidate: ./quick}"
    result = tree.run(flow(baseline=pair, verify="{id: same, uses: same-output, benchmark: pair}"), base="main")
    assert [(check.id, check.status) for check in result.verification] == [("same", "passed")]
    assert step(result, "same").status == "done", result.reason_texts


def test_a_folder_that_only_head_has_is_new(tree: Project) -> None:
    text = f"{{id: inside, run: ./down, working-directory: deep, {PARSE}}}"
    result = gated(tree, {"both": prints("1")}, {"deep/down": prints("2")}, text)
    assert row(result, "inside", "cost").decision == "new"


@pytest.mark.long  # as other trees that are built in this file
def test_two_builds_of_a_native_program_are_known_as_such(tree: Project) -> None:
    source = "int main(void) {{ for (volatile long n = 0; n < {}; ++n) {{}} }}\n"
    tree.commit({"loop.c": source.format(1000), "script": "#!/bin/sh\n:\n"})
    tree.branch({"loop.c": source.format(2000), "script": "#!/bin/sh\n: :\n"})
    steps = ["{id: native, run: ./built, runs: 2}", "{id: script, run: ./script, runs: 2}"]
    result = tree.run(flow(build="{id: compile, run: cc -O1 -o built loop.c}", baseline=steps), base="main")
    assert step(result, "native").rebuilt
    assert not step(result, "script").rebuilt


def suite_of(other: str) -> str:
    paths = f"with: {{python: {sys.executable}, paths: [test_a.py, {other}]}}"
    return f"{{id: suite, uses: pytest-benchmark, budget: 1s, {paths}}}"


SQUARES = "def test_{name}(benchmark):\n    benchmark(sum, range(2000))\n"


@pytest.mark.long  # measures a suite several times; tests/session/test_suites.py does so once
def test_the_benchmarks_of_a_file_that_only_head_has_are_new(tree: Project) -> None:
    files = {f"test_{name}.py": SQUARES.format(name=name) for name in "ab"}
    result = gated(tree, {"test_a.py": files["test_a.py"]}, files, suite_of("test_b.py"))
    assert decisions(result)["test_b.py::test_b"] == "new", result.reason_texts
    assert decisions(result)["test_a.py::test_a"] not in ("new", None)
    assert not [reason for reason in result.reason_texts if reason.startswith("step ")]


def test_a_file_that_neither_tree_has_is_an_error(tree: Project) -> None:
    files = {"test_a.py": SQUARES.format(name="a")}
    assert gated(tree, files, {"README": "changed\n"}, suite_of("b.py")).verdict == "error"


def test_a_target_that_base_misses_too_does_not_fail_head(tree: Project) -> None:
    before = {"slow": prints("9"), "fine": prints("3")}
    after = {"slow": prints("9"), "fine": prints("3.05"), "fresh": prints("9")}
    result = gated(tree, before, after, *map(one, after), keys="targets: {'*': {cost: <5}}")
    assert {item.benchmark: (item.status, item.detail == "also missed on base") for item in result.targets} == {
        "slow": ("not held by base", True),
        "fine": ("met", False),
        "fresh": ("not met", False),
    }
    assert [reason for reason in result.reason_texts if "slow" in reason] == []


def test_submodules_that_are_checked_out_are_in_the_trees(tree: Project, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "cost").write_text("3\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "inner")):
        git(inner, *words)
    tree.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "deps")
    result = gated(tree, {"one": "#!/bin/sh\ncat deps/cost\n"}, {"README": "changed\n"})
    assert row(result, "one", "cost").decision == "same", result.reason_texts


SUITE = r"""
#include <benchmark/benchmark.h>
static void spin(benchmark::State& state) {
  for (auto _ : state)
    for (long number = 0; number < 15000; ++number) benchmark::DoNotOptimize(number);
}
static void broken(benchmark::State& state) {
  for (auto _ : state) __builtin_trap();
}
@LIST@
BENCHMARK_MAIN();
"""


def gated_suite(tree: Project, *listed: str) -> Result:
    """Compare a suite of the benchmarks ``kept`` and ``lost`` with one of these, of which ``broken`` crashes."""

    def source(*names: str) -> dict[str, str]:
        lines = (f'BENCHMARK({"broken" if name == "broken" else "spin"})->Name("{name}");' for name in names)
        return {"suite.cc": SUITE.replace("@LIST@", "\n".join(lines))}

    tree.commit(source("kept", "lost"))
    tree.branch(source(*listed))
    build = "{id: make, run: c++ -O1 suite.cc -o suite -lbenchmark -lpthread}"
    measuring = "{id: suite, uses: google-benchmark, with: {command: ./suite}, budget: 30s}"
    return tree.run(flow(build=build, baseline=measuring), base="main")


@pytest.mark.long  # measures a suite several times; tests/session/test_suites.py does so once
def test_a_suite_is_listed_on_both_sides(tree: Project) -> None:
    result = gated_suite(tree, "kept", "added")
    found = {item.name: item.decision for item in result.benchmarks if item.gating}
    assert (found.pop("lost"), found.pop("added")) == ("removed", "new")
    assert found.keys() == {"kept"}
    # By CPU time, or by wall time if its single run had to wait for a core.
    (reason,) = [reason for reason in result.reason_texts if "lost" in reason]
    assert reason in [f"no longer measured: lost {clock}" for clock in ("cpu", "time")]


@pytest.mark.long  # measures a suite several times; tests/session/test_suites.py does so once
def test_a_benchmark_of_a_suite_that_crashes_leaves_the_others(tree: Project) -> None:
    result = gated_suite(tree, "kept", "lost", "broken")
    gating = {item.name: item for item in result.benchmarks if item.gating}
    assert gating.keys() == {"kept", "lost"}
    assert all(item.pairs > 5 for item in gating.values())
    assert step(result, "suite").status == "failed"
    assert step(result, "suite").reason.startswith("broken: on head: ")


def test_what_was_built_from_files_that_are_gone_is_not_measured(tree: Project) -> None:
    tree.commit({"build.sh": "for name in *.in; do cp $name built-${name%.in}; done", "one.in": "1\n", "two.in": "1\n"})
    tree.commit({".gitignore": "built-*\n.perfflow\nflow.yaml\n"})
    tree.git("checkout", "-qb", "topic")
    steps = [f"{{id: {name}, run: cat built-{name}, {PARSE}}}" for name in ("one", "two")]
    text = flow(build="{id: make, run: sh build.sh}", baseline=steps)
    assert tree.run(text, base="main").verdict == "pass"
    tree.git("rm", "-q", "two.in")
    tree.commit()
    assert tree.run(text, base="main").reason_texts == ["no longer measured: two cost"]


# -- pairs side by side or in turn


def ways_of(tree: Project) -> dict[str, set[bool]]:
    """Return for each benchmark whether its pairs ran side by side."""
    ways: dict[str, set[bool]] = {}
    for event in (event for event in tree.events() if event["event"] == "sample"):
        ways.setdefault(event["candidate"][0]["benchmark"], set()).add(event.get("side_by_side", False))
    return ways


@pytest.mark.long  # waits for what runs side by side, or in turn
def test_benchmarks_that_only_compute_run_side_by_side_and_those_that_wait_in_turn(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, they are measured in pairs.
    monkeypatch.setattr(sampling, "EXPENSIVE", math.inf)
    monkeypatch.setattr(sampling, "FIRST_ANALYSIS", 0.01)
    text = SQUARES.format(name="sum") + "def test_wait(benchmark):\n    benchmark(__import__('time').sleep, 0.002)\n"
    result = gated(tree, {"test_a.py": text}, {"test_a.py": text.replace("2000", "2001")}, suite_of("test_a.py"))
    assert ways_of(tree) == {"test_a.py::test_sum": {True}, "test_a.py::test_wait": {False}}, result.reason_texts
    for event in (event for event in tree.events() if event.get("side_by_side")):
        found = {reading["metric"]: reading["value"] for reading in event["candidate"]}
        # Elapsed time contains no turn of the other process.
        assert found["time"] == found["uncontended"]


SPINS = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.{lock})
    ends = time.process_time() + {seconds}
    while time.process_time() < ends:
        pass
"""


@pytest.mark.long  # waits for what runs side by side; tests/session/test_work.py has steps side by side
def test_commands_run_side_by_side_unless_they_wait_or_fail_that_way(
    tree: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # However long they wait for pages of the interpreter.
    monkeypatch.setattr(SuiteClock, "computes", lambda *_: True)
    locks = {"free": "LOCK_SH", "waits": "LOCK_EX", "fails": "LOCK_EX | fcntl.LOCK_NB"}
    before, after = (
        {f"{name}.py": SPINS.format(lock=lock, seconds=seconds) for name, lock in locks.items()}
        for seconds in (0.2, 0.21)
    )
    steps = (f"{{id: {name}, run: '{sys.executable} {name}.py {tmp_path / name}', runs: 3}}" for name in locks)
    result = gated(tree, before, after, *steps)
    assert ways_of(tree) == {"free": {True}, "waits": {False}, "fails": {False}}, result.reason_texts
    assert {item.status for item in result.steps} == {"done"}


@pytest.mark.long  # as other trees that are built in this file
def test_both_sides_in_one_tree_run_in_turn(tree: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They could write the same files."""
    monkeypatch.setattr(SuiteClock, "computes", lambda *_: True)
    tree.commit({"free.py": SPINS.format(lock="LOCK_SH", seconds=0.2)})
    text = flow(baseline=f"{{id: free, run: '{sys.executable} free.py {tmp_path / 'lock'}', runs: 2}}")
    tree.run(text, base="HEAD", times_all=True)
    assert ways_of(tree) == {"free": {False}}


# -- accepted regressions


@pytest.mark.parametrize(
    ("until", "change", "verdict", "said"),
    [
        ("2999-12-31", "30%", "pass", "until 2999-12-31: smaller tables"),
        ("2020-01-01", "30%", "fail", ""),
        ("2999-12-31", "15%", "fail", ""),
    ],
)
def test_a_trade_off_passes_until_its_date(tree: Project, until: str, change: str, verdict: str, said: str) -> None:
    keys = f"accepted: [{{benchmark: one, change: {change}, why: smaller tables, until: {until}}}]"
    result = gated(tree, {"one": prints("100")}, {"one": prints("120")}, keys=keys)
    assert (result.verdict, row(result, "one", "cost").accepted) == (verdict, said)


def test_a_trade_off_that_nothing_needs_is_not_used(tree: Project) -> None:
    keys = "accepted: [{benchmark: one, change: 30%, why: x, until: 2999-12-31}]"
    found = row(gated(tree, {"one": prints("100")}, {"one": prints("107")}, keys=keys), "one", "cost")
    assert (found.level, found.accepted) == ("concern", "")


STEPS = flow(baseline=f"{{id: b, run: cat costs, {PARSE}}}")
ENTRY = "{benchmark: b, metric: cost, change: 30%, why: a correct parser, until: '2999-01-01'}"
ACCEPTED = f"accepted: [{ENTRY}]{STEPS}"


def commit_workflow(tree: Project, text: str, cost: int) -> None:
    tree.commit({".gitignore": ".perfflow\n", "flow.yaml": f"perfflow: 1\n{text}", "costs": f"{cost}\n"})


def accepting(tree: Project, text: str, cost: int, path: Path | None = None) -> Result:
    """Compare a tree that costs this with ``main``, by a workflow that the tree has, or by one that lies elsewhere."""
    tree.write("costs", f"{cost}\n")
    file = path or tree.write("flow.yaml", f"perfflow: 1\n{text}")
    return run(open_workflow(str(file)), RunRequest(seed=1, base="main"), tree.told).result


def test_an_entry_counts_until_it_is_merged(tree: Project) -> None:
    commit_workflow(tree, STEPS, 100)
    assert [accepting(tree, text, 120).verdict for text in (STEPS, ACCEPTED)] == ["fail", "pass"]
    commit_workflow(tree, ACCEPTED, 120)
    result = accepting(tree, ACCEPTED, 144)
    assert result.verdict == "fail"
    text = "b cost: the base already contains the regression accepted until 2999-01-01: a correct parser"
    assert text in result.reason_texts
    # A new entry for a further change is another one, although the old one stays.
    both_entries = f"accepted: [{ENTRY}, {ENTRY.replace('30%', '25%')}]{STEPS}"
    assert accepting(tree, both_entries, 144).verdict == "pass"


def test_an_entry_may_come_from_a_file_that_is_extended(tree: Project) -> None:
    tree.write("parts/parent.yaml", f"perfflow: 1\n{ACCEPTED}")
    commit_workflow(tree, "extends: parts/parent.yaml\n", 100)
    assert accepting(tree, "extends: parts/parent.yaml\n", 120).verdict == "fail"


def test_a_base_whose_workflow_cannot_be_read_has_no_entry(tree: Project) -> None:
    commit_workflow(tree, f"accepted: [{ENTRY}]\nextends: gone.yaml\n", 100)
    assert accepting(tree, ACCEPTED, 120).verdict == "pass"


def test_of_a_workflow_outside_the_repository_it_is_said_that_nothing_is_known(
    tree: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commit_workflow(tree, STEPS, 100)
    outside = tmp_path_factory.mktemp("elsewhere") / "flow.yaml"
    outside.write_text(f"perfflow: 1\n{ACCEPTED}")
    result = accepting(tree, "", 120, outside)
    assert result.verdict == "pass"
    assert any("each counts until its date" in text for text in result.run.warnings)


def test_an_entry_without_a_metric_is_warned_of(tree: Project) -> None:
    text = ACCEPTED.replace("metric: cost, ", "")
    path = tree.write("flow.yaml", f"perfflow: 1\n{text}")
    assert ["without `metric`" in problem.message for problem in open_workflow(str(path)).problems] == [True]
    assert load(path, lambda text, folder: folder / text).workflow.accepted[0].metric is None
    commit_workflow(tree, STEPS, 100)
    assert row(accepting(tree, text, 120), "b", "cost").accepted


# -- confirmations and budgets


def test_a_regression_is_confirmed_as_often_as_asked(tree: Project) -> None:
    before = {"one": prints("100"), "two": prints("100")}
    steps = [one(name, "confirm: 2, runs: 8, ") for name in before]
    result = gated(tree, before, {"one": prints("120")}, *steps)
    assert result.confirmations == [
        {"benchmark": "one", "metric": "cost", "decision": "regressed", "pairs": 12, "outcome": "confirmed"}
    ]
    found = row(result, "one", "cost")
    assert both(found)[0].confirming == [0] * 8 + [1] * 6 + [2] * 6
    assert (found.design, found.pairs) == ("fixed", 20)
    assert row(result, "two", "cost").design == "fixed"


def test_what_does_not_show_again_is_refuted(tree: Project) -> None:
    # On head, the first ten runs are slow: the warm-up and all runs before the confirmation.
    slow_at_first = """#!/bin/sh
n=$(cat built 2>/dev/null || echo 0); echo $((n + 1)) > built
test $n -lt 10 && echo 120 || echo 100
"""
    result = gated(tree, {"one": prints("100")}, {"one": slow_at_first}, one(keys="confirm: 1, runs: 8, "))
    assert result.verdict == "unproven"
    assert [item["outcome"] for item in result.confirmations] == ["refuted"]
    assert "changed by +20.0% at first, which 11 fresh pairs did not confirm: 0.0%" in result.reason_texts[0]


@pytest.mark.long  # waits for what the budget leaves
def test_a_benchmark_without_a_budget_is_measured_as_long_as_the_gate_has_time(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "BUDGET", 0.1)
    varies = "#!/bin/sh\necho $((100 + $(od -An -N1 -tu1 /dev/urandom)))\n"
    text = one(keys="layouts: off, ").replace("cost", "time").replace("'1'", "us")
    found = row(gated(tree, {"one": varies}, {"one": f"{varies}\n"}, text, budget=5), "one", "time")
    assert (found.decision, found.stopped) == ("unproven", "total budget")


# -- gates that are resumed

RESUMED = flow(baseline=[one(name, "runs: 10, ") for name in ("one", "two")])


def interrupted(tree: Project, samples: int) -> Path:
    """Return the folder of a gate that was cut off after these samples."""
    tree.commit({"one": prints("100"), "two": prints("100")})
    tree.branch({"one": prints("120")})
    folder = tree.finish(RESUMED, base="main").folder
    cut(folder, samples)
    return folder


def test_an_interrupted_gate_goes_on_with_the_same_trees(tree: Project) -> None:
    folder = interrupted(tree, 15)
    trees = tree.events()[0]["trees"]
    tree.git("branch", "-f", "main", "topic")
    again = tree.finish(RESUMED, base="main", resume=folder)
    assert again.result.verdict == "fail"
    assert again.result.trees == trees
    pairs = [(event["step"], event["pair"]) for event in tree.events() if event["event"] == "sample"]
    assert pairs == [(name, number) for name in ("one", "two") for number in range(10)]
    assert step(again.result, "one").status == "cached"
    assert tree.finish(RESUMED, base="", resume=folder).result.verdict == "fail"


def test_a_gate_does_not_go_on_with_other_code(tree: Project) -> None:
    folder = interrupted(tree, 3)
    tree.write("two", prints("101"), executable=True)
    with pytest.raises(UserError, match="the code has changed since") as raised:
        tree.finish(RESUMED, base="main", resume=folder)
    assert raised.value.problems[0].hint == "undo the change, or start a new run without --resume"
    with pytest.raises(UserError, match="this run compares with main, not with topic"):
        tree.finish(RESUMED, base="topic", resume=folder)


def test_a_run_that_compares_nothing_is_not_gone_on_with_as_a_gate(tree: Project) -> None:
    tree.commit({"one": prints("100"), "two": prints("100")})
    first = tree.finish(RESUMED)
    with pytest.raises(UserError, match="does not compare base and head"):
        tree.finish(RESUMED, base="", resume=first.folder)
    reopen(first.folder)


def test_a_shallow_clone_says_how_to_deepen_it(tree: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cost in ("100", "101"):
        tree.commit({"one": prints(cost)})
    tree.branch({"one": prints("120")})
    clone = tmp_path / "clone"
    words = ["git", "clone", "-q", "--depth=1", "--no-single-branch", tree.folder.as_uri(), str(clone)]
    subprocess.run(words, check=True)
    monkeypatch.chdir(clone)
    for base, said in (("origin/main", "have no common ancestor here"), ("main~1", "is not a revision")):
        with pytest.raises(UserError, match=said) as raised:
            Project(clone).run(flow(baseline=one()), base=base)
        assert "git fetch --unshallow (in CI: fetch-depth: 0)" in raised.value.problems[0].hint
