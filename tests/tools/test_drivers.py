"""A program under a driver has the same environment as in a direct run, and ends in the same way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from perfflow.tools.python import in_program
from tests.tools.harness import PROGRAMS

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
