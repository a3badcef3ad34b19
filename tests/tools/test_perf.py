"""perf's text and counters on unusual output, and the three ways in which its text gets source lines.

The lines are from addr2line, or from perf, again without inlined callers if that fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.model.stacks import Frame
from perfflow.tools.linux import perf
from perfflow.tools.linux.drivers import perf_text
from tests.tools.harness import DATA, PROGRAMS, PYTHON, call_of, parsed_of, run, tool
from tests.tools.tables import argv_of, parsed_from, refusals

PROGRAM = """\
#!/bin/sh
echo 'prog 1 1.000001: cpu-clock: '
printf '\\t  401136 %s (/prog)\\n' "$1"
case " $* " in *" --inline "*) {end} ;; esac
echo
"""


def _fake_perf(folder: Path, text: str) -> Path:
    program = folder / "perf"
    program.write_text(text)
    program.chmod(0o755)
    return program


def _without_addr2line(folder: Path) -> str:
    """Return a folder of programs without addr2line, for PATH: perf itself then looks for the lines."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("sh", "printf", "sleep", "perf"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    return str(programs)


@pytest.mark.parametrize(
    ("end", "limit", "status", "note"),
    [
        (":", "30", 0, ""),
        ("kill -PIPE $$", "30", 0, "was ended by signal 13"),
        ("exec sleep 30", "0.2", 0, "needs more than 0.2 s"),
        ("exit 3", "30", 3, ""),
    ],
)
def test_the_text_with_inlined_callers_is_taken_or_made_again(
    end: str, limit: str, status: int, note: str, tmp_path: Path
) -> None:
    program = _fake_perf(tmp_path, PROGRAM.replace("{end}", end))
    argv = [sys.executable, "-I", "-S", perf_text.__file__, limit, str(program), "hot"]
    env = {**os.environ, "PATH": _without_addr2line(tmp_path)}
    with (tmp_path / perf.SCRIPT).open("wb") as stream:
        assert subprocess.run(argv, stdout=stream, check=False, timeout=900, env=env).returncode == status
    if not status:
        notes: list[str] = []
        assert [sample.leaf.name for sample in perf.read(tmp_path / perf.SCRIPT, notes)] == ["hot (prog)"]
        assert [note in text for text in notes] == ([True] if note else [])


WAYS = {"addr2line": ("nothing", True), "perf": ("nothing", False), "callers": ("--inline", False)}
"""An argument with which perf fails, and whether the driver finds addr2line: three ways to find source lines."""


def test_each_way_of_perf_finds_the_same_place(tmp_path: Path) -> None:
    built, data = tmp_path / "hot", str(tmp_path / "perf.data")
    subprocess.run(["cc", "-g", "-O2", "-w", "-o", built, PROGRAMS / "hot.c"], check=True)
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
    fails = f'case " $* " in *{asked}*) echo; kill -PIPE $$ ;; esac'
    program = _fake_perf(folder, f'#!/bin/sh\n{fails}\nPATH="{os.environ["PATH"]}"\nexec perf "$@"\n')
    step = perf.script_text(str(program), data, 60)
    path = os.environ["PATH"] if is_there else _without_addr2line(folder)
    with (folder / perf.SCRIPT).open("wb") as stream:
        env = {**os.environ, **step.env, "PATH": path}
        subprocess.run(step.argv, stdout=stream, check=True, timeout=900, env=env)
    return perf.parse_script(folder, "perf")


def test_a_recording_that_reaches_its_limit_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    said = "[ perf record: perf size limit reached (262144 KB), stopping session ]\n"
    (tmp_path / "stderr").write_text(said)
    with pytest.raises(ToolOutputError, match="the recording reached 256 MiB, so perf ended the program: lower"):
        perf.parse_script(tmp_path, "perf")
    assert "--max-size=256M" in perf.RECORD


def test_perf_argv(tmp_path: Path) -> None:
    record, script = tool("perf").invocations(call_of("perf", tmp_path, "/bin/x", "-o", "y"))
    assert record.argv[-4:] == ("--", "/bin/x", "-o", "y")
    assert "dwarf,8192" in record.argv
    assert "-e" not in record.argv
    assert script.stdout == "perf.script"
    argv = argv_of("perf", tmp_path, "/bin/x", call_graph="none", event="cycles:u")
    assert ("--call-graph" in argv, "cycles:u" in argv) == (False, True)


@pytest.mark.parametrize(
    "options", [{"event": "-o"}, {"event": "a b"}, {"frequency": 0}, {"call_graph": "stack"}, {"x": 1}]
)
def test_perf_options_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        call_of("perf", tmp_path, "/bin/x", **options)


