"""Values of a workflow file reach programs as they are written, and expressions calculate with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.workflow.expressions import render_words
from perfflow.workflow.written_numbers import real, whole
from tests.session.project import Project, step

WRITTEN = (
    *("1.10", "1e3", "0x10", "0o17", "010", "007", "1_000", "+1", ".5", "1.", "-0", "1E+2", "0xFF", "1e400"),
    *("yes", "on", "Yes", "No", "y", "2026-01-02", "12:30:45", "1_0.5", "0b11"),
)


def _printed(project: Project, name: str) -> str:
    (folder,) = (project.folder / ".perfflow/runs/latest/steps").glob(f"{name}*")
    return (folder / "stdout").read_text().strip()


@pytest.mark.parametrize("text", WRITTEN)
def test_a_value_is_passed_as_written(text: str, project: Project) -> None:
    result = project.run(
        f"""
params: {{value: {text}, several: [{text}], changed: {text}}}
stages:
  build:
    - id: argv
      argv: [echo, {text}, "${{{{ params.value }}}}", "${{{{ params.several }}}}", "${{{{ params.changed }}}}"]
    - id: text
      env: {{GIVEN: {text}, EXPRESSION: "${{{{ params.value }}}}"}}
      run: echo $GIVEN $EXPRESSION ${{{{ params.value }}}} ${{{{ params.several }}}}
    - {{id: cells, matrix: {{cell: [{text}]}}, run: "echo ${{{{ matrix.cell }}}}"}}
""",
        f"changed={text}",
    )
    assert _printed(project, "argv") == " ".join([text] * 4)
    assert _printed(project, "text") == " ".join([text] * 4)
    assert _printed(project, "cells") == text
    assert str(result.run.params["value"]) == text, "the command that repeats the run"


@pytest.mark.parametrize("text", ["true", "True", "FALSE"])
def test_a_boolean_for_a_program_is_passed_as_written(text: str, project: Project) -> None:
    project.run(f"stages: {{build: [{{id: argv, argv: [printenv, GIVEN], env: {{GIVEN: {text}}}}}]}}\n")
    assert _printed(project, "argv") == text
    project.run(f"stages: {{build: [{{id: argv, argv: [echo, {text}]}}]}}\n")
    assert _printed(project, "argv") == text


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("params.a * 2", "2.2"),
        ("params.b + 1", "1001.0"),
        ("params.c + 1", "17"),
        ("params.c // 3", "5"),
        ("-params.d", "-1"),
        ("params.b | int", "1000"),
        ("params.a == 1.1", "true"),
        ("[params.a, params.b] | max", "1e3"),
        ("params.a ~ 'x'", "1.10x"),
    ],
)
def test_expressions_calculate_with_numbers(expression: str, printed: str) -> None:
    params = {"a": real("1.10"), "b": real("1e3"), "c": whole("0x10"), "d": whole("+1")}
    assert render_words("echo ${{ " + expression + " }}", {"params": params}) == ["echo", printed]


def test_the_command_of_a_tool_gets_numbers_as_written(project: Project) -> None:
    project.run("""
params: {size: 1e3}
stages:
  baseline:
    - {id: one, uses: command, runs: 1, stdout: out, with: {command: [/bin/echo, 1.10, "${{ params.size }}"]}}
""")
    assert Path("out").read_text() == "1.10 1e3\n"


def test_options_of_a_tool_file_get_numbers_as_written(project: Project) -> None:
    project.write(
        "tools/mine.yaml",
        """perfflow-tool: 1
with: {short: 1e3, version: 1.10, text: {default: x, type: string}, several: {default: [1.50], type: list}}
argv: [sh, -c, 'echo "$@" > given; echo 1', "${{ with.short }}", "${{ with.version }}", "${{ with.text }}", end,
  "${{ with.several }}"]
parse: {regex: "(?P<figure>[0-9]+)", units: {figure: "1"}}
""",
    )
    steps = "{id: one, uses: ./tools/mine.yaml, runs: 1, with: {version: 2.50, text: 0x10}}"
    project.run(f"stages: {{baseline: [{steps}]}}\n")
    assert Path("given").read_text() == "2.50 0x10 end 1.50\n"


def test_numbers_that_are_equal_are_duplicates_in_a_matrix(project: Project) -> None:
    with pytest.raises(Exception, match="quote them as texts"):
        project.open("stages: {build: [{id: x, matrix: {v: [1.1, 1.10]}, run: 'true'}]}\n")
    project.open("stages: {build: [{id: x, matrix: {v: ['1.1', '1.10']}, run: 'true'}]}\n")


def test_written_numbers_are_numbers_elsewhere(project: Project) -> None:
    result = project.run("""
params: {count: 0x2}
targets: {one: {loops: {min: 1e1}}}
stages:
  baseline:
    - id: one
      run: echo n 10
      runs: ${{ params.count }}
      warmup: 0x0
      parse: {regex: "n (?P<loops>[0-9]+)", units: {loops: "1"}}
""")
    assert [target.requirement for target in result.targets] == ["min 1e1"]
    assert step(result, "one").status == "done"
    assert [row.baseline.n for row in result.benchmarks if row.baseline] == [2]
