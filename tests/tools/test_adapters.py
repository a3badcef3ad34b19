"""Parsers on unusual output, and the command lines that adapters build."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools import tool_files
from perfflow.tools.adapter import Call
from tests.tools.harness import DATA, PYTHON, USAGE, call_of, tool

SHELL: dict[str, Any] = {"shell": True}


def _parse(name: str, folder: Path, **files: str) -> Parsed:
    """Parse files given by name, with ``__`` for the dot."""
    for file, text in files.items():
        (folder / file.replace("__", ".").replace("_out", ".out")).write_text(text)
    return tool(name).parse(call_of(name, folder, "/bin/x"), USAGE)


def _argv(name: str, folder: Path, *command: str, **options: Any) -> tuple[str, ...]:
    return tool(name).invocations(call_of(name, folder, *command, **options))[0].argv


def test_hyperfine_argv(tmp_path: Path) -> None:
    argv = _argv("hyperfine", tmp_path, "/bin/x", "a b")
    assert argv[-2:] == ("--", "/bin/x 'a b'")
    assert "--shell=none" in argv
    assert not {"-i", "-N", "-S"} & set(argv)
    argv = _argv("hyperfine", tmp_path, "a | b", **SHELL)
    assert argv[-1] == "a | b"
    assert "--shell=default" in argv


def test_hyperfine_label_cannot_be_a_flag(tmp_path: Path) -> None:
    call = call_of("hyperfine", tmp_path, "/bin/x")
    named = Call(call.options, tmp_path, call.program, call.command, benchmark="-i" + "x" * 999)
    argv = tool("hyperfine").invocations(named)[0].argv
    assert next(word for word in argv if word.startswith("--command-name=-ixxx"))
    assert max(map(len, argv)) < 300


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"times": [0.0]}, "a run of 0 s"),
        ({"times": [-1]}, r"times\[0\] of x is -1, which is not valid"),
        ({"times": ["1"]}, "not a number"),
        ({"times": [True]}, "not a number"),
        ({"times": []}, "no run with a time"),
        ({"times": 1}, "times of x is not a list"),
        ({"times": [1], "exit_codes": [None]}, "signal"),
        ({"times": [1], "exit_codes": [3]}, "status 3"),
        ({"times": [1], "exit_codes": [-9]}, "status -9"),
        ({"times": [1], "user": 1e300}, "user of x is 1e"),
        ({"measurements": []}, "no run with a time"),
        ({"measurements": [1]}, r"measurements\[0\] of x is not an object"),
        ({"measurements": [{"time_wall_clock": 1.0}]}, "time_wall_clock of x is not an object"),
        ({"measurements": [{"time_wall_clock": {"value": 1, "unit": "fortnight"}}]}, "unit of x is 'fortnight', which"),
        ({"measurements": [{"time_wall_clock": {"value": 0, "unit": "second"}}]}, "is 0"),
    ],
)
def test_hyperfine_refuses(result: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("hyperfine", tmp_path, hyperfine__json=json.dumps({"results": [{"command": "x", **result}]}))


def test_hyperfine_of_several_runs(tmp_path: Path) -> None:
    parsed = _parse(
        "hyperfine", tmp_path, hyperfine__json=json.dumps({"results": [{"command": "x", "times": [3, 1, 2]}]})
    )
    assert parsed.readings[0].value == 2
    assert parsed.readings[0].inner["n"] == 3


def test_hyperfine_units(tmp_path: Path) -> None:
    run = {
        "time_wall_clock": {"value": 1500, "unit": "millisecond"},
        "memory_peak_resident": {"value": 2, "unit": "mebibyte"},
    }
    parsed = _parse(
        "hyperfine", tmp_path, hyperfine__json=json.dumps({"results": [{"command": "x", "measurements": [run]}]})
    )
    assert [reading.value for reading in parsed.readings] == [1.5, 2 * 1024**2]


def _perf_stat(tmp_path: Path, old: str, new: str, stderr: str = "") -> Parsed:
    (file,) = DATA.glob("perf-stat/6.1.*/no-pmu/perf-stat.jsonl")
    text = file.read_text()
    assert old in text
    return _parse("perf-stat", tmp_path, **{"perf-stat__jsonl": text.replace(old, new), "stderr": stderr})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"event" : "duration_time"', '"event" : "task-clock"', "twice"),
        ('"event" : "duration_time"', '"event" : "faults"', "not requested"),
        ('"event" : "duration_time"', '"event" : "()"', "not requested"),
        ('"unit" : "msec"', '"unit" : "furlong"', "furlong"),
        ('"unit" : "msec"', '"unit" : ""', "unit"),
        ('"<not counted>"', '"<broken>"', "broken"),
        ('"<not counted>"', '"-3"', "-3"),
        ('"<not counted>"', '"nan"', "nan"),
        ("# started", "rubbish", "not valid JSON"),
        ("# started", "[1]\n# started", "not an object"),
    ],
)
def test_perf_stat_refuses(old: str, new: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _perf_stat(tmp_path, old, new)


@pytest.mark.parametrize("event", ["duration_time", "page-faults", "task-clock"])
def test_perf_stat_never_takes_zero_for_a_figure_and_keeps_the_others(event: str, tmp_path: Path) -> None:
    (file,) = DATA.glob("perf-stat/6.1.*/no-pmu/perf-stat.jsonl")
    line = next(line for line in file.read_text().splitlines() if f'"{event}"' in line)
    value = json.loads(line)["counter-value"]
    whole, parsed = _perf_stat(tmp_path, "#", "#"), _perf_stat(tmp_path, f'"{value}"', '"0.000000"')
    metric = {"duration_time": "time", "page-faults": "page_faults", "task-clock": "cpu"}[event]
    assert parsed.readings == tuple(reading for reading in whole.readings if reading.metric != metric)
    assert f"perf counted 0, which is not valid, for {event}" in parsed.warnings


def test_perf_stat_that_missed_the_end_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="missed its exit status"):
        _perf_stat(tmp_path, _user_time(), '"<not counted>"')


def _user_time() -> str:
    (file,) = DATA.glob("perf-stat/6.1.*/no-pmu/perf-stat.jsonl")
    line = next(line for line in file.read_text().splitlines() if '"user_time"' in line)
    return f'"{json.loads(line)["counter-value"]}"'


def test_perf_stat_without_any_counter(tmp_path: Path) -> None:
    (file,) = DATA.glob("perf-stat/6.1.*/no-pmu/perf-stat.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    text = "".join(json.dumps({**row, "counter-value": "<not supported>"}) + "\n" for row in rows)
    with pytest.raises(ToolOutputError, match="counted nothing"):
        _parse("perf-stat", tmp_path, **{"perf-stat__jsonl": text})


def test_perf_stat_takes_only_its_own_last_words_for_a_signal(tmp_path: Path) -> None:
    assert _perf_stat(tmp_path, "#", "#", "/bin/y: Killed\n").readings
    assert _perf_stat(tmp_path, "#", "#", "/bin/x: Killed\nmore\n").readings
    with pytest.raises(ToolOutputError, match=r"signal 9 \(Killed\)"):
        _perf_stat(tmp_path, "#", "#", "words\n/bin/x: Killed\n")


def test_perf_argv(tmp_path: Path) -> None:
    record, script = tool("perf").invocations(call_of("perf", tmp_path, "/bin/x", "-o", "y"))
    assert record.argv[-4:] == ("--", "/bin/x", "-o", "y")
    assert "dwarf,8192" in record.argv
    assert "-e" not in record.argv
    assert script.stdout == "perf.script"
    assert "--call-graph" not in _argv("perf", tmp_path, "/bin/x", call_graph="none", event="cycles:u")
    assert "cycles:u" in _argv("perf", tmp_path, "/bin/x", call_graph="none", event="cycles:u")


@pytest.mark.parametrize(
    "options", [{"event": "-o"}, {"event": "a b"}, {"frequency": 0}, {"call_graph": "stack"}, {"x": 1}]
)
def test_perf_options_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        call_of("perf", tmp_path, "/bin/x", **options)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\t  12 main (/bin/x)\n", "does not start"),
        ("x 1/1 1.5: cycles:\n\tnonsense\n", "not a frame"),
        ("x 1/1 1.5: cycles:\n  hot.c:4\n", "not a frame"),
        ("x 1/1 1.5: cycles:\n" + "\t12 f (/x)\n" * 600, "more than 512"),
        ("x 1/1 1.5: cycles:", "cut short"),
        ("x 1/1 1.5: cycles:\n\t12 f (/x)\n\n", "cut short: its last line is missing"),
    ],
)
def test_perf_refuses(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("perf", tmp_path, perf__script=text)


def test_perf_of_many_threads_names_long_and_strange(tmp_path: Path) -> None:
    text = f"a  b/c  7/8 1.5: cpu-clock:\n\t12 {'T<' * 9000} (/bin/x)\n\n" * 120 + "# end\n"
    parsed = _parse("perf", tmp_path, perf__script=text)
    assert len(parsed.hotspots) == 1
    assert len(parsed.hotspots[0].location) < 450
    sampled, sources = parsed.warnings
    assert sampled == "sampled by the timer cpu-clock, since this machine has no hardware counters for perf"
    assert sources.startswith("no sample has a source file of the project")
    assert (tmp_path / "stacks.folded").read_text().startswith("a b/c;T<")


STRACE = (
    "% time     seconds  usecs/call     calls    errors syscall\n"
    " 75.00    0.000003           1         3         2 open\n 25.00    0.000001           1         1           read\n"
)


@pytest.mark.parametrize("total", ["1 4 2", "4 2"], ids=["5.8 and newer", "older"])
def test_strace_with_and_without_an_average_in_its_totals(total: str, tmp_path: Path) -> None:
    parsed = _parse("strace", tmp_path, strace__txt=f"{STRACE}100.00 0.000004 {total} total\n")
    assert [reading.value for reading in parsed.readings] == [4, 2]
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [("open", 0.75), ("read", 0.25)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{STRACE}100.00 0.000004 1 4 total\n", "do not add up to its totals"),
        (f"{STRACE}100.00 0.000004 2 total\n", "do not add up to its totals"),
        (f"{STRACE}100.00 0.000004 1 1 4 2 total\n", "an invalid row"),
        (f"{STRACE}100.00 0.004 1 4 2 total\n", "times do not add up"),
        (STRACE, "no line of totals"),
        (STRACE.splitlines()[0] + "\n", "no line of totals"),
        (STRACE.replace("open", "read") + "100.00 0.000004 1 4 2 total\n", "a call twice"),
        (STRACE.replace("2 open", "4 open") + "100.00 0.000004 1 4 4 total\n", "more errors than calls"),
        ("x\n", "no table"),
    ],
)
def test_strace_refuses(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("strace", tmp_path, strace__txt=text)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"rkB/s": 4.00', '"rkB/s": 9e18', "disk_read is .*, which is not valid"),
        ('"idle": 0.00', '"idle": 9.00', "shares of the processors add up"),
        (', "idle": 0.00', "", "shares of the processors add up"),
        ('"disk_device": "vda"', '"disk_device": ""', "disk_device"),
        ('"hosts": [', '"hosts": [], "others": [', "hosts"),
        ('"util": 0.80', '"util": "0,80"', "util"),
    ],
)
def test_iostat_refuses(old: str, new: str, reason: str, tmp_path: Path) -> None:
    (file,) = DATA.glob("iostat/*/plain/iostat.json")
    text = file.read_text()
    assert old in text
    with pytest.raises(ToolOutputError, match=reason):
        _parse("iostat", tmp_path, iostat__json=text.replace(old, new))


def test_massif_skips_allocators(tmp_path: Path) -> None:
    tree = """n1: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 1000 0x1: xmalloc (x.c:1)
  n1: 700 0x2: std::vector<int>::grow(int) (v.h:2)
   n0: 700 0x3: main (m.c:3)
  n0: 300 in 4 places, all below massif's threshold (1.00%)
