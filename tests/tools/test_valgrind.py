"""valgrind's tools: their parsers on unusual output, and real runs.

Real counts are compared with valgrind's own annotator, with each other, and with known amounts of work.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.tools.valgrind import callgrind, massif
from tests.long import rest_long
from tests.tools.harness import DATA, PYTHON, Ran, call_of, failure_seen, parsed_of, run, tool, values_of
from tests.tools.tables import answers, parsed_from, refusals

Built = Mapping[str, str]
_ANNOTATED = re.compile(r"^ *([\d,]+) +\(.{6}\) +.*?:([^:].*?)(?: \[[^]]*\])?$")
HEAD = "version: 1\ncmd: ./x\npart: 1\npositions: line\nevents: Ir Dr\nsummary: 10 1\n"
BODY = "ob=(1) /bin/x\nfl=(1) /src/a.c\nfn=(1) main\n3 4 1\n"
CALL = "cfn=(2) work\ncalls=1 +9\n* 999 7\n+2 6\n"
LONG = [f"std::vector<{'std::pair<' * 60}int{number}{'>' * 60}>::push_back" for number in range(3)]


def _costs(folder: Path, text: str) -> callgrind.Costs:
    path = folder / "callgrind.1.out"
    path.write_text(text)
    return callgrind.read(path)


def test_costs_of_callees_are_not_added(tmp_path: Path) -> None:
    costs = _costs(tmp_path, HEAD + BODY + CALL + "totals: 10 1\n")
    assert costs.totals == {"Ir": 10, "Dr": 1}
    function = callgrind.CalledFunction("main", "/bin/x", "/src/a.c")
    assert costs.functions == {function: {("/src/a.c", 3): 4, ("/src/a.c", 5): 6}}


def test_costs_of_inlined_source_belong_to_their_function(tmp_path: Path) -> None:
    inlined = "fi=(2) /src/b.h\n7 5\nfe=(1)\n-3 1\nfn=(3) next\n"
    costs = _costs(tmp_path, HEAD + BODY + inlined + "9 2\ntotals: 12 1\n")
    assert costs.functions == {
        callgrind.CalledFunction("main", "/bin/x", "/src/a.c"): {
            ("/src/a.c", 3): 4, ("/src/b.h", 7): 5, ("/src/a.c", 4): 1,
        },
        callgrind.CalledFunction("next", "/bin/x", "/src/a.c"): {("/src/a.c", 9): 2},
    }  # fmt: skip
    spots = callgrind.hotspots_of([costs], "callgrind")
    assert (spots[0].file, spots[0].line) == ("/src/a.c", 3)
    assert spots[0].cause == "measured: 10 instructions, most in inlined b.h:7"


def test_costs_with_instructions_jumps_and_missing_figures(tmp_path: Path) -> None:
    head = HEAD.replace("positions: line", "positions: instr line")
    body = BODY.replace("3 4 1", "0x10 3 4 1\njcnd=3/9 +4 *\n+4 *\njump=2 0x20 9\n* *\n+0x2 +1 6")
    assert _costs(tmp_path, head + body + "totals: 10 1\n").totals == {"Ir": 10, "Dr": 1}


def test_costs_of_a_command_with_line_ends(tmp_path: Path) -> None:
    head = HEAD.replace("cmd: ./x", "cmd: python -c fn=1\nx=2\ntotals: 7")
    costs = _costs(tmp_path, head + BODY + "totals: 4 1\n")
    assert (costs.command, costs.totals["Ir"]) == ("python -c fn=1", 4)


test_callgrind_refuses = refusals(
    *("callgrind", "callgrind.1.out"),
    (HEAD + BODY + "totals: 5 1\n", "do not add up"),
    (HEAD + BODY + "totals: 4\n", "do not add up"),
    (HEAD + BODY + "summary: 4 1\nsummary: 4 1\n", "summary twice"),
    (HEAD + BODY + "totals: x 1\n", "do not add up"),
    (HEAD + BODY, "cut short"),
    (HEAD + BODY + "totals: 4 1\n3 1\n", "cut short"),
    (HEAD + "3 4 1\n", "outside of a function"),
    (HEAD + BODY + "4 1 2 3\n", "invalid cost line"),
    (HEAD + BODY + "4 -1\n", "invalid cost line"),
    (HEAD + BODY + "4 1.5\n", "invalid cost line"),
    (HEAD + BODY + "+ 1\n", "position"),
    (HEAD + BODY + "-9 1\n", "refers to line"),
    (HEAD + BODY + "fn=(7)\n", "before its definition"),
    (HEAD + BODY + "events: Ir\n", "events change"),
    (HEAD + "events: Dr\n", "events change"),
    (HEAD + "positions: instr\n", "no source lines"),
    (HEAD + "nonsense\n", "unknown line"),
    ("events:\n", "events change"),
    ("totals: \n", "do not add up"),
    (HEAD + "totals: 0 0\n", "no instruction"),
)
CACHES = HEAD.replace("Ir Dr", "Ir ILmr DLmr DLmw")
test_cachegrind_refuses = refusals(
    *("cachegrind", "cachegrind.1.out"),
    (CACHES + "totals: 0 0 0 0\n", "no instruction"),
    (HEAD + BODY + "summary: 4 1\n", "lacks ILmr, DLmr, DLmw"),
)


def test_functions_without_a_name_or_source_are_their_library(tmp_path: Path) -> None:
    body = "ob=/lib/x.so\nfl=???\nfn=0x00a0\n0 1\nfn=???\n0 2\nfn=known\n0 3\nob=\nfn=???\n0 4\n"
    spots = callgrind.hotspots_of([_costs(tmp_path, HEAD + body + "totals: 10 0\n")], "callgrind")
    found = [(spot.location, round(spot.share * 10), spot.line) for spot in spots]
    assert found == [("???", 4, 0), ("[x.so]", 3, 0), ("known (x.so)", 3, 0)]


def test_static_functions_of_one_name_stay_apart(tmp_path: Path) -> None:
    text = HEAD + "fl=/src/a.c\nfn=init\n1 4\nfl=/src/b.c\nfn=init\n1 5\nfl=/src/a.h\nfn=init\n1 1\nsummary: 10 0\n"
    for changed, parts in (
        (text, [("/src/b.c", 5), ("/src/a.c", 4), ("/src/a.h", 1)]),
        (text.replace("/src/b.c", "/src/b.h"), [("/src/a.c", 10)]),
        (text.replace("init", "init(int)"), [("/src/a.c", 10)]),
    ):
        found = callgrind.costs_of([_costs(tmp_path, changed)])
        assert [(cost.file, cost.count) for cost in found] == parts


def test_callgrind_of_a_fork_it_did_not_see(tmp_path: Path) -> None:
    one = HEAD + BODY + "totals: 4 1\n"
    parsed = parsed_from("callgrind", tmp_path, {"callgrind.1.out": one, "callgrind.2.out": one})
    assert values_of(parsed) == {"instructions": 8}
    assert "counted again in each child" in parsed.warnings[1]


@pytest.mark.parametrize(
    ("name", "wanted", "env"),
    [
        ("callgrind", "--dump-before=fork", {"PYTHONHASHSEED": "0"}),
        ("cachegrind", "--LL=8388608,16,64", {"PYTHONHASHSEED": "0"}),
        ("dhat", "--num-callers=500", {"PYTHONMALLOC": "malloc"}),
    ],
)
def test_argv_of_valgrind(name: str, wanted: str, env: dict[str, str], tmp_path: Path) -> None:
    (step,) = tool(name).invocations(call_of(name, tmp_path, "/bin/x", "--tool=none"))
    assert {wanted, f"--tool={name}", "--trace-children=yes"} <= set(step.argv)
    assert (step.argv[-2:], step.env) == (("/bin/x", "--tool=none"), env)
    if name != "dhat":
        assert not tool(name).invocations(call_of(name, tmp_path, "/bin/x", hash_seed=False))[0].env


@pytest.mark.parametrize("options", [{"ll": "8M,16,64"}, {"i1": ""}, {"d1": "1,2"}, {"caches": True}], ids=str)
def test_cachegrind_options_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        call_of("cachegrind", tmp_path, "/bin/x", **options)


FRAMES = ["[root]", "0x1: malloc (in /usr/libexec/vgpreload.so)", "0x2: f(int) const (a.c:3)", "0x3: main (a.c:9)"]


def _point(tb: int = 1, tbk: int = 1, gb: int = 0, fs: tuple[object, ...] = ()) -> dict[str, object]:
    return {"tb": tb, "tbk": tbk, "gb": gb, "fs": list(fs)}


def _dhat(*points: object, **change: object) -> dict[str, object]:
    found = [*points] or [_point(10, 2, 6, (1, 2, 3))]
    return {"dhatFileVersion": 2, "mode": "heap", "cmd": "./x", "pps": found, "ftbl": FRAMES, **change}


def test_dhat_within_a_name_with_parameters(tmp_path: Path) -> None:
    parsed = parsed_from("dhat", tmp_path, {"dhat.1.out": _dhat(), "symbols": "f(int) const\n"}, within="f")
    assert values_of(parsed) == {"alloc": 10, "allocs": 2}
    assert parsed.hotspots[0].location == "f(int) const"


def test_dhat_says_when_stacks_are_cut(tmp_path: Path) -> None:
    files = {"dhat.1.out": _dhat(_point(fs=(2,) * 500)), "symbols": "g\n"}
    warnings = parsed_from("dhat", tmp_path, files, within="g").warnings
    assert [warning.split()[0] for warning in warnings] == ["nothing", "stacks"]


def test_dhat_without_frames(tmp_path: Path) -> None:
    assert parsed_from("dhat", tmp_path, {"dhat.1.out": _dhat(_point())}).hotspots[0].location == "[no frame]"


test_dhat_refuses = refusals(
    *("dhat", "dhat.1.out"),
    (_dhat(dhatFileVersion=3), "dhatFileVersion is 3, which is not valid"),
    (_dhat(mode="copy"), "mode is 'copy', which perfflow does not know"),
    (_dhat(pps=[]), "saw no allocation:"),
    (_dhat({"tb": 1, "tbk": 1, "fs": []}), "lacks gb"),
    (_dhat(_point(gb=2)), "is not possible"),
    (_dhat(_point(tbk=0)), "is not possible"),
    (_dhat(_point(-1, 0)), r"pps\[0\].tb is -1"),
    (_dhat(_point(fs=(4,))), "not in the table of frames"),
    (_dhat(_point(fs=("1",))), r"pps\[0\].fs\[0\] is '1', not a whole number"),
)


def test_dhat_does_not_add_units_to_bytes(tmp_path: Path) -> None:
    files = {"written-0.json": _dhat(mode="rust-heap"), "written-1.json": _dhat(mode="rust-ad-hoc")}
    with pytest.raises(ToolOutputError, match="use a separate step for each"):
        parsed_from("dhat", tmp_path, files, report="*.json")


def test_dhat_of_a_program_that_wrote_no_report(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"did not write 'dhat-heap\.json'.*dhat::Profiler"):
        parsed_from("dhat", tmp_path, {}, report="dhat-heap.json")
    assert not tool("dhat").starts_program({"report": "dhat-heap.json"})
    assert tool("dhat").starts_program({})


def test_dhat_reads_what_the_program_wrote_itself(tmp_path: Path) -> None:
    (written,) = DATA.glob("dhat/crate-0.3.3/heap/written-0.json")
    report = tmp_path / "dhat-heap.json"
    report.write_text("of an earlier run")
    ran = run("dhat", tmp_path / "out", "/bin/cp", str(written), str(report), report=str(report))
    assert values_of(parsed_of(ran)) == {"alloc": 11_864, "allocs": 114, "heap_peak": 11_614}
    with pytest.raises(ToolOutputError, match="did not write"):
        run("dhat", tmp_path / "old", "/bin/true", report=str(report)).parse()


def _own(name: str) -> tuple[bool, str, int]:
    frame = massif.read_frames(f"0x1: {name} (src/vec/mod.rs:965:20)")
    assert frame
    return frame.own, frame.frame.file, frame.frame.line


PLACE = ("src/vec/mod.rs", 965)
test_functions_of_rust_libraries_by_name = answers(
    _own,
    ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", (False, *PLACE)),
    ("<&mut [u8] as std::io::Write>::write_all", (False, *PLACE)),
    ("alloc::vec::Vec<T,A>::extend_trusted", (False, *PLACE)),
    ("dhat::ad_hoc_event", (False, *PLACE)),
    ("<shop::Cart as core::ops::drop::Drop>::drop", (True, *PLACE)),
    ("<u32 as shop::Price>::price", (True, *PLACE)),
    ("shop::main", (True, *PLACE)),
)


def _for_others(text: str) -> tuple[str, bool]:
    found = massif.read_frames(f"0x1: {text}")
    assert found
    return found.name, found.for_others


test_heap_frames = answers(
    _for_others,
    ("operator new(unsigned long) (in /usr/libexec/vgpreload.so)", ("operator new(unsigned long)", True)),
    ("push_back (/usr/include/c++/12/bits/stl_vector.h:1287)", ("push_back", True)),
    ("push_back (/home/me/queue.h:3)", ("push_back", False)),
    ("std::string::append (in /usr/lib/libstdc++.so.6.0.30)", ("std::string::append", True)),
    ("std::mine (x.cpp:1)", ("std::mine", False)),
    ("alloc (/rustc/0a1b/library/alloc/src/alloc.rs:95)", ("alloc", True)),
    ("grow_one<u8> (/rustc/0a1b/library/alloc/src/raw_vec/mod.rs:5)", ("grow_one<u8>", True)),
    ("new (/rustc/0a1b/library/alloc/src/sync.rs:5)", ("new", False)),
    ("??? (in /usr/lib/libstdc++.so.6.0.30)", ("???", False)),
    ("PyObject_Malloc (in /usr/bin/python3)", ("PyObject_Malloc", True)),
    ("main", ("main", False)),
)


def _massif(heap: int, tree: str) -> str:
    ruler = "#-----------"
    figures = f"time=1\nmem_heap_B={heap}\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n"
    return f"desc: x\ncmd: ./x\ntime_unit: i\n{ruler}\nsnapshot=0\n{ruler}\n{figures}{tree}"


ALLOCATORS = """n1: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 1000 0x1: xmalloc (x.c:1)
  n1: 700 0x2: std::vector<int>::grow(int) (v.h:2)
   n0: 700 0x3: main (m.c:3)
  n0: 300 in 4 places, all below massif's threshold (1.00%)
