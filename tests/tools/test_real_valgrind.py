"""valgrind's exact counters, end to end, compared with its own annotator, each other and known amounts of work."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.valgrind import callgrind
from tests.tools.harness import PYTHON, Ran, failure_seen, parsed_of, run, values_of

_ANNOTATED = re.compile(r"^ *([\d,]+) +\(.{6}\) +.*?:([^:].*?)(?: \[[^]]*\])?$")


CACHES = ("cache_misses", "cache_misses_i1", "cache_misses_d1", "cache_miss_rate", "cache_miss_rate_d1")


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


def _ours(path: Path) -> Counter[str]:
    functions: Counter[str] = Counter()
    for function, places in callgrind.read(path).functions.items():
        functions[function.name] += sum(places.values())
    return functions


# After `calls=0`, which occurs in parts of a run, the annotator counts the callee's cost as the caller's own.
@pytest.mark.parametrize("name", ["hot", "allocs", "leaks"])
def test_callgrind_counts_as_its_annotator_does(name: str, built: Mapping[str, str], tmp_path: Path) -> None:
    ran = run("callgrind", tmp_path, built[name])
    (file,) = ran.adapter.outputs(ran.call)
    ours = _ours(file)
    assert ours == _annotated(file)
    assert sum(ours.values()) == values_of(parsed_of(ran))["instructions"]


def test_callgrind_and_cachegrind_agree_on_every_line(built: Mapping[str, str], tmp_path: Path) -> None:
    one, other = (
        _lines(run(name, tmp_path / name, built["hot"], "1000"), "hot") for name in ("callgrind", "cachegrind")
    )
    assert one == other
    assert len(one) > 3


def _lines(ran: Ran, name: str) -> Counter[tuple[str, int]]:
    """Return the instructions of a function by file and line."""
    (file,) = ran.adapter.outputs(ran.call)
    found: Counter[tuple[str, int]] = Counter()
    for function, places in callgrind.read(file).functions.items():
        if function.name == name:
            found.update(places)
    return found


def test_callgrind_repeats_to_the_digit(built: Mapping[str, str], tmp_path: Path) -> None:
    counts = [_instructions(tmp_path / folder, built["hot"], "1000") for folder in ("a", "b" * 100, "100%p")]
    assert len(set(counts)) == 1


def test_callgrind_counts_work_exactly(built: Mapping[str, str], tmp_path: Path) -> None:
    runs = [run("callgrind", tmp_path / rounds, built["hot"], rounds) for rounds in ("1000", "2000", "3000")]
    one, two, three = (sum(_lines(ran, "hot").values()) for ran in runs)
    assert two - one == three - two > 50 * 1000


def test_callgrind_hotspots(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("callgrind", tmp_path, built["hot"], "1000000"))
    spot = parsed.hotspots[0]
    assert (spot.location, spot.line, spot.unit) == ("hot", 7, "instructions")
    assert spot.file.endswith("/hot.c")
    assert spot.share > 0.95
    assert not parsed.warnings


def test_callgrind_counts_what_came_before_a_fork_once(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("callgrind", tmp_path, built["forks"]))
    # Five million bytes are set one by one, one million of them before the fork.
    assert 5_000_000 < values_of(parsed)["instructions"] < 5_500_000
    assert parsed.warnings == ("2 processes ran; instructions are summed over them",)


def test_callgrind_follows_children(built: Mapping[str, str], tmp_path: Path) -> None:
    alone = _instructions(tmp_path / "alone", built["hot"], "100000")
    twice = f"{built['hot']} 100000; {built['hot']} 100000; true"
    assert _instructions(tmp_path / "twice", "/bin/sh", "-c", twice) > 2 * alone


@pytest.mark.long  # tests/session/test_code_layouts.py has the one hash seed
def test_callgrind_of_python_repeats_with_fixed_hashes(tmp_path: Path) -> None:
    code = "print(len({str(number): number for number in range(3000)}))"
    one, other = (_instructions(tmp_path / folder, PYTHON, "-S", "-c", code) for folder in ("a", "b"))
    assert one == other


def test_python_that_ignores_its_environment_is_pointed_out(tmp_path: Path) -> None:
    for name, words in (("callgrind", "PYTHONHASHSEED"), ("cachegrind", "PYTHONHASHSEED"), ("dhat", "PYTHONMALLOC")):
        parsed = parsed_of(run(name, tmp_path / name, PYTHON, "-SE", "-c", "pass"))
        assert any(words in warning for warning in parsed.warnings)


def test_callgrind_adds_up_what_a_program_had_written_in_parts(built: Mapping[str, str], tmp_path: Path) -> None:
    ran = run("callgrind", tmp_path, built["parts"])
    assert len(ran.adapter.outputs(ran.call)) == 3
    (work,) = [spot for spot in parsed_of(ran).hotspots if spot.location == "work"]
    rounds = 1000 + 2000 + 3000
    assert work.cause == f"measured: {8 * rounds + 3 * 12:,} instructions"


@pytest.mark.parametrize(
    ("options", "metrics"),
    [
        ({}, {"instructions", *CACHES}),
        ({"cache": False}, {"instructions"}),
        ({"branch-sim": True}, {"instructions", *CACHES, "branch_misses", "branch_miss_rate"}),
    ],
    ids=["caches", "instructions", "branches"],
)
def test_cachegrind(options: dict[str, Any], metrics: set[str], built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("cachegrind", tmp_path, built["hot"], "1000", **options))
    values = values_of(parsed)
    assert values.keys() == metrics
    assert all(values.values())
    simulated = [warning for warning in parsed.warnings if "simulated" in warning]
    assert len(simulated) == ("cache_misses" in metrics) + ("branch_misses" in metrics)
    if "cache_misses" in metrics:
        assert 0 < values["cache_miss_rate"] < values["cache_miss_rate_d1"] < 1


def test_cachegrind_simulates_the_caches_it_is_told(built: Mapping[str, str], tmp_path: Path) -> None:
    large, small = (
        values_of(parsed_of(run("cachegrind", tmp_path / ll[:5], built["hot"], "1000", ll=ll)))["cache_misses"]
        for ll in ("33554432,16,64", "65536,8,64")
    )
    # Of a million bytes, in lines of 64, none fits twice into 64 KiB.
    assert small > large > 1_500_000 / 64


def test_cachegrind_refuses_caches_that_cannot_be(built: Mapping[str, str], tmp_path: Path) -> None:
    assert failure_seen(run("cachegrind", tmp_path, built["idle"], ll="1000,3,60"))


def test_dhat(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("dhat", tmp_path, built["hot"], "1000"))
    assert values_of(parsed) == {"alloc": 1_500_000, "allocs": 2, "heap_peak": 1_500_000}
    spot = parsed.hotspots[0]
    assert (spot.location, spot.line, spot.unit, spot.share) == ("grab", 18, "bytes", 1.0)
    assert spot.file.endswith("/hot.c")


@pytest.mark.parametrize(
    ("within", "alloc", "allocs"),
    [
        ("hot_path", 4096, 1),
        ("hot*", 4096, 1),
        ("area::Maker::operator()", 28, 1),
        ("inlined", 5, 1),
        ("s?all", 5, 1),
        ("start", 3, 1),
        ("main", 4096 + 28 + 5 + 3, 4),
    ],
)
def test_dhat_within(within: str, alloc: int, allocs: int, built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("dhat", tmp_path, built["allocs"], within=within))
    assert values_of(parsed) == {"alloc": alloc, "allocs": allocs}
    assert not parsed.warnings


@pytest.mark.parametrize("within", ["hot", "path", "Hot_path", "hot_path."])
def test_dhat_within_what_is_not_there(within: str, built: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="no function of the program matches"):
        run("dhat", tmp_path, built["allocs"], within=within).parse()


TASKS = {
    **dict.fromkeys(("submit", "Queue::submit", "queue::submit", "*::submit", "tasks::queue::Queue::submit"), 1000),
    **dict.fromkeys(("queue::drain", "table::words"), 0),
    "Queue::new": 1,
}


@pytest.mark.parametrize("within", TASKS)
def test_dhat_within_functions_that_rust_inlines(within: str, built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("dhat", tmp_path, built["tasks"], "1000", within=within))
    assert values_of(parsed)["allocs"] == TASKS[within]
    assert bool(parsed.warnings) == (not TASKS[within])


def test_dhat_within_a_program_without_debug_information_is_no_zero(built: Mapping[str, str], tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["strip", "--strip-debug", "-o", bare, built["tasks"]], check=True)
    with pytest.raises(ToolOutputError, match="debug information"):
        run("dhat", tmp_path / "out", str(bare), "1000", within="*drop_in_place<tasks::queue::Queue>").parse()


def test_dhat_names_who_fills_a_container(built: Mapping[str, str], tmp_path: Path) -> None:
    places = _by_function(parsed_of(run("dhat", tmp_path, built["allocs"])))
    assert {"hot_path", "small", "dive"} <= places.keys()
    assert places["hot_path"].endswith("/allocs.cpp")


def _by_function(parsed: Parsed) -> dict[str, str]:
    return {spot.location.partition("(")[0]: spot.file for spot in parsed.hotspots}


def test_dhat_of_a_forking_program(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("dhat", tmp_path, built["forks"]))
    assert values_of(parsed) == {"alloc": 6_000_000, "allocs": 3, "heap_peak": 5_000_000}
    assert any("counted again in each child" in warning for warning in parsed.warnings)


def test_dhat_of_python_sees_small_objects(tmp_path: Path) -> None:
    small, large = (
        values_of(parsed_of(run("dhat", tmp_path / count, PYTHON, "-S", "-c", f"[str(i) for i in range({count})]")))
        for count in ("0", "5000")
    )
    assert large["allocs"] - small["allocs"] > 5000 - 10


def test_dhat_tells_no_heap_from_no_allocation(built: Mapping[str, str], tmp_path: Path) -> None:
    ran = run("dhat", tmp_path, built["idle"])
    assert ran.status == 0
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
    found = {
        name: [
            (cost.count, Path(cost.file).name)
            for cost in parsed_of(run(name, tmp_path / name, str(tmp_path / "program"))).costs
            if cost.function == "work"
        ]
        for name in ("callgrind", "cachegrind")
    }
    assert found["cachegrind"] == found["callgrind"]
    assert [file for _, file in found["callgrind"]] == ["main.c"]
