"""Commands of Python programs, and drivers: a program under one runs as it would alone, and ends in the same way."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.tools import cpu_clock, python_command
from perfflow.tools.cpu_clock import ClockLog
from perfflow.tools.python import in_program
from perfflow.tools.python_command import Form, PythonCommand
from tests.tools.harness import PROGRAMS
from tests.tools.tables import refused_by

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.sampled_from(["dev", "importtime", "-c", "-m", "ignore::Warning", "x y", "--"])
ONE = st.sampled_from("bBdEIOPqsSuv")
# The command line and its meaning.
FLAGS = st.one_of(
    st.text(ONE, min_size=1, max_size=4).map(lambda letters: (["-" + letters], ["-" + letters])),
    st.tuples(st.text(ONE, max_size=2), st.sampled_from("WX"), VALUES, st.booleans()).map(
        lambda x: ([f"-{x[0]}{x[1]}{x[2]}"] if x[3] else [f"-{x[0]}{x[1]}", x[2]], [f"-{x[0]}{x[1]}", x[2]])
    ),
    st.just((["--check-hash-based-pycs", "always"], ["--check-hash-based-pycs", "always"])),
)


@given(st.lists(FLAGS, max_size=4), st.sampled_from(Form), st.lists(WORDS, min_size=1, max_size=5), st.booleans(), ONE)
def test_takes_apart_what_was_put_together(
    flags: list[tuple[list[str], list[str]]], form: Form, words: list[str], joined: bool, letter: str
) -> None:
    target, *arguments = words
    typed = [word for one, _ in flags for word in one]
    meant = [word for _, one in flags for word in one]
    if form is Form.SCRIPT:
        target = "s" + target
        typed += ["--", target] if joined else [target]
    else:
        short = "c" if form is Form.CODE else "m"
        typed += [f"-{letter}{short}{target}"] if joined else [f"-{short}", target]
        meant += [f"-{letter}"] if joined else []
    found = python_command.split(["/usr/bin/python3.12", *typed, *arguments])
    assert found == PythonCommand("/usr/bin/python3.12", tuple(meant), form, target, tuple(arguments))


@given(st.lists(st.sampled_from(["-c", "-m", "-u", "-X", "--", "-", "a.py", "-Wd", "-uXm", "--x", "", "-h"]) | WORDS))
def test_any_words_are_split_or_refused(words: list[str]) -> None:
    try:
        found = python_command.split(["python", *words])
    except ToolOutputError as error:
        reason = str(error)
    else:
        reason = "write the command as it is"
        assert found.arguments == tuple(words[len(words) - len(found.arguments) :])
        assert found.target or found.form is not Form.SCRIPT
    assert "write the command as" in reason


def test_interpreters() -> None:
    for name in ("python", "python3", "python3.13", "/a/b/python2.7", "python3.13t", "pypy3"):
        assert python_command.split([name, "x.py"]).interpreter == name


WRITE = "write the command as"
test_refused_with_a_remedy = refused_by(
    python_command.split,
    ([], f"no command.*{WRITE}"),
    (["/bin/bash", "-c", "python x.py"], f"bash.*{WRITE}"),
    (["env", "A=1", "python", "x.py"], f"'env'.*{WRITE}"),
    (["./pythonic", "x.py"], f"not with python.*{WRITE}"),
    (["python"], f"no Python program.*{WRITE}"),
    (["python", "-u"], f"no Python program.*{WRITE}"),
    (["python", "-"], f"standard input.*{WRITE}"),
    (["python", "--", ""], f"standard input.*{WRITE}"),
    (["python", "-i", "x.py"], f"terminal.*{WRITE}"),
    (["python", "-uVc", "x"], f"runs no program.*{WRITE}"),
    (["python", "-Z", "x.py"], f"-Z.*{WRITE}"),
    (["python", "-X"], f"has no value.*{WRITE}"),
    (["python", "-m"], f"has no value.*{WRITE}"),
    (["python", "--help"], f"--help.*{WRITE}"),
    (["python", "--check-hash-based-pycs"], f"check-hash.*{WRITE}"),
)


def test_driver_stands_between_flags_and_program() -> None:
    argv = in_program.under_driver(["python3", "-X", "dev", "-m", "pkg", "-x"], "python_run.py", ["/out"])
    driver = Path(argv[3])
    assert driver.is_file()
    assert (*argv[:3], *argv[4:]) == ("python3", "-X", "dev", "/out", "module", "pkg", "-x")


OUTPUTS = {"python_run.py": ["status.json"], "cprofile_run.py": ["rows.json", "rows.prof"]}
OUTPUTS |= {"line_profiler_run.py": ["rows.json", ""], "tracemalloc_run.py": ["rows.json", "1"]}
OUTPUTS |= {"memray_run.py": ["status.json", "memray.bin", ""], "memory_profiler_run.py": ["rows.json", "__main__"]}
OUTPUTS |= {"slow_callbacks_run.py": ["callbacks.json", "0.05"], "sqlite_run.py": ["sqlite.jsonl"]}
each_driver = pytest.mark.parametrize("driver", OUTPUTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the same program as a script, package, module, folder, zip file and link, and return their folder."""
    shown = (PROGRAMS / "shown.py").read_text()
    (tmp_path / "pkg").mkdir()
    for place in ("shown.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/mod.py"):
        (tmp_path / place).write_text("" if "init" in place else shown)
    (tmp_path / "pkg" / "link.py").symlink_to("../shown.py")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", shown)
    return tmp_path