"""
NO_SYMBOLS = "n1: 9 (heap allocation functions) x\n n0: 9 0x1: ??? (in /usr/lib/libx.so (1))\n"


@pytest.mark.parametrize(
    ("heap", "tree", "spots"),
    [
        (1000, ALLOCATORS, [("std::vector<int>::grow(int)", 0.7), ("xmalloc", 0.3)]),
        (9, NO_SYMBOLS, [("??? (libx.so (1))", 1.0)]),
    ],
    ids=["allocators are skipped", "no symbols"],
)
def test_massif_trees(heap: int, tree: str, spots: list[tuple[str, float]], tmp_path: Path) -> None:
    parsed = parsed_from("massif", tmp_path, {"massif.1.out": _massif(heap, tree)})
    assert [(spot.location, spot.share) for spot in parsed.hotspots] == spots


def test_massif_without_a_tree_at_the_peak(tmp_path: Path) -> None:
    text = _massif(9, "").replace("heap_tree=detailed", "heap_tree=empty")
    parsed = parsed_from("massif", tmp_path, {"massif.1.out": text})
    assert not parsed.hotspots
    assert "unknown" in parsed.warnings[0]


TREES = (
    "n2: 9 (heap)\n n0: 9 0x1: f (a.c:1)\n",
    "n1: 9 (heap)\n n0: 10 0x1: f (a.c:1)\n",
    "n1: 9 (heap)\n   n0: 9 0x1: f (a.c:1)\n",
    "n0: 9 (heap)\nn0: 9 (heap)\n",
    "n0: 8 (heap)\n",
    "n1: 9 (heap)\n n0: -9 0x1: f (a.c:1)\n",
    " n0: 9 (heap)\n",
    "",
)
test_massif_refuses_trees_that_do_not_add_up = refusals(
    *("massif", "massif.1.out"), *((_massif(9, tree), r"massif\.1\.out") for tree in TREES)
)


def test_names_are_shortened_after_they_are_added_up(tmp_path: Path) -> None:
    costs = HEAD + "ob=/bin/x\nfl=/src/a.c\n" + "".join(f"fn={name}\n1 5\n" for name in LONG) + "totals: 15 0\n"
    frames = ["[root]", *(f"0x{number}: {name} (a.c:{number})" for number, name in enumerate(LONG))]
    heap = _dhat(*(_point(5, 1, 5, (number,)) for number in (1, 2, 3)), ftbl=frames)
    tree = f"n3: 15 (heap)\n{''.join(f' n0: 5 {frame}{chr(10)}' for frame in frames[1:])}"
    for name, content in {"callgrind": costs, "dhat": heap, "massif": _massif(15, tree)}.items():
        parsed = parsed_from(name, tmp_path, {f"{name}.1.out": content})
        assert [spot.share for spot in parsed.hotspots] == [pytest.approx(1 / 3)] * 3


# Real runs


def _instructions(*arguments: Any, **options: Any) -> float:
    return values_of(parsed_of(run("callgrind", *arguments, **options)))["instructions"]


def _annotated(path: Path) -> Counter[str]:
    """Return the instructions of each function from valgrind's own annotator."""
    argv = ("callgrind_annotate", "--threshold=100", "--auto=no", str(path))
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    functions: Counter[str] = Counter()
    for line in printed.splitlines():
        if match := _ANNOTATED.match(line):
            functions[re.sub(r"'\d+$", "", match[2])] += int(match[1].replace(",", ""))
    return functions


