"""First and last line of a function, found in its text."""

from __future__ import annotations

import pytest

from perfflow.trees.line_history import bare, lines_of

C = """int early(int n);
/* early { */
static int early(int n) {
    const char *text = "}";
    if (n > 2) { return late(n, '}'); }
    return 0;
}

int
late(int n, char c)
{
    return early(n); // }
}
"""
RUST = """impl<'a> Codec<'a> {
    /// Decodes `{`.
    pub fn decode<T: Into<u8>>(&self, bytes: &'a [u8]) -> Vec<u8> {
        bytes.iter().map(|byte| { byte + 1 }).collect()
    }

    fn encode(&self) -> u8 { self.decode::<u8>(&[]).len() as u8 }
}
"""
PYTHON = """class A:
    @cached
    def run(self):
        return [each for each in self.run()]

    def stop(self):
        pass
"""


@pytest.mark.parametrize(
    ("text", "file", "function", "line", "expected"),
    [
        (C, "a.c", "early", 5, (3, 7)),
        (C, "a.c", "late", 12, (10, 13)),
        (C, "a.c", "early(int)", 4, (3, 7)),
        (C, "a.c", "early", 0, (3, 7)),
        (C, "a.c", "unknown", 5, None),
        (C, "a.c", "early", 12, None),
        (RUST, "a.rs", "<a::Codec as b::C>::decode::<u8>", 4, (3, 5)),
        (RUST, "a.rs", "a::Codec::decode::{{closure}}", 4, (3, 5)),
        (RUST, "a.rs", "a::Codec::encode", 7, (7, 7)),
        (PYTHON, "a.py", "run", 4, (2, 4)),
        (PYTHON, "a.py", "<listcomp>", 4, (2, 4)),
        (PYTHON, "a.py", "stop", 6, (6, 7)),
        (PYTHON, "a.py", "<module>", 1, None),
        ("def broken(", "a.py", "broken", 1, None),
    ],
)
def test_lines_of_a_function(text: str, file: str, function: str, line: int, expected: tuple[int, int] | None) -> None:
    assert lines_of(text, file, function, line) == expected


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("work", "work"),
        ("ns::Class<int>::work(char const*, int)", "work"),
        ("<a::B as C>::run::<u8>", "run"),
        ("a::main::{{closure}}", "main"),
        ("", ""),
    ],
)
def test_the_bare_name_of_a_function(function: str, name: str) -> None:
    assert bare(function) == name
