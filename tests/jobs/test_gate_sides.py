"""Benchmarks that exist or fail in only one of a gate's trees, trade-offs, confirmations, and resuming."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.sampling import sampling
from perfflow.session import bench
from perfflow.session.suite_clock import SuiteClock
from perfflow.store.run_folder import reopen
from tests.repositories import git
from tests.session.project import Project, row, step

PARSE = "parse: {regex: '(?P<cost>[\\d.]+)', units: {cost: '1'}, better: {cost: lower}}"
SUITE = r"""
#include <benchmark/benchmark.h>
static void spin(benchmark::State& state) {
  for (auto _ : state)
    for (long number = 0; number < 15000; ++number) benchmark::DoNotOptimize(number);
}
static void crash(benchmark::State& state) {
  for (auto _ : state) __builtin_trap();
}
@LIST@
BENCHMARK_MAIN();
"""


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", "built\nsuite\n.perfflow\nflow.yaml\n")
    return project


def commit(project: Project, files: dict[str, str]) -> None:
    for name, text in files.items():
        project.write(name, text, executable=text.startswith("#!"))
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-qm", "change")


def topic(project: Project, files: dict[str, str]) -> None:
    git(project.folder, "checkout", "-qb", "topic")
    commit(project, files)


def flow(*steps: str, head: str = "") -> str:
    lines = "\n".join(f"    - {{{step}}}" for step in steps)
    return f"{head}\nstages:\n  baseline:\n{lines}\n"


def prints(value: str) -> str:
    return f"#!/bin/sh\necho {value}\n"


def test_a_crash_on_head_is_told_with_the_benchmark(tree: Project) -> None:
    commit(tree, {"loop": prints("1")})
    topic(tree, {"loop": "kill -ABRT $$"})
    result = tree.run(flow(f"id: one, benchmark: core/loop, run: ./loop, {PARSE}"), base="main")
    assert result.verdict == "error"
    assert any(reason.startswith("step one (core/loop): on head: ") for reason in result.reason_texts), (
        result.reason_texts
    )


def test_a_program_that_only_head_has_is_new_and_one_that_only_base_has_is_removed(tree: Project) -> None:
    commit(tree, {"old": prints("1"), "both": prints("1")})
    git(tree.folder, "rm", "-q", "old")
    topic(tree, {"fresh": prints("1")})
    text = flow(*(f"id: {name}, run: ./{name}, {PARSE}" for name in ("old", "both", "fresh")))
    result = tree.run(text, base="main")
    decisions = {item.name: item.decision for item in result.benchmarks}
    assert decisions == {"old": "removed", "both": "same", "fresh": "new"}
    assert (result.verdict, result.reason_texts) == ("error", ["no longer measured: old cost"])


@pytest.mark.parametrize(("base", "head", "where"), [("exit 3", "echo 1", "base"), ("echo 1", "exit 3", "head")])
def test_a_program_that_fails_on_one_side_is_neither_new_nor_removed(
    tree: Project, base: str, head: str, where: str
) -> None:
    commit(tree, {"one": f"#!/bin/sh\n{base}\n", "two": prints("100")})
    topic(tree, {"one": f"#!/bin/sh\n{head}\n", "two": prints("150")})
    text = flow(f"id: one, run: ./one, {PARSE}", f"id: two, run: ./two, {PARSE}")
    result = tree.run(text, base="main")
    # The regressed benchmark beside it is judged, and its reason comes first.
    assert result.verdict == "fail"
    assert f"step one: on {where}: one exited with 3" in result.reason_texts
    assert [item.name for item in result.benchmarks] == ["two"]


def test_a_check_of_two_commands_that_are_compared_runs_where_they_are(tree: Project) -> None:
    commit(tree, {"README": "before the program was written\n"})
    topic(tree, {"slow": prints("7"), "quick": prints("7")})
    text = flow("id: pair, uses: command, runs: 6, with: {command: ./slow}, candidate: ./quick")
    result = tree.run(f"{text}  verify:\n    - {{id: same, uses: same-output, benchmark: pair}}\n", base="main")
    assert [(check.id, check.status) for check in result.verification] == [("same", "passed")]
    assert step(result, "same").status == "done", result.reason_texts


def test_a_folder_that_only_head_has_is_new(tree: Project) -> None:
    commit(tree, {"both": prints("1")})
    topic(tree, {"deep/down": prints("2")})
    result = tree.run(flow(f"id: inside, run: ./down, working-directory: deep, {PARSE}"), base="main")
    assert row(result, "inside", "cost").decision == "new"


def test_two_builds_of_a_native_program_are_known_as_such(tree: Project) -> None:
    source = "int main(void) {{ for (volatile long n = 0; n < {}; ++n) {{}} }}\n"
    flow_of_both = """
