"""Hotspots of several profilers joined by function, and the contradictions between them."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.same_function import LEAST_DIFFERENCE, LEAST_TIMES, MOST_FUNCTIONS, Joined, joined_of
from perfflow.store.result_file import read, to_text
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.cli.shell import perfflow
from tests.report.rendered import check_golden, section
from tests.verdict.records import ended, judged, pairs, planned

STEPS = {"calls": "cprofile", "cpu": "py-spy", "lines": "line-profiler", "heap": "memray", "perf": "perf"}
STEPS |= {"cg": "callgrind", "dhat": "dhat", "stacks": "scalene", "opens": "strace"}
UNITS = {"heap": "bytes", "dhat": "bytes", "cg": "instructions", "opens": "opens"}
Spot = dict[str, Any]


def spot(step: str, location: str, share: float, file: str = "own/p.py", line: int = 1, **keys: Any) -> Spot:
    known = {"location": location, "share": share, "unit": UNITS.get(step, "time"), "source": STEPS[step]}
    return known | {"file": file, "line": line, "cause": "", "tree": "baseline", "step": step} | keys


def profiled(*spots: Spot, few_samples: str = "") -> Result:
    """Return a run whose profiles are these hotspots, by step. ``few_samples``: the step that has few samples."""
    by_step: dict[str, list[Spot]] = defaultdict(list)
    for item in spots:
        by_step[item["step"]].append({key: value for key, value in item.items() if key != "step"})
    events = [ended(step, hotspots=found, few_samples=step == few_samples) for step, found in by_step.items()]
    steps = [planned(step, role="profile", benchmark="b", tool=STEPS[step]) for step in by_step]
    return judged(*pairs("b", [1.0] * 3, None), ended("b"), *events, steps=[planned("b"), *steps])


def table(*spots: Spot, few_samples: str = "") -> Joined:
    (found,) = joined_of(profiled(*spots, few_samples=few_samples))
    return found


KEEP: Spot = {"function": "Store.keep", "begins": 8}
LATER: Spot = {"tree": "candidate"}
SMALL: Spot = {"self_share": 0.6, "inclusive_share": 0.6}
TINY = spot("calls", "tiny", 0.6, **SMALL)
NEAR = LEAST_DIFFERENCE - 0.01
LIBRARY = "/opt/lib/python3.11/site-packages/a.py"
LARGER_LATER = [spot("calls", "a", 0.5, **LATER), spot("calls", "a", 0.2), spot("cpu", "a", 0.4)]
TABLES: dict[str, list[Spot]] = {
    "each tool names a function its own way, and they are one row": [
        *(spot("calls", "keep", 0.3, line=8, **KEEP), spot("cpu", "keep", 0.25, line=11, **KEEP)),
        spot("lines", "Store.keep", 0.2, line=10, **KEEP),
        spot("lines", "Store.keep.<locals>.<listcomp>", 0.1, line=11, **KEEP),
        spot("heap", "keep", 0.9, line=11, **KEEP),
        spot("heap", "keep", 0.06, line=21, function="Other.keep", begins=20),
    ],
    "without the source first lines tell functions of one name apart": [
        *(spot("calls", "__init__", 0.3, LIBRARY, 10), spot("calls", "__init__", 0.2, LIBRARY, 40)),
        *(spot("cpu", "B.__init__", 0.25, LIBRARY, 44), spot("cpu", "A.__init__", 0.35, LIBRARY, 12)),
    ],
    "native names join with and without parameters, library and file": [
        spot("perf", "codec::decode(unsigned char*)", 0.5, "src/c.cc", 7),
        spot("cg", "codec::decode(unsigned char*)'2", 0.4, "src/c.cc", 5),
        *(spot("dhat", "codec::decode", 0.8, "", 0), spot("perf", "memcpy (libc.so.6)", 0.1, "", 0)),
        *(spot("cg", "memcpy", 0.1, "", 0), spot("perf", "only_here", 0.06, "", 0)),
    ],
    "static functions of one name stay apart": [
        *(spot("perf", "init", 0.2, "a.c", 3), spot("perf", "init", 0.3, "b.c", 3)),
        *(spot("cg", "init", 0.4, "", 0), spot("cg", "main", 0.1, "a.c", 9)),
    ],
    "both sides stand in one cell": [
        *(spot("calls", "work", 0.3), spot("calls", "work", 0.1, **LATER)),
        *(spot("cpu", "work", 0.3), spot("cpu", "other", 0.9, **LATER)),
    ],
    "the baseline comes first whatever its largest function is": LARGER_LATER,
    "the baseline comes first in any order of the events": [LARGER_LATER[1], LARGER_LATER[0], LARGER_LATER[2]],
}
CONTRADICTIONS: dict[str, list[Spot]] = {
    "many small calls": [TINY, spot("cpu", "tiny", 0.12)],
    "not listed is below the threshold": [TINY, spot("cpu", "main", 0.9)],
    "lines add up": [spot("lines", "f", 0.3, line=1), spot("lines", "f", 0.3, line=2), spot("stacks", "f", 0.2)],
    "threads": [spot("cpu", "work", 0.7), spot("calls", "work", 0.1, inclusive_share=0.2)],
    "it waits for memory": [spot("perf", "walk", 0.6, "src/a.c"), spot("cg", "walk", 0.1, "src/a.c")],
    "cheap instructions": [spot("cg", "walk", 0.6, "src/a.c"), spot("perf", "walk", 0.1, "src/a.c")],
    "each side is looked at by itself": [
        *(TINY, spot("cpu", "tiny", 0.55)),
        *(spot("calls", "tiny", 0.5, **SMALL, **LATER), spot("cpu", "tiny", 0.1, **LATER)),
    ],
}
EXPLAINED: dict[str, list[Spot]] = {
    "few points apart": [spot("calls", "f", 0.1 + NEAR), spot("cpu", "f", 0.1)],
    "not twice as much": [spot("calls", "f", 0.5 * LEAST_TIMES - 0.02), spot("cpu", "f", 0.5)],
    "spent in calls of C": [spot("cpu", "f", 0.7), spot("calls", "f", 0.1, inclusive_share=0.7)],
    "its own time may be small": [spot("cpu", "f", 0.7), spot("calls", "g", 0.2)],
    "small lines are not listed": [spot("cpu", "f", 0.7), spot("lines", "f", 0.1)],
    "bytes are no time": [spot("calls", "f", 0.9), spot("heap", "f", 0.1)],
    "not the project's": [spot("calls", "f", 0.9, "/usr/lib/a.py"), spot("cpu", "g", 0.9)],
}


def test_what_is_one_function_is_one_row_and_contradictions_are_said_with_both_figures() -> None:
    parts = [
        f"## {name}\n{section(profiled(*spots), 'Hotspots by Function')}"
        for name, spots in (TABLES | CONTRADICTIONS).items()
    ]
    check_golden("joined.md", "\n".join(parts))
    assert [name for name, spots in CONTRADICTIONS.items() if len(table(*spots).contradictions) != 1] == []


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_can_be_explained_is_no_contradiction(name: str) -> None:
    assert table(*EXPLAINED[name]).contradictions == ()


def test_one_profiler_alone_joins_nothing() -> None:
    assert list(joined_of(profiled(spot("cpu", "work", 0.5)))) == []
    assert list(joined_of(profiled(spot("cpu", "work", 0.5), spot("opens", "a.csv", 0.9, "", 0)))) == []


def test_a_long_table_says_what_it_leaves_out() -> None:
    functions = range(MOST_FUNCTIONS + 3)
    spots = [spot(step, f"f{n}", 0.06, file=f"own/{n}.py") for n in functions for step in ("cpu", "calls")]
    found = table(*spots)
    assert (len(found.rows), found.others) == (MOST_FUNCTIONS, 3)
    assert "3 more are in `result.json`." in markdown.render(profiled(*spots))


def test_few_samples_contradict_nobody() -> None:
    assert table(TINY, spot("cpu", "tiny", 0.12), few_samples="cpu").contradictions == ()


def test_the_table_outlives_the_file() -> None:
    keep = spot("calls", "keep", 0.3, **KEEP, uses=["in a loop"])
    result = profiled(keep, spot("heap", "keep", 0.9, line=11, **KEEP))
    again = judge(record_of_result(result), criteria_from_json(result.criteria))
    assert to_text(again) == to_text(result)
    assert again.hotspots[0].uses == ["in a loop"]


PROGRAM = """\
class Other:
    def keep(self, value):
        return value


class Store:
    def __init__(self):
        self.found = []

    def keep(self, value):
        self.found.append([value] * 200)


store, other = Store(), Other()
for number in range(20_000):
    store.keep(other.keep(number))
"""


@pytest.mark.long  # runs seven profilers on programs that each profiler's own tests run
def test_one_method_is_one_row_whichever_real_profiler_names_it(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    tools = ("cprofile", "line-profiler", "memray")
    step = "    - {{id: {0}, uses: {0}, benchmark: b, with: {{command: {1} prog.py}}}}\n"
    steps = "".join(step.format(tool, sys.executable) for tool in tools)
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nname: joined\nstages:\n  profile:\n{steps}")
    done = perfflow("run", "flow.yaml", "--out", "out", "--progress", "off", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = read(tmp_path / "out" / "result.json")
    assert len({spot.location for spot in result.hotspots if spot.function == "Store.keep"}) > 1
    (found,) = joined_of(result)
    assert tuple(column.split(":")[0] for column in found.columns) == tools
    (row,) = [row for row in found.rows if row.function == "Store.keep"]
    assert row.place == "prog.py:10"
    assert "–" not in row.cells
    assert "### Hotspots by Function" in (tmp_path / "out" / "report.md").read_text()
