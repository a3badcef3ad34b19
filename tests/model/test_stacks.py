from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model.readings import Hotspot
from perfflow.model.stacks import Frame, Stack, callers_and_callees, hotspots_of, read_folded, write_folded

# No deadline, because times of calls mean nothing on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.text(max_size=12) | st.sampled_from(
    ["main", "operator<<(a, b) 3", "a;b", " ", "", "\t", "x\ny", "x\u2028y", "x\x1cy", "x\x85", "42", "f 7", "naïve"]
)
STACKS = st.lists(NAMES, max_size=5).map(tuple)
CLEAN = st.lists(st.from_regex(r"[^\s;]{1,8}( [^\s;]{1,4})?", fullmatch=True), min_size=1, max_size=5).map(tuple)


@properties
@given(stacks=st.dictionaries(CLEAN, st.integers(0, 10**12), max_size=8))
def test_clean_names_survive_the_round_trip(stacks: dict[Stack, int]) -> None:
    assert dict(read_folded(write_folded(stacks))) == stacks


@properties
@given(stacks=st.dictionaries(STACKS, st.integers(0, 10**12), max_size=8))
@example(stacks={(): 3})
@example(stacks={("a;b",): 1, ("a:b",): 2})
def test_any_names_can_be_written_and_read_and_then_stay(stacks: dict[Stack, int]) -> None:
    text = write_folded(stacks)
    read = read_folded(text)
    assert sum(read.values()) == sum(stacks.values())
    assert read_folded(write_folded(read)) == read
    assert {len(stack) for stack in read} == {max(1, len(stack)) for stack in stacks}
    assert len(text.splitlines()) == len(stacks)


def test_folded_text_does_not_depend_on_the_order_of_the_profile() -> None:
    stacks = {("main", "b"): 2, ("main", "a"): 10, ("main",): 1}
    text = "main 1\nmain;a 10\nmain;b 2\n"
    assert write_folded(stacks) == write_folded(dict(reversed(stacks.items()))) == text


def test_a_separator_inside_a_name_is_replaced_and_lines_of_the_same_stack_add_up() -> None:
    assert write_folded({("a;b", "  c\td "): 1, ("\n",): 2}) == "? 2\na:b;c d 1\n"
    assert read_folded("a;b 2\n\n   \na;b 3\r\na 1\n") == Counter({("a", "b"): 5, ("a",): 1})
    assert read_folded("") == Counter()


@pytest.mark.parametrize(
    "line", ["main", "main x", "main 1.5", "main -1", " 3", "main ²", "main;", "main ١", "main " + "9" * 5000]
)
def test_a_line_without_a_count_is_an_error_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 3: .* is not a folded stack"):
        read_folded(f"main 1\n\n{line}\n")


def test_a_long_bad_line_is_not_repeated_in_full() -> None:
    with pytest.raises(ValueError, match="not a folded stack") as caught:
        read_folded("x" * 10**6)
    assert len(str(caught.value)) < 200


def test_hotspots_are_ranked_by_their_own_share_of_the_whole() -> None:
    leaves = [(Frame("b", "b.c", 7), 1), (Frame("a", "a.c", 3), 2), (Frame("b", "b.c", 9), 4), (Frame("c"), 1)]
    assert hotspots_of(leaves, source="perf") == (
        Hotspot("b", 5 / 8, "time", "perf", "b.c", 9),
        Hotspot("a", 2 / 8, "time", "perf", "a.c", 3),
        Hotspot("c", 1 / 8, "time", "perf"),
    )


def test_functions_of_one_name_in_two_files_are_two_places() -> None:
    leaves = [(Frame("init", "b.c", 1), 1), (Frame("init", "a.c", 1), 1)]
    assert [hotspot.file for hotspot in hotspots_of(leaves, source="perf", unit="bytes")] == ["a.c", "b.c"]


def test_the_hottest_line_stands_for_a_function_and_of_equal_ones_the_first() -> None:
    leaves = [(Frame("f", "f.c", line), count) for line, count in ((9, 2), (4, 1), (4, 1), (30, 1))]
    assert [hotspot.line for hotspot in hotspots_of(leaves, source="perf")] == [4]


def test_shares_are_of_the_whole_profile_also_where_only_the_top_is_kept() -> None:
    leaves = [(Frame(f"f{k:02}"), 1 + k) for k in range(30)]
    kept = hotspots_of(leaves, source="perf", keep=3)
    shares = {"f29": 30 / 465, "f28": 29 / 465, "f27": 28 / 465}
    assert [(hotspot.location, hotspot.share) for hotspot in kept] == list(shares.items())
    assert len(hotspots_of(leaves, source="perf")) == 20


def test_functions_of_the_project_are_hotspots_with_what_they_call() -> None:
    main, parse, scan = Frame("main", "a.c", 1), Frame("parse", "a.c", 5), Frame("scan", "a.c", 9)
    memcpy = Frame("memcpy", "/usr/include/string.h", 3)
    stacks = [((main, parse, scan), 6), ((main, parse, parse, memcpy), 2), ((main,), 2)]
    inclusive = [(frame, count) for stack, count in stacks for frame in callers_and_callees(stack)]
    found = hotspots_of([(stack[-1], count) for stack, count in stacks], source="perf", inclusive=inclusive)
    assert [(spot.location, spot.share, spot.inclusive_share, spot.line) for spot in found] == [
        ("scan", 0.6, 0.6, 9),
        ("main", 0.2, 1.0, 1),
        ("memcpy", 0.2, 0.2, 3),
        ("parse", 0.0, 0.8, 5),  # it spends nothing itself, and is in each stack once
    ]
    # A function that only calls all of the rest says nothing.
    without = [(stack[-1], count) for stack, count in stacks[:2]]
    assert "main" not in {spot.location for spot in hotspots_of(without, source="perf", inclusive=inclusive[:6])}


@pytest.mark.parametrize("leaves", [[], [(Frame("a"), 0)]])
def test_an_empty_profile_has_no_hotspots(leaves: list[tuple[Frame, int]]) -> None:
    assert hotspots_of(leaves, source="perf") == ()


FRAMES = st.builds(Frame, st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "x.c", "y.c"]), st.integers(0, 3))


@properties
@given(leaves=st.lists(st.tuples(FRAMES, st.integers(0, 3)), max_size=15), order=st.randoms(use_true_random=False))
def test_the_ranking_does_not_depend_on_the_order_of_the_samples(
    leaves: list[tuple[Frame, int]], order: random.Random
) -> None:
    shuffled = list(leaves)
    order.shuffle(shuffled)
    ranked = hotspots_of(leaves, source="perf")
    assert hotspots_of(shuffled, source="perf") == ranked
    assert [hotspot.share for hotspot in ranked] == sorted((hotspot.share for hotspot in ranked), reverse=True)
    assert not ranked or sum(hotspot.share for hotspot in ranked) == pytest.approx(1.0)
