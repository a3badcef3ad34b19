from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import Exit, Problem, Severity, SourcePosition, UserError, in_file_order

# No deadline, because times of calls mean nothing on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

GUTTER = len("    1 | ")


UNKNOWN_KEY = SourcePosition("perf.yaml", 12, 5, "    ste: build")
SHOWN = {
    "error: no such workflow": Problem("no such workflow"),
    "error: no such workflow\n  hint: did you mean rust?": Problem("no such workflow", "did you mean rust?"),
    "perf.yaml:12:5: error: unknown key 'ste'\n   12 |     ste: build\n            ^\n  hint: did you mean 'steps'?": (
        Problem("unknown key 'ste'", "did you mean 'steps'?", UNKNOWN_KEY)
    ),
    "a.yaml:3:1: warning: no memory metric [memory]": (
        Problem("no memory metric", "", SourcePosition("a.yaml", 3, 1), Severity.WARNING, "memory")
    ),
    "f:1:1: error: x\n    1 | abc\n        ^": Problem("x", "", SourcePosition("f", 1, 1, "abc")),
    # An error at the end of the text is placed after the last character.
    "f:1:4: error: x\n    1 | abc\n           ^": Problem("x", "", SourcePosition("f", 1, 4, "abc")),
    # What a message quotes cannot command a terminal.
    "error: unknown key 'a\\x1b[31m\\u202e'\n  hint: did you mean 'b\\x07'?": (
        Problem("unknown key 'a\x1b[31m\u202e'", "did you mean 'b\x07'?")
    ),
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_problem_as_it_is_shown(text: str) -> None:
    assert SHOWN[text].render() == text


def test_a_long_line_is_cut_around_the_caret() -> None:
    text = "a" * 5000 + "!" + "b" * 5000
    source, caret = Problem("x", place=SourcePosition("f", 1, 5001, text)).render().splitlines()[1:]
    assert len(source) <= GUTTER + 100
    assert source[caret.index("^")] == "!"
    assert source[GUTTER:].startswith("a")
    assert source.endswith("b")


@pytest.mark.parametrize("text", ["a\tb\x1b[31mc", "\x00\x07", "\u202eevil", "x\u2028y", "\r\n"])
def test_what_a_terminal_would_obey_is_blank(text: str) -> None:
    source = Problem("x", place=SourcePosition("f", 1, 1, text)).render().split("\n")[1]
    assert source.isprintable()
    assert len(source) == GUTTER + len(text)


@properties
@given(text=st.text(min_size=1, max_size=400), line=st.integers(1, 10**7), data=st.data())
@example(text="\x1b" * 300, line=1, data=None)
def test_the_caret_stands_under_its_column(text: str, line: int, data: st.DataObject | None) -> None:
    column = data.draw(st.integers(1, len(text))) if data else 200
    rendered = Problem("x", "h", SourcePosition("f", line, column, text)).render().split("\n")
    assert len(rendered) == 4
    source, caret = rendered[1:3]
    assert caret.strip() == "^"
    wanted = text[column - 1]
    assert source[caret.index("^")] == (wanted if wanted.isprintable() else " ")
    assert source.isprintable()


@properties
@given(text=st.text(max_size=20), column=st.integers(0, 10**6))
def test_a_column_outside_the_line_is_no_reason_to_fail(text: str, column: int) -> None:
    rendered = Problem("message", place=SourcePosition("f", 1, column, text)).render()
    assert rendered.startswith(f"f:1:{column}: error: message")
    assert max(map(len, rendered.split("\n"))) < 200


def test_a_user_error_is_all_its_problems() -> None:
    error = UserError((Problem("one"), Problem("two", "a hint")))
    assert str(error) == "error: one\nerror: two\n  hint: a hint"
    assert error.exit is Exit.USAGE
    alone = UserError.of("no git", "install git", Exit.UNMEASURED)
    assert (alone.problems, alone.exit) == ((Problem("no git", "install git"),), Exit.UNMEASURED)


def test_problems_come_in_the_files_order_and_once_and_at_one_place_keep_theirs() -> None:
    places = [("other", "b.yaml", 1), ("late", "a.yaml", 10), ("early", "a.yaml", 2), ("late", "a.yaml", 10)]
    places += [(message, "a.yaml", 1) for message in ("b", "a", "c")]
    problems = [Problem(message, place=SourcePosition(file, line, 1)) for message, file, line in places]
    found = in_file_order([*problems, Problem("nowhere")])
    assert [problem.message for problem in found] == ["nowhere", "b", "a", "c", "early", "late", "other"]


def test_exit_statuses_are_the_documented_ones() -> None:
    documented = {"PASS": 0, "FAIL": 1, "USAGE": 2, "UNMEASURED": 3, "UNPROVEN": 4, "DEFECT": 70, "INTERRUPTED": 130}
    assert {exit.name: exit.value for exit in Exit} == documented
