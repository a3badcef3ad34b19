"""Targets: their keys, their requirements, and the globs of their benchmarks."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfflow.model.metrics import METRICS, STATISTICS, Better, Metric
from perfflow.model.targets import Glob, Names, matches, parse_target, read_key
from perfflow.model.units import Dimension, Relation, UnitError

properties = settings(deadline=None)
OWN = {"latency": Metric("latency", Dimension.TIME, Better.LOWER)}


@pytest.mark.parametrize(
    ("key", "metric", "statistic", "given"),
    [
        ("time", "time", "p50", False),
        ("time p50", "time", "p50", True),
        ("p99", "time", "p99", True),
        ("speedup", "time", "speedup", True),
        ("  cpu   change ", "cpu", "change", True),
        ("heap_peak", "heap_peak", "value", False),
        ("allocs max", "allocs", "max", True),
        ("latency p95", "latency", "p95", True),
    ],
)
def test_a_key_names_a_metric_and_a_statistic(key: str, metric: str, statistic: str, given: bool) -> None:
    figure = read_key(key, OWN)
    assert (figure.metric.name, figure.statistic, figure.given) == (metric, statistic, given)


@pytest.mark.parametrize(
    ("unknown", "hints"),
    [
        ("metric", {"": "metrics: time", "tiem": "'time'?", "mem": "'rss' or 'heap_peak'?", "Time": "'time'?"}),
        ("metric", {"peak-memory": "'rss' or 'heap_peak'?", "duration": "'time'?", "wall_time": "'time'?"}),
        ("metric", {"ops": "'rate'?", "allocations": "'allocs'?"}),
        ("statistic", {"p5": "'p95'?", "p50 p99": "'p99'?", "zz": "known: p50"}),
    ],
)
def test_a_key_that_is_neither_is_explained(unknown: str, hints: dict[str, str]) -> None:
    for word, hint in hints.items():
        with pytest.raises(UnitError) as raised:
            read_key(f"time {word}" if unknown == "statistic" else f"{word} p99" if word else "", OWN)
        assert str(raised.value) == f"unknown {unknown} {word!r}"
        assert raised.value.hint.startswith(f"did you mean {hint}" if hint.endswith("?") else hint)


def test_a_metric_of_the_workflow_comes_before_a_built_in_one() -> None:
    own = Metric("time", Dimension.TIME, Better.NONE)
    assert read_key("time", {"time": own}).metric is own


@pytest.mark.parametrize(
    ("key", "requirement", "statistic", "relation", "bound"),
    [
        ("time", "<10μs", "p50", Relation.LESS, 10e-6),
        ("time", {"max": "10us"}, "p50", Relation.AT_MOST, 10e-6),
        ("allocs", 0, "value", Relation.EQUAL, 0),
        ("speedup", "≥1.5x", "speedup", Relation.AT_LEAST, 1.5),
        ("time", "≤linear", "growth", Relation.AT_MOST, 2),
        ("time growth", "<= nlogn", "growth", Relation.AT_MOST, 3),
        ("throughput", "≥70% of peak", "p50", Relation.AT_LEAST, 0.7),
        ("cpu change", "<5%", "change", Relation.LESS, 0.05),
    ],
)
def test_a_requirement_is_read_in_the_dimension_of_its_figure(
    key: str, requirement: object, statistic: str, relation: Relation, bound: float
) -> None:
    target = parse_target("x", key, requirement, {})
    assert (target.statistic, target.requirement.relation) == (statistic, relation)
    assert target.requirement.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("key", "requirements"),
    [
        ("time", ("<10MB", 10, "", None, True, [1], {"mn": 1})),
        ("speedup", (2, "2", "<10s", "≥70% of peak")),
        ("time p50", ("≤linear",)),
        ("time growth", ("<2",)),
    ],
)
def test_a_requirement_that_no_figure_can_have_is_refused(key: str, requirements: tuple[object, ...]) -> None:
    for requirement in requirements:
        with pytest.raises(UnitError):
            parse_target("x", key, requirement, {})


@properties
@given(st.text(max_size=20), st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.none(), st.booleans()))
@example("time " + "x" * 999, "1")
def test_any_target_is_read_or_explained(key: str, requirement: object) -> None:
    try:
        target = parse_target("x", key, requirement, {})
    except UnitError:
        return
    assert target.metric.name in METRICS
    assert target.statistic in STATISTICS


@pytest.mark.parametrize(
    ("glob", "matched", "others"),
    [
        ("a", {"a"}, {"ab", "A", "a\n"}),
        ("*", {"a", "", "a\nb"}, {"a/b"}),
        ("**", {"a/b/c"}, set()),
        ("*/b", {"a/b"}, {"a/x/b"}),
        ("**/b", {"a/x/b"}, {"b"}),
        ("a/**", {"a/b/c"}, {"a"}),
        ("a?c", {"abc"}, {"a/c", "ac"}),
        ("[ab]", {"[ab]"}, {"a"}),
        ("a.c", {"a.c"}, {"abc"}),
        ("a+", {"a+"}, {"aa"}),
        ("{a,b}", {"{a,b}"}, {"a"}),
        ("decode", {"decode[size=10]"}, set()),
        ("decode*", {"decode[size=10]"}, set()),
        ("decode[size=10]", {"decode[size=10]"}, {"decode"}),
        ("decode[size=*]", {"decode[size=10]"}, set()),
        ("decode[size=1]", set(), {"decode[size=10]"}),
        ("a/*", {"a/b[k=x/y]"}, set()),
    ],
)
def test_a_glob_knows_its_three_wildcards_and_cells(glob: str, matched: set[str], others: set[str]) -> None:
    assert {name for name in matched | others if matches(glob, name)} == matched


@properties
@given(st.text(st.sampled_from("ab/[]*?.\n\\"), max_size=12))
def test_a_glob_matches_itself_and_two_stars_match_all(name: str) -> None:
    assert matches(name, name)
    assert matches("**", name)


@properties
@given(st.text(max_size=12).filter(lambda text: not set(text) & set("*?")), st.text(max_size=12))
def test_without_wildcards_only_the_name_matches(glob: str, name: str) -> None:
    whole = name.rpartition("[")[0] if name.endswith("]") and "[" in name else name
    assert matches(glob, name) is (glob in (name, whole))


def by_regular_expression(glob: str, name: str) -> bool:
    """A slow reference implementation of globs."""
    meant = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    pattern = "".join(meant.get(part) or re.escape(part) for part in re.findall(r"\*\*|\*|\?|[^*?]+", glob))
    return re.fullmatch(pattern, name, re.DOTALL) is not None


short = st.text(st.sampled_from("ab/*?\n["), max_size=9)


@properties
@given(short, short)
def test_all_ways_at_once_find_what_one_after_another_do(glob: str, name: str) -> None:
    assert Glob(glob).matches(name) is by_regular_expression(glob, name)


@properties
@given(st.text(st.sampled_from("ab*?[]!"), max_size=9), st.text(st.sampled_from("ab"), max_size=9))
def test_without_slashes_a_glob_is_that_of_a_shell(glob: str, name: str) -> None:
    plain = glob.replace("[", "[[]")
    assert Glob(glob).matches(name) is fnmatchcase(name, plain)


@pytest.mark.parametrize("glob", ["*a" * 12 + "b", "**a" * 12 + "b", "?*" * 12 + "b", "*a" * 400 + "b"])
def test_many_wildcards_are_matched_without_trying_every_way(glob: str) -> None:
    began = time.process_time()
    assert not matches(glob, "a" * 5000)
    assert time.process_time() - began < 5


def test_a_glob_that_nobody_writes_matches_nothing() -> None:
    assert not matches("*a" * 501, "a" * 501)
    assert matches("a" * 2000, "a" * 2000)


CELLS = st.sampled_from(["a", "a/b", "a[k=1]", "a[k=2]", "a/b[k=1]", "a]", "[", "a[", ""])


@given(st.lists(CELLS, max_size=8), CELLS | st.sampled_from(["*", "**", "a*", "?", "a/*", "a[k=?]"]))
def test_names_are_found_as_they_match(names: list[str], glob: str) -> None:
    assert Names(names).matching(glob) == [name for name in dict.fromkeys(names) if matches(glob, name)]