stages:
  build:
    - {id: compile, run: cc -O1 -o built loop.c}
  baseline:
    - {id: native, run: ./built, runs: 2}
    - {id: script, run: ./script, runs: 2}
"""
    commit(tree, {"loop.c": source.format(1000), "script": "#!/bin/sh\n:\n"})
    topic(tree, {"loop.c": source.format(2000), "script": "#!/bin/sh\n: :\n"})
    result = tree.run(flow_of_both, base="main")
    assert step(result, "native").rebuilt
    assert not step(result, "script").rebuilt


SUITE_OF = "id: suite, uses: pytest-benchmark, budget: 1s, with: {{python: {python}, paths: [test_a.py, {other}]}}"
SQUARES = "def test_{name}(benchmark):\n    benchmark(sum, range(2000))\n"


def test_the_benchmarks_of_a_file_that_only_head_has_are_new(tree: Project) -> None:
    commit(tree, {"test_a.py": SQUARES.format(name="a")})
    topic(tree, {"test_b.py": SQUARES.format(name="b")})
    step = SUITE_OF.format(python=sys.executable, other="test_b.py")
    result = tree.run(flow(step), base="main")
    decisions = {item.name: item.decision for item in result.benchmarks}
    assert decisions["test_b.py::test_b"] == "new", result.reason_texts
    assert decisions["test_a.py::test_a"] not in ("new", None)
    assert not [reason for reason in result.reason_texts if reason.startswith("step ")]


def test_benchmarks_that_only_compute_run_side_by_side_and_those_that_wait_in_turn(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, they are measured in pairs.
    monkeypatch.setattr(sampling, "EXPENSIVE", math.inf)
    monkeypatch.setattr(sampling, "FIRST_ANALYSIS", 0.01)
    text = SQUARES.format(name="sum") + "def test_wait(benchmark):\n    benchmark(__import__('time').sleep, 0.002)\n"
    commit(tree, {"test_a.py": text})
    topic(tree, {"test_a.py": text.replace("2000", "2001")})
    result = tree.run(flow(SUITE_OF.format(python=sys.executable, other="test_a.py")), base="main")
    assert ways_of(tree) == {"test_a.py::test_sum": {True}, "test_a.py::test_wait": {False}}, result.reason_texts
    for event in (event for event in tree.events() if event.get("side_by_side")):
        found = {reading["metric"]: reading["value"] for reading in event["candidate"]}
        # Elapsed time contains no turn of the other process.
        assert found["time"] == found["uncontended"]


SPINS = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.{lock})
    ends = time.process_time() + 0.2
    while time.process_time() < ends:
        pass
"""


def ways_of(tree: Project) -> dict[str, set[bool]]:
    """Return for each benchmark whether its pairs ran side by side."""
    ways: dict[str, set[bool]] = {}
    for event in (event for event in tree.events() if event["event"] == "sample"):
        ways.setdefault(event["candidate"][0]["benchmark"], set()).add(event.get("side_by_side", False))
    return ways


