"""Patterns of users: matches, and patterns with catastrophic backtracking."""

from __future__ import annotations

import os
import re
import signal
import time
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.tools import parsed_output
from perfflow.tools.parsed_output import PatternMatch, PatternTimeoutError, from_regex, search, time_left

ENDLESS = "(?P<x>(a+)+)$"
TEXT = "a" * 40 + "b"


def test_matches_are_the_same_here_and_elsewhere() -> None:
    pattern, text = r"^(?P<name>\w+)(?: took)? (?P<time>[\d.]+) ms$", "one took 1.5 ms\ntwo 3 ms\n\udcffé\n"
    here = [PatternMatch(match.start(), match.groupdict()) for match in re.finditer(pattern, text, re.MULTILINE)]
    assert search(pattern, [text]) == here
    assert [found.groups["time"] for found in here] == ["1.5", "3"]
    assert search("a", ["ba", "", "aa"]) == [PatternMatch(1, {}), PatternMatch(0, {}), PatternMatch(1, {})]
    assert search("^b", ["a\nb"], flags=0) == []


@given(st.text(st.sampled_from("ab\n"), max_size=30), st.sampled_from(["(a|b)*", "(?P<x>a+b?)+", "^(?:ab)*$", "a*|b"]))
def test_any_text_is_searched_as_python_does(text: str, pattern: str) -> None:
    here = [PatternMatch(match.start(), match.groupdict()) for match in re.finditer(pattern, text, re.MULTILINE)]
    assert search(pattern, [text]) == here


@pytest.mark.parametrize(
    "pattern", [ENDLESS, "(a|aa)+$", "(.*a){20}c", "a?" * 40 + "a" * 40 + "c", "a*" * 12 + "c", "(?P<x>a*)*(?P=x)c"]
)
def test_a_pattern_that_backtracks_ends_with_the_time(pattern: str) -> None:
    with pytest.raises(PatternTimeoutError, match=r"did not end within 0\.3 s: it has too many ways"):
        search(pattern, ["a" * 60 + "b"], 0.3)
    assert search("(a)+", ["aa"], 10) == [PatternMatch(0, {})]


def test_figures_end_with_the_time_too() -> None:
    with pytest.raises(ToolOutputError, match="too many ways to match"):
        from_regex(TEXT, [ENDLESS], {"x": "1"}, seconds=0.3)


def test_a_searching_process_that_was_ended_is_replaced() -> None:
    assert search("(a)+", ["aa"])
    for child in parsed_output._idle:
        os.kill(child.pid, signal.SIGKILL)
    assert search("(a)+", ["aa"]) == [PatternMatch(0, {})]


def test_searches_beside_each_other_do_not_wait_for_each_other() -> None:
    ended: list[str] = []

    def endless() -> None:
        with pytest.raises(PatternTimeoutError):
            search(ENDLESS, [TEXT], 3)
        ended.append("endless")

    thread = Thread(target=endless)
    thread.start()
    time.sleep(0.2)
    search("(a)+", ["aa"])
    ended.append("quick")
    thread.join()
    assert ended == ["quick", "endless"]


def test_what_cannot_take_long_is_searched_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(request: bytes) -> bytes:
        raise AssertionError(request)

    monkeypatch.setattr(parsed_output, "_answer_to", elsewhere)
    assert search(r"took (?P<time>[0-9.]+) ms", ["took 12 ms\n" * 100])
    assert search(r"^(?P<copied>\d+) bytes .* copied, (?P<time>[\d.e-]+) s", ["5 bytes, copied, 1 s"]) == []


def test_a_pattern_has_what_is_left_of_the_time() -> None:
    assert (time_left(None, 5), time_left(10, 4), time_left(10, 9.9)) == (None, 6, 1.0)