# After `calls=0`, which occurs in parts of a run, the annotator counts the callee's cost as the caller's own.
@pytest.mark.parametrize("name", rest_long(["hot", "allocs", "leaks"]))
def test_callgrind_counts_as_its_annotator_does(name: str, built: Built, tmp_path: Path) -> None:
    ran = run("callgrind", tmp_path, built[name])
    (file,) = ran.adapter.outputs(ran.call)
    ours: Counter[str] = Counter()
    for function, places in callgrind.read(file).functions.items():
        ours[function.name] += sum(places.values())
    assert ours == _annotated(file)
    assert ours.total() == values_of(parsed_of(ran))["instructions"]


def _lines_of_hot(ran: Ran) -> Counter[tuple[str, int]]:
    """Return the instructions of the function by file and line."""
    (file,) = ran.adapter.outputs(ran.call)
    found: Counter[tuple[str, int]] = Counter()
    for function, places in callgrind.read(file).functions.items():
        if function.name == "hot":
            found.update(places)
    return found


def test_callgrind_and_cachegrind_agree_on_every_line(built: Built, tmp_path: Path) -> None:
    names = ("callgrind", "cachegrind")
    one, other = (_lines_of_hot(run(name, tmp_path / name, built["hot"], "1000")) for name in names)
    assert one == other
    assert len(one) > 3


