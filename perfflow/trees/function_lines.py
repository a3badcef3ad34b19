"""Find the first and last line of a function: by Python's syntax, or by braces in C, C++, Rust and similar languages.

The text is only scanned, not compiled. If it is not understood, the result is None instead of a guess.
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

_NAME = re.compile(r"([A-Za-z_~][A-Za-z0-9_]*)\W*\Z")
_CLOSURES = re.compile(r"::\{\{?closure\}\}?|::\{closure#?\d*\}|::\{impl#?\d*\}")
# Braces in strings, characters and comments do not count. A Rust lifetime is not a character.
_ELSEWHERE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\\n])'""",
    re.DOTALL,
)


def lines_of(text: str, file: str, function: str, line: int) -> tuple[int, int] | None:
    """Return the first and last line (from 1) of a function that contains ``line``; None if it is not found."""
    if PurePosixPath(file).suffix == ".py":
        return _in_python(text, function, line)
    return _in_braces(text, bare(function), line)


def bare(function: str) -> str:
    """Return the last name of a function, without types and modules: ``run`` for ``<a::B as C>::run::<u8>(int)``."""
    name = _CLOSURES.sub("", function)
    name = re.sub(r"\(.*\)", "", name)
    while (stripped := re.sub(r"::<[^<>]*>|<[^<>]*>", "", name)) != name:
        name = stripped
    found = _NAME.search(name)
    return found[1] if found else ""


def _in_python(text: str, function: str, line: int) -> tuple[int, int] | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if function == "<module>":
        return None
    spans = [
        (min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    around = [span for span in spans if span[0] <= line <= span[1]]
    named = [span for span in around if span[2] == bare(function)]
    # A generator expression or lambda belongs to the innermost function around it.
    found = max(named or around, key=lambda span: span[0], default=None)
    return found[:2] if found else None


def _in_braces(text: str, name: str, line: int) -> tuple[int, int] | None:
    if not name:
        return None
    blank = _ELSEWHERE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = list(re.finditer(rf"(?<![\w.>]){re.escape(name)}\s*[(<]", blank))
    spans = [span for match in starts if (span := _body(blank, match.start()))]
    around = [span for span in spans if not line or span[0] <= line <= span[1]]
    if line:
        return max(around, key=lambda span: span[0], default=None)
    return around[0] if len(around) == 1 else None


def _body(text: str, start: int) -> tuple[int, int] | None:
    """Return the lines from a name to the closing brace of its body; None for a call or a declaration."""
    depth, opened = 0, False
    for index in range(start, len(text)):
        letter = text[index]
        if letter in "([{":
            opened = opened or (letter == "{" and depth == 0)
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth < 0:
                return None
            if opened and depth == 0:
                return text.count("\n", 0, _line_start(text, start)) + 1, text.count("\n", 0, index) + 1
        elif letter == ";" and depth == 0:
            return None
    return None


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1
