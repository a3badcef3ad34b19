"""perf's text is made again without inlined callers where looking for them takes too long, or is the end of perf."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.tools.linux import perf_samples, perf_stacks
from perfflow.tools.linux.drivers import perf_text

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


HOT = Path(__file__).parent / "programs" / "hot.c"


def test_where_perf_does_not_survive_source_lines_they_are_found_without_it(tmp_path: Path) -> None:
    built, data = tmp_path / "hot", tmp_path / "perf.data"
    subprocess.run(["cc", "-g", "-O2", "-w", "-o", built, HOT], check=True)
    record = [
        "perf",
        "record",
        "-q",
        "--no-bpf-event",
        "-N",
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "--call-graph",
        "dwarf,8192",
    ]
    subprocess.run([*record, "-o", data, "--", built], check=True, stdout=subprocess.DEVNULL)
    real = perf_stacks.text("perf", str(data), 60)
    (tmp_path / "real").mkdir()
    (tmp_path / "fake").mkdir()
    liar = tmp_path / "perf"
    liar.write_text('#!/bin/sh\ncase " $* " in *srcline*) echo; kill -PIPE $$ ;; esac\nexec perf "$@"\n')
    liar.chmod(0o755)
    for folder, program in (("real", "perf"), ("fake", str(liar))):
        with (tmp_path / folder / perf_stacks.SCRIPT).open("wb") as stream:
            argv = [program if word == "perf" else word for word in real.argv]
            subprocess.run(argv, stdout=stream, check=True, timeout=120, env={**os.environ, **real.env})
    parsed = {folder: perf_stacks.parse(tmp_path / folder, "perf") for folder in ("real", "fake")}
    assert any("so they are addr2line's" in text for text in parsed["fake"].warnings)
    (true, own) = (found.hotspots[0] for found in parsed.values())
    assert (own.location, own.file, own.line) == (true.location, true.file, true.line)
    assert own.share == pytest.approx(true.share, abs=0.02)


def test_an_error_of_perf_stays_its_error(tmp_path: Path) -> None:
    assert text_of(tmp_path, "exit 3")[0] == 3


def _script(folder: Path, *samples: tuple[str, int, str]) -> Path:
    """Text of perf with one sample for each (function, period, event)."""
    lines = (
        f"prog 1 1.{number:06}: {period:>10} {event}:P: \n\t  401136 {name} (/prog)\n\n"
        for number, (name, period, event) in enumerate(samples)
    )
    (folder / perf_stacks.SCRIPT).write_text("".join(lines))
    return folder


def test_a_sample_counts_as_much_as_its_period(tmp_path: Path) -> None:
    # perf finds the period for its frequency step by step, from 1 on, at each start of a process.
    ramp = [("_start", 1, "cycles")] * 40
    parsed = perf_stacks.parse(_script(tmp_path, *ramp, *[("main", 1_000_000, "cycles")] * 60), "perf")
    assert [spot.location for spot in parsed.hotspots] == ["main (prog)", "_start (prog)"]
    assert parsed.hotspots[1].share == pytest.approx(40 / 60_000_040)
    assert sum(cost.count for cost in parsed.costs) == pytest.approx(100)
    assert (tmp_path / "stacks.folded").read_text() == "prog;_start 40\nprog;main 60000000\n"


def test_samples_of_a_second_event_are_not_added_to_the_first(tmp_path: Path) -> None:
    samples = [("main", 5, "cycles"), *[("copy", 900, "cache-misses")] * 3] * 50
    parsed = perf_stacks.parse(_script(tmp_path, *samples), "perf", "cycles,cache-misses")
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [("main (prog)", 1.0)]
    assert "functions are ranked by cycles alone; profile cache-misses in a step of its own" in parsed.warnings


def test_functions_whose_long_names_begin_alike_are_several(tmp_path: Path) -> None:
    names = [f"std::vector<{'std::pair<' * 60}int{number}{'>' * 60}>::push_back" for number in range(3)]
    parsed = perf_stacks.parse(_script(tmp_path, *[(name, 1, "cycles") for name in names * 40]), "perf")
    assert [spot.share for spot in parsed.hotspots] == [pytest.approx(1 / 3)] * 3
