"""Profilers of Python programs, end to end: inside the program, around it, and of a process that runs already."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed
from perfflow.model.stacks import read_folded
from tests.long import rest_long
from tests.tools.harness import PROGRAMS, PYTHON, USAGE, Ran, call_of, failure_seen, parsed_of, run, tool, values_of
from tests.tools.lies import ALLOWING

GROWS = str(PROGRAMS / "grows.py")
HOT_PY, SERVE_PY, COPIES_PY = (str(PROGRAMS / f"{name}.py") for name in ("hot", "serve", "copies"))
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


@pytest.mark.parametrize(
    ("program", "watched", "reason"),
    [
        ("main.py", "shop.stock", r"ran no code of shop\.stock: name modules that it imports in `with: "),
        ("empty.py", "main", "ran no code of main"),
    ],
)
def test_line_profiler_with_nothing_to_watch(program: str, watched: str, reason: str, tree: Path) -> None:
    (tree / "empty.py").write_text("")
    with pytest.raises(ToolOutputError, match=reason):
        run("line-profiler", tree / "out", PYTHON, program, profile=[watched]).parse()


def test_modules_are_named_without_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not a module's name: write package\.module, without \.py"):
        run("line-profiler", tmp_path, PYTHON, HOT_PY, profile=["src/shop.py"])


def test_memory_profiler_over_time(tmp_path: Path) -> None:
    parsed = parsed_of(run("memory-profiler", tmp_path / "alone", PYTHON, GROWS, "60", interval=0.005))
    assert 60_000_000 < values_of(parsed)["rss_sampled"] < 200_000_000
    assert not parsed.hotspots
    with_child = f"import subprocess as s; s.run(['{PYTHON}', '{GROWS}', '80'])"
    parsed = parsed_of(run("memory-profiler", tmp_path / "child", PYTHON, "-c", with_child))
    assert values_of(parsed)["rss_sampled"] > 80_000_000


@pytest.mark.long  # memory_profiler takes seconds; its contract runs it as well
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


@pytest.mark.long  # many runs of memray
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


@pytest.mark.long  # many runs of memray
def test_memray_of_what_python_keeps_in_arenas(tmp_path: Path) -> None:
    program = ("-c", "x = [str(i) for i in range(10_000)]")
    few = values_of(parsed_of(run("memray", tmp_path / "few", PYTHON, *program)))
    all_of_them = values_of(parsed_of(run("memray", tmp_path / "all", PYTHON, *program, trace_python_allocators=True)))
    assert few["allocs"] < 1000
    assert all_of_them["allocs"] > 10_000


@pytest.mark.long  # many runs of memray
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


SHOWN = (
    "import json, sys\nfor n in range(2_000_000): n * n\nprint(json.dumps([sys.argv, sys.path, sys.flags.utf8_mode]))"
)


def test_scalene_time_by_function(tmp_path: Path) -> None:
    parsed = parsed_of(run("scalene", tmp_path, PYTHON, HOT_PY, "200", memory=False, rate=200))
    spot = parsed.hotspots[0]
    assert (spot.location, spot.file, spot.unit) == ("inner", HOT_PY, "time")
    assert spot.line in {8, 9}
    # scalene's own sum by function has only one of the two lines of the loop.
    whole = json.loads((tmp_path / "scalene.json").read_text())["files"][HOT_PY]
    (own,) = [row for row in whole["functions"] if row["line"] == "inner"]
    assert spot.share > sum(own[f"n_{kind}"] for kind in ("cpu_percent_python", "cpu_percent_c", "sys_percent")) / 100
    assert spot.cause.startswith("measured: ")
    assert parsed.costs[0].function == "inner"


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_scalene_memory_by_function(tmp_path: Path) -> None:
    parsed = parsed_of(run("scalene", tmp_path, PYTHON, COPIES_PY, "150"))
    causes = {spot.location: spot.cause for spot in parsed.hotspots}
    assert causes.keys() >= {"looped", "kept"}
    assert "MB seen allocated" in causes["kept"]
    assert "MB copied a second" in causes["kept"]
    assert "the program's peak memory in line 16, " in causes["kept"]
    assert "allocated" not in causes["looped"]


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_scalene_names_decorated_functions_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "work.py").write_text(
        "import functools\n\n\nclass Work:\n    @staticmethod\n    @functools.cache\n    def done(count):\n"
        "        total = 0\n        for number in range(count):\n            total += number\n        return total\n"
    )
    (tmp_path / "pkg" / "__main__.py").write_text("from pkg.work import Work\n\nWork.done(10_000_000)\n")
    monkeypatch.chdir(tmp_path)
    parsed = parsed_of(run("scalene", tmp_path / "out", PYTHON, "-m", "pkg", memory=False))
    assert parsed.hotspots[0].location == "Work.done"
    assert parsed.hotspots[0].file == str(tmp_path / "pkg" / "work.py")


@pytest.mark.long  # its contract and its time by function run scalene in CI
@pytest.mark.parametrize("memory", rest_long([False, True]))
def test_the_program_sees_what_it_sees_without_scalene(memory: bool, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(SHOWN)
    words = [PYTHON, "-X", "utf8", "shown.py", "--memory", "a b"]
    direct = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    call = call_of("scalene", tmp_path, *words, memory=memory)
    (step,) = tool("scalene").invocations(call)
    done = subprocess.run(step.argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    argv, path, utf8 = json.loads(done.stdout.splitlines()[0])
    wanted = json.loads(direct)
    assert [argv, utf8] == [wanted[0], wanted[2]]
    # scalene puts a folder of its own behind the script's, in which `python` is scalene for the program's children.
    assert [place for place in path if "/scalene" not in place] == wanted[1]


@pytest.mark.long  # its contract and its time by function run scalene in CI
@pytest.mark.parametrize("memory", rest_long([False, True]))
def test_scalene_of_a_program_that_exits_with_nothing_has_not_failed(memory: bool, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys\nfor n in range(9_000_000): n * n\nsys.exit()\n")
    parsed_of(run("scalene", tmp_path, PYTHON, str(tmp_path / "main.py"), memory=memory))


@pytest.mark.long  # its contract and its time by function run scalene in CI
@pytest.mark.parametrize("how", rest_long(["raises", "is killed", "is missing"]))
def test_scalene_of_a_program_that_fails(how: str, tmp_path: Path) -> None:
    words = ("missing.py",) if how == "is missing" else (COPIES_PY, "20", how)
    assert failure_seen(run("scalene", tmp_path, PYTHON, *words, memory=False))


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_scalene_of_an_interrupted_program_is_not_believed(tmp_path: Path) -> None:
    call = call_of("scalene", tmp_path, PYTHON, str(PROGRAMS / "serve.py"), "60", memory=False)
    (step,) = tool("scalene").invocations(call)
    with subprocess.Popen(step.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    with pytest.raises(ToolOutputError, match="status 130"):
        tool("scalene").parse(call, USAGE)


NO_SAMPLE = "took no sample of the program's own code"


@pytest.mark.long  # its contract and its time by function run scalene in CI
@pytest.mark.parametrize(
    ("words", "rate", "status", "reason"),
    [
        ((HOT_PY, "1"), 1, 0, NO_SAMPLE),
        # A module of the standard library is not the program's own code, however long it runs.
        (("-m", "timeit", "-n", "20000000", "-r", "1", "pass"), 100, 0, NO_SAMPLE),
        (("-S", "-E", HOT_PY), 100, 1, r"not installed for this interpreter: \S+ -m pip install scalene"),
    ],
    ids=["short", "library", "not installed"],
)
def test_scalene_without_figures(words: tuple[str, ...], rate: int, status: int, reason: str, tmp_path: Path) -> None:
    ran = run("scalene", tmp_path, PYTHON, *words, memory=False, rate=rate)
    assert ran.status == status
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


def test_scalene_of_code_on_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="into a script"):
        run("scalene", tmp_path, PYTHON, "-c", "pass")


# A process that runs already


@contextmanager
def _ready(*words: str) -> Iterator[int]:
    """Yield the process id of a Python program that has said that it is ready."""
    with subprocess.Popen([sys.executable, "-c", ALLOWING, *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


@pytest.fixture
def served() -> Iterator[int]:
    """Yield the process id of a program that works until it is stopped."""
    with _ready(SERVE_PY) as pid:
        yield pid


def _recorded(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ran.call.folder / "status.json").read_text())
    return found


def _samples(ran: Ran) -> int:
    return sum(read_folded((ran.call.folder / "stacks.folded").read_text()).values())


@pytest.mark.parametrize(
    "options", rest_long([{}, {"format": "speedscope"}, {"native": True}, {"nonblocking": True}]), ids=str
)
def test_py_spy_records_a_running_process_for_a_while(options: dict[str, Any], served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, pid=served, duration="1s", **options)
    parsed = parsed_of(ran)
    assert "hot" in {spot.location for spot in parsed.hotspots[:2]}
    assert {spot.file for spot in parsed.hotspots if spot.location == "hot"} == {SERVE_PY}
    assert _recorded(ran)["recorded"] >= 1
    assert _recorded(ran)["ended"] is False
    assert _is_alive(served)


def test_py_spy_records_as_long_as_the_load_lasts(served: int, tmp_path: Path) -> None:
    load = "import time; print('done'); time.sleep(0.6)"
    ran = run("py-spy", tmp_path, PYTHON, "-S", "-c", load, pid=served, gil=True)
    parsed = parsed_of(ran)
    assert parsed.hotspots[0].location == "hot"
    assert values_of(parsed).keys() == {"gil_share"}
    assert values_of(parsed)["gil_share"] == min(1, _samples(ran) / (200 * _recorded(ran)["recorded"]))
    assert "Sampling process" in (tmp_path / "py-spy.out").read_text()


def test_the_share_of_the_lock_is_that_of_the_whole_run(tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, PYTHON, HOT_PY, "100", gil=True, rate=50)
    assert values_of(parsed_of(ran)) == {"gil_share": min(1, _samples(ran) / 50)}


def test_py_spy_sees_threads_that_wait_if_it_is_told_to(served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, pid=served, duration="500ms", idle=True)
    parsed_of(ran)
    stacks = read_folded((tmp_path / "stacks.folded").read_text())
    assert any("Event.wait (threading.py)" in stack for stack in stacks)


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_py_spy_of_a_process_that_ends_meanwhile(tmp_path: Path) -> None:
    with _ready(SERVE_PY, "1.5") as pid:
        ran = run("py-spy", tmp_path, pid=pid, duration="60s")
    assert any("ended before the recording" in warning for warning in parsed_of(ran).warnings)
    assert _recorded(ran)["recorded"] < 60


def test_py_spy_of_an_idle_process(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with _ready(str(sleeper)) as pid:
        while _state(pid) != "S":
            time.sleep(0.01)
        # On a busy machine py-spy sometimes shows a sleeping thread as active, but never as one that holds the lock.
        ran = run("py-spy", tmp_path, pid=pid, duration="300ms", gil=True)
    assert ran.status == 0
    with pytest.raises(ToolOutputError, match="was idle while it was recorded"):
        ran.parse()


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (("sh", "-c", "sleep 0.2; exit 3"), "the command exited with status 3"),
        (("sh", "-c", "sleep 0.2; kill -9 $$"), "the command was killed by signal 9"),
        (("./no-such-program",), "./no-such-program could not be started"),
    ],
    ids=str,
)
def test_load_that_fails(load: tuple[str, ...], reason: str, served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, *load, pid=served)
    assert ran.status
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()
    assert _is_alive(served)


@pytest.mark.parametrize("name", ["py-spy", "py-spy-dump"])
def test_what_is_no_python_process(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"duration": "1s"} if name == "py-spy" else {}
    with subprocess.Popen(["sleep", "60"]) as process:
        ran = run(name, tmp_path / "other", pid=process.pid, **options)
        process.kill()
    gone = run(name, tmp_path / "gone", pid=2**22, **options)
    for refused, reason in ((ran, "is not a Python program"), (gone, "does not exist")):
        assert refused.status
        with pytest.raises(ToolOutputError, match=reason):
            refused.parse()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"pid": 1}, "set how long to record"),
        ({"duration": "5s"}, "needs the `pid`"),
        ({"pid": 1, "duration": "5s", "native": True, "nonblocking": True}, "without a pause"),
    ],
    ids=str,
)
def test_what_py_spy_cannot_record_is_refused(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        run("py-spy", tmp_path, **options)


def test_py_spy_dump(served: int, tmp_path: Path) -> None:
    parsed_of(run("py-spy-dump", tmp_path, pid=served))
    threads = {
        stack[0].partition(" [")[0]: stack[1:] for stack in read_folded((tmp_path / "stacks.folded").read_text())
    }
    assert threads.keys() == {"MainThread", "waiter"}
    assert any("serve (serve.py:" in frame for frame in threads["MainThread"])
    assert any("Event.wait (threading.py:" in frame for frame in threads["waiter"])
    assert '"locals": null' in (tmp_path / "threads.json").read_text()


def _is_alive(pid: int) -> bool:
    return _state(pid) != "Z"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
