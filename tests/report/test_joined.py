"""Hotspots of several profilers joined by function, and the contradictions between them."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.same_function import LEAST_DIFFERENCE, LEAST_TIMES, MOST_FUNCTIONS, Joined, joined_of
from perfflow.store.result_file import to_text
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.report.results import HOSTILE
from tests.report.test_ledger import check_safe
from tests.verdict.records import ended, judged, pairs, planned

STEPS = {"calls": "cprofile", "cpu": "py-spy", "lines": "line-profiler", "heap": "memray", "perf": "perf"}
STEPS |= {"cg": "callgrind", "dhat": "dhat", "stacks": "scalene", "opens": "strace"}


def spot(step: str, location: str, share: float, file: str = "own/p.py", line: int = 1, **keys: Any) -> dict[str, Any]:
    units = {"heap": "bytes", "dhat": "bytes", "cg": "instructions", "opens": "opens"}
    known = {"location": location, "share": share, "unit": units.get(step, "time"), "source": STEPS[step]}
    known |= {"file": file, "line": line, "cause": "", "tree": "baseline", "step": step}
    return known | keys


def profiled(*spots: dict[str, Any], few_samples: str = "") -> Result:
    """Return a run whose profiles are these hotspots, by step. ``few_samples``: the step that has few samples."""
    by_step: dict[str, list[dict[str, Any]]] = {}
    for item in spots:
        by_step.setdefault(item["step"], []).append({key: value for key, value in item.items() if key != "step"})
    events = [ended(step, hotspots=found, few_samples=step == few_samples) for step, found in by_step.items()]
    steps = [planned(step, role="profile", benchmark="b", tool=STEPS[step]) for step in by_step]
    return judged(*pairs("b", [1.0] * 3, None), ended("b"), *events, steps=[planned("b"), *steps])


def table(*spots: dict[str, Any], few_samples: str = "") -> Joined:
    (found,) = joined_of(profiled(*spots, few_samples=few_samples))
    return found


def rows(found: Joined) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(row.function, row.place, row.cells) for row in found.rows]


KEEP: dict[str, Any] = {"function": "Store.keep", "begins": 8}


def test_each_tool_names_a_function_its_own_way_and_they_are_one_row() -> None:
    found = table(
        spot("calls", "keep", 0.3, line=8, **KEEP),
        spot("cpu", "keep", 0.25, line=11, **KEEP),
        spot("lines", "Store.keep", 0.2, line=10, **KEEP),
        spot("lines", "Store.keep.<locals>.<listcomp>", 0.1, line=11, **KEEP),
        spot("heap", "keep", 0.9, line=11, **KEEP),
        spot("heap", "keep", 0.06, line=21, function="Other.keep", begins=20),
    )
    assert found.columns == ("cprofile: time", "py-spy: time", "line-profiler: time", "memray: bytes")
    assert rows(found) == [
        ("Store.keep", "own/p.py:8", ("30%", "25%", "30%", "90%")),
        ("Other.keep", "own/p.py:20", ("–", "–", "–", "6%")),
    ]
    assert found.contradictions == ()


def test_without_the_source_first_lines_tell_functions_of_one_name_apart() -> None:
    place: dict[str, Any] = {"file": "/opt/lib/python3.11/site-packages/a.py"}
    found = table(
        spot("calls", "__init__", 0.3, line=10, **place),
        spot("calls", "__init__", 0.2, line=40, **place),
        spot("cpu", "B.__init__", 0.25, line=44, **place),
        spot("cpu", "A.__init__", 0.35, line=12, **place),
    )
    assert [cells for _, _, cells in rows(found)] == [("30%", "35%"), ("20%", "25%")]


def test_native_names_join_with_and_without_parameters_library_and_file() -> None:
    found = table(
        spot("perf", "codec::decode(unsigned char*)", 0.5, "src/c.cc", 7),
        spot("cg", "codec::decode(unsigned char*)'2", 0.4, "src/c.cc", 5),
        spot("dhat", "codec::decode", 0.8, "", 0),
        spot("perf", "memcpy (libc.so.6)", 0.1, "", 0),
        spot("cg", "memcpy", 0.1, "", 0),
        spot("perf", "only_here", 0.06, "", 0),
    )
    assert found.columns == ("perf: time", "callgrind: instructions", "dhat: bytes")
    assert rows(found) == [
        ("codec::decode", "src/c.cc:7", ("50%", "40%", "80%")),
        ("memcpy", "", ("10%", "10%", "–")),
    ]


def test_static_functions_of_one_name_stay_apart() -> None:
    spots = [spot("perf", "init", 0.2, "a.c", 3), spot("perf", "init", 0.3, "b.c", 3), spot("cg", "init", 0.4, "", 0)]
    spots.append(spot("cg", "main", 0.1, "a.c", 9))
    assert [cells for _, _, cells in rows(table(*spots))] == [("30%", "–"), ("20%", "–"), ("–", "10%")]


def test_both_sides_stand_in_one_cell() -> None:
    found = table(
        spot("calls", "work", 0.3),
        spot("calls", "work", 0.1, tree="candidate"),
        spot("cpu", "work", 0.3),
        spot("cpu", "other", 0.9, tree="candidate"),
    )
    assert found.two_sided
    assert rows(found) == [
        ("other", "own/p.py:1", ("–", "– → 90%")),
        ("work", "own/p.py:1", ("30% → 10%", "30% → –")),
    ]


def test_the_baseline_comes_first_whatever_its_largest_function_is() -> None:
    spots = [spot("calls", "a", 0.5, tree="candidate"), spot("calls", "a", 0.2), spot("cpu", "a", 0.4)]
    assert rows(table(*spots)) == [("a", "own/p.py:1", ("20% → 50%", "40%"))]
    spots[0], spots[1] = spots[1], spots[0]
    assert rows(table(*spots)) == [("a", "own/p.py:1", ("20% → 50%", "40%"))]


def test_one_profiler_alone_joins_nothing() -> None:
    assert list(joined_of(profiled(spot("cpu", "work", 0.5)))) == []
    assert list(joined_of(profiled(spot("cpu", "work", 0.5), spot("opens", "a.csv", 0.9, "", 0)))) == []


def test_a_long_table_says_what_it_leaves_out() -> None:
    spots = [
        spot(step, f"f{n}", 0.06, file=f"own/{n}.py") for n in range(MOST_FUNCTIONS + 3) for step in ("cpu", "calls")
    ]
    found = table(*spots)
    assert (len(found.rows), found.others) == (MOST_FUNCTIONS, 3)
    assert "3 more are in `result.json`." in markdown.render(profiled(*spots))


SMALL: dict[str, Any] = {"self_share": 0.6, "inclusive_share": 0.6}


@pytest.mark.parametrize(
    ("spots", "said"),
    [
        pytest.param(
            [spot("calls", "tiny", 0.6, **SMALL), spot("cpu", "tiny", 0.12)],
            "tiny (own/p.py): cprofile 60%, py-spy 12%; cprofile adds overhead to every call",
            id="many small calls",
        ),
        pytest.param(
            [spot("calls", "tiny", 0.6, **SMALL), spot("cpu", "main", 0.9)],
            "tiny (own/p.py): cprofile 60%, py-spy under 5%; cprofile adds",
            id="not listed is below the threshold",
        ),
        pytest.param(
            [spot("lines", "tiny", 0.3, line=1), spot("lines", "tiny", 0.3, line=2), spot("stacks", "tiny", 0.2)],
            "line-profiler 60%, scalene 20%; line-profiler adds overhead to every executed line",
            id="lines add up",
        ),
        pytest.param(
            [spot("cpu", "work", 0.7), spot("calls", "work", 0.1, inclusive_share=0.2)],
            "py-spy 70%, cprofile 10%; cprofile sees only the main thread",
            id="threads",
        ),
        pytest.param(
            [spot("perf", "walk", 0.6, "src/a.c"), spot("cg", "walk", 0.1, "src/a.c")],
            "walk (src/a.c): perf 60%, callgrind 10% of instructions; it takes more time than its instructions explain",
            id="it waits for memory",
        ),
        pytest.param(
            [spot("cg", "walk", 0.6, "src/a.c"), spot("perf", "walk", 0.1, "src/a.c")],
            "callgrind 60% of instructions, perf 10%; its instructions are cheap",
            id="cheap instructions",
        ),
    ],
)
def test_a_contradiction_is_said_with_both_figures(spots: list[dict[str, Any]], said: str) -> None:
    (found,) = table(*spots).contradictions
    assert said in found
    assert found.split(";")[0] in markdown.render(profiled(*spots)).replace("\\", "")


NEAR = LEAST_DIFFERENCE - 0.01


@pytest.mark.parametrize(
    "spots",
    [
        pytest.param([spot("calls", "f", 0.1 + NEAR), spot("cpu", "f", 0.1)], id="few points apart"),
        pytest.param([spot("calls", "f", 0.5 * LEAST_TIMES - 0.02), spot("cpu", "f", 0.5)], id="not twice as much"),
        pytest.param([spot("cpu", "f", 0.7), spot("calls", "f", 0.1, inclusive_share=0.7)], id="spent in calls of C"),
        pytest.param([spot("cpu", "f", 0.7), spot("calls", "g", 0.2)], id="its own time may be small"),
        pytest.param([spot("cpu", "f", 0.7), spot("lines", "f", 0.1)], id="small lines are not listed"),
        pytest.param([spot("calls", "f", 0.9), spot("heap", "f", 0.1)], id="bytes are no time"),
        pytest.param([spot("calls", "f", 0.9, "/usr/lib/a.py"), spot("cpu", "g", 0.9)], id="not the project's"),
    ],
)
def test_what_can_be_explained_is_no_contradiction(spots: list[dict[str, Any]]) -> None:
    assert table(*spots).contradictions == ()


def test_few_samples_contradict_nobody() -> None:
    spots = [spot("calls", "tiny", 0.6, **SMALL), spot("cpu", "tiny", 0.12)]
    assert table(*spots, few_samples="cpu").contradictions == ()


def test_each_side_is_looked_at_by_itself() -> None:
    later: dict[str, Any] = {"tree": "candidate"}
    spots = [spot("calls", "tiny", 0.6, **SMALL), spot("cpu", "tiny", 0.55), spot("cpu", "tiny", 0.1, **later)]
    (said,) = table(*spots, spot("calls", "tiny", 0.5, **SMALL, **later)).contradictions
    assert "tiny (own/p.py) on the candidate: cprofile 50%, py-spy 10%" in said


def test_the_table_outlives_the_file() -> None:
    result = profiled(
        spot("calls", "keep", 0.3, **KEEP, uses=["in a loop"]), spot("heap", "keep", 0.9, line=11, **KEEP)
    )
    again = judge(record_of_result(result), criteria_from_json(result.criteria))
    assert to_text(again) == to_text(result)
    assert again.hotspots[0].uses == ["in a loop"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_the_table(name: str) -> None:
    spots = [spot("calls", name, 0.9, f"a{name}", 3, **SMALL), spot("cpu", name, 0.1, f"a{name}", 3)]
    check_safe(markdown.render(profiled(*spots)))
