"""What is read of source text: lines and definitions of functions, folders of packages, and Python places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.plain_data import from_json, to_json
from perfflow.model.targets import NOWHERE, SourcePlace, Use
from perfflow.trees.definitions import Definition, definition
from perfflow.trees.line_history import bare, lines_of
from perfflow.trees.python_layout import PythonSource, import_folders
from perfflow.trees.repository import open_repository
from tests.trees.projects import commit

C = """int early(int n);
/* early { */
static int early(int n) {
    const char *text = "}";
    if (n > 2) { return late(n, '}'); }
    return 0;
}

int
late(int n, char c)
{
    return early(n); // }
}
"""
RUST = """impl<'a> Codec<'a> {
    /// Decodes `{`.
    pub fn decode<T: Into<u8>>(&self, bytes: &'a [u8]) -> Vec<u8> {
        bytes.iter().map(|byte| { byte + 1 }).collect()
    }

    fn encode(&self) -> u8 { self.decode::<u8>(&[]).len() as u8 }
}
"""
PYTHON = """class A:
    @cached
    def run(self):
        return [each for each in self.run()]

    def stop(self):
        pass
"""


@pytest.mark.parametrize(
    ("text", "file", "function", "line", "expected"),
    [
        (C, "a.c", "early", 5, (3, 7)),
        (C, "a.c", "late", 12, (10, 13)),
        (C, "a.c", "early(int)", 4, (3, 7)),
        (C, "a.c", "early", 0, (3, 7)),
        (C, "a.c", "unknown", 5, None),
        (C, "a.c", "early", 12, None),
        (RUST, "a.rs", "<a::Codec as b::C>::decode::<u8>", 4, (3, 5)),
        (RUST, "a.rs", "a::Codec::decode::{{closure}}", 4, (3, 5)),
        (RUST, "a.rs", "a::Codec::encode", 7, (7, 7)),
        (PYTHON, "a.py", "run", 4, (2, 4)),
        (PYTHON, "a.py", "<listcomp>", 4, (2, 4)),
        (PYTHON, "a.py", "stop", 6, (6, 7)),
        (PYTHON, "a.py", "<module>", 1, None),
        ("def broken(", "a.py", "broken", 1, None),
    ],
)
def test_lines_of_a_function(text: str, file: str, function: str, line: int, expected: tuple[int, int] | None) -> None:
    assert lines_of(text, file, function, line) == expected


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("work", "work"),
        ("ns::Class<int>::work(char const*, int)", "work"),
        ("<a::B as C>::run::<u8>", "run"),
        ("a::main::{{closure}}", "main"),
        ("", ""),
    ],
)
def test_the_bare_name_of_a_function(function: str, name: str) -> None:
    assert bare(function) == name


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
        # Of two definitions, the changed one is meant.
        ("twice", Definition("src/b.c", 1)),
    ],
)
def test_where_a_function_is_defined(root: Path, function: str, wanted: Definition | None) -> None:
    base = commit(root, "base", FILES)
    head = commit(root, "head", {"src/b.c": FILES["src/b.c"].replace("n + n", "n * 2")})
    repository = open_repository(root)
    assert definition(repository, base, head, function) == wanted
    assert definition(repository, base, base, "twice") is None


@pytest.mark.parametrize(
    ("file", "text", "folders"),
    [
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"" = "lib"}', ["lib"]),
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"a.b" = "lib/a/b"}', ["lib"]),
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"a.b" = "lib/else"}', []),
        ("pyproject.toml", '[tool.setuptools.packages.find]\nwhere = ["lib", "python"]', ["lib", "python"]),
        ("pyproject.toml", '[tool.hatch.build.targets.wheel]\npackages = ["lib/a", "b"]', ["lib"]),
        ("pyproject.toml", '[tool.hatch.build]\nsources = ["lib"]', ["lib"]),
        ("pyproject.toml", '[tool.hatch.build.targets.wheel.sources]\n"lib" = ""\n"python" = "c"', ["lib"]),
        ("pyproject.toml", '[tool.poetry]\npackages = [{include = "a", from = "lib"}, {include = "b"}]', ["lib"]),
        ("pyproject.toml", '[tool.pdm.build]\npackage-dir = "lib"', ["lib"]),
        ("pyproject.toml", '[tool.maturin]\npython-source = "python"', ["python"]),
        ("pyproject.toml", '[tool.maturin]\npython-source = "../lib"', []),
        ("pyproject.toml", '[tool.maturin]\npython-source = "missing"', []),
        ("pyproject.toml", "[tool]\nsetuptools = 3", []),
        ("pyproject.toml", "not toml [", []),
        ("setup.cfg", "[options]\npackage_dir =\n    = lib", ["lib"]),
        (
            "setup.cfg",
            "[options]\npackage_dir =\n    a = python/a\n[options.packages.find]\nwhere = lib",
            ["python", "lib"],
        ),
        ("setup.cfg", "not a section", []),
    ],
)
def test_folders_that_settings_name_come_before_the_root(
    tmp_path: Path, file: str, text: str, folders: list[str]
) -> None:
    for name in ("lib", "python"):
        (tmp_path / name).mkdir()
    (tmp_path / file).write_text(text)
    assert import_folders(tmp_path) == [*(tmp_path / name for name in folders), tmp_path]


def test_src_is_a_folder_of_packages_unless_it_is_one_itself(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "setup.cfg").write_text("[options]\npackage_dir =\n    = src\n")
    assert import_folders(tmp_path) == [tmp_path / "src", tmp_path]
    (tmp_path / "setup.cfg").unlink()
    (tmp_path / "src" / "__init__.py").write_text("")
    assert import_folders(tmp_path) == [tmp_path]


TEXT = """\
import functools
import numpy as np