def test_callgrind_repeats_to_the_digit(built: Built, tmp_path: Path) -> None:
    counts = [_instructions(tmp_path / folder, built["hot"], "1000") for folder in ("a", "b" * 100, "100%p")]
    assert len(set(counts)) == 1


def test_callgrind_counts_work_exactly(built: Built, tmp_path: Path) -> None:
    runs = [run("callgrind", tmp_path / rounds, built["hot"], rounds) for rounds in ("1000", "2000", "3000")]
    one, two, three = (_lines_of_hot(ran).total() for ran in runs)
    assert two - one == three - two > 50 * 1000


def test_callgrind_counts_what_came_before_a_fork_once(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("callgrind", tmp_path, built["forks"]))
    # Five million bytes are set one by one, one million of them before the fork.
    assert 5_000_000 < values_of(parsed)["instructions"] < 5_500_000
    assert parsed.warnings == ("2 processes ran; instructions are summed over them",)


@pytest.mark.long  # as calls of one process
def test_callgrind_follows_children(built: Built, tmp_path: Path) -> None:
    alone = _instructions(tmp_path / "alone", built["hot"], "100000")
    twice = f"{built['hot']} 100000; {built['hot']} 100000; true"
    assert _instructions(tmp_path / "twice", "/bin/sh", "-c", twice) > 2 * alone


