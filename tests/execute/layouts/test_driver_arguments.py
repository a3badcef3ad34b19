"""Parsing of compiler driver command lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.execute.layouts import driver_arguments


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("a.o -o a", True),
        ("-O2 a.c b.c", True),
        ("-MD -MF a.d a.c -o a", True),
        ("-rdynamic a.o -o -c", True),
        ("a.o -o a -L -shared", True),
        ("-c a.c", False),
        ("-shared a.o -o a.so", False),
        ("-Wl,-r a.o -o b.o", False),
        ("-MM a.c", False),
        ("-x c - -o a", False),
        ("-v", False),
        ("-print-prog-name=ld a.o", False),
        ("-x c++-header a.hpp -o a.hpp.gch", False),
    ],
)
def test_a_link_of_an_executable_is_told_from_the_rest(text: str, links: bool) -> None:
    assert driver_arguments.links_executable(text.split()) is links


@pytest.mark.parametrize(
    ("text", "output"), [("a.o", "a.out"), ("-o a b.o -o c", "c"), ("-oname a.o", "name"), ("-I -o a.c", "a.out")]
)
def test_the_output_is_that_of_the_last_o(text: str, output: str) -> None:
    assert driver_arguments.output(text.split()) == output


@pytest.mark.parametrize(
    ("text", "sections"), [("-c a.c", True), ("a.o b.o -o a", True), ("-c a.s", False), ("-x c a -o a", True)]
)
def test_functions_get_sections_where_a_compiler_or_linker_can_use_it(text: str, sections: bool) -> None:
    assert (driver_arguments.SECTIONS in driver_arguments.with_sections(text.split())) is sections


def test_response_files_are_read_as_the_driver_reads_them(tmp_path: Path) -> None:
    (tmp_path / "one.rsp").write_text("a.o 'b c.o'\n\"d \\\" e.o\" f\\ g.o '' @two.rsp @missing")
    (tmp_path / "two.rsp").write_text("-o out\n")
    words = driver_arguments.expanded(["-O2", "@one.rsp"], str(tmp_path))
    assert words == ["-O2", "a.o", "b c.o", 'd " e.o', "f g.o", "", "-o", "out", "@missing"]


def test_a_response_file_that_names_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "loop.rsp").write_text("a.o @loop.rsp")
    assert driver_arguments.expanded(["@loop.rsp"], str(tmp_path))[-1] == "@loop.rsp"


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_words_survive_a_response_file(words: list[str]) -> None:
    assert driver_arguments.split(driver_arguments.quoted(words)) == words


def test_a_path_is_replaced_wherever_an_option_holds_it() -> None:
    replaced = [driver_arguments.replaced(word, "/t/l", "k") for word in ("/t/l", "-Wl,--list=/t/l,-x,/t/l", "-L/t/l")]
    assert replaced == ["k", "-Wl,--list=k,-x,k", "-L/t/l"]