def _run(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=900)


def _driven(words: list[str], driver: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return _run(list(in_program.under_driver([sys.executable, *words], driver, OUTPUTS[driver])), folder)


@each_driver
@pytest.mark.parametrize(
    "words",
    [
        ["shown.py", "-a", "b c"],
        ["./pkg/link.py"],
        ["pkg"],
        ["app.zip", "x"],
        ["-B", "-X", "utf8", "-m", "pkg", "-m", "1"],
        ["-m", "pkg.mod"],
        ["-P", "shown.py"],
        ["-I", "shown.py"],
        ["-c", "import sys; print([sys.argv, sys.path, sys.orig_argv, __name__, '__file__' in globals()])", "a"],
        ["-P", "-c", "import sys; print([sys.argv, sys.path])"],
        ["-c", "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__module__)"],
    ],
    ids=" ".join,
)
def test_looks_as_if_run_directly(words: list[str], driver: str, folder: Path) -> None:
    direct = _run([sys.executable, *words], folder)
    driven = _driven(words, driver, folder)
    assert direct.returncode == 0, direct.stderr
    assert direct.stdout
    # memray prints this if Python is linked statically, as Debian's is.
    said = [line for line in driven.stderr.splitlines() if not line.startswith("Memray WARNING: Correcting symbol")]
    assert (driven.returncode, driven.stdout, said) == (0, direct.stdout, [])


@each_driver
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["-c", "import sys; sys.exit()"], 0),
        (["-c", "import sys; sys.exit(3)"], 3),
        (["-c", "import sys; sys.exit(-1)"], 255),
        (["-c", "import sys; sys.exit('no')"], 1),
        (["-c", "1/0"], 1),
        (["-c", "syntax error"], 1),
        (["missing.py"], 2),
        (["-m", "no_such_module"], 1),
        (["-m", "no_such.module"], 1),
        (["empty"], 1),
        (["-c", "import os, sys\nif os.fork() == 0: sys.exit(7)\nos.wait()"], 0),
    ],
    ids=str,
)
def test_exit_status_is_kept_and_recorded(words: list[str], status: int, driver: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert _driven(words, driver, folder).returncode == status
    assert json.loads((folder / OUTPUTS[driver][0]).read_text())["status"] == status
    assert _run([sys.executable, *words], folder).returncode == status


@each_driver
def test_interrupt(driver: str, folder: Path) -> None:
    words = ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"]
    assert _driven(words, driver, folder).returncode == _run([sys.executable, *words], folder).returncode
    assert json.loads((folder / OUTPUTS[driver][0]).read_text())["status"] == 130


@each_driver
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.execv('/bin/true', ['true'])"])
def test_nothing_is_recorded_when_the_program_vanishes(end: str, driver: str, folder: Path) -> None:
    _driven(["-c", f"import os; {end}"], driver, folder)
    assert not (folder / OUTPUTS[driver][0]).exists()


@each_driver
def test_outputs_land_where_they_should_when_the_program_changes_folder(driver: str, folder: Path) -> None:
    assert _driven(["-c", "import os; os.chdir('/')"], driver, folder).returncode == 0
    assert (folder / OUTPUTS[driver][0]).exists()


def test_rows_hold_the_program_alone(folder: Path) -> None:
    shutil.copy(PROGRAMS / "hot.py", folder)
    assert _driven(["hot.py", "2"], "cprofile_run.py", folder).returncode == 0
    content = json.loads((folder / "rows.json").read_text())
    calls = {row["function"]: row["calls"] for row in content["rows"]}
    assert calls["inner"] == 2
    assert calls["<module>"] == 1
    assert not [row for row in content["rows"] if "drivers" in row["file"] or "exec" in row["function"]]
    assert content["total"] == pytest.approx(sum(row["own"] for row in content["rows"]))


def test_programs_stay_readable_for_their_own_tracebacks(folder: Path) -> None:
    (folder / "fails.py").write_text("def fail():\n    raise ValueError('told')\n\nfail()\n")
    done = _driven(["fails.py"], "python_run.py", folder)
    assert "ValueError: told" in done.stderr
    assert "raise ValueError('told')" in done.stderr


NAP = 200_000_000


def test_cpu_clock_does_not_advance_while_the_main_thread_waits(
    built: Mapping[str, str], cpu_clock_library: Path, tmp_path: Path
) -> None:
    env = cpu_clock.environment(cpu_clock_library, tmp_path / "log")
    done = subprocess.run([built["waits"]], env=env, check=True, capture_output=True, text=True)
    napped, computed, in_thread, inherited = map(int, done.stdout.split())
    assert napped < computed
    assert napped < NAP / 2
    # Other threads keep the true clock, and children do not inherit the library.
    assert in_thread >= NAP
    assert not inherited
    found = ClockLog.read(tmp_path / "log")
    assert found
    nap, loop = found.elapsed([napped, computed])
    assert nap >= NAP
    assert loop >= computed * 0.99


def test_cpu_clock_in_haste_lengthens_short_times_alone(cpu_clock_library: Path, tmp_path: Path) -> None:
    env = cpu_clock.environment(cpu_clock_library, tmp_path / "log", haste=10)
    program = "import time; print(*[(sum(range(n % 9 * 5000)), time.monotonic_ns())[1] for n in range(99)])"
    done = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True)
    told = [after - before for before, after in pairwise(map(int, done.stdout.split()))]
    readings = struct.iter_unpack("=qq", (tmp_path / "log").read_bytes())
    used = [after - before for (before, _), (after, _) in pairwise(readings)]
    lengthened = [time * 10 if time < 10_000 else time for time in used]
    assert any(lengthened[start : start + len(told)] == told for start in range(len(used)))
    assert {time < 10_000 for time in used} == {True, False}


def _log(path: Path, *readings: tuple[int, int]) -> ClockLog | None:
    path.write_bytes(b"".join(struct.pack("=qq", *reading) for reading in readings))
    return ClockLog.read(path)


def test_clock_log_finds_the_elapsed_time_of_intervals(tmp_path: Path) -> None:
    found = _log(tmp_path / "log", (0, 0), (10, 15), (12, 40), (22, 60), (30, 90))
    assert found
    for intervals, elapsed in (
        ([10.0, 10.0], [15.0, 20.0]),
        ([2.0, 8.0], [25.0, 30.0]),
        # The sum of two intervals, and intervals in another order, are told by the whole log.
        ([12.0], [36.0]),
        ([8.0, 2.0], [24.0, 6.0]),
    ):
        assert found.elapsed(intervals) == elapsed


@pytest.mark.parametrize("content", [b"", b"\0" * 15, b"\0" * 16, b"\0" * 64])
def test_clock_log_without_two_readings_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(content)
    assert ClockLog.read(tmp_path / "log") is None
    assert ClockLog.read(tmp_path / "missing") is None