"""
    parsed = _parse("massif", tmp_path, **{"massif.1_out": _massif(1000, tree)})
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [
        ("std::vector<int>::grow(int)", 0.7),
        ("xmalloc", 0.3),
    ]


def test_massif_without_symbols(tmp_path: Path) -> None:
    tree = "n1: 9 (heap allocation functions) x\n n0: 9 0x1: ??? (in /usr/lib/libx.so (1))\n"
    assert _parse("massif", tmp_path, **{"massif.1_out": _massif(9, tree)}).hotspots[0].location == "??? (libx.so (1))"


def test_massif_without_a_tree_at_the_peak(tmp_path: Path) -> None:
    text = _massif(9, "").replace("heap_tree=detailed", "heap_tree=empty")
    parsed = _parse("massif", tmp_path, **{"massif.1_out": text})
    assert not parsed.hotspots
    assert "unknown" in parsed.warnings[0]


@pytest.mark.parametrize(
    "tree",
    [
        "n2: 9 (heap)\n n0: 9 0x1: f (a.c:1)\n",
        "n1: 9 (heap)\n n0: 10 0x1: f (a.c:1)\n",
        "n1: 9 (heap)\n   n0: 9 0x1: f (a.c:1)\n",
        "n0: 9 (heap)\nn0: 9 (heap)\n",
        "n0: 8 (heap)\n",
        "n1: 9 (heap)\n n0: -9 0x1: f (a.c:1)\n",
        " n0: 9 (heap)\n",
        "",
    ],
)
def test_massif_refuses_trees_that_do_not_add_up(tree: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"massif\.1\.out"):
        _parse("massif", tmp_path, **{"massif.1_out": _massif(9, tree)})


def _massif(heap: int, tree: str) -> str:
    ruler = "#-----------"
    figures = f"time=1\nmem_heap_B={heap}\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n"
    return f"desc: x\ncmd: ./x\ntime_unit: i\n{ruler}\nsnapshot=0\n{ruler}\n{figures}{tree}"


OK = '{"status": 0}'


@pytest.mark.parametrize(
    "line", ["f (a.py:1)", "f (a.py:1) -1", "f (a.py:1) 1.5", "f (a.py:1) ٣", "f (a.py:1) " + "9" * 99]
)
def test_py_spy_refuses(line: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="not a stack"):
        _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": line + "\n"})


@pytest.mark.parametrize(
    "frame",
    [
        "perfflow_program (/x/drivers/pythonXrun.py:9)",
        "perfflow_program (/x/drivers/python_run.py:-9)",
        "run (/x/drivers/python_run.py:9)TN",
    ],
)
def test_py_spy_with_a_damaged_frame_of_the_driver(frame: str, tmp_path: Path) -> None:
    raw = f"main (/x/drivers/python_run.py:3);{frame};f (a.py:1) 8\ng (a.py:2) 2\n"
    with pytest.raises(ToolOutputError, match="frame of perfflow's driver"):
        _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": raw})


@pytest.mark.parametrize(("seconds", "functions"), [(1.0, ["inner", "<module>"]), (5e-324, ["inner"])])
def test_scalene_names_no_function_that_took_no_time(seconds: float, functions: list[str], tmp_path: Path) -> None:
    captured = DATA / "scalene" / "2.4.0" / "plain"
    profile = json.loads((captured / "scalene.json").read_text()) | {"elapsed_time_sec": seconds}
    (content,) = profile["files"].values()
    next(row for row in content["lines"] if row["start_function_line"] == 0)["n_cpu_percent_c"] = 0.1
    (tmp_path / "status.json").write_bytes((captured / "status.json").read_bytes())
    (tmp_path / "scalene.json").write_text(json.dumps(profile))
    found = tool("scalene").parse(call_of("scalene", tmp_path, "/bin/x"), USAGE)
    assert [cost.function for cost in found.costs] == functions


def test_py_spy_cut_at_the_end_of_a_line(tmp_path: Path) -> None:
    whole = " 3\nf (a.py:1) 100\ng (a.py:2) 97\n"
    said = "py-spy> Wrote raw flamegraph data to 'x'. Samples: 200 Errors: 0\n"
    parsed = _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": whole, "py-spy__out": said})
    assert not parsed.warnings
    with pytest.raises(ToolOutputError, match=r"py-spy\.raw is cut short: it contains 103 of the 200 samples"):
        _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": whole[:-14], "py-spy__out": said})


def test_py_spy_of_the_driver_alone(tmp_path: Path) -> None:
    raw = " 3\nmain (/x/drivers/python_run.py:3) 1\nperfflow_program (/x/drivers/python_run.py:9) 2\n"
    with pytest.raises(ToolOutputError, match="too short"):
        _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": raw})


def test_py_spy_names_with_parentheses_and_processes_with_semicolons(tmp_path: Path) -> None:
    raw = (
        'process 12:"python -c a; b\nc";process 13:"x";<module> (/a (b)/c.py:7);f (/a (b)/c.py:8) 100\n'
        "PyEval (libpython.so);0x7f (/lib/libc.so.6) 100\n"
    )
    said = "py-spy> Wrote raw flamegraph data. Samples: 200 Errors: 7\n"
    parsed = _parse("py-spy", tmp_path, status__json=OK, stderr=said, **{"py-spy__raw": raw})
    assert [(spot.location, spot.file, spot.line) for spot in parsed.hotspots] == [
        ("[libc.so.6]", "", 0),
        ("f", "/a (b)/c.py", 8),
    ]
    assert (tmp_path / "stacks.folded").read_text() == (
        "PyEval (libpython.so);[libc.so.6] 100\nprocess: python -c a: b c;process: x;<module> (c.py);f (c.py) 100\n"
    )
    assert parsed.warnings == ("py-spy failed to take 7 samples",)


def test_py_spy_of_a_shim_that_only_starts_an_interpreter(tmp_path: Path) -> None:
    raw = "<module> (<frozen site>:3);main (<frozen site>:4) 20\n_run_module_as_main (<frozen runpy>:198) 14\n"
    with pytest.raises(ToolOutputError, match="only the interpreter's start-up was sampled"):
        _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": raw})


def test_py_spy_of_a_module_that_runpy_runs(tmp_path: Path) -> None:
    raw = "_run_module_as_main (<frozen runpy>:198);_run_code (<frozen runpy>:88);<module> (/a/serve.py:9) 300\n"
    _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": raw})
    assert (tmp_path / "stacks.folded").read_text() == "<module> (serve.py) 300\n"


def test_py_spy_that_fell_behind(tmp_path: Path) -> None:
    said = "py-spy> 1.21s behind in sampling, results may be inaccurate. Try reducing the sampling rate\n"
    parsed = _parse("py-spy", tmp_path, status__json=OK, **{"py-spy__raw": "f (a.py:1) 100\n", "py-spy__out": said})
    assert parsed.warnings == ("py-spy fell up to 1.21 s behind: set a lower `rate`",)


SPEEDSCOPE: dict[str, Any] = {
    "shared": {"frames": [{"name": "f", "file": "/a.py", "line": 1}, {"name": "0x7f", "file": "/l.so", "line": None}]},
    "profiles": [{"samples": [[0, 1], [], [0]], "weights": [0.5, 0.5, 0.5], "endValue": 1.5}],
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"samples": [[0], [2], [0]]}, "a missing frame"),
        ({"samples": [[0], [-1], [0]]}, r"samples\[1\]\[0\] is -1, which is not valid"),
        ({"samples": [[0], 1, [0]]}, r"samples\[1\] is not a list"),
        ({"samples": [[0], [True], [0]]}, r"samples\[1\]\[0\] is True, not a whole number"),
        ({"samples": [[0]]}, "contradict each other"),
        ({"weights": [0.5, 0.5, 0]}, r"weights\[2\] is 0, which is not valid"),
        ({"endValue": 2.5}, "contradict each other"),
        ({"samples": None}, "samples is not a list"),
        ({"samples": [[], [], []]}, "too short"),
    ],
)
def test_py_spy_speedscope_refuses(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    whole = _speedscope({})
    assert whole == [("[l.so]", 1), ("f", 1)]
    with pytest.raises(ToolOutputError, match=reason):
        _speedscope(change, tmp_path)


def _speedscope(change: dict[str, object], folder: Path | None = None) -> list[tuple[str, float]]:
    data = {**SPEEDSCOPE, "profiles": [SPEEDSCOPE["profiles"][0] | change]}
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        (place / "status.json").write_text(OK)
        (place / "py-spy.speedscope.json").write_text(json.dumps(data))
        parsed = tool("py-spy").parse(call_of("py-spy", place, "/bin/x", format="speedscope"), USAGE)
    return [(cost.function, cost.count) for cost in parsed.costs]


def test_py_spy_argv(tmp_path: Path) -> None:
    argv = _argv("py-spy", tmp_path, PYTHON, "x.py", "--rate", rate=7, native=True)
    assert argv[argv.index("--rate") + 1] == "7"
    assert "--native" in argv
    assert "--gil" not in argv
    assert argv[-3:] == ("script", "x.py", "--rate")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": 3}, "status 3"),
        ({"status": None}, "status is missing"),
        ({"status": 0.5}, "whole"),
        ({"total": 2.0}, "damaged"),
        ({"total": 0}, "not to 0 s"),
        ({"rows": []}, "no time"),
        ({"rows": {}}, "rows is not a list"),
        ({"rows": [1]}, r"rows\[0\] is not an object"),
        ({"rows": [{"function": "f"}]}, "file of f is missing"),
        (
            {"rows": [{"function": "f", "file": "a", "line": 1, "calls": 1, "own": -1.0, "cumulative": 1.0}]},
            "own of f is -1.0, which is not valid",
        ),
        ({"rows": [{"function": "f", "file": "a", "line": 1.5, "calls": 1, "own": 1.0, "cumulative": 1.0}]}, "line"),
    ],
)
def test_cprofile_refuses(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("cprofile", tmp_path, cprofile__json=json.dumps(_cprofile() | change))


def test_cprofile_of_functions_written_in_c(tmp_path: Path) -> None:
    parsed = _parse("cprofile", tmp_path, cprofile__json=json.dumps(_cprofile()))
    assert parsed.hotspots[0].file == ""
    assert parsed.hotspots[0].cause == "measured: 1,200,000 calls, cumulative 3.1 s"


def _cprofile() -> dict[str, object]:
    row = {"function": "<sum>", "file": "~", "line": 0, "calls": 1_200_000, "own": 1.0, "cumulative": 3.1}
    return {"status": 0, "total": 1.0, "rows": [row]}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1, 10**400, 2**63, "1", None, True, [1]], ids=lambda _: ""
)
def test_numbers_that_cannot_be(value: object) -> None:
    with pytest.raises(ToolOutputError, match="figure is"):
        tool_files.number(value, "figure")


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-1", "1e999", "1.5.2", "1,234"])
def test_texts_that_are_no_figure(text: str) -> None:
    with pytest.raises(ToolOutputError, match="figure is"):
        tool_files.number_in(text, "figure")


def test_figures_with_a_decimal_comma() -> None:
    assert tool_files.number_in(" 1,5 ", "figure") == 1.5
    assert tool_files.number_in("1,234000", "figure") == 1.234


def test_clean_names() -> None:
    assert tool_files.clean_name("a\x1b[31m\ud800\n") == "a?[31m??"
    assert tool_files.clean_name(" ") == "?"
    assert len(tool_files.clean_name("x" * 10_000)) == tool_files.LONGEST_NAME


def test_last_words(tmp_path: Path) -> None:
    assert tool_files.last_words(tmp_path) == ""
    (tmp_path / "stderr").write_bytes(b"x" * 9000 + b"\nlast \xff words\n \n")
    assert tool_files.last_words(tmp_path) == "last � words"
