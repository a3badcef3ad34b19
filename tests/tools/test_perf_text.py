"""perf's text is made again without inlined callers where looking for them takes too long, or is the end of perf."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.tools import perf_samples
from perfflow.tools.drivers import perf_text

PROGRAM = """\
#!/bin/sh
echo 'prog 1 1.000001: cpu-clock: '
printf '\\t  401136 %s (/prog)\\n' "$1"
case " $* " in *" --inline "*) {end} ;; esac
echo
"""


def text_of(folder: Path, end: str, limit: str = "30") -> tuple[int, list[str], list[str]]:
    program = folder / "perf"
    program.write_text(PROGRAM.replace("{end}", end))
    program.chmod(0o755)
    script = folder / "perf.script"
    with script.open("wb") as stream:
        argv = [sys.executable, "-I", "-S", perf_text.__file__, limit, str(program), "hot"]
        status = subprocess.run(argv, stdout=stream, check=False, timeout=60).returncode
    notes: list[str] = []
    samples = list(perf_samples.read(script, notes)) if status == 0 else []
    return status, [sample.leaf.name for sample in samples], notes


def test_the_text_with_inlined_callers_is_taken_as_it_is(tmp_path: Path) -> None:
    assert text_of(tmp_path, ":") == (0, ["hot (prog)"], [])


@pytest.mark.parametrize(
    ("end", "limit", "said"),
    [("kill -PIPE $$", "30", "was ended by signal 13"), ("exec sleep 30", "0.2", "needs more than 0.2 s")],
)
def test_what_was_begun_is_not_left_before_it(end: str, limit: str, said: str, tmp_path: Path) -> None:
    status, leaves, notes = text_of(tmp_path, end, limit)
    assert (status, leaves) == (0, ["hot (prog)"])
    assert [said in note for note in notes] == [True]


def test_an_error_of_perf_stays_its_error(tmp_path: Path) -> None:
    assert text_of(tmp_path, "exit 3")[0] == 3
