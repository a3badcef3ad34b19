"""A gate times only the benchmarks that may have changed."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.readings import Side
from perfflow.model.result import Blind, Result
from perfflow.report.page import page_of
from perfflow.report.payloads import files
from perfflow.session import unchanged_benchmarks
from perfflow.unchanged import native
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.long import rest_long
from tests.session.project import Project, both, flow
from tests.toolchains import needs_go
from tests.tools.harness import GO_MODULE

SUITE = "import lib\n\n" + "".join(f"def test_{name}(benchmark):\n    benchmark(lib.{name})\n\n" for name in "abc")
OPTIONS = f"{{paths: bench.py, python: {sys.executable}, args: -p pytest_benchmark.plugin}}"
FLOW = flow(
    'targets: {"bench.py::test_b": {time: <1s}}',
    baseline=f'{{id: suite, uses: pytest-benchmark, runs: 1, expect: ["*"], with: {OPTIONS}}}',
)
CHOSEN = ["*.py::test_*"]


LIB = "def a():\n    return sum(range(100))\n\ndef b():\n    return 2\n\ndef c():\n    return 3\n"


@pytest.fixture
def tree(tree: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository whose working tree differs from its only commit in a comment."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(unchanged_benchmarks, "_drawn", lambda *_: frozenset())
    tree.commit({".gitignore": ".perfflow\n__pycache__\nflow.yaml\na\nb\n", "bench.py": SUITE, "lib.py": LIB})
    tree.write("lib.py", f"# a comment\n{LIB}")
    return tree


@pytest.fixture
def programs(tree: Project) -> Project:
    """A repository whose working tree differs in a comment of one of two programs."""
    tree.commit({"a.c": PROGRAM, "b.c": PROGRAM, "script.sh": "true\n"})
    tree.write("a.c", f"// a comment\n{PROGRAM}")
    return tree


def gated(tree: Project, text: str = FLOW, *, times_all: bool = False) -> Result:
    return tree.run(text, base="main", benchmarks=CHOSEN, times_all=times_all)


def unchanged(result: Result) -> dict[str, str | None]:
    return {item.name.rpartition("_")[2]: item.unchanged for item in result.benchmarks if item.metric == "time"}


ALL_UNCHANGED = {"a": "code", "b": "code", "c": "code"}
NONE_UNCHANGED = dict.fromkeys("abc")


def test_a_gate_times_no_benchmark_if_only_a_comment_changed(tree: Project) -> None:
    result = gated(tree)
    assert unchanged(result) == ALL_UNCHANGED
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert not any(event["event"] == "sample" for event in tree.events())
    for row in result.benchmarks:
        assert (row.decision, row.level, row.gating) == ("same", "ok", True)
        assert (row.baseline, row.candidate, row.change, row.speedup) == (None,) * 4
    assert [(item.status, item.measured) for item in result.targets] == [("not looked at", None)]
    page = page_of(result)
    assert "3 of 3 benchmarks run the same code and were not timed" in page.headline
    assert not page.comparisons
    assert "same: not timed" in files.junit_text(result)
    # What was compared is part of the receipt, like every file of the run.
    folder = tree.folder / ".perfflow" / "runs" / "latest" / "steps" / "suite"
    assert all((folder / side / "trace" / "0.json").is_file() for side in ("baseline", "candidate"))
    # The stored result says the same.
    record = record_of_result(result)
    again = judge(record, record.criteria)
    assert again.benchmarks == result.benchmarks
    assert (again.verdict, again.targets) == (result.verdict, result.targets)


@pytest.mark.long  # as the cases beside it, with one more trace of a suite
def test_a_gate_audits_benchmarks_that_execute_the_same_code(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = frozenset({"bench.py::test_a"})
    monkeypatch.setattr(unchanged_benchmarks, "_drawn", lambda names, _: drawn & {*names})
    result = gated(tree)
    assert unchanged(result) == ALL_UNCHANGED
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert {row.name for row in result.benchmarks if row.baseline} == drawn
    assert all(row.decision == "same" for row in result.benchmarks if row.gating)
    line = "2 of 3 benchmarks run the same code and were not timed, 1 more was timed to check the method"
    assert line in page_of(result).headline


def test_a_gate_times_the_benchmarks_whose_code_changed(tree: Project) -> None:
    tree.write("lib.py", f"# a comment\n{LIB.replace('100', '10000')}")
    result = gated(tree)
    assert unchanged(result) == {"a": None, "b": "code", "c": "code"}
    (timed,) = (item for item in result.benchmarks if item.name.endswith("_a") and item.metric == "time")
    assert both(timed)
    assert "2 of 3 benchmarks run the same code and were not timed" in page_of(result).headline


def test_a_gate_names_changed_lines_that_no_benchmark_executes(tree: Project) -> None:
    more = "def unused():\n    # a comment\n    a = 1\n    return a\n\n\n"
    tree.write("lib.py", f"{more}{LIB.replace('100', '1000')}")
    tree.write("other.py", "print(1)\n")
    result = gated(tree)
    # The definition of a function runs when its module is imported, and a comment is no code.
    assert result.blind == Blind(changed=5, missed=3, lines={"lib.py": ["3-4"], "other.py": ["1"]})
    line = "blind: 3 of 5 changed lines are executed by no benchmark: lib.py:3-4, other.py:1"
    assert line in page_of(result).headline
    assert judge(record_of_result(result), Criteria()).blind == result.blind


@pytest.mark.long  # as the cases beside it, with one more trace of a suite
def test_nothing_is_blind_if_not_all_executed_code_is_known(tree: Project) -> None:
    tree.write("lib.py", f"def unused():\n    return 1\n{LIB}")
    text = f"{FLOW}    - {{id: other, run: 'true', runs: 1}}\n"
    assert tree.run(text, base="main", benchmarks=[*CHOSEN, "other"]).blind is None


@pytest.mark.long  # as the cases beside it, with one more trace of a suite
def test_a_gate_times_everything_if_asked(tree: Project) -> None:
    result = gated(tree, times_all=True)
    assert unchanged(result) == NONE_UNCHANGED
    assert all(item.baseline for item in result.benchmarks)


@pytest.mark.long  # as the cases beside it, with one more trace of a suite
def test_a_gate_times_what_another_environment_may_have_changed(tree: Project) -> None:
    text = FLOW.replace("runs: 1", "env: {SIDE: '${{ steps.make.outputs.side }}'}, runs: 1")
    build = "  build:\n    - {id: make, run: 'echo side=$(wc -c < lib.py) >> \"$PERFFLOW_OUTPUT\"'}\n"
    assert unchanged(gated(tree, text.replace("stages:\n", f"stages:\n{build}"))) == NONE_UNCHANGED


PROGRAM = "int main(void) { volatile int sum = 0; for (int i = 0; i < 1000; i++) sum += i; return 0; }\n"


COMMANDS = flow(
    build="{id: make, run: 'for name in a b; do cc -O1 -g -o $name $name.c; done'}",
    baseline=[
        f"{{id: {name}, uses: command, runs: 1, with: {{command: {command}}}}}"
        for name, command in (("a", "./a"), ("b", "./b"), ("script", "sh script.sh"))
    ],
)


def test_a_gate_times_the_programs_whose_code_or_files_changed(programs: Project) -> None:
    programs.write("b.c", PROGRAM.replace("1000", "2000"))
    result = programs.run(COMMANDS, base="main")
    found = {item.name: (item.unchanged, item.decision) for item in result.benchmarks if item.metric == "time"}
    # One pair decides nothing.
    assert found == {"a": ("code", "same"), "b": (None, "unproven"), "script": ("files", "same")}


@pytest.mark.parametrize("suite", rest_long([False, True]))
def test_a_base_is_recorded_once_for_all_gates_that_have_it(
    suite: bool, programs: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    programs.write("lib.py", f"# a comment\n{LIB}")
    module: Any = unchanged_benchmarks if suite else native
    name, number, step_id = ("_python_traces", 1, "suite") if suite else ("trace", 3, "a")
    original, sides = getattr(module, name), list[Side]()

    def noted(*arguments: Any) -> Any:
        sides.append(arguments[1].side)
        return original(*arguments)

    def recorded() -> tuple[Counter[Side], Result]:
        """Run a gate; return how often each side was recorded, and the result."""
        sides.clear()
        result = programs.run(FLOW if suite else COMMANDS, base="main", benchmarks=CHOSEN if suite else [])
        return Counter(sides), result

    monkeypatch.setattr(module, name, noted)
    counts, first = recorded()
    assert counts == {Side.BASELINE: number, Side.CANDIDATE: number}
    counts, again = recorded()
    assert counts == {Side.CANDIDATE: number}
    assert [item.unchanged for item in again.benchmarks] == [item.unchanged for item in first.benchmarks]
    folder = programs.folder / ".perfflow" / "runs" / "latest" / "steps" / step_id
    assert (folder / "baseline" / "trace" / "kept.json.gz").is_file()
    assert [(folder / name).exists() for name in ("listing", "listing-of-candidate")] == [False, suite]
    # Damaged files are as good as none.
    for kept in (tmp_path_factory.getbasetemp()).rglob("*.traces/*.json.gz"):
        kept.write_bytes(kept.read_bytes()[:40])
    assert recorded()[0] == {Side.BASELINE: number, Side.CANDIDATE: number}
    # Another base has records of its own.
    programs.commit()
    programs.write("lib.py", f"# another comment\n{LIB}")
    assert recorded()[0][Side.CANDIDATE] == number


TABLE = "| ns/op | op/s | t\\n|----:|----:|:-\\n| 2.00 | 500,000,000.00 | `a`\\n| 4.00 | 250,000,000.00 | `b`\\n"


def test_benchmarks_that_always_run_together_are_recorded_once(
    programs: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, sides = native.trace, list[Side]()

    def noted(*arguments: Any) -> Any:
        sides.append(arguments[1].side)
        return original(*arguments)

    monkeypatch.setattr(native, "trace", noted)
    source = f'#include <stdio.h>\n#define MORE\nint main(void) {{ MORE printf("{TABLE}"); return 0; }}\n'
    programs.commit({"a.c": source})
    build, measured = (
        COMMANDS.partition("  baseline:")[0],
        "{id: suite, uses: nanobench, with: {command: ./a}, runs: 1}",
    )
    for more, decisions in (("", {"same"}), (' puts("more");', {"unproven"})):
        sides.clear()
        programs.write("a.c", f"// a comment\n{source.replace('#define MORE', f'#define MORE{more}')}")
        result = programs.run(f"{build}  baseline:\n    - {measured}\n", base="main", benchmarks=["t > *"])
        assert {row.decision for row in result.benchmarks if row.gating} == decisions
        assert Counter(sides)[Side.CANDIDATE] == 1


@pytest.mark.long  # compiles packages of Go; the suite of Python takes the same path
@needs_go
def test_benchmarks_of_go_packages_without_a_change_are_not_timed(tree: Project) -> None:
    shutil.copytree(GO_MODULE, tree.folder, dirs_exist_ok=True)
    tree.commit()
    count = tree.folder / "text/text.go"
    count.write_text(count.read_text().replace("Work = 100", "Work = 400"))
    text = flow(baseline='{uses: go-bench, benchmark: "*"}')
    result = tree.run(text, base="main", benchmarks=["table.*"])
    (row,) = (row for row in result.benchmarks if row.metric == "time")
    assert (row.name, row.decision, row.unchanged) == ("table.BenchmarkBuild", "same", "files")
