"""Templates of users: what they may read and call, what is refused, and what a run does with one that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report import tables, template
from perfflow.report.markdown import MarkdownWriter, render, render_own
from perfflow.report.page import page_of
from perfflow.report.template import SECTIONS, problems
from tests.cli.shell import perfflow
from tests.report.gated import gated
from tests.report.rendered import check_inert
from tests.report.results import JOINED_OR_EACH, everything, hostile, kernels

ROOT = Path(__file__).parents[2]
WORKFLOW = """
perfflow: 1
name: nap
report: {template: short.md.j2}
stages:
  baseline:
    - {id: nap, run: sleep 0.01, runs: 1}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "own.md.j2"
    path.write_text(text)
    return path


@pytest.mark.parametrize("layout", ["report", "analysis"])
def test_the_whole_report_can_be_included(tmp_path: Path, layout: str) -> None:
    result = everything()
    result = result.model_copy(update={"run": result.run.model_copy(update={"template": layout})})
    path = written(tmp_path, f'{{% include "{layout}.md.j2" %}}')
    assert list(problems(path)) == []
    assert render_own(result, path) == render(result)


@pytest.mark.parametrize("made", [everything, gated, kernels])
def test_each_section_and_table_can_be_written_alone(tmp_path: Path, made: Callable[[], Result]) -> None:
    result = made()
    writer = MarkdownWriter(page_of(result))
    whole = render(result)
    found = [writer.joined(writer.section(name)) for name in SECTIONS if name != "baseline"]
    found += [writer.joined(writer.table(name)) for name in tables.NAMED if name != "baseline"]
    assert any(found)
    assert all(text in whole for text in found)
    names = [f"{{{{ section('{name}') }}}}" for name in SECTIONS] + [
        f"{{{{ table('{name}') }}}}" for name in tables.NAMED
    ]
    assert list(problems(written(tmp_path, "\n".join(names)))) == []


def test_sections_are_the_macros_of_the_templates_and_the_help_lists_all() -> None:
    module = template.environment().get_template("sections.j2").make_module({"page": None})
    macros = {name for name in vars(module) if not name.startswith("_")}
    assert set(SECTIONS) <= macros
    assert macros - set(SECTIONS) == {"accepting", "more", "quotes", "explained", "diff", "taking"}
    words = template.help_text().split()
    assert {*SECTIONS, *tables.NAMED} <= set(words)


@pytest.mark.parametrize("name", JOINED_OR_EACH)
def test_a_hostile_name_cannot_become_markdown(tmp_path: Path, name: str) -> None:
    text = "{% for row in result.benchmarks %}{{ row.name|name }}\n\n{{ row.name|words }}\n\n{% endfor %}"
    tokens = check_inert(render_own(hostile(name), written(tmp_path, text)))
    assert not [token for token in tokens if token.type == "fence"]


MISTAKES = {
    "{{ section('hotspot') }}": "unknown section 'hotspot'",
    "{{ table('bench') }}": "unknown table 'bench'",
    "{{ resul.verdict }}": "unknown variable 'resul'",
    "{{ result.verdikt }}": "`result` has no 'verdikt'",
    "{{ result.verdict|wrods }}": "No filter named 'wrods'",
    "{% if %}": "Expected an expression",
    "{% for row in result.benchmarks %}": "Unexpected end of template",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_found_before_anything_runs(tmp_path: Path, text: str) -> None:
    ((line, message, hint),) = problems(written(tmp_path, f"first\n{text}\n"))
    assert line >= 2
    assert message.startswith(MISTAKES[text])
    assert hint


REFUSED = [
    *("{{ result.parse_file('/etc/passwd') }}", "{{ result.model_construct() }}", "{{ result.__class__ }}"),
    *("{{ section.__globals__ }}", "{{ section.__self__._variables }}", "{{ result.run.foo }}", "{{ section('x') }}"),
    *("{{ table('x') }}", "{{ 1 // 0 }}", "{{ result.benchmarks[10000].name }}", "{% include '../markdown.py' %}"),
    *("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ ''|quantity('s') }}"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_listed_is_refused_with_the_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError) as caught:
        render_own(everything(), written(tmp_path, f"first\n{text}\n"))
    assert "own.md.j2" in caught.value.problems[0].message
    assert "--template-help" in caught.value.problems[0].hint


def test_values_have_units(tmp_path: Path) -> None:
    text = '{{ 0.00125|quantity("s") }}, {{ 2048|quantity("B") }}, {{ none|quantity("s") }}, {{ 0.125|change }}'
    assert render_own(everything(), written(tmp_path, text)) == "1.25 ms, 2.00 KiB, –, +12.5%\n"


def test_a_run_writes_its_report_by_the_template_and_keeps_a_copy(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    (tmp_path / "short.md.j2").write_text("# {{ result.run.workflow|words }}: {{ result.verdict }}\n")
    done = perfflow("run", "flow.yaml", "--out", "run", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.md").read_text() == "# nap: pass\n"
    assert "Performance Report" in (tmp_path / "run" / "report.html").read_text()
    # The run has its own copy: another layout of the workflow changes no stored run.
    (tmp_path / "short.md.j2").write_text("changed")
    assert perfflow("report", "run", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "report.md").read_text() == "# nap: pass\n"
    other = perfflow("report", "run", "--template", "short.md.j2", cwd=tmp_path)
    assert (other.returncode, other.stdout) == (0, "changed\n\n")


def test_a_template_that_fails_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    (tmp_path / "short.md.j2").write_text("x\n{{ result.run.foo }}\n")
    done = perfflow("run", "flow.yaml", "--out", "run", cwd=tmp_path, measured=True)
    assert done.returncode == 0
    assert "short.md.j2:2: " in done.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert report.startswith("report.md has the layout of perfflow: short.md.j2:2: ")
    assert "## Performance Report: nap" in report
    again = perfflow("report", "run", "--template", "short.md.j2", cwd=tmp_path)
    assert again.returncode == 2
    assert "error: short.md.j2:2: " in again.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reprot", "there is no template 'reprot'"),
        ("missing.md.j2", "cannot read the template"),
        ("bad.md.j2", "bad.md.j2:1: unknown section 'x'"),
    ],
)
def test_validate_finds_a_template_that_cannot_be_used(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "bad.md.j2").write_text("{{ section('x') }}")
    (tmp_path / "flow.yaml").write_text(WORKFLOW.replace("short.md.j2", name))
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_bundled_template_writes_a_short_report() -> None:
    path = ROOT / "workflows" / "short-report.md.j2"
    assert list(problems(path)) == []
    text = render_own(gated(), path)
    assert text.startswith("# JSON codec: fail\n\n`core/encode` regressed: ")
    assert len(text) < len(render(gated())) / 2
    shown = (ROOT / "docs" / "reference" / "report.md").read_text()
    assert path.read_text().split("#}\n")[1] in shown


def test_an_installation_of_another_user_keeps_compiled_templates_in_the_own_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.access", lambda *_: False)
    template.environment.__wrapped__().get_template("report.md.j2")
    assert list((tmp_path / "perfflow" / "templates").glob("*.cache"))