@pytest.mark.long  # tests/session/test_code_layouts.py has the one hash seed
def test_callgrind_of_python_repeats_with_fixed_hashes(tmp_path: Path) -> None:
    code = "print(len({str(number): number for number in range(3000)}))"
    one, other = (_instructions(tmp_path / folder, PYTHON, "-S", "-c", code) for folder in ("a", "b"))
    assert one == other


@pytest.mark.parametrize(
    ("name", "flags", "warning"),
    rest_long(
        [
            ("callgrind", ("-SE",), "PYTHONHASHSEED"),
            ("cachegrind", ("-SE",), "PYTHONHASHSEED"),
            ("dhat", ("-SE",), "PYTHONMALLOC"),
            ("massif", ("-S", "-Wd", "-uE"), "-E or -I"),
        ]
    ),
)
def test_python_that_ignores_its_environment_is_pointed_out(
    name: str, flags: tuple[str, ...], warning: str, tmp_path: Path
) -> None:
    parsed = parsed_of(run(name, tmp_path / name, PYTHON, *flags, "-c", "pass"))
    assert any(warning in text for text in parsed.warnings)


def test_callgrind_adds_up_what_a_program_had_written_in_parts(built: Built, tmp_path: Path) -> None:
    ran = run("callgrind", tmp_path, built["parts"])
    assert len(ran.adapter.outputs(ran.call)) == 3
    (work,) = [spot for spot in parsed_of(ran).hotspots if spot.location == "work"]
    rounds = 1000 + 2000 + 3000
    assert work.cause == f"measured: {8 * rounds + 3 * 12:,} instructions"


