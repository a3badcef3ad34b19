"""What unknown names probably mean: tables of other programs' words, and similar letters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from perfflow.cli.main import COMMANDS
from perfflow.model import similar
from perfflow.model.metrics import STATISTICS
from perfflow.tools import registry
from perfflow.workflow.model import STAGES, Header, Stage, Step, Thresholds
from perfflow.workflow.shape import keys_of
from tests.cli.shell import perfflow
from tests.workflow.drafts import opened, said


def test_the_tables_name_what_exists() -> None:
    commands = {meant.split()[0] for several in similar.COMMANDS.values() for meant in several}
    assert {name for name in commands if not name.startswith("--")} <= COMMANDS.keys()
    assert set(similar.TOOLS.values()) <= set(registry.known())
    models: tuple[type[BaseModel], ...] = (Header, Stage, Step, Thresholds)
    assert set(similar.KEYS.values()) <= {key for model in models for key in keys_of(model)} | {"stages"}
    assert set(similar.STAGES.values()) <= set(STAGES)
    assert set(similar.STATISTICS.values()) <= set(STATISTICS)


def test_no_word_of_a_table_is_a_name_of_perfflow() -> None:
    assert not similar.COMMANDS.keys() & COMMANDS.keys()
    assert not similar.TOOLS.keys() & set(registry.known())
    assert not similar.STAGES.keys() & set(STAGES)
    assert not similar.KEYS.keys() & set(keys_of(Step))
    assert all(re.fullmatch(r"[a-z-]+", key) for key in similar.KEYS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("benchmark", ["run"]), ("bench", ["run"]), ("measure", ["run"]), ("test", ["gate"])),
        *(("check", ["gate", "validate"]), ("diff", ["compare"]), ("trend", ["history"]), ("criterion", ["init"])),
        *(("setup", ["init", "doctor"]), ("comapre", ["compare"])),
    ],
)
def test_a_command_of_another_program(typed: str, meant: list[str], tmp_path: Path) -> None:
    done = perfflow(typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"hint: did you mean {' or '.join(f'`perfflow {name}`' for name in meant)}?" in done.stderr


def test_a_tool_by_the_name_of_a_library(tmp_path: Path) -> None:
    shown = perfflow("show", "criterion", cwd=tmp_path)
    assert (shown.returncode, "did you mean 'cargo-bench'?" in shown.stderr) == (2, True)
    listed = perfflow("list", "criterion", cwd=tmp_path)
    assert (listed.returncode, "cargo-bench" in listed.stdout, "massif" in listed.stdout) == (0, True, False)
    assert perfflow("list", "no such thing", cwd=tmp_path).returncode == 2


STEP = "stages: {{baseline: [{{id: a, {}}}]}}\n"
BENCH = "stages: {baseline: [{id: a, uses: command, with: {command: ./a}}]}\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (STEP.format("uses: criterion"), "did you mean `cargo-bench`?"),
        (STEP.format("uses: pytest"), "did you mean `pytest-benchmark`?"),
        (STEP.format("uses: valgrind, with: {command: ./a}"), "did you mean `callgrind`?"),
        (STEP.format("criterion: parse"), "write `uses: cargo-bench` and `with: {bench: parse}`"),
        (STEP.format("hyperfine: ./a"), "write `uses: hyperfine`"),
        (STEP.format("bench: parse, uses: cargo-bench"), "write `with: {bench: parse}`"),
        (STEP.format("benchmarks: parse, uses: callgrind"), "write `benchmark`"),
        (STEP.format("command: ./a"), "write `run: ./a`"),
        (STEP.format("cmd: ./a"), "write `run: ./a`"),
        (STEP.format("command: ./a, uses: command"), "write `with: {command: ./a}`"),
        (STEP.format("command: [./a, b c]"), "write `argv: [./a, b c]`"),
        (STEP.format("setup: make"), "write `prepare`"),
        (STEP.format("cmd: ./a, uses: command"), "write `with: {command: ./a}`"),
        ("benchmarks: [{run: ./a}]\n" + BENCH, "write the steps that measure under `stages: {baseline: [...]}`"),
        ("bench: ./a\n" + BENCH, "write the steps that measure under `stages: {baseline: [...]}`"),
        ("criterion: parse\n" + BENCH, "write `stages: {baseline: [{uses: cargo-bench}]}`"),
        ("command: ./a\n" + BENCH, "write `stages: {baseline: [{run: ./a}]}`"),
        ("setup: [{run: make}]\n" + BENCH, "write stages under `stages:`"),
        ("warn: 5%\n" + BENCH, "write `thresholds: {concern: 5%}`"),
        ("fail: 10%\n" + BENCH, "write `thresholds: {action: 10%}`"),
        ("thresholds: {warn: 5%}\n" + BENCH, "write `concern`"),
        ("thresholds: {fail: 20%}\n" + BENCH, "write `action`"),
        ("thresholds: {memory: {fail: 20%}}\n" + BENCH, "write `action`"),
        ("thresholds: {for: {a: {fail: 20%}}}\n" + BENCH, "write `action`"),
    ],
)
def test_a_key_of_another_program(text: str, hint: str, tmp_path: Path) -> None:
    hints = {problem.hint for problem in opened(tmp_path, text).problems}
    assert hint in hints


def test_the_median_is_p50(tmp_path: Path) -> None:
    text = "targets: {a: {median: <2ms, cpu median: <1ms}}\n" + BENCH
    found = opened(tmp_path, text)
    assert said(found) == []
    figures = {(item.metric.name, item.statistic) for item in found.plan.criteria.targets}
    assert figures == {("time", "p50"), ("cpu", "p50")}
    assert "same figure" in said(opened(tmp_path, text.replace("cpu median", "time p50")))[0]


def test_a_metric_called_median_is_itself(tmp_path: Path) -> None:
    step = "{id: a, run: ./a, parse: {json: {median: m}, units: {median: ms}}}"
    found = opened(tmp_path, f"targets: {{a: {{median: <2ms}}}}\nstages: {{baseline: [{step}]}}\n")
    assert [item.metric.name for item in found.plan.criteria.targets] == ["median"]
