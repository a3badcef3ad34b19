"""Parsers of profilers and probes on unusual output, names of code, shapes of SQL, and what all parsers check."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.model.stacks import is_own
from perfflow.tools import symbol_names, tool_files
from perfflow.tools.linux import costly_calls
from perfflow.tools.python import sql_log
from perfflow.tools.valgrind.dhat import Within
from tests.tools.harness import DATA, PYTHON
from tests.tools.tables import answers, argv_of, parsed_from, refusals, refused_by

STRACE = (
    "% time     seconds  usecs/call     calls    errors syscall\n"
    " 75.00    0.000003           1         3         2 open\n 25.00    0.000001           1         1           read\n"
)


@pytest.mark.parametrize("total", ["1 4 2", "4 2"], ids=["5.8 and newer", "older"])
def test_strace_with_and_without_an_average_in_its_totals(total: str, tmp_path: Path) -> None:
    parsed = parsed_from("strace", tmp_path, {"strace.txt": f"{STRACE}100.00 0.000004 {total} total\n"})
    assert [reading.value for reading in parsed.readings] == [4, 2]
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == [("open", 0.75), ("read", 0.25)]


test_strace_refuses = refusals(
    *("strace", "strace.txt"),
    (f"{STRACE}100.00 0.000004 1 4 total\n", "do not add up to its totals"),
    (f"{STRACE}100.00 0.000004 2 total\n", "do not add up to its totals"),
    (f"{STRACE}100.00 0.000004 1 1 4 2 total\n", "an invalid row"),
    (f"{STRACE}100.00 0.004 1 4 2 total\n", "times do not add up"),
    (STRACE, "no line of totals"),
    (STRACE.splitlines()[0] + "\n", "no line of totals"),
    (STRACE.replace("open", "read") + "100.00 0.000004 1 4 2 total\n", "a call twice"),
    (STRACE.replace("2 open", "4 open") + "100.00 0.000004 1 4 4 total\n", "more errors than calls"),
    ("x\n", "no table"),
)


def _iostat(old: str, new: str) -> str:
    """Return captured output with one change."""
    (file,) = DATA.glob("iostat/*/plain/iostat.json")
    text = file.read_text()
    assert old in text
    return text.replace(old, new)


test_iostat_refuses = refusals(
    *("iostat", "iostat.json"),
    (_iostat('"rkB/s": 4.00', '"rkB/s": 9e18'), "disk_read is .*, which is not valid"),
    (_iostat('"idle": 0.00', '"idle": 9.00'), "shares of the processors add up"),
    (_iostat(', "idle": 0.00', ""), "shares of the processors add up"),
    (_iostat('"disk_device": "vda"', '"disk_device": ""'), "disk_device"),
    (_iostat('"hosts": [', '"hosts": [], "others": ['), "hosts"),
    (_iostat('"util": 0.80', '"util": "0,80"'), "util"),
)


# scalene


@pytest.mark.parametrize(("seconds", "functions"), [(1.0, ["inner", "<module>"]), (5e-324, ["inner"])])
def test_scalene_names_no_function_that_took_no_time(seconds: float, functions: list[str], tmp_path: Path) -> None:
    captured = DATA / "scalene" / "2.4.0" / "plain"
    profile = json.loads((captured / "scalene.json").read_text()) | {"elapsed_time_sec": seconds}
    (content,) = profile["files"].values()
    next(row for row in content["lines"] if row["start_function_line"] == 0)["n_cpu_percent_c"] = 0.1
    files = {"status.json": (captured / "status.json").read_text(), "scalene.json": profile}
    assert [cost.function for cost in parsed_from("scalene", tmp_path, files).costs] == functions


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"n_cpu_percent_python": 60.0}, "more than 100%"),
        ({"n_cpu_percent_python": -1.0}, "not valid"),
        ({"n_cpu_percent_c": "1"}, "not a number"),
        ({"lineno": 1.5}, "whole"),
        ({"n_malloc_mb": float("nan")}, "not valid"),
    ],
)
def test_scalene_refuses(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    row = {"line": "x", "lineno": 1, "start_function_line": 0, "n_malloc_mb": 0.0, "n_copy_mb_s": 0.0}
    rows = [{**row, "n_cpu_percent_python": 50.0} | change, {**row, "lineno": 2, "n_cpu_percent_c": 50.0}]
    profile = {"elapsed_time_sec": 2.0, "max_footprint_mb": 0, "files": {"/a.py": {"lines": rows, "functions": []}}}
    files = {"status.json": {"status": 0}, "scalene.json": profile}
    if not reason:
        assert parsed_from("scalene", tmp_path, files, *(PYTHON, "x.py")).hotspots[0].share == 1
    else:
        with pytest.raises(ToolOutputError, match=reason):
            parsed_from("scalene", tmp_path, files, *(PYTHON, "x.py"))


# py-spy


def _py_spy(folder: Path, raw: str, said: str = "", **files: str) -> Parsed:
    return parsed_from("py-spy", folder, {"status.json": {"status": 0}, "py-spy.raw": raw, "py-spy.out": said, **files})


RUNNING = "main (/x/drivers/python_run.py:3)"
DRIVEN = f"{RUNNING};%s;f (a.py:1) 8\ng (a.py:2) 2\n"
WHOLE = " 3\nf (a.py:1) 100\ng (a.py:2) 97\n"
WROTE = "py-spy> Wrote raw flamegraph data to 'x'. Samples: 200 Errors: %d\n"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("f (a.py:1)\n", "not a stack"),
        ("f (a.py:1) -1\n", "not a stack"),
        ("f (a.py:1) 1.5\n", "not a stack"),
        ("f (a.py:1) ٣\n", "not a stack"),
        ("f (a.py:1) " + "9" * 99 + "\n", "not a stack"),
        (DRIVEN % "perfflow_program (/x/drivers/pythonXrun.py:9)", "frame of perfflow's driver"),
        (DRIVEN % "perfflow_program (/x/drivers/python_run.py:-9)", "frame of perfflow's driver"),
        (DRIVEN % "run (/x/drivers/python_run.py:9)TN", "frame of perfflow's driver"),
        (f" 3\n{RUNNING} 1\nperfflow_program (/x/drivers/python_run.py:9) 2\n", "too short"),
        (
            "<module> (<frozen site>:3);main (<frozen site>:4) 20\n_run_module_as_main (<frozen runpy>:198) 14\n",
            "only the interpreter's start-up was sampled",
        ),
        (WHOLE[:-14], r"py-spy\.raw is cut short: it contains 103 of the 200 samples"),
    ],
)
def test_py_spy_refuses(raw: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _py_spy(tmp_path, raw, WROTE % 0 if "cut" in reason else "")


def test_py_spy_that_is_whole_or_fell_behind(tmp_path: Path) -> None:
    assert not _py_spy(tmp_path, WHOLE, WROTE % 0).warnings
    said = "py-spy> 1.21s behind in sampling, results may be inaccurate. Try reducing the sampling rate\n"
    assert _py_spy(tmp_path, WHOLE, said).warnings == ("py-spy fell up to 1.21 s behind: set a lower `rate`",)


def test_py_spy_names_with_parentheses_and_processes_with_semicolons(tmp_path: Path) -> None:
    raw = (
        'process 12:"python -c a; b\nc";process 13:"x";<module> (/a (b)/c.py:7);f (/a (b)/c.py:8) 100\n'
        "PyEval (libpython.so);0x7f (/lib/libc.so.6) 100\n"
    )
    parsed = _py_spy(tmp_path, raw, stderr=WROTE % 7)
    spots = [(spot.location, spot.file, spot.line) for spot in parsed.hotspots]
    assert spots == [("[libc.so.6]", "", 0), ("f", "/a (b)/c.py", 8), ("<module>", "/a (b)/c.py", 7)]
    assert (tmp_path / "stacks.folded").read_text() == (
        "PyEval (libpython.so);[libc.so.6] 100\nprocess: python -c a: b c;process: x;<module> (c.py);f (c.py) 100\n"
    )
    assert parsed.warnings == ("py-spy failed to take 7 samples",)


def test_py_spy_of_a_module_that_runpy_runs(tmp_path: Path) -> None:
    _py_spy(
        tmp_path,
        "_run_module_as_main (<frozen runpy>:198);_run_code (<frozen runpy>:88);<module> (/a/serve.py:9) 300\n",
    )
    assert (tmp_path / "stacks.folded").read_text() == "<module> (serve.py) 300\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"samples": [[0], [2], [0]]}, "a missing frame"),
        ({"samples": [[0], [-1], [0]]}, r"samples\[1\]\[0\] is -1, which is not valid"),
        ({"samples": [[0]]}, "contradict each other"),
        ({"weights": [0.5, 0.5, 0]}, r"weights\[2\] is 0, which is not valid"),
        ({"endValue": 2.5}, "contradict each other"),
        ({"samples": [[], [], []]}, "too short"),
    ],
)
def test_py_spy_speedscope_refuses(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    frames = [{"name": "f", "file": "/a.py", "line": 1}, {"name": "0x7f", "file": "/l.so", "line": None}]
    profile = {"samples": [[0, 1], [], [0]], "weights": [0.5, 0.5, 0.5], "endValue": 1.5} | change
    content = {"shared": {"frames": frames}, "profiles": [profile]}
    files = {"status.json": {"status": 0}, "py-spy.speedscope.json": content}
    if not reason:
        costs = parsed_from("py-spy", tmp_path, files, format="speedscope").costs
        assert [(cost.function, cost.count) for cost in costs] == [("[l.so]", 1), ("f", 1)]
    else:
        with pytest.raises(ToolOutputError, match=reason):
            parsed_from("py-spy", tmp_path, files, format="speedscope")


def test_py_spy_argv(tmp_path: Path) -> None:
    argv = argv_of("py-spy", tmp_path, PYTHON, "x.py", "--rate", rate=7, native=True)
    assert argv[argv.index("--rate") + 1] == "7"
    assert ("--native" in argv, "--gil" in argv) == (True, False)
    assert argv[-3:] == ("script", "x.py", "--rate")


# cProfile


def _cprofile(row: dict[str, object] | None = None, **change: object) -> dict[str, object]:
    whole = {"function": "<sum>", "file": "~", "line": 0, "calls": 1_200_000, "own": 1.0, "cumulative": 3.1}
    return {"status": 0, "total": 1.0, "rows": [whole | (row or {})], **change}


test_cprofile_refuses = refusals(
    *("cprofile", "cprofile.json"),
    (_cprofile(status=3), "status 3"),
    (_cprofile(status=0.5), "whole"),
    (_cprofile(total=2.0), "damaged"),
    (_cprofile(total=0), "not to 0 s"),
    (_cprofile(rows=[]), "no time"),
    (_cprofile(rows=[{"function": "f"}]), "file of f is missing"),
    (_cprofile({"own": -1.0}), "own of <sum> is -1.0, which is not valid"),
    (_cprofile({"line": 1.5}), "line"),
)


def test_cprofile_of_functions_written_in_c(tmp_path: Path) -> None:
    (spot,) = parsed_from("cprofile", tmp_path, {"cprofile.json": _cprofile()}).hotspots
    assert (spot.file, spot.cause) == ("", "measured: 1,200,000 calls, cumulative 3.1 s")


# What all parsers check


IMPOSSIBLE = (float("nan"), float("inf"), -1, 10**400, 2**63, "1", None, True, [1])
test_numbers_that_cannot_be = refused_by(tool_files.number, *((value, "figure", "figure is") for value in IMPOSSIBLE))
NO_FIGURES = ("", "x", "nan", "inf", "-1", "1e999", "1.5.2", "1,234")
test_texts_that_are_no_figure = refused_by(
    tool_files.number_in, *((text, "figure", "figure is") for text in NO_FIGURES)
)


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


test_rust_names = answers(
    symbol_names.plain_rust,
    ("_ZN4demo5queue5Queue6submit17h0123456789abcdefE", "demo::queue::Queue::submit"),
    ("demo::drain::h0123456789abcdef", "demo::drain"),
    ("alloc::boxed::Box$LT$T$GT$::new::h6c49706dee06aebb", "alloc::boxed::Box<T>::new"),
    ("alloc[fdfd2bd8633a6659]::alloc::alloc", "alloc::alloc::alloc"),
    ("operator new[](unsigned long)", "operator new[](unsigned long)"),
    ("_ZN4demo17h01E", "_ZN4demo17h01E"),
)
test_symbol_names = answers(
    symbol_names.plain,
    (
        "kernels::saxpy[LITMutOrigin,::Origin[True, $0]](::Pointer[True, $0, ::SIMD[DType.float32, 1], $1],::Bool)",
        "kernels::saxpy",
    ),
    (
        "std::builtin::_format_float::_to_decimal[::DType,::DType](::SIMD[$0, 1]),CarrierDType=ui64,dtype=f64",
        "std::builtin::_format_float::_to_decimal",
    ),
    ("kernels::add[LITMutOrigin,::Origin[True, $0", "kernels::add"),
    ("kernels::draft::main(::List[::SIMD[DType.int, 1]])", "kernels::draft::main"),
    ("[::SIMD[DType.int, 1]]", "[::SIMD[DType.int, 1]]"),
    ("demo::drain::h0123456789abcdef", "demo::drain"),
    ("std::map<int, int>::operator[](int const&)", "std::map<int, int>::operator[](int const&)"),
    ("<[T] as core::slice::Sort>::sort", "<[T] as core::slice::Sort>::sort"),
    ("bench::main()", "bench::main()"),
)
LIBRARIES = ("/rustc/59/library/core/src/a.rs", "./malloc/./malloc.c", "libio/./libio/x.c", "Mojo/stdlib/std/a.mojo")
OWN = ("src/lib.rs", "/home/a/demo/src/lib.rs", "../src/hot.c", "/usr/src/app/main.c")
test_what_is_own = answers(
    is_own, *((file, False) for file in (*LIBRARIES, "", "???")), *((file, True) for file in OWN)
)
FILE_CALLS = ("__GI___libc_write", "read", "pwrite64", "__open64_nocancel", "ksys_write")
test_a_name_says_what_a_function_does = answers(
    costly_calls.kind_of,
    ("malloc", "allocating and freeing"),
    ("__memmove_avx_unaligned", "copying memory"),
    ("pthread_mutex_lock", "locking"),
    *((name, "reading and writing") for name in FILE_CALLS),
    *((name, "") for name in ("main", "reader", "write_header", "openssl_init", "spread")),
)


def test_an_inlined_function_that_may_be_one_of_two_is_no_figure() -> None:
    within = Within("Queue::submit", ["demo::tasks::Queue::submit", "demo::tasks::Pool::submit"])
    with pytest.raises(ToolOutputError, match="Pool::submit"):
        within.names("submit", "/demo/src/tasks.rs")
    assert Within("tasks::submit", []).names("submit", "/demo/src/tasks.rs")


@pytest.mark.parametrize("kind", ["allocating and freeing", "reading and writing"])
def test_what_is_said_of_costly_calls_is_read_back(kind: str) -> None:
    text = costly_calls.cause(Counter({(kind, "malloc"): 30, (kind, "free(x, y)"): 12, ("other", "f"): 8}), 60)
    assert costly_calls.parse_cause(text) == costly_calls.CostlyCall(kind, 0.7, "malloc, free")
    assert costly_calls.parse_cause("measured: 12 instructions") is None
    assert costly_calls.parse_cause("") is None


test_shape = answers(
    sql_log.shape,
    ("SELECT 1", "SELECT ?"),
    ("select  *\n from t1 where a=-1.5e3 and b = 'it''s; -- no comment';", "select * from t1 where a=? and b = ?"),
    ("SELECT * FROM t WHERE id IN (1, 2,3)", "SELECT * FROM t WHERE id IN (?…)"),
    ("SELECT * FROM t WHERE id IN (?)", "SELECT * FROM t WHERE id IN (?)"),
    ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO t VALUES (?…)…"),
    ("SELECT a -- the first\nFROM t /* of\nmany */ WHERE b = $1", "SELECT a FROM t WHERE b = ?"),
    ("SELECT %s, %(name)s, :name, ?1, x::int FROM t", "SELECT ?, ?, ?, ?, x::int FROM t"),
    ('SELECT "col 1", `2` FROM "t 3" WHERE c1 = 0xFF', 'SELECT "col 1", `2` FROM "t 3" WHERE c1 = ?'),
    ("SELECT a - 1, b-2 FROM t", "SELECT a - ?, b-? FROM t"),
    ("-- nothing else", ""),
    ("", ""),
)


def test_a_shape_has_a_shape_of_its_own() -> None:
    text = "SELECT a FROM t WHERE b IN (1, 2) AND c = 'x'"
    assert sql_log.shape(sql_log.shape(text).replace("?…", "?, ?")) == sql_log.shape(text)


def test_what_opens_a_transaction_asks_for_no_data() -> None:
    assert not any(map(sql_log.asks_for_data, ("BEGIN", "COMMIT", "SAVEPOINT a", "PRAGMA x", "SET a = ?")))
    assert all(map(sql_log.asks_for_data, ("SELECT ?", "(SELECT ?)", "with a as (b) select c", "UPDATE t SET a = ?")))


test_a_format_is_told_by_its_marks = answers(
    sql_log.format_of,
    (["(0.001) SELECT 1; args=(); alias=default"], "django"),
    (["2026-01-31 INFO sqlalchemy.engine.Engine SELECT 1"], "sqlalchemy"),
    (["[3] LOG:  statement: SELECT 1"], "postgres"),
    (["SELECT 1"], "plain"),
)


def test_lines_that_are_no_statement_end_one() -> None:
    log = ["[3] LOG:  statement: SELECT a", "\tFROM t", "[3] LOG:  connection lost", "\tFROM u"]
    assert list(sql_log.statements(log, "postgres")) == ["SELECT a\n\tFROM t"]
