"""Which changes of the body of a module or class matter to a function that runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from perfflow.unchanged.python_traces import DRIVERS, used_definitions


def driver(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DRIVERS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRACE = driver("python_trace")
RUN = "def run():\n    return 1\n"
USES_N = "def run():\n    return N\n"
IN_CLASS = "class A:\n    def run(self):\n        return 1\n"
ALIKE = {
    "a function": (RUN, RUN + "def more(n: int = 1, *, m={'a': 1}, **names: 'x') -> int:\n    return n\n"),
    "functions around it": (RUN, f"def a():\n    pass\n{RUN}def b():\n    pass\n"),
    "a removed function": (f"def a():\n    pass\n{RUN}", RUN),
    "constants": (RUN, f"import re\nA, = ()\n{RUN}".replace("A, = ()", "A = [1, 'x', (2,)]\nB: int = 2")),
    "a changed constant": (f"N = 1\n{RUN}", f"N = 2\n{RUN}"),
    "imports": (f"from os import path\n{RUN}", f"import json\nfrom os import path, sep\n{RUN}"),
    "a list of public names": (f"__all__ = ['run']\n{RUN}", f"__all__ = ['run', 'more']\n{RUN}def more():\n    pass\n"),
    "a name that ends like a slot": (
        "class A:\n    __slots__ = ['_abi', 'b']\n" + RUN,
        f"class A:\n    __slots__ = ['_abi', 'b']\n{RUN}def an_abi():\n    pass\n",
    ),
    "a version": (f"__version__ = '1'\n{RUN}", f"__version__ = '2'\n{RUN}"),
    "methods": (IN_CLASS, IN_CLASS + "    @property\n    def more(self) -> int:\n        return 2\n"),
    "before a handler": (
        f"try:\n    import os\nexcept ImportError:\n    os = None\n{RUN}",
        f"def more():\n    pass\ntry:\n    import os\nexcept ImportError:\n    os = None\n{RUN}",
    ),
    "what only type checkers read": (
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from os import sep\n{RUN}",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n    numpy.zeros(1)\n{RUN}",
    ),
    "a first block that only type checkers read": (
        f"import typing as t\n{RUN}",
        f"import typing as t\nif t.TYPE_CHECKING:\n    import numpy\n    print(numpy)\n{RUN}",
    ),
    "what stands beside it": (
        f"TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import numpy\nelse:\n    N = 1\n{RUN}",
        f"TYPE_CHECKING = False\nif TYPE_CHECKING and id(1):\n    pass\nelse:\n    N = 2\n{RUN}",
    ),
    "a name that only a definition uses": (f"A = 1\nB = A\n{RUN}", f"A = 2\nB = A\n{RUN}"),
}
UNLIKE = {
    "a constant that it names": (f"N = 1\n{USES_N}", f"N = 2\n{USES_N}", "m.py:N"),
    "a default": ("def run(n=1):\n    return n\n", "def run(n=2):\n    return n\n", "m.py:run"),
    "what a default names": (f"A = 1\nN = A\n{USES_N}", f"A = 2\nN = A\n{USES_N}", "m.py:A"),
    "where a name comes from": (
        f"from os import sep as N\n{USES_N}",
        f"from os import extsep as N\n{USES_N}",
        "m.py:N",
    ),
    "the order": (f"N = 1\nN = 2\n{USES_N}", f"N = 2\nN = 1\n{USES_N}", "m.py:N"),
    "a condition": (
        f"if id(1):\n    N = 1\nN = 2\n{USES_N}",
        f"N = 2\nif id(1):\n    N = 1\n{USES_N}",
        "m.py:N",
    ),
    "what comes under a condition": (
        f"if id(1):\n    A = 1\nN = 2\n{USES_N}",
        f"if id(1):\n    A = 1\n    N = 2\n{USES_N}",
        "m.py:<module> m.py:N m.py:run",
    ),
    "a block that is not only for type checkers": (
        f"TYPE_CHECKING = id(1)\nif TYPE_CHECKING:\n    N = 1\n{USES_N}",
        f"TYPE_CHECKING = id(1)\nif TYPE_CHECKING:\n    N = 2\n{USES_N}",
        "m.py:<module>",
    ),
    "what is not for type checkers": (
        f"from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    N = 1\n{USES_N}",
        f"from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    N = 2\n{USES_N}",
        "m.py:<module>",
    ),
    "what stands beside a block for type checkers": (
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    N = 0\nelse:\n    N = 1\n{USES_N}",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    N = 0\nelse:\n    N = 2\n{USES_N}",
        "m.py:N",
    ),
    "a call": (RUN, f"{RUN}print(1)\n", "m.py:<module>"),
    "an import of a library": (RUN, f"import numpy\n{RUN}", "m.py:<module> m.py:run"),
    "a decorated function": (
        RUN,
        f"import atexit\n{RUN}@atexit.register\ndef more():\n    pass\n",
        "m.py:<module> m.py:atexit",
    ),
    "a special method": (IN_CLASS, f"{IN_CLASS}    def __eq__(self, other):\n        return True\n", "m.py:A"),
    "a method that built-in functions call": (
        IN_CLASS,
        f"{IN_CLASS}    def keys(self):\n        return []\n",
        "m.py:A",
    ),
    "a member": ("class A:\n    a = 1\n" + RUN, "class A:\n    a = 1\n    b = 2\n" + RUN, "m.py:A"),
    "a field": ("class A:\n    a: int\n" + RUN, "class A:\n    a: int\n    b: int\n" + RUN, "m.py:A"),
    "a name that is text": (
        "def run():\n    return getattr(run, 'more')\n",
        "def run():\n    return getattr(run, 'more')\ndef more():\n    pass\n",
        "m.py:more",
    ),
    "a name that is put together": (
        "def run(n):\n    return getattr(run, f'more_{n}')\n",
        "def run(n):\n    return getattr(run, f'more_{n}')\ndef more_1():\n    pass\n",
        "m.py:more_1",
    ),
    "a list of names": ("def run():\n    return dir()\n", "A = 1\ndef run():\n    return dir()\n", "m.py:A"),
    "all names of a module": (f"from os import *\n{RUN}", f"from os import *\n__all__ = []\n{RUN}", "m.py:__all__"),
}


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


@pytest.mark.parametrize("name", ALIKE)
def test_what_nothing_names_may_change(name: str, tmp_path: Path) -> None:
    base, head = (executed(text, tmp_path) for text in ALIKE[name])
    assert base == head


@pytest.mark.parametrize("name", UNLIKE)
def test_what_may_matter_is_told(name: str, tmp_path: Path) -> None:
    *texts, expected = UNLIKE[name]
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