test_perf_refuses = refusals(
    *("perf", "perf.script"),
    ("\t  12 main (/bin/x)\n", "does not start"),
    ("x 1/1 1.5: cycles:\n\tnonsense\n", "not a frame"),
    ("x 1/1 1.5: cycles:\n  hot.c:4\n", "not a frame"),
    ("x 1/1 1.5: cycles:\n" + "\t12 f (/x)\n" * 600, "more than 512"),
    ("x 1/1 1.5: cycles:", "cut short"),
    ("x 1/1 1.5: cycles:\n\t12 f (/x)\n\n", "cut short: its last line is missing"),
)


def test_perf_of_many_threads_names_long_and_strange(tmp_path: Path) -> None:
    text = f"a  b/c  7/8 1.5: cpu-clock:\n\t12 {'T<' * 9000} (/bin/x)\n\n" * 120 + "# end\n"
    parsed = parsed_from("perf", tmp_path, {"perf.script": text})
    (spot,) = parsed.hotspots
    assert len(spot.location) < 450
    sampled, sources = parsed.warnings
    assert sampled == "sampled by the timer cpu-clock, since this machine has no hardware counters for perf"
    assert sources.startswith("no sample has a source file of the project")
    assert (tmp_path / "stacks.folded").read_text().startswith("a b/c;T<")


def _parsed(folder: Path, *samples: tuple[str, int, str], event: str = "") -> Parsed:
    """Parse text of perf with one sample for each (function, period, event)."""
    lines = (
        f"prog 1 1.{number:06}: {period:>10} {event}:P: \n\t  401136 {name} (/prog)\n\n"
        for number, (name, period, event) in enumerate(samples)
    )
    (folder / perf.SCRIPT).write_text("".join(lines) + "# end\n")
    return perf.parse_script(folder, "perf", event)


def test_a_sample_counts_as_much_as_its_period(tmp_path: Path) -> None:
    # At each start of a process, perf adapts the period to its frequency step by step, from 1 on.
    parsed = _parsed(tmp_path, *[("_start", 1, "cycles")] * 40, *[("main", 1_000_000, "cycles")] * 60)
    assert [spot.location for spot in parsed.hotspots] == ["main (prog)", "_start (prog)"]
    assert parsed.hotspots[1].share == pytest.approx(40 / 60_000_040)
    assert sum(cost.count for cost in parsed.costs) == pytest.approx(100)
    assert (tmp_path / "stacks.folded").read_text() == "prog;_start 40\nprog;main 60000000\n"


def test_samples_of_a_second_event_are_not_added_to_the_first(tmp_path: Path) -> None:
    samples = [("main", 5, "cycles"), *[("copy", 900, "cache-misses")] * 3] * 50
    parsed = _parsed(tmp_path, *samples, event="cycles,cache-misses")
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [("main (prog)", 1.0)]
    assert "functions are ranked only by cycles; profile cache-misses in a separate step" in parsed.warnings


def test_samples_of_what_no_function_of_the_harness_calls_are_left_out(tmp_path: Path) -> None:
    stacks = {
        "count suite::call main": 3,
        "read suite::clock main": 40,
        "cut_deep below": 1,
        "[vdso]": 9,
        "clock_gettime@@GLIBC_2.17": 2,
    }
    text = ""
    for stack, number in stacks.items():
        frames = "".join(f"\t12 {name} (/prog)\n" for name in stack.split())
        text += f"prog 1 1.5: cpu-clock:\n{frames}\n" * number
    (tmp_path / perf.SCRIPT).write_text(f"{text}# end\n")
    shares = {
        harness: {spot.location: spot.share for spot in perf.parse_script(tmp_path, "perf", "", harness).hotspots}
        for harness in ("suite::call", "other::", "")
    }
    assert shares["suite::call"] == {"count (prog)": 0.75, "cut_deep (prog)": 0.25}
    # A function that was inlined without debug information is on no stack.
    assert shares["other::"] == shares[""]
    assert len(shares[""]) == 5


def test_functions_whose_long_names_begin_alike_are_several(tmp_path: Path) -> None:
    names = [f"std::vector<{'std::pair<' * 60}int{number}{'>' * 60}>::push_back" for number in range(3)]
    parsed = _parsed(tmp_path, *[(name, 1, "cycles") for name in names * 40])
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
    ("symbol", "library", "frame"),
    [
        ("JS:^run file:///src/a b/hot.mjs:7:3", "/tmp/perf-1.map", Frame("run", "/src/a b/hot.mjs", 7)),
        ("LazyCompile:*get size /src/hot.js:3", "/tmp/perf-1.map", Frame("get size", "/src/hot.js", 3)),
        ("JS:~ node:internal/util:1:1", "/tmp/perf-1.map", Frame("(anonymous)", "node:internal/util", 1)),
        ("py::f.<locals>.<lambda>:<string>", "/tmp/perf-1.map", Frame("f.<locals>.<lambda>", "<string>", 0)),
        ("Interpreter", "/tmp/perf-1.map", Frame("Interpreter (JIT)", "", 0)),
        ("Interpreter", "[JIT] tid 12", Frame("Interpreter (JIT)", "", 0)),
        ("[unknown]", "/tmp/perf-1.map", Frame("[JIT]", "", 0)),
        ("JS:~f /src/hot.js:1:1", "/bin/x", Frame("JS:~f /src/hot.js:1:1 (x)", "", 0)),
    ],
)
def test_names_of_code_made_while_it_runs(symbol: str, library: str, frame: Frame, tmp_path: Path) -> None:
    path = tmp_path / perf.SCRIPT
    path.write_text(f"x 1/1 1.5: cycles:\n\t12 {symbol} ({library})\n\n# end\n")
    (sample,) = perf.read(path, [])
    assert sample.leaf == frame