SIMULATED = {"cache_misses", "cache_misses_i1", "cache_misses_d1", "cache_miss_rate", "cache_miss_rate_d1"}
BRANCHES = {"branch_misses", "branch_miss_rate"}


@pytest.mark.parametrize(
    ("options", "metrics", "simulations"),
    [({}, SIMULATED, 1), ({"cache": False}, set(), 0), ({"branch-sim": True}, SIMULATED | BRANCHES, 2)],
    ids=["caches", "instructions", "branches"],
)
def test_cachegrind(options: dict[str, Any], metrics: set[str], simulations: int, built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("cachegrind", tmp_path, built["hot"], "1000", **options))
    values = values_of(parsed)
    assert values.keys() == {"instructions", *metrics}
    assert all(values.values())
    assert sum("simulated" in warning for warning in parsed.warnings) == simulations
    if metrics:
        assert 0 < values["cache_miss_rate"] < values["cache_miss_rate_d1"] < 1


def test_cachegrind_simulates_the_caches_it_is_told(built: Built, tmp_path: Path) -> None:
    large, small = (
        values_of(parsed_of(run("cachegrind", tmp_path / ll[:5], built["hot"], "1000", ll=ll)))["cache_misses"]
        for ll in ("33554432,16,64", "65536,8,64")
    )
    # Of a million bytes, in lines of 64, none fits twice into 64 KiB.
    assert small > large > 1_500_000 / 64


