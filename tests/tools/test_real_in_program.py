"""Profilers that run inside a Python program, end to end: lines, allocations, and their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed
from tests.tools.harness import PROGRAMS, PYTHON, parsed_of, run, values_of

GROWS = str(PROGRAMS / "grows.py")
HOT_PY = str(PROGRAMS / "hot.py")
LIBRARIES = {"line-profiler": "line_profiler", "memory-profiler": "memory_profiler", "memray": "memray"}
MODULE = """
import threading

class Table:
    def __init__(self, rows):
        self.rows = [square(row) for row in range(rows)]

def square(number):
    total = 0
    for _ in range(300):
        total += number * number
    return total

def later(results):
    for number in range(30_000):
        results.append(number * 3)

def threaded():
    results = []
    thread = threading.Thread(target=later, args=(results,))
    thread.start()
    thread.join()
    return len(results)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with its own package and a program that uses it, as the working directory."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "table.py").write_text(MODULE)
    program = "from shop import table\nimport json\ntable.Table(300)\ntable.threaded()\njson.dumps(list(range(999)))\n"
    (tmp_path / "main.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _spot(parsed: Parsed, location: str, line: int) -> Hotspot:
    (found,) = [spot for spot in parsed.hotspots if (spot.location, spot.line) == (location, line)]
    return found


def test_line_profiler_ranks_lines_by_what_they_do_themselves(tmp_path: Path) -> None:
    parsed = parsed_of(run("line-profiler", tmp_path, PYTHON, HOT_PY, "5"))
    first, second = parsed.hotspots[:2]
    assert {(first.location, first.line), (second.location, second.line)} == {("inner", 8), ("inner", 9)}
    assert (first.file, first.unit) == (HOT_PY, "time")
    assert {spot.cause.partition(" hits")[0] for spot in (first, second)} == {"measured: 250,005", "measured: 250,000"}
    outer = _spot(parsed, "outer", 14)
    assert outer.inclusive_share is not None
    # All time except that before it was spent in calls of this line.
    assert outer.share < first.share < outer.inclusive_share


def test_line_profiler_watches_the_tree_and_its_threads(tree: Path) -> None:
    parsed = parsed_of(run("line-profiler", tree / "out", PYTHON, "main.py"))
    table = str(tree / "shop" / "table.py")
    files = {spot.file for spot in parsed.hotspots}
    # The only line of an empty module takes long if it is interrupted.
    assert files - {str(tree / "shop" / "__init__.py")} == {table, str(tree / "main.py")}
    assert _spot(parsed, "square", 11).cause.startswith("measured: 90,000 hits, ")
    assert _spot(parsed, "later", 16).cause.startswith("measured: 30,000 hits, ")


def test_line_profiler_of_the_modules_named(tree: Path) -> None:
    parsed = parsed_of(run("line-profiler", tree / "out", PYTHON, "main.py", profile="shop, json.encoder, nothing"))
    assert {Path(spot.file).name for spot in parsed.hotspots} == {"table.py", "encoder.py"}
    assert parsed.warnings == ("the program did not import nothing, which `profile` names",)


def test_line_profiler_with_nothing_to_watch(tree: Path) -> None:
    ran = run("line-profiler", tree / "out", PYTHON, "main.py", profile=["shop.stock"])
    with pytest.raises(ToolOutputError, match=r"ran no code of shop\.stock: name modules that it imports in `with: "):
        ran.parse()
    (tree / "empty.py").write_text("")
    ran = run("line-profiler", tree / "out", PYTHON, "empty.py", profile=["main"])
    with pytest.raises(ToolOutputError, match="ran no code of main"):
        ran.parse()


def test_modules_are_named_without_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not a module's name: write package\.module, without \.py"):
        run("line-profiler", tmp_path, PYTHON, HOT_PY, profile=["src/shop.py"])


def test_memory_profiler_over_time(tmp_path: Path) -> None:
    parsed = parsed_of(run("memory-profiler", tmp_path, PYTHON, GROWS, "60", interval=0.005))
    assert 60_000_000 < values_of(parsed)["rss_sampled"] < 200_000_000
    assert not parsed.hotspots


def test_memory_profiler_counts_children(tmp_path: Path) -> None:
    program = f"import subprocess as s; s.run(['{PYTHON}', '{GROWS}', '80'])"
    parsed = parsed_of(run("memory-profiler", tmp_path, PYTHON, "-c", program))
    assert values_of(parsed)["rss_sampled"] > 80_000_000


def test_memory_profiler_by_line(tmp_path: Path) -> None:
    parsed = parsed_of(run("memory-profiler", tmp_path, PYTHON, GROWS, "1", profile=["__main__"]))
    first = parsed.hotspots[0]
    assert (first.location.rpartition(".")[2], first.file, first.line, first.unit) == ("keep", GROWS, 12, "bytes")
    assert any("includes memory_profiler itself" in warning for warning in parsed.warnings)


def test_memray_counts_the_same_every_time(tree: Path) -> None:
    program = ("-c", "import shop.table as t; keep = [bytes(1_000_000) for _ in range(7)]; t.Table(9)")
    # Otherwise the first run would write bytecode that the second run reads.
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    first, again = (values_of(parsed_of(run("memray", tree / out, PYTHON, *program, env=env))) for out in "ab")
    assert first == again
    assert 7_000_000 < first["heap_peak"] <= first["alloc"] < 7_500_000


def test_memray_names_the_lines_that_ask(tmp_path: Path) -> None:
    parsed = parsed_of(run("memray", tmp_path, PYTHON, GROWS, "50", "0", "1"))
    wasting, keeping = parsed.hotspots[:2]
    assert (keeping.location, keeping.file, keeping.line) == ("keep", GROWS, 12)
    assert wasting.line == 16
    assert wasting.share == pytest.approx(2 * keeping.share)
    assert 51_000_000 < values_of(parsed)["heap_peak"] < 51_300_000
    # It keeps its blocks while it sleeps. memray samples every 10 ms, if its thread gets a core, and until the process
    # has ended, which takes longer on a busy machine.
    assert parsed.memory
    assert parsed.memory.axis == "time"
    assert 50_000_000 < max(parsed.memory.held) < 51_300_000


def test_memray_of_what_python_keeps_in_arenas(tmp_path: Path) -> None:
    program = ("-c", "x = [str(i) for i in range(10_000)]")
    few = values_of(parsed_of(run("memray", tmp_path / "few", PYTHON, *program)))
    all_of_them = values_of(parsed_of(run("memray", tmp_path / "all", PYTHON, *program, trace_python_allocators=True)))
    assert few["allocs"] < 1000
    assert all_of_them["allocs"] > 10_000


def test_memray_of_forked_children(tmp_path: Path) -> None:
    program = ("-c", "import os; x = 'x' * 1_000_000; os.fork() or bytes(3_000_000)")
    alone = values_of(parsed_of(run("memray", tmp_path / "alone", PYTHON, *program)))
    both = parsed_of(run("memray", tmp_path / "both", PYTHON, *program, follow_fork=True))
    assert 1_000_000 < alone["alloc"] < 1_100_000
    assert 4_000_000 < values_of(both)["alloc"] < 4_100_000
    assert both.warnings == ("alloc and allocs are sums over 2 processes; heap_peak is the highest of one process",)


def test_tracemalloc(tmp_path: Path) -> None:
    parsed = parsed_of(run("tracemalloc", tmp_path, PYTHON, GROWS, "10"))
    first = parsed.hotspots[0]
    assert (first.location, first.file, first.line, first.unit) == ("Store.keep", GROWS, 12, "bytes")
    assert first.share > 0.9
    assert 11_000_000 < values_of(parsed)["heap_peak"] < 11_200_000


def test_tracemalloc_says_that_it_missed_the_peak(tmp_path: Path) -> None:
    parsed = parsed_of(run("tracemalloc", tmp_path, PYTHON, "-c", "bytes(50_000_000)"))
    assert values_of(parsed)["heap_peak"] >= 50_000_000
    assert any("was too short: use memray" in warning for warning in parsed.warnings)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_that_the_program_cannot_import(name: str, tmp_path: Path) -> None:
    watched: dict[str, Any] = {} if name == "memray" else {"profile": ["__main__"]}
    # Without the module site there are no installed packages.
    ran = run(name, tmp_path, PYTHON, "-S", "-E", HOT_PY, "1", **watched)
    assert ran.status
    with pytest.raises(ToolOutputError, match=rf"{LIBRARIES[name]} is not installed .* -m pip install"):
        ran.parse()
