"""perf's text gets its source lines from addr2line, or from perf, again without inlined callers if that fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.model.stacks import Frame
from perfflow.tools.linux import perf
from perfflow.tools.linux.drivers import perf_text
from tests.tools.harness import DATA

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
        # Without addr2line, perf looks for the lines.
        env = {**os.environ, "PATH": str(_without_addr2line(folder))}
        status = subprocess.run(argv, stdout=stream, check=False, timeout=900, env=env).returncode
    notes: list[str] = []
    samples = list(perf.read(script, notes)) if status == 0 else []
    return status, [sample.leaf.name for sample in samples], notes


def _without_addr2line(folder: Path) -> Path:
    """Return a folder of programs without addr2line, for PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("sh", "printf", "sleep", "perf"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    return programs


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


WAYS = {"addr2line": ("nothing", True), "perf": ("nothing", False), "callers": ("--inline", False)}
"""An argument with which perf fails, and whether the driver finds addr2line: three ways to find source lines."""


def test_each_way_of_perf_finds_the_same_place(tmp_path: Path) -> None:
    built, data = tmp_path / "hot", str(tmp_path / "perf.data")
    subprocess.run(["cc", "-g", "-O2", "-w", "-o", built, HOT], check=True)
    record = [*perf.RECORD, "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,8192", "-o", data]
    subprocess.run(["perf", *record, "--", built], check=True, stdout=subprocess.DEVNULL)
    parsed = {way: _parsed_in_way(tmp_path / way, data, asked, is_there=there) for way, (asked, there) in WAYS.items()}
    texts = {way: " ".join(found.warnings) for way, found in parsed.items()}
    assert [way for way, text in texts.items() if "while it looked for inlined callers" in text] == ["callers"]
    # mix is inlined into hot, so its samples count for hot without a search for inlined callers.
    tops = [found.hotspots[0] for found in parsed.values()]
    assert [(top.location, Path(top.file).name, top.line) for top in tops] == [
        *(("mix", "hot.c", 7), ("mix", "hot.c", 7), ("hot", "hot.c", 7))
    ]
    # A busy machine gives few samples. Without inlined callers, mix and hot are counted together.
    assert [top.share for top in tops] == [pytest.approx(tops[0].share, abs=0.15)] * 3


def _parsed_in_way(folder: Path, data: str, asked: str, *, is_there: bool) -> Parsed:
    """Let the real perf make the text of a recording, but fail if its arguments contain ``asked``.

    is_there: whether addr2line is on the driver's PATH; perf always finds it.
    """
    folder.mkdir()
    program = folder / "perf"
    fails = f'case " $* " in *{asked}*) echo; kill -PIPE $$ ;; esac'
    program.write_text(f'#!/bin/sh\n{fails}\nPATH="{os.environ["PATH"]}"\nexec perf "$@"\n')
    program.chmod(0o755)
    step = perf.script_text(str(program), data, 60)
    with (folder / perf.SCRIPT).open("wb") as stream:
        path = os.environ["PATH"] if is_there else str(_without_addr2line(folder))
        env = {**os.environ, **step.env, "PATH": path}
        subprocess.run(step.argv, stdout=stream, check=True, timeout=900, env=env)
    return perf.parse_script(folder, "perf")


def test_an_error_of_perf_stays_its_error(tmp_path: Path) -> None:
    assert text_of(tmp_path, "exit 3")[0] == 3


def test_a_recording_that_reaches_its_limit_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    said = "[ perf record: perf size limit reached (262144 KB), stopping session ]\n"
    (tmp_path / "stderr").write_text(said)
    with pytest.raises(ToolOutputError, match="the recording reached 256 MiB, so perf ended the program: lower"):
        perf.parse_script(tmp_path, "perf")
    assert "--max-size=256M" in perf.RECORD


def _script(folder: Path, *samples: tuple[str, int, str]) -> Path:
    """Return text of perf with one sample for each (function, period, event)."""
    lines = (
        f"prog 1 1.{number:06}: {period:>10} {event}:P: \n\t  401136 {name} (/prog)\n\n"
        for number, (name, period, event) in enumerate(samples)
    )
    (folder / perf.SCRIPT).write_text("".join(lines) + "# end\n")
    return folder


def test_a_sample_counts_as_much_as_its_period(tmp_path: Path) -> None:
    # At each start of a process, perf adapts the period to its frequency step by step, from 1 on.
    ramp = [("_start", 1, "cycles")] * 40
    parsed = perf.parse_script(_script(tmp_path, *ramp, *[("main", 1_000_000, "cycles")] * 60), "perf")
    assert [spot.location for spot in parsed.hotspots] == ["main (prog)", "_start (prog)"]
    assert parsed.hotspots[1].share == pytest.approx(40 / 60_000_040)
    assert sum(cost.count for cost in parsed.costs) == pytest.approx(100)
    assert (tmp_path / "stacks.folded").read_text() == "prog;_start 40\nprog;main 60000000\n"


def test_samples_of_a_second_event_are_not_added_to_the_first(tmp_path: Path) -> None:
    samples = [("main", 5, "cycles"), *[("copy", 900, "cache-misses")] * 3] * 50
    parsed = perf.parse_script(_script(tmp_path, *samples), "perf", "cycles,cache-misses")
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [("main (prog)", 1.0)]
    assert "functions are ranked only by cycles; profile cache-misses in a separate step" in parsed.warnings


def test_functions_whose_long_names_begin_alike_are_several(tmp_path: Path) -> None:
    names = [f"std::vector<{'std::pair<' * 60}int{number}{'>' * 60}>::push_back" for number in range(3)]
    parsed = perf.parse_script(_script(tmp_path, *[(name, 1, "cycles") for name in names * 40]), "perf")
    assert [spot.share for spot in parsed.hotspots] == [pytest.approx(1 / 3)] * 3


@pytest.mark.parametrize("case", ["node", "python-map"])
def test_code_made_while_it_runs_has_one_name_in_every_process(case: str, tmp_path: Path) -> None:
    (script,) = DATA.glob(f"perf/6.1.187/{case}/perf.script")
    text = script.read_text()
    (pid,) = set(re.findall(r"/tmp/perf-(\d+)\.map", text))
    parsed = []
    for number, name in ((pid, "one"), ("77", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / perf.SCRIPT).write_text(text.replace(pid, number))
        parsed.append(perf.parse_script(tmp_path / name, "perf"))
    assert parsed[0] == parsed[1]
    assert pid not in (tmp_path / "one" / "stacks.folded").read_text()
    top = parsed[0].hotspots[0]
    assert (top.location, top.file.partition(".")[0]) == ("inner", "/home/demo/jit/hot")


@pytest.mark.parametrize(
    ("symbol", "library", "name", "file", "line"),
    [
        ("JS:^run file:///src/a b/hot.mjs:7:3", "/tmp/perf-1.map", "run", "/src/a b/hot.mjs", 7),
        ("LazyCompile:*get size /src/hot.js:3", "/tmp/perf-1.map", "get size", "/src/hot.js", 3),
        ("JS:~ node:internal/util:1:1", "/tmp/perf-1.map", "(anonymous)", "node:internal/util", 1),
        ("py::f.<locals>.<lambda>:<string>", "/tmp/perf-1.map", "f.<locals>.<lambda>", "<string>", 0),
        ("Interpreter", "/tmp/perf-1.map", "Interpreter (JIT)", "", 0),
        ("Interpreter", "[JIT] tid 12", "Interpreter (JIT)", "", 0),
        ("[unknown]", "/tmp/perf-1.map", "[JIT]", "", 0),
        ("JS:~f /src/hot.js:1:1", "/bin/x", "JS:~f /src/hot.js:1:1 (x)", "", 0),
    ],
)
def test_names_of_code_made_while_it_runs(
    symbol: str, library: str, name: str, file: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / perf.SCRIPT
    path.write_text(f"x 1/1 1.5: cycles:\n\t12 {symbol} ({library})\n\n# end\n")
    (sample,) = perf.read(path, [])
    assert sample.leaf == Frame(name, file, line)