@pytest.mark.parametrize(
    ("name", "words", "options", "values"),
    rest_long(
        [
            # valgrind counts 8 B per block for malloc's own bookkeeping.
            ("massif", ("hot", "1000"), {}, {"heap_peak": 1_500_016}),
            ("massif", ("leaks",), {}, {"heap_peak": 1_000_008}),
            ("dhat", ("hot", "1000"), {}, {"alloc": 1_500_000, "allocs": 2, "heap_peak": 1_500_000}),
            ("dhat", ("forks",), {}, {"alloc": 6_000_000, "allocs": 3, "heap_peak": 5_000_000}),
            ("dhat", ("allocs",), {"within": "hot_path"}, {"alloc": 4096, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "hot*"}, {"alloc": 4096, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "area::Maker::operator()"}, {"alloc": 28, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "inlined"}, {"alloc": 5, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "s?all"}, {"alloc": 5, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "start"}, {"alloc": 3, "allocs": 1}),
            ("dhat", ("allocs",), {"within": "main"}, {"alloc": 4096 + 28 + 5 + 3, "allocs": 4}),
        ],
        keep=4,
    ),
    ids=str,
)
def test_heaps_are_counted_exactly(
    name: str, words: tuple[str, ...], options: dict[str, Any], values: dict[str, int], built: Built, tmp_path: Path
) -> None:
    parsed = parsed_of(run(name, tmp_path, built[words[0]], *words[1:], **options))
    assert values_of(parsed) == values
    warned = ["counted again in each child" in warning for warning in parsed.warnings]
    assert any(warned) if words == ("forks",) else not warned


@pytest.mark.parametrize(
    ("name", "words", "location", "line", "unit", "least"),
    [
        ("massif", ("hot", "1000"), "grab", 18, "bytes", 1.0),
        ("dhat", ("hot", "1000"), "grab", 18, "bytes", 1.0),
        ("callgrind", ("hot", "1000000"), "hot", 7, "instructions", 0.95),
    ],
)
def test_the_first_hotspot_of_a_known_program(
    name: str, words: tuple[str, ...], location: str, line: int, unit: str, least: float, built: Built, tmp_path: Path
) -> None:
    parsed = parsed_of(run(name, tmp_path, built[words[0]], *words[1:]))
    spot = parsed.hotspots[0]
    assert (spot.location, Path(spot.file).name, spot.line, spot.unit) == (location, "hot.c", line, unit)
    assert spot.share >= least
    assert not parsed.warnings
    if parsed.memory:
        assert (parsed.memory.axis, max(parsed.memory.held)) == ("instructions", 1_500_016)


def test_massif_of_a_forking_program(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path, built["forks"]))
    assert 5_000_000 <= values_of(parsed)["heap_peak"] < 5_010_000
    assert any("2 processes" in warning for warning in parsed.warnings)


def test_massif_of_a_program_that_frees_nothing_names_it(built: Built, tmp_path: Path) -> None:
    assert parsed_of(run("massif", tmp_path, built["leaks"])).hotspots[0].location == "main"


