"""Which changes of the body of a module or class matter to a function that runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from perfflow.unchanged.python_traces import DRIVERS, used_definitions
from tests.diffs import changes


def driver(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DRIVERS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRACE = driver("python_trace")
USES_N = "def run():\n    return N\n"
CHANGES = changes(Path(__file__).with_name("bodies.txt"))


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the body of a module, those of its classes, and the function ``run``."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType) and (each.co_name == "run" or not each.co_flags & 1):
            yield from codes(each)


def executed(text: str, folder: Path) -> dict[str, Any]:
    """Return the digests of a module of which ``run`` is executed, as a benchmark has them."""
    (folder / "m.py").write_text(text)
    recorder = TRACE.Recorder({"own": [str(folder)], "shared": []})
    recorder.codes = dict(enumerate(codes(compile(text, str(folder / "m.py"), "exec"))))
    record = recorder.record()
    return {
        **record["functions"],
        **dict(used_definitions(record["definitions"], {of: set(names) for of, names in record["named"].items()})),
    }


@pytest.mark.parametrize("name", CHANGES)
def test_what_may_matter_is_told_and_what_nothing_names_is_not(name: str, tmp_path: Path) -> None:
    *texts, expected = CHANGES[name]
    base, head = (executed(text, tmp_path) for text in texts)
    assert " ".join(sorted(key for key in {*base, *head} if base.get(key) != head.get(key))) == expected


def test_a_later_record_leaves_out_names_of_which_no_definition_is_known(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(USES_N)
    recorder = TRACE.Recorder({"own": [str(tmp_path)], "shared": []})
    body, run = codes(compile(f"N = 1\n{USES_N}", str(tmp_path / "m.py"), "exec"))
    recorder.codes = {1: body}
    assert set(recorder.record()["definitions"]) == {"m.py:N", "m.py:run"}
    other = compile("other", "<x>", "eval")
    recorder.codes = {2: run, 3: other}
    later = recorder.record()
    assert (later["definitions"], later["named"]) == ({}, {"tree": ["N", "run"], "texts": [], "libraries": []})


def test_what_libraries_name_counts_for_methods_and_their_texts_also_for_modules(tmp_path: Path) -> None:
    """They get objects of the tree, but look up what a module defines only by its name as text."""
    text = "__all__ = ['M']\nfrom os import sep, extsep\nN = 1\nM = 2\nclass A:\n"
    text += "".join(f"    def {name}(self):\n        pass\n" for name in "abc")
    (tmp_path / "m.py").write_text(text)
    recorder = TRACE.Recorder({"own": [str(tmp_path)], "shared": []})
    recorder.place = {str(tmp_path / "m.py"): "m.py", "library": ""}.__getitem__
    library = compile("(x.a, x.M, x.sep, 'extsep', 'b', 'N', '__all__')", "library", "eval")
    recorder.codes = {0: library, **dict(enumerate(codes(compile(text, str(tmp_path / "m.py"), "exec")), 1))}
    record = recorder.record()
    named = {of: set(names) for of, names in record["named"].items()}
    assert {key for key, _ in used_definitions(record["definitions"], named)} == {"m.py:A.a", "m.py:A.b", "m.py:N"}