def test_commands_run_side_by_side_unless_they_wait_or_fail_that_way(
    tree: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # However long they wait for pages of the interpreter.
    monkeypatch.setattr(SuiteClock, "computes", lambda *_: True)
    locks = {"free": "LOCK_SH", "waits": "LOCK_EX", "fails": "LOCK_EX | fcntl.LOCK_NB"}
    commit(tree, {f"{name}.py": SPINS.format(lock=lock) for name, lock in locks.items()})
    topic(tree, {f"{name}.py": SPINS.format(lock=lock).replace("0.2", "0.21") for name, lock in locks.items()})
    steps = (f"id: {name}, run: '{sys.executable} {name}.py {tmp_path / name}', runs: 3" for name in locks)
    result = tree.run(flow(*steps), base="main")
    assert ways_of(tree) == {"free": {True}, "waits": {False}, "fails": {False}}, result.reason_texts
    assert {item.status for item in result.steps} == {"done"}


def test_both_sides_in_one_tree_run_in_turn(tree: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They could write the same files."""
    monkeypatch.setattr(SuiteClock, "computes", lambda *_: True)
    commit(tree, {"free.py": SPINS.format(lock="LOCK_SH")})
    step = f"id: free, run: '{sys.executable} free.py {tmp_path / 'lock'}', runs: 2"
    tree.run(flow(step), base="HEAD", times_all=True)
    assert ways_of(tree) == {"free": {False}}


def test_a_file_that_neither_tree_has_is_an_error(tree: Project) -> None:
    commit(tree, {"test_a.py": SQUARES.format(name="a")})
    topic(tree, {"README": "changed\n"})
    step = SUITE_OF.format(python=sys.executable, other="b.py")
    assert tree.run(flow(step), base="main").verdict == "error"


def test_a_target_that_base_misses_too_does_not_fail_head(tree: Project) -> None:
    commit(tree, {"slow": prints("9"), "fine": prints("3")})
    topic(tree, {"slow": prints("9"), "fine": prints("3.05"), "fresh": prints("9")})
    steps = (f"id: {name}, run: ./{name}, {PARSE}" for name in ("slow", "fine", "fresh"))
    result = tree.run(flow(*steps, head="targets: {'*': {cost: <5}}"), base="main")
    assert {item.benchmark: item.status for item in result.targets} == {
        "slow": "not held by base",
        "fine": "met",
        "fresh": "not met",
    }
    assert [reason for reason in result.reason_texts if "slow" in reason] == []
    assert next(item for item in result.targets if item.benchmark == "slow").detail == "also missed on base"


def test_submodules_that_are_checked_out_are_in_the_trees(tree: Project, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "cost").write_text("3\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    git(tree.folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "deps")
    commit(tree, {"one": "#!/bin/sh\ncat deps/cost\n"})
    topic(tree, {"README": "changed\n"})
    result = tree.run(flow(f"id: one, run: ./one, {PARSE}"), base="main")
    assert row(result, "one", "cost").decision == "same", result.reason_texts


def suite(project: Project, names: str) -> Result:
    commit(
        project, {"suite.cc": SUITE.replace("@LIST@", 'BENCHMARK(spin)->Name("kept");\nBENCHMARK(spin)->Name("lost");')}
    )
    listed = "\n".join(
        f'BENCHMARK({"crash" if name == "broken" else "spin"})->Name("{name}");' for name in names.split()
    )
    topic(project, {"suite.cc": SUITE.replace("@LIST@", listed)})
    return project.run(
        """
stages:
  build:
    - {id: make, run: c++ -O1 suite.cc -o suite -lbenchmark -lpthread}
  baseline:
    - {id: suite, uses: google-benchmark, with: {command: ./suite}, budget: 30s}
""",
        base="main",
    )


def test_a_suite_is_listed_on_both_sides(tree: Project) -> None:
    result = suite(tree, "kept added")
    decisions = {item.name: item.decision for item in result.benchmarks if item.gating}
    assert (decisions.pop("lost"), decisions.pop("added")) == ("removed", "new")
    assert decisions.keys() == {"kept"}
    # By CPU time, or by wall time if its single run had to wait for a core.
    (reason,) = [reason for reason in result.reason_texts if "lost" in reason]
    assert reason in [f"no longer measured: lost {clock}" for clock in ("cpu", "time")]


def test_a_benchmark_of_a_suite_that_crashes_leaves_the_others(tree: Project) -> None:
    result = suite(tree, "kept lost broken")
    gating = {item.name: item for item in result.benchmarks if item.gating}
    assert gating.keys() == {"kept", "lost"}
    assert all(item.pairs > 5 for item in gating.values())
    assert step(result, "suite").status == "failed"
    assert step(result, "suite").reason.startswith("broken: on head: ")


def test_what_was_built_from_files_that_are_gone_is_not_measured(tree: Project) -> None:
    commit(
        tree, {"build.sh": "for name in *.in; do cp $name built-${name%.in}; done", "one.in": "1\n", "two.in": "1\n"}
    )
    commit(tree, {".gitignore": "built-*\n.perfflow\nflow.yaml\n"})
    git(tree.folder, "checkout", "-qb", "topic")
    text = """
stages:
  build: [{id: make, run: sh build.sh}]
  baseline:
""" + "".join(f"    - {{id: {name}, run: cat built-{name}, {PARSE}}}\n" for name in ("one", "two"))
    assert tree.run(text, base="main").verdict == "pass"
    git(tree.folder, "rm", "-q", "two.in")
    git(tree.folder, "commit", "-qm", "gone")
    result = tree.run(text, base="main")
    assert result.reason_texts == ["no longer measured: two cost"]


@pytest.mark.parametrize(
    ("until", "change", "verdict", "said"),
    [
        ("2999-12-31", "30%", "pass", "until 2999-12-31: smaller tables"),
        ("2020-01-01", "30%", "fail", ""),
        ("2999-12-31", "15%", "fail", ""),
    ],
)
def test_a_trade_off_passes_until_its_date(tree: Project, until: str, change: str, verdict: str, said: str) -> None:
    commit(tree, {"one": prints("100")})
    topic(tree, {"one": prints("120")})
    head = f"accepted: [{{benchmark: one, change: {change}, why: smaller tables, until: {until}}}]"
    result = tree.run(flow(f"id: one, run: ./one, {PARSE}", head=head), base="main")
    assert (result.verdict, row(result, "one", "cost").accepted) == (verdict, said)


def test_a_trade_off_that_nothing_needs_is_not_used(tree: Project) -> None:
    commit(tree, {"one": prints("100")})
    topic(tree, {"one": prints("107")})
    head = "accepted: [{benchmark: one, change: 30%, why: x, until: 2999-12-31}]"
    found = row(tree.run(flow(f"id: one, run: ./one, {PARSE}", head=head), base="main"), "one", "cost")
    assert (found.level, found.accepted) == ("concern", "")


def test_a_regression_is_confirmed_as_often_as_asked(tree: Project) -> None:
    commit(tree, {"one": prints("100"), "two": prints("100")})
    topic(tree, {"one": prints("120")})
    result = tree.run(
        flow(
            f"id: one, run: ./one, confirm: 2, runs: 8, {PARSE}", f"id: two, run: ./two, confirm: 2, runs: 8, {PARSE}"
        ),
        base="main",
    )
    assert result.confirmations == [
        {"benchmark": "one", "metric": "cost", "decision": "regressed", "pairs": 12, "outcome": "confirmed"}
    ]
    found = row(result, "one", "cost")
    assert found.baseline is not None
    assert found.baseline.confirming == [0] * 8 + [1] * 6 + [2] * 6
    assert (found.design, found.pairs) == ("fixed", 20)
    assert row(result, "two", "cost").design == "fixed"


def test_what_does_not_show_again_is_refuted(tree: Project) -> None:
    # On head, the first ten runs are slow: the warm-up and all runs before the confirmation.
    slow_at_first = """#!/bin/sh
n=$(cat built 2>/dev/null || echo 0); echo $((n + 1)) > built
test $n -lt 10 && echo 120 || echo 100
"""
    commit(tree, {"one": prints("100")})
    topic(tree, {"one": slow_at_first})
    result = tree.run(flow(f"id: one, run: ./one, confirm: 1, runs: 8, {PARSE}"), base="main")
    assert result.verdict == "unproven"
    assert [item["outcome"] for item in result.confirmations] == ["refuted"]
    assert "changed by +20.0% at first, which 11 fresh pairs did not confirm: 0.0%" in result.reason_texts[0]


def test_base_and_head_that_are_the_same_code_are_measured_and_it_is_said(tree: Project) -> None:
    commit(tree, {"one": prints("100")})
    result = tree.run(flow(f"id: one, run: ./one, {PARSE}"), base="main")
    assert (result.verdict, row(result, "one", "cost").decision) == ("pass", "same")
    said = "base and head are the same code: any difference between them is noise"
    assert said in result.run.warnings
    assert tree.told.notes == [said]


def test_a_benchmark_without_a_budget_is_measured_as_long_as_the_gate_has_time(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "BUDGET", 0.1)
    varies = "#!/bin/sh\necho $((100 + $(od -An -N1 -tu1 /dev/urandom)))\n"
    commit(tree, {"one": varies})
    topic(tree, {"one": f"{varies}\n"})
    parse = PARSE.replace("cost", "time").replace("'1'", "us")
    text = flow(f"id: one, run: ./one, layouts: off, {parse}")
    found = row(tree.run(text, base="main", budget=5), "one", "time")
    assert (found.decision, found.stopped) == ("unproven", "total budget")


RESUMED = flow(f"id: one, run: ./one, runs: 10, {PARSE}", f"id: two, run: ./two, runs: 10, {PARSE}")


def cut(folder: Path, samples: int) -> None:
    """Cut the events after ``samples`` samples, as kill -9 would leave them."""
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if '"event":"sample"' in line]
    (folder / "events.jsonl").write_text("".join(lines[: places[samples - 1] + 1]))


def test_an_interrupted_gate_goes_on_with_the_same_trees(tree: Project) -> None:
    commit(tree, {"one": prints("100"), "two": prints("100")})
    topic(tree, {"one": prints("120")})
    first = tree.finish(RESUMED, base="main")
    cut(first.folder, 15)
    git(tree.folder, "branch", "-f", "main", "topic")
    again = tree.finish(RESUMED, base="main", resume=first.folder)
    assert again.result.verdict == "fail"
    assert again.result.trees == first.result.trees
    pairs = [(event["step"], event["pair"]) for event in tree.events() if event["event"] == "sample"]
    assert pairs == [(name, number) for name in ("one", "two") for number in range(10)]
    assert step(again.result, "one").status == "cached"
    assert tree.finish(RESUMED, base="", resume=first.folder).result.verdict == "fail"


def test_a_gate_does_not_go_on_with_other_code(tree: Project) -> None:
    commit(tree, {"one": prints("100"), "two": prints("100")})
    topic(tree, {"one": prints("120")})
    first = tree.finish(RESUMED, base="main")
    cut(first.folder, 3)
    tree.write("two", prints("101"), executable=True)
    with pytest.raises(UserError, match="the code has changed since") as raised:
        tree.finish(RESUMED, base="main", resume=first.folder)
    assert raised.value.problems[0].hint == "undo the change, or start a new run without --resume"
    with pytest.raises(UserError, match="this run compares with main, not with topic"):
        tree.finish(RESUMED, base="topic", resume=first.folder)


def test_a_run_that_compares_nothing_is_not_gone_on_with_as_a_gate(tree: Project) -> None:
    commit(tree, {"one": prints("100"), "two": prints("100")})
    first = tree.finish(RESUMED)
    with pytest.raises(UserError, match="does not compare base and head"):
        tree.finish(RESUMED, base="", resume=first.folder)
    reopen(first.folder)


def test_a_shallow_clone_says_how_to_deepen_it(tree: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tree, {"one": prints("100")})
    commit(tree, {"one": prints("101")})
    topic(tree, {"one": prints("120")})
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--no-single-branch", tree.folder.as_uri(), str(clone)], check=True
    )
    monkeypatch.chdir(clone)
    shallow = Project(clone)
    for base, said in (("origin/main", "have no common ancestor here"), ("main~1", "is not a revision")):
        with pytest.raises(UserError, match=said) as raised:
            shallow.run(flow(f"id: one, run: ./one, {PARSE}"), base=base)
        assert "git fetch --unshallow (in CI: fetch-depth: 0)" in raised.value.problems[0].hint
