"""The rules for all modules that import-linter cannot see."""

from __future__ import annotations

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

from perfflow.model.version import VERSION
from perfflow.tools.registry import MODULES as TOOLS

PACKAGE = Path(__file__).parents[1] / "perfflow"
MODULES = sorted(PACKAGE.rglob("*.py"))
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def test_module_names_have_a_meaning_and_packages_are_empty() -> None:
    assert MODULES
    assert [f"{path.relative_to(PACKAGE)}: {why}" for path in MODULES for why in faults(path)] == []


def faults(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.stem in BANNED_NAMES:
        yield "its name has no meaning"
    if path.name == "__init__.py" and path.parent not in (PACKAGE, PACKAGE / "testing") and text:
        yield "it is not empty"  # apart from the API and the contract for authors of adapters


def test_the_architecture_page_lists_every_package() -> None:
    page = (PACKAGE.parent / "dev" / "architecture.md").read_text()
    packages = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert {name for name in packages if f"| `{name}` |" not in page} <= {"__init__", "__main__"}


def test_each_walk_names_thirty_functions_that_exist() -> None:
    page = (PACKAGE.parent / "dev" / "architecture.md").read_text()
    walks = page.partition("## Two walks")[2].partition("\n## ")[0].split("**A candidate**")
    for walk in walks:
        steps = re.findall(r"^\d+\. `([\w/.]+): ([\w.]+)`", walk, re.MULTILINE)
        assert 20 < len(steps) <= 30
        for path, name in steps:
            body: list[ast.stmt] = ast.parse((PACKAGE / path).read_text()).body
            for part in name.split("."):
                (found,) = (
                    item for item in body if isinstance(item, ast.ClassDef | ast.FunctionDef) and item.name == part
                )
                body = found.body


def test_the_adapter_of_the_manual_uses_only_public_names() -> None:
    page = (PACKAGE.parent / "docs" / "how-to" / "writing-a-tool.md").read_text()
    assert set(re.findall(r"^(?:from|import) (perfflow[\w.]*)", page, re.MULTILINE)) == {
        "perfflow.plugin",
        "perfflow.testing",
    }


def test_the_changelog_begins_with_what_breaks_in_the_current_version() -> None:
    page = (PACKAGE.parent / "CHANGELOG.md").read_text()
    newest, *earlier = re.findall(r"^## (.*)\n\n(.*)", page, re.MULTILINE)
    if newest[0] == "Unreleased":
        newest, *_ = earlier
    assert re.fullmatch(rf"{re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)", newest[0])
    assert newest[1] == "### What breaks"


SIZE = runpy.run_path(str(PACKAGE.parent / "scripts" / "size.py"))
WORDS_OF_OTHERS = {
    ("jobs/cluster/placed_run.py", "'TIMEOUT' in self.status.reason"): "a word of Slurm",
    ("jobs/cluster/placed_run.py", "attempt.status.reason not in ('', 'None')"): "a word of Slurm",
    ("verdict/kernels.py", "stall.reason in condition.stalls"): "a name of Nsight Compute",
}


def test_only_reports_and_commands_compare_or_cut_sentences() -> None:
    found = {(str(path.relative_to(PACKAGE)), text) for path, text in SIZE["sentences_as_facts"]()}
    assert found == set(WORDS_OF_OTHERS)


def test_a_compared_or_cut_sentence_is_found() -> None:
    cut = ("item.reason.startswith('x')", "[text.split(':') for text in result.reasons]")
    for text in ("step.reason == 'x'", "'x' in row.why", "any('few' in text for text in step.warnings)", *cut):
        assert list(SIZE["compared_sentences"](ast.parse(text)))
    for text in ("step.reason == ''", "text not in run.warnings", "step.reason or 'x'", "row.why is None"):
        assert not list(SIZE["compared_sentences"](ast.parse(text)))


NAMING = {
    "library": "starters are text for users",
    "execute/gpus.py": "the program that lists the GPUs",
    "model/similar.py": "what a word of another program means here",
}
"""Where tools are called by their names outside of ``tools``, and why."""
WORDS = {"command", "size", "stream"}
"""Names of tools that are ordinary keys as well."""


def test_tools_are_known_by_what_they_say_of_themselves() -> None:
    found = [
        f"{place}:{node.lineno}: {node.value}"
        for path in MODULES
        if not (place := str(path.relative_to(PACKAGE))).startswith(("tools/", *NAMING))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in TOOLS.keys() - WORDS
    ]
    assert found == []


def test_lines_of_code_are_lines_with_more_than_comments_and_docstrings() -> None:
    source = '''"""A module."""

import os  # used


def f():
    """Two
    lines."""
    # why
    import re
    return (
        1
    )
'''
    assert SIZE["code_lines"](source) == 6
    assert SIZE["inner_imports"](ast.parse(source)) == 1


DEPENDENCIES = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]["dependencies"]


def test_ci_tries_the_lowest_versions_which_each_dependency_names_and_nothing_else() -> None:
    assert [text for text in DEPENDENCIES if not re.fullmatch(r"[\w.-]+>=\d+(\.\d+)+", text)] == []
    assert re.search(r"^sh scripts/lowest\b", (PACKAGE.parent / ".ci" / "run").read_text(), re.MULTILINE)
    assert '["project"]["dependencies"]' in (PACKAGE.parent / "scripts" / "lowest").read_text()
