"""The definition of a function is found by its name, in changed files before others, and never by a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.trees.definitions import Definition, definition
from perfflow.trees.repository import open_repository
from tests.repositories import git

FILES = {
    "src/fold.c": "#include <x.h>\n\ndouble fold(long n) {\n  return other(n);\n}\n",
    "src/other.c": "double other(long n) {\n  return fold(n) + twice(n);\n}\n",
    "src/a.c": "static int twice(int n) { return n; }\n",
    "src/b.c": "static int twice(int n) { return n + n; }\n",
    "notes.txt": "void told(void) {\n}\n",
}


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        ("fold", Definition("src/fold.c", 3)),
        ("fold(long)", Definition("src/fold.c", 3)),
        ("other", Definition("src/other.c", 1)),
        ("told", None),
        ("missing", None),
        ("[work]", None),
    ],
)
def test_where_a_function_is_defined(tmp_path: Path, function: str, wanted: Definition | None) -> None:
    base, head = _history(tmp_path / "project")
    assert definition(open_repository(tmp_path / "project"), base, head, function) == wanted


def test_of_two_definitions_the_changed_one_is_meant(tmp_path: Path) -> None:
    base, head = _history(tmp_path / "project")
    repository = open_repository(tmp_path / "project")
    assert definition(repository, base, head, "twice") == Definition("src/b.c", 1)
    assert definition(repository, base, base, "twice") is None


def _history(folder: Path) -> tuple[str, str]:
    folder.mkdir()
    git(folder, "init", "-q")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    base = git(folder, "rev-parse", "HEAD").strip()
    (folder / "src/b.c").write_text(FILES["src/b.c"].replace("n + n", "n * 2"))
    git(folder, "commit", "-qam", "head")
    return base, git(folder, "rev-parse", "HEAD").strip()
