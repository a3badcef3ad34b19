"""docs/reference/python-api.md: every block is run in its order, and its tables name every attribute."""

from __future__ import annotations

import doctest
import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import perfflow
from tests.docs.console import blocks, examples, first_mismatch
from tests.docs.test_documents import run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python-api.md"
TEXT = PAGE.read_text()
TABLES = {"Run": perfflow.Run}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the page's commands were run, each of which said what is shown."""
    folder = tmp_path_factory.mktemp("page") / "project"
    folder.mkdir()
    for example in examples(PAGE):
        done = run(example.command, folder)
        missing = first_mismatch(example.output, (done.stdout or done.stderr).splitlines())
        assert not missing, f"not in the output: {missing}\n{done.stdout}\n{done.stderr}"
    return folder


def test_every_block_is_one_that_is_run() -> None:
    kinds = re.findall(r"^```(\w*)$", TEXT, re.MULTILINE)
    assert {kind for kind in kinds if kind} == {"console", "pycon"}


@pytest.mark.long  # runs workflows; tests/api has each function
def test_the_python_of_the_page_says_what_is_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # One session from the top of the page to its end.
    session = doctest.DocTestParser().get_doctest("\n".join(blocks(PAGE, "pycon")), {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    failed, tried = runner.run(session)
    assert tried > 10
    assert failed == 0, capsys.readouterr().out


def table(section: str, heading: str = "attribute") -> list[str]:
    body = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = body.split(f"| {heading} |")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")]
    return [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("section", TABLES)
def test_a_table_names_only_attributes(section: str) -> None:
    kind = TABLES[section]
    known = {*kind.__annotations__, *(name for name, item in vars(kind).items() if isinstance(item, property))}
    assert set(table(section)) <= known
    if is_dataclass(kind):
        assert table(section) == [item.name for item in fields(kind) if not item.name.startswith("_")]


def test_the_tables_about_samples_and_comparisons_are_whole() -> None:
    assert set(table("Samples as a table", "column")) == set(perfflow.SampleRow.__annotations__)
    parameters = inspect.signature(perfflow.compare).parameters
    assert table("Compare two commands", "parameter") == list(parameters)
    known = {name for name in dir(perfflow.Comparison) if not name.startswith("_")}
    assert set(table("Compare two commands")) == known


def test_the_page_names_every_public_name() -> None:
    for name in perfflow.__all__:
        assert name in TEXT or name in ("SampleRow", "DecisionRow", "__version__")