SEEN = {}
LIMIT = 3


class Store:
    @functools.lru_cache(maxsize=None)
    def keep(self, key):
        return [part for part in key]

    def keep_few(self, key):
        def keep(part):
            return part
        return keep(key)


@functools.lru_cache(maxsize=64)
def bounded(key):
    return key


def total(a, b):
    found = 0.0
    text = ""
    for i in range(len(a)):
        found += a[i] * b[LIMIT]
        text += f"{i},"
        found += b[LIMIT]
    while LIMIT:
        SEEN[text] = found
        text = text + "x"
        found = found + 1
    text += "done"
    return found


SEEN[0] = 1
for n in range(3):
    print(n)
"""
ARRAYS = Use.ARRAYS


@pytest.mark.parametrize(
    ("line", "name", "function", "begins", "uses"),
    [
        (9, "keep", "Store.keep", 9, (ARRAYS, Use.UNBOUNDED)),  # the line of the decorator is the function's first line
        (11, "<listcomp>", "Store.keep", 9, (ARRAYS, Use.UNBOUNDED)),
        (13, "keep_few", "Store.keep_few", 13, (ARRAYS,)),
        (15, "keep", "Store.keep_few.keep", 14, (ARRAYS,)),
        (15, "Store.keep_few.<locals>.keep", "Store.keep_few.keep", 14, (ARRAYS,)),
        (15, "", "Store.keep_few.keep", 14, (ARRAYS,)),
        (21, "bounded", "bounded", 19, (ARRAYS,)),
        (27, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # the head has no subscript
        (28, "total", "total", 24, (Use.IN_LOOP, Use.ELEMENTS, ARRAYS)),
        (29, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.TEXT)),
        (30, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # not by a variable of the loop
        (32, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.CONTAINER)),
        (33, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.TEXT)),
        (34, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # a number
        (35, "total", "total", 24, (ARRAYS,)),  # a text, but not in a loop
        (39, "<module>", "<module>", 0, (ARRAYS,)),  # the module itself runs once
        (41, "<module>", "<module>", 0, (Use.IN_LOOP, ARRAYS)),
    ],
)
def test_the_place_of_a_line(line: int, name: str, function: str, begins: int, uses: tuple[Use, ...]) -> None:
    found = PythonSource(TEXT).place(line, name)
    assert found == SourcePlace(function, begins, uses)
    assert from_json(SourcePlace, to_json(found)) == found


def test_what_is_no_python_says_nothing() -> None:
    assert PythonSource("def f(:\n").place(1, "f") == NOWHERE
    assert PythonSource(TEXT).place(0, "keep") == NOWHERE
    assert from_json(SourcePlace, {}) == NOWHERE
    assert from_json(SourcePlace, {"function": "f", "begins": 2, "uses": ["of a later version"]}) == SourcePlace("f", 2)


@given(st.text(), st.integers(-2, 12))
def test_any_text(text: str, line: int) -> None:
    found = PythonSource(text).place(line, "f")
    assert from_json(SourcePlace, to_json(found)) == found