(COUNTED,) = (path.read_text() for path in DATA.glob("perf-stat/6.1.*/no-pmu/perf-stat.jsonl"))
ROWS = {row["event"]: row for row in map(json.loads, (text for text in COUNTED.splitlines() if text.startswith("{")))}


def _counted(old: str, new: str) -> str:
    assert old in COUNTED
    return COUNTED.replace(old, new)


def _perf_stat(tmp_path: Path, text: str = COUNTED, stderr: str = "") -> Parsed:
    return parsed_from("perf-stat", tmp_path, {"perf-stat.jsonl": text, "stderr": stderr})


NONE = [{**row, "counter-value": "<not supported>"} for row in ROWS.values()]
test_perf_stat_refuses = refusals(
    *("perf-stat", "perf-stat.jsonl"),
    (_counted('"event" : "duration_time"', '"event" : "task-clock"'), "twice"),
    (_counted('"event" : "duration_time"', '"event" : "faults"'), "not requested"),
    (_counted('"event" : "duration_time"', '"event" : "()"'), "not requested"),
    (_counted('"unit" : "msec"', '"unit" : "furlong"'), "furlong"),
    (_counted('"unit" : "msec"', '"unit" : ""'), "unit"),
    (_counted('"<not counted>"', '"<broken>"'), "broken"),
    (_counted('"<not counted>"', '"-3"'), "-3"),
    (_counted('"<not counted>"', '"nan"'), "nan"),
    (_counted("# started", "rubbish"), "not valid JSON"),
    (_counted("# started", "[1]\n# started"), "not an object"),
    (_counted(f'"{ROWS["user_time"]["counter-value"]}"', '"<not counted>"'), "missed its exit status"),
    ("".join(json.dumps(row) + "\n" for row in NONE), "counted nothing"),
)


@pytest.mark.parametrize(
    ("event", "metric"), [("duration_time", "time"), ("page-faults", "page_faults"), ("task-clock", "cpu")]
)
def test_perf_stat_never_takes_zero_for_a_figure_and_keeps_the_others(event: str, metric: str, tmp_path: Path) -> None:
    whole = _perf_stat(tmp_path)
    parsed = _perf_stat(tmp_path, _counted(f'"{ROWS[event]["counter-value"]}"', '"0.000000"'))
    assert parsed.readings == tuple(reading for reading in whole.readings if reading.metric != metric)
    assert f"perf counted 0, which is not valid, for {event}" in parsed.warnings


def test_perf_stat_takes_only_its_own_last_words_for_a_signal(tmp_path: Path) -> None:
    assert _perf_stat(tmp_path, stderr="/bin/y: Killed\n").readings
    assert _perf_stat(tmp_path, stderr="/bin/x: Killed\nmore\n").readings
    with pytest.raises(ToolOutputError, match=r"signal 9 \(Killed\)"):
        _perf_stat(tmp_path, stderr="words\n/bin/x: Killed\n")


def test_a_running_process_is_recorded_for_a_time_or_while_a_command_runs(tmp_path: Path) -> None:
    spinning = "while True:\n    sum(range(1000))\n"
    with subprocess.Popen([PYTHON, "-c", spinning]) as service:
        try:
            ways: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), {"duration": "700ms"}), (("sleep", "0.7"), {})]
            for number, (command, options) in enumerate(ways):
                ran = run("perf", tmp_path / str(number), *command, pid=service.pid, call_graph="none", **options)
                assert parsed_of(ran).hotspots
        finally:
            service.kill()


@pytest.mark.parametrize(
    ("command", "options"),
    [((), {"pid": 1}), (("true",), {"pid": 1, "duration": "1s"}), (("true",), {"duration": "1s"})],
)
def test_what_is_recorded_and_for_how_long_must_be_clear(
    command: tuple[str, ...], options: dict[str, Any], tmp_path: Path
) -> None:
    call = call_of("perf", tmp_path, *command, **options)
    with pytest.raises(ToolOutputError, match=r"`duration`|`pid`"):
        tool("perf").invocations(call)
