"""Parsers of valgrind's counters on unusual output, and the command lines that adapters build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.valgrind import callgrind, massif
from tests.tools.harness import DATA, USAGE, call_of, parsed_of, run, tool, values_of

HEAD = "version: 1\ncmd: ./x\npart: 1\npositions: line\nevents: Ir Dr\nsummary: 10 1\n"
BODY = "ob=(1) /bin/x\nfl=(1) /src/a.c\nfn=(1) main\n3 4 1\n"
CALL = "cfn=(2) work\ncalls=1 +9\n* 999 7\n+2 6\n"


def _costs(folder: Path, text: str) -> callgrind.Costs:
    path = folder / "callgrind.1.out"
    path.write_text(text)
    return callgrind.read(path)


def _parse(name: str, folder: Path, file: str, content: object, **options: Any) -> Parsed:
    (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    return tool(name).parse(call_of(name, folder, "/bin/x", **options), USAGE)


def test_costs_of_callees_are_not_added(tmp_path: Path) -> None:
    costs = _costs(tmp_path, HEAD + BODY + CALL + "totals: 10 1\n")
    assert costs.totals == {"Ir": 10, "Dr": 1}
    function = callgrind.CalledFunction("main", "/bin/x", "/src/a.c")
    assert costs.functions == {function: {("/src/a.c", 3): 4, ("/src/a.c", 5): 6}}


def test_costs_of_inlined_source_belong_to_their_function(tmp_path: Path) -> None:
    inlined = "fi=(2) /src/b.h\n7 5\nfe=(1)\n-3 1\nfn=(3) next\n"
    costs = _costs(tmp_path, HEAD + BODY + inlined + "9 2\ntotals: 12 1\n")
    main, following = costs.functions
    assert costs.functions[main] == {("/src/a.c", 3): 4, ("/src/b.h", 7): 5, ("/src/a.c", 4): 1}
    assert (following.name, following.file, following.object) == ("next", "/src/a.c", "/bin/x")
    assert costs.functions[following] == {("/src/a.c", 9): 2}
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
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
    ],
)
def test_costs_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _costs(tmp_path, text)


def test_functions_without_a_name_or_source_are_their_library(tmp_path: Path) -> None:
    body = "ob=/lib/x.so\nfl=???\nfn=0x00a0\n0 1\nfn=???\n0 2\nfn=known\n0 3\nob=\nfn=???\n0 4\n"
    spots = callgrind.hotspots_of([_costs(tmp_path, HEAD + body + "totals: 10 0\n")], "callgrind")
    assert [(spot.location, round(spot.share * 10), spot.line) for spot in spots] == [
        ("???", 4, 0),
        ("[x.so]", 3, 0),
        ("known (x.so)", 3, 0),
    ]


def test_callgrind_of_a_fork_it_did_not_see(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"callgrind.{number}.out").write_text(HEAD + BODY + "totals: 4 1\n")
    parsed = tool("callgrind").parse(call_of("callgrind", tmp_path, "/bin/x"), USAGE)
    assert values_of(parsed) == {"instructions": 8}
    assert "counted again in each child" in parsed.warnings[1]


@pytest.mark.parametrize("name", ["callgrind", "cachegrind"])
def test_no_instruction_is_no_measurement(name: str, tmp_path: Path) -> None:
    head = HEAD if name == "callgrind" else HEAD.replace("Ir Dr", "Ir ILmr DLmr DLmw")
    zeros = "totals: 0 0\n" if name == "callgrind" else "totals: 0 0 0 0\n"
    with pytest.raises(ToolOutputError, match="no instruction"):
        _parse(name, tmp_path, f"{name}.1.out", head + zeros)


def test_cachegrind_without_the_events_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="lacks ILmr, DLmr, DLmw"):
        _parse("cachegrind", tmp_path, "cachegrind.1.out", HEAD + BODY + "summary: 4 1\n")


def test_argv_of_valgrind(tmp_path: Path) -> None:
    for name, wanted in (
        ("callgrind", "--dump-before=fork"),
        ("cachegrind", "--LL=8388608,16,64"),
        ("dhat", "--num-callers=500"),
    ):
        (step,) = tool(name).invocations(call_of(name, tmp_path, "/bin/x", "--tool=none"))
        assert {wanted, f"--tool={name}", "--trace-children=yes"} <= set(step.argv)
        assert step.argv[-2:] == ("/bin/x", "--tool=none")
        assert step.env == ({"PYTHONMALLOC": "malloc"} if name == "dhat" else {"PYTHONHASHSEED": "0"})
    for name in ("callgrind", "cachegrind"):
        assert not tool(name).invocations(call_of(name, tmp_path, "/bin/x", hash_seed=False))[0].env


@pytest.mark.parametrize("options", [{"ll": "8M,16,64"}, {"i1": ""}, {"d1": "1,2"}, {"caches": True}], ids=str)
def test_cachegrind_options_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        call_of("cachegrind", tmp_path, "/bin/x", **options)


FRAMES = ["[root]", "0x1: malloc (in /usr/libexec/vgpreload.so)", "0x2: f(int) const (a.c:3)", "0x3: main (a.c:9)"]


def _dhat(points: object = None, **change: object) -> dict[str, object]:
    point = {"tb": 10, "tbk": 2, "gb": 6, "fs": [1, 2, 3]}
    content = {"dhatFileVersion": 2, "mode": "heap", "cmd": "./x", "pps": [point], "ftbl": FRAMES}
    return {**content, **({"pps": points} if points is not None else {}), **change}


def test_dhat_within_a_name_with_parameters(tmp_path: Path) -> None:
    (tmp_path / "symbols").write_text("f(int) const\n")
    parsed = _parse("dhat", tmp_path, "dhat.1.out", _dhat(), within="f")
    assert values_of(parsed) == {"alloc": 10, "allocs": 2}
    assert parsed.hotspots[0].location == "f(int) const"


def test_dhat_says_when_stacks_are_cut(tmp_path: Path) -> None:
    deep = _dhat([{"tb": 1, "tbk": 1, "gb": 0, "fs": [2] * 500}])
    (tmp_path / "symbols").write_text("g\n")
    parsed = _parse("dhat", tmp_path, "dhat.1.out", deep, within="g")
    assert [warning.split()[0] for warning in parsed.warnings] == ["nothing", "stacks"]


def test_dhat_without_frames(tmp_path: Path) -> None:
    parsed = _parse("dhat", tmp_path, "dhat.1.out", _dhat([{"tb": 1, "tbk": 1, "gb": 0, "fs": []}]))
    assert parsed.hotspots[0].location == "[no frame]"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_dhat(dhatFileVersion=3), "dhatFileVersion is 3, which is not valid"),
        (_dhat(mode="copy"), "mode is 'copy', which perfflow does not know"),
        (_dhat(ftbl=[1]), r"ftbl\[0\] is not text"),
        (_dhat(pps={}), "pps is not a list"),
        (_dhat([]), "saw no allocation:"),
        (_dhat([{"tb": 1, "tbk": 1, "fs": []}]), "lacks gb"),
        (_dhat([1]), r"pps\[0\] is not an object"),
        (_dhat([{"tb": 1, "tbk": 1, "gb": 2, "fs": []}]), "is not possible"),
        (_dhat([{"tb": 1, "tbk": 0, "gb": 0, "fs": []}]), "is not possible"),
        (_dhat([{"tb": -1, "tbk": 0, "gb": 0, "fs": []}]), r"pps\[0\].tb is -1"),
        (_dhat([{"tb": 1, "tbk": 1, "gb": 0, "fs": [4]}]), "not in the table of frames"),
        (_dhat([{"tb": 1, "tbk": 1, "gb": 0, "fs": ["1"]}]), r"pps\[0\].fs\[0\] is '1', not a whole number"),
    ],
)
def test_dhat_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("dhat", tmp_path, "dhat.1.out", content)


def test_dhat_of_a_program_that_wrote_no_report(tmp_path: Path) -> None:
    call = call_of("dhat", tmp_path, "/bin/x", report="dhat-heap.json")
    with pytest.raises(ToolOutputError, match=r"did not write 'dhat-heap\.json'.*dhat::Profiler"):
        tool("dhat").parse(call, USAGE)
    assert not tool("dhat").starts_program({"report": "dhat-heap.json"})
    assert tool("dhat").starts_program({})


def test_dhat_reads_what_the_program_wrote_itself(tmp_path: Path) -> None:
    (written,) = DATA.glob("dhat/crate-0.3.3/heap/written-0.json")
    report = tmp_path / "dhat-heap.json"
    report.write_text("of an earlier run")
    ran = run("dhat", tmp_path / "out", "/bin/cp", str(written), str(report), report=str(report))
    assert values_of(parsed_of(ran)) == {"alloc": 11_864, "allocs": 114, "heap_peak": 11_614}
    old = run("dhat", tmp_path / "old", "/bin/true", report=str(report))
    with pytest.raises(ToolOutputError, match="did not write"):
        old.parse()


def test_dhat_does_not_add_units_to_bytes(tmp_path: Path) -> None:
    (tmp_path / "written-1.json").write_text(json.dumps(_dhat(mode="rust-ad-hoc")))
    with pytest.raises(ToolOutputError, match="use a separate step for each"):
        _parse("dhat", tmp_path, "written-0.json", _dhat(mode="rust-heap"), report="*.json")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", False),
        ("<&mut [u8] as std::io::Write>::write_all", False),
        ("alloc::vec::Vec<T,A>::extend_trusted", False),
        ("dhat::ad_hoc_event", False),
        ("<shop::Cart as core::ops::drop::Drop>::drop", True),
        ("<u32 as shop::Price>::price", True),
        ("shop::main", True),
    ],
)
def test_functions_of_rust_libraries_by_name(name: str, own: bool) -> None:
    frame = massif.read_frames(f"0x1: {name} (src/vec/mod.rs:965:20)")
    assert frame
    assert (frame.own, frame.frame.file, frame.frame.line) == (own, "src/vec/mod.rs", 965)


@pytest.mark.parametrize(
    ("text", "name", "for_others"),
    [
        ("0x1: operator new(unsigned long) (in /usr/libexec/vgpreload.so)", "operator new(unsigned long)", True),
        ("0x1: push_back (/usr/include/c++/12/bits/stl_vector.h:1287)", "push_back", True),
        ("0x1: push_back (/home/me/queue.h:3)", "push_back", False),
        ("0x1: std::string::append (in /usr/lib/libstdc++.so.6.0.30)", "std::string::append", True),
        ("0x1: std::mine (x.cpp:1)", "std::mine", False),
        ("0x1: ??? (in /usr/lib/libstdc++.so.6.0.30)", "???", False),
        ("0x1: PyObject_Malloc (in /usr/bin/python3)", "PyObject_Malloc", True),
        ("0x1: main", "main", False),
    ],
)
def test_heap_frames(text: str, name: str, for_others: bool) -> None:
    found = massif.read_frames(text)
    assert found
    assert (found.name, found.for_others) == (name, for_others)


def test_static_functions_of_one_name_stay_apart(tmp_path: Path) -> None:
    text = HEAD + "fl=/src/a.c\nfn=init\n1 4\nfl=/src/b.c\nfn=init\n1 5\nfl=/src/a.h\nfn=init\n1 1\nsummary: 10 0\n"
    parts = [(cost.file, cost.count) for cost in callgrind.costs_of([_costs(tmp_path, text)])]
    assert parts == [("/src/b.c", 5), ("/src/a.c", 4), ("/src/a.h", 1)]
    one = text.replace("/src/b.c", "/src/b.h")
    parts = [(cost.file, cost.count) for cost in callgrind.costs_of([_costs(tmp_path, one)])]
    assert parts == [("/src/a.c", 10)]
    parts = [
        (cost.file, cost.count) for cost in callgrind.costs_of([_costs(tmp_path, text.replace("init", "init(int)"))])
    ]
    assert parts == [("/src/a.c", 10)]


LONG = [f"std::vector<{'std::pair<' * 60}int{number}{'>' * 60}>::push_back" for number in range(3)]


def test_names_are_shortened_after_they_are_added_up(tmp_path: Path) -> None:
    costs = HEAD + "ob=/bin/x\nfl=/src/a.c\n" + "".join(f"fn={name}\n1 5\n" for name in LONG) + "totals: 15 0\n"
    frames = ["[root]", *(f"0x{number}: {name} (a.c:{number})" for number, name in enumerate(LONG))]
    points = [{"tb": 5, "tbk": 1, "gb": 5, "fs": [number]} for number in (1, 2, 3)]
    tree = f"n3: 15 (heap)\n{''.join(f' n0: 5 {frame}{chr(10)}' for frame in frames[1:])}"
    figures = f"time=1\nmem_heap_B=15\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n{tree}"
    massif = f"desc: x\ncmd: ./x\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\n{figures}"
    for name, content in (("callgrind", costs), ("dhat", _dhat(points, ftbl=frames)), ("massif", massif)):
        parsed = _parse(name, tmp_path, f"{name}.1.out", content)
        assert [spot.share for spot in parsed.hotspots] == [pytest.approx(1 / 3)] * 3
