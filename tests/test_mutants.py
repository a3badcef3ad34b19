"""The script that mutates code sees a test that checks from one that does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import _table, sites

CORE = '''"""A number: 1."""


def checked(count: int) -> bool:
    return count > 3


def unchecked(count: int) -> int:
    return count
'''
TESTS = """from pkg.core import checked, unchecked


def test_checked():
    assert [checked(count) for count in (2, 3, 4, 5)] == [False, False, True, True]


def test_unchecked():
    unchecked(5)
"""


def test_what_no_test_checks_survives(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out.jsonl"
    for name, text in (
        ("pkg/core.py", CORE),
        ("tests/test_core.py", TESTS),
        ("pytest.ini", "[pytest]\npythonpath = ."),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    words = ["--root", str(tree), "--core", "pkg/*.py", "--tests", "tests/*.py", "--out", str(out), "--count", "99"]
    # What is in the file is not tried again: of five changes four are left.
    out.write_text('{"number": 0, "where": "pkg/core.py:0", "outcome": "killed", "seconds": 0, "diff": ""}\n')
    argv, env = [sys.executable, "-m", "tests.mutants", *words], {**os.environ, "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()][1:]
    assert len(found) == len(sites("core.py", CORE.encode())) - 1
    lines = {
        outcome: {item["where"] for item in found if item["outcome"] == outcome} for outcome in ("killed", "survived")
    }
    assert lines["survived"] == {"pkg/core.py:9"}
    assert "pkg/core.py:5" in lines["killed"]
    assert (tree / "pkg/core.py").read_text() == CORE
    assert "| pkg/core.py | " in ended.stdout


@pytest.mark.parametrize(
    ("code", "mutated"),
    [
        ("x = a < b", {"x = (a <= b)"}),
        ("x = 2", {"x = (3)", "x = (1)"}),
        ("x = not a", {"x = (a)"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x = a and b", {"x = (a or b)"}),
        ("x += a", {"pass"}),
        ("x = y if a == b else z", {"x = y if (a != b) else z"}),
        ("x = y if a else z", {"x = y if (not (a)) else z"}),
        ("def f(a: Literal[1]) -> None:\n    return g", {"def f(a: Literal[1]) -> None:\n    return None"}),
        ('"""1 + 1"""', set()),
        ("raise E(1)", set()),
        ('f"{1}"', set()),
        ("@cache(1)\ndef f(): return", set()),
    ],
)
def test_one_change_at_a_time(code: str, mutated: set[str]) -> None:
    source = code.encode()
    assert {site.applied(source).decode() for site in sites("m.py", source)} == mutated


def test_a_change_is_shown_as_the_lines_that_differ() -> None:
    source = "if é < a:\n    b(\n        2)\n".encode()
    first, *_, last = sites("m.py", source)
    assert first.diff(source) == "- if é < a:\n+ if (é <= a):"
    assert (first.lines, last.lines, last.line) == ((1, 1), (2, 3), 3)


def test_the_page_shows_the_whole_run_of_the_log() -> None:
    folder = Path(__file__).parents[1] / "docs" / "experiments"
    items = [json.loads(line) for line in (folder / "mutants.jsonl").read_text().splitlines()]
    assert [item["number"] for item in items] == list(range(200))
    assert len({(item["seed"], item["of"]) for item in items}) == 1
    page = (folder / "mutants.md").read_text()
    assert _table(items) in page
    survived = {item["number"]: item for item in items if item["outcome"] == "survived"}
    assert len(survived) <= 0.1 * len(items)
    for number, item in survived.items():
        assert f"| {number} | `{item['where'].removeprefix('perfflow/')}` |" in page
    assert f"**{len(items) - len(survived)} of {len(items)} mutants were killed" in page
