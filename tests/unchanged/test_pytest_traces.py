"""What the recorder sees of benchmarks of pytest-benchmark: two trees, whose files differ in one way each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.unchanged.model import BenchmarkTrace, Differs, Unchanged, compare
from perfflow.unchanged.python_traces import read_traces, write_settings
from tests.tools.harness import PYTHON, call_of, tool

BENCHMARK = "import {name}\n\ndef test_{name}(benchmark):\n    assert benchmark({name}.run) is not None\n"
SAME = "def run():\n    return 1\n"
COMMENTED = '''"""{0}."""

class A:
    """{0}."""

    def run(self):
        """{0}."""
        return 1

run = A().run
'''
THREAD = """
import threading

def work():
    return 1

def run():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return 1
"""
LATER = """
import time

calls = []

def rare():
    return 1

def run():
    calls.append(1)
    if len(calls) < 4:
        time.sleep(0.6)
    return rare() if len(calls) > 5 else 1
"""
VISITOR = """
def run():
    return getattr(A(), "visit_" + "a")()

class A:
    def visit_a(self):
        return 1
"""
MODULES: Mapping[str, tuple[str, str, str]] = {
    "equal": (SAME, SAME, "files"),
    "comment": (COMMENTED.format("One"), "# more\n\n" + COMMENTED.format("Two"), "code"),
    "unused_body": (f"{SAME}\ndef other():\n    return 1\n", f"{SAME}\ndef other():\n    return 2\n", "code"),
    "constant": (SAME, SAME.replace("1", "2"), "constant.py:run"),
    "default": ("def run(n=1):\n    return n\n", "def run(n=2):\n    return n\n", "default.py:run"),
    "attribute": (
        "class A:\n    n = 1\ndef run():\n    return A.n\n",
        "class A:\n    n = 2\ndef run():\n    return A.n\n",
        "attribute.py:A",
    ),
    "value": ("N = 1\ndef run():\n    return N\n", "N = 2\ndef run():\n    return N\n", "value.py:N"),
    "wrapped": (
        "def twice(f):\n    return f\n\n@twice\ndef run():\n    return 1\n",
        "def twice(f):\n    return lambda: f()\n\n@twice\ndef run():\n    return 1\n",
        "wrapped.py:twice wrapped.py:twice.<locals>.<lambda>",
    ),
    "in_thread": (THREAD, THREAD.replace("return 1", "return 2", 1), "in_thread.py:work"),
    "reads": ("def run():\n    return open('reads.txt').read()\n",) * 2 + ("reads.txt",),
    "looks": ("import os\ndef run():\n    return 1 if os.path.exists('looks.txt') else 2\n",) * 2 + ("looks.txt?",),
    "lists": ("import os\ndef run():\n    return len(os.listdir('lists_it'))\n",) * 2 + ("lists_it/",),
    "imports": ("try:\n    import only_head\nexcept ImportError:\n    pass\ndef run():\n    return 1\n",) * 2
    + ("only_head.py:<module>",),
    "source": (
        "import inspect\ndef run():\n    return inspect.getsource(run)\n",
        "import inspect\ndef run():\n    return inspect.getsource(run)\n# more\n",
        "source.py",
    ),
    "process": (
        "import subprocess\ndef run():\n    return subprocess.run(['true'])\n",
        "import subprocess\ndef run():\n    return subprocess.run(['true'])\n# more\n",
        "it starts programs: true",
    ),
    "compiled": (
        "import sys\nsys.modules['numba'] = sys\ndef run():\n    return 1\n",
        "import sys\nsys.modules['numba'] = sys\ndef run():\n    return 1\n# more\n",
        "numba compiles functions",
    ),
    "later": (LATER, f"{LATER}# more\n", "later iterations run further functions: rare"),
    "added": (
        SAME,
        f"import zipfile\nfrom os import extsep\nMORE = [1, 'x']\n{SAME}def more(n: int = 1):\n    pass\n",
        "code",
    ),
    "put_together": (VISITOR, VISITOR + "\n    def visit_b(self):\n        pass\n", "put_together.py:A.visit_b"),
    "docs": (
        'def run():\n    "One."\n    return run.__doc__\n',
        'def run():\n    "Two."\n    return run.__doc__\n',
        "docs.py:run",
    ),
}
# Plugins of the tests' own environment, which take long to load.
OTHER_PLUGINS = ("hypothesispytest", "anyio", "xdist", "cov", "rerunfailures", "timeout")
CACHED = "import functools\n\n@functools.cache\ndef made():\n    return {}\n\ndef run():\n    return made()\n"


def write(folder: Path, side: int) -> list[str]:
    """Write the tree of a side; return the ids of its benchmarks."""
    folder.mkdir()
    for name, texts in MODULES.items():
        (folder / f"{name}.py").write_text(texts[side])
        (folder / f"test_{name}.py").write_text(BENCHMARK.format(name=name))
    (folder / "cached.py").write_text(CACHED.format(side))
    (folder / "test_cached.py").write_text(
        "import cached\n\ndef test_first(benchmark):\n    benchmark(cached.run)\n\n"
        "def test_second(benchmark):\n    benchmark(cached.run)\n\n"
        "def test_fails(benchmark):\n    benchmark(cached.run)\n    assert 0\n"
    )
    (folder / "reads.txt").write_text(str(side))
    (folder / "lists_it").mkdir()
    for name in ["looks.txt", "only_head.py", "lists_it/new", "not_looked_at.txt"] if side else []:
        (folder / name).touch()
    cached = [f"test_cached.py::test_{name}" for name in ("first", "second", "fails")]
    return [*(f"test_{name}.py::test_{name}" for name in MODULES), *cached]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, BenchmarkTrace]]:
    """The traces of both sides."""
    found = []
    for side in (0, 1):
        around = tmp_path_factory.mktemp("traced")
        tree = around / "tree"
        chosen = write(tree, side)
        args = ["-c", "none.ini", *(word for name in OTHER_PLUGINS for word in ("-p", f"no:{name}"))]
        call = call_of("pytest-benchmark", around / "out", python=PYTHON, args=args)
        call = replace(call, chosen=tuple(chosen), folder=around / "traces")
        write_settings(call, [tree])
        invocation = tool("pytest-benchmark").suite.tracing(call)
        assert invocation
        (tree / "none.ini").write_text("[pytest]\n")
        env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree)}
        done = subprocess.run(invocation.argv, cwd=tree, env=env, check=False, capture_output=True, text=True)
        found.append(read_traces(call.folder))
        assert found[-1], done.stdout + done.stderr
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
def test_compare_settles_a_benchmark_only_if_nothing_that_it_executes_or_reads_changed(
    traces: list[dict[str, BenchmarkTrace]], name: str
) -> None:
    found = compare(*(side[f"test_{name}.py::test_{name}"] for side in traces))
    if MODULES[name][2] in ("files", "code"):
        assert isinstance(found, Unchanged), found
        assert found.by == MODULES[name][2]
    else:
        assert isinstance(found, Differs)
        assert " ".join(found.reasons) == MODULES[name][2]


@pytest.mark.long
def test_a_benchmark_does_not_hide_what_it_shares_with_the_next(traces: list[dict[str, BenchmarkTrace]]) -> None:
    for name in ("first", "second"):
        found = compare(*(side[f"test_cached.py::test_{name}"] for side in traces))
        assert found == Differs(("cached.py:made",)), name


@pytest.mark.long
def test_a_benchmark_that_fails_has_no_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    assert all("test_cached.py::test_fails" not in side for side in traces)


@pytest.mark.long
def test_code_of_libraries_is_not_part_of_a_trace(traces: list[dict[str, BenchmarkTrace]]) -> None:
    trace = traces[0]["test_equal.py::test_equal"]
    assert set(trace.loaded) == {"equal.py", "test_equal.py"}
    assert {name.partition(":")[0] for name in trace.functions} <= {"equal.py", "test_equal.py", "<generated>"}