def test_massif_with_stacks_and_a_folder_with_a_percent_sign(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path / "100%p", built["hot"], "10", stacks=True))
    assert values_of(parsed)["heap_peak"] > 1_500_016


@pytest.mark.long  # many runs of Python under Valgrind
@pytest.mark.parametrize(
    ("name", "metric", "count", "least"), [("massif", "heap_peak", 50_000, 30), ("dhat", "allocs", 5000, 0.998)]
)
def test_small_objects_of_python_are_seen(name: str, metric: str, count: int, least: float, tmp_path: Path) -> None:
    small, large = (
        values_of(parsed_of(run(name, tmp_path / str(each), PYTHON, "-S", "-c", f"[str(i) for i in range({each})]")))
        for each in (1, count)
    )
    assert large[metric] - small[metric] > count * least


@pytest.mark.parametrize("within", rest_long(["hot", "path", "Hot_path", "hot_path."], keep=2))
def test_dhat_within_what_is_not_there(within: str, built: Built, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="no function of the program matches"):
        run("dhat", tmp_path, built["allocs"], within=within).parse()


TASKS = {
    **dict.fromkeys(("submit", "Queue::submit", "queue::submit", "*::submit", "tasks::queue::Queue::submit"), 1000),
    **dict.fromkeys(("queue::drain", "table::words"), 0),
    "Queue::new": 1,
}


@pytest.mark.parametrize("within", rest_long(TASKS, keep=2))
def test_dhat_within_functions_that_rust_inlines(within: str, built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("dhat", tmp_path, built["tasks"], "1000", within=within))
    assert values_of(parsed)["allocs"] == TASKS[within]
    assert bool(parsed.warnings) == (not TASKS[within])


def test_dhat_within_a_program_without_debug_information_is_no_zero(built: Built, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["strip", "--strip-debug", "-o", bare, built["tasks"]], check=True)
    with pytest.raises(ToolOutputError, match="debug information"):
        run("dhat", tmp_path / "out", str(bare), "1000", within="*drop_in_place<tasks::queue::Queue>").parse()


def test_dhat_names_who_fills_a_container(built: Built, tmp_path: Path) -> None:
    spots = parsed_of(run("dhat", tmp_path, built["allocs"])).hotspots
    places = {spot.location.partition("(")[0]: Path(spot.file).name for spot in spots}
    assert {"hot_path", "small", "dive"} <= places.keys()
    assert places["hot_path"] == "allocs.cpp"


@pytest.mark.parametrize(("name", "options"), [("dhat", {}), ("cachegrind", {"ll": "1000,3,60"})])
def test_a_program_without_a_heap_or_impossible_caches_are_errors(
    name: str, options: dict[str, Any], built: Built, tmp_path: Path
) -> None:
    ran = run(name, tmp_path, built["idle"], **options)
    assert (ran.status == 0) == (name == "dhat")
    assert failure_seen(ran)


INLINED = {
    "step.h": "static inline unsigned step(unsigned value) {\n    return value * 31 + (value >> 3);\n}\n",
    "main.c": '#include "step.h"\n\n__attribute__((noinline)) unsigned work(unsigned count) {\n    unsigned sum = 0;\n'
    "    for (unsigned i = 0; i < count; i++) sum ^= step(step(sum + i));\n    return sum;\n}\n\n"
    "int main(void) { return work(100000) == 7; }\n",
}


def test_a_function_with_code_from_a_header_is_one_by_both_counters(tmp_path: Path) -> None:
    for name, text in INLINED.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["cc", "-g", "-O1", "-o", "program", "main.c"], check=True, cwd=tmp_path)
    one, other = (
        [
            (cost.count, Path(cost.file).name)
            for cost in parsed_of(run(name, tmp_path / name, str(tmp_path / "program"))).costs
            if cost.function == "work"
        ]
        for name in ("callgrind", "cachegrind")
    )
    assert one == other
    assert [file for _, file in one] == ["main.c"]
