"""Hints for common YAML mistakes: syntax errors, and YAML that parses into something unintended."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from yaml.nodes import MappingNode, Node

from perfflow.model.similar import did_you_mean, is_habit, key_meant, nearest


@dataclass(frozen=True)
class Hint:
    """A known mistake: the 0-based position of its cause, the message, and the correction."""

    line: int
    column: int
    message: str
    hint: str


_TRAPS = (
    (
        re.compile(r":\s+(?P<value>>\s*=?\s*[\d.][^\n,}]*?)\s*(?:[,}#].*)?$"),
        "`>` starts a block scalar in YAML",
        'quote it, such as "{value}", or write {bound}',
    ),
    (
        re.compile(r"[{\[][^#'\"]*(?P<value>\$\{\{)"),
        "`{{` inside {{ }} or [ ] starts a mapping",
        'quote the expression: "${{{{ ... }}}}", or write one key per line',
    ),
    (
        re.compile(r"[:,\[]\s*(?P<value>>=?\s*[\d.][^,}\]]*)"),
        "an unquoted string cannot start with `>` here",
        'quote it, such as "{value}", or write {bound}',
    ),
    (
        re.compile(r"(?:^\s*|[\[{,:-]\s*)(?P<value>\*[^\s,:}\]]*)(?=\s|:|,|\]|\}|$)"),
        "an unquoted string that starts with `*` is an alias in YAML",
        'quote the glob: "{value}"',
    ),
    (
        re.compile(r":\s+(?P<value>\{\{)"),
        "`{{{{` starts a mapping in YAML",
        "write expressions as ${{{{ ... }}}}",
    ),
    (
        re.compile(r"[:,\[-]\s+(?P<value>[@`%])"),
        "an unquoted string cannot start with `{value}`",
        "quote the string",
    ),
    (
        re.compile(r"^\s*(?:-\s+)?[\w-]+:\s+[^'\"|>{\[&*!\s#][^#]*?(?P<value>:)(?:\s|$)"),
        "an unquoted string cannot contain `: `",
        "quote the string, or use a block scalar: `run: |`",
    ),
)
"""Common mistakes: a pattern, the message, and the correction."""


def for_syntax_error(lines: list[str], line: int) -> Hint | None:
    """Return a hint if the line where the parser failed, or the line before it, has a known mistake."""
    deeper = _indented_deeper(lines, line)
    if deeper:
        return deeper
    for number in (line, line - 1):
        text = lines[number] if 0 <= number < len(lines) else ""
        indent = text[: len(text) - len(text.lstrip())]
        if "\t" in indent:
            return Hint(number, indent.index("\t"), "YAML does not allow tabs for indentation", "use spaces")
        if text.lstrip().startswith("#") or len(text) > _LONGEST_LINE:
            continue
        for pattern, message, hint in _TRAPS:
            match = pattern.search(text)
            if match:
                value = match["value"].strip()
                bound = value.replace(">=", "≥").replace("> ", ">")
                words = {"value": value, "bound": bound if "≥" in bound else "≥" + bound[1:]}
                return Hint(number, match.start("value"), message.format(**words), hint.format(**words))
    return None


_KEY = re.compile(r"(?P<indent> *)(?P<key>[\w-]+):(?=\s|$)")
_KEY_AND_TEXT = re.compile(r"(?P<indent> *(?:- +)*)(?P<key>[\w-]+):[ \t]+(?![|>&*!#\[{'\"])\S")


def _indented_deeper(lines: list[str], line: int) -> Hint | None:
    """Return a hint for a key below a string and indented deeper: YAML reads it as part of the string."""
    key = _KEY.match(lines[line]) if 0 <= line < len(lines) else None
    above = [text for text in lines[max(0, line - _LOOKED_BACK) : line] if text.strip() and text.lstrip()[0] != "#"]
    before = _KEY_AND_TEXT.match(above[-1]) if above else None
    if not key or not before or len(key["indent"]) <= len(before["indent"]):
        return None
    message = (
        f"`{key['key']}` is indented deeper than `{before['key']}` above it, so YAML reads it as part of its value"
    )
    hint = f"start it in column {len(before['indent']) + 1}, like `{before['key']}`"
    return Hint(line, len(key["indent"]), message, hint)


_LOOKED_BACK = 20
"""Lines above a mistake that are searched for the previous key; blank lines and comments are skipped."""
_LIBYAML = (
    ("another document", "a second document starts here", "a workflow file is one document: remove the `---`"),
    ("undefined alias", "undefined alias", 'quote strings that start with `*`, such as "*/scalar"'),
    ("duplicate anchor", "duplicate anchor", "give it another name"),
    ("mapping values are not allowed", "unexpected `: `", "quote strings that contain `: `"),
    ("could not find expected ':'", "a key without its `:`", "write `key: value`"),
    ("cannot start any token", "an unquoted string cannot start with this character", "quote the string"),
)
"""Part of a message of libyaml, and the message and hint that replace it."""


def for_parser_message(message: str, start: tuple[int, int] | None, context: str) -> tuple[str, str]:
    """Return the message and hint for an error of libyaml.

    ``start`` is the 0-based line and column of the value that was being parsed.
    """
    for part, ours, hint in _LIBYAML:
        if part in message:
            return ours, hint
    where = f"line {start[0] + 1}, column {start[1] + 1}" if start else "above"
    if "unexpected end of stream" in message or "quoted scalar" in context:
        return "unclosed quote", "add the closing quote, and escape quotes inside the string"
    if "node content" in message:
        return "a value is missing, or a `[` or `{` is not closed", "look for a missing ] } or ,"
    if "flow" in context:
        return f"the list or map that starts at {where} is not closed, or lacks a comma", "look for a missing ] } or ,"
    if "block" in context:
        return "wrong indentation", f"align this line with the list or map it belongs to, which starts at {where}"
    return f"YAML: {message}", ""


def for_key(key: Node) -> str:
    """Return the hint for a key that is not a scalar; a map as a key is nearly always an unquoted ``{{ x }}``."""
    if isinstance(key, MappingNode):
        return 'write expressions as ${{ ... }}, and quote a value that starts with one: "${{ ... }}"'
    return "write a plain word before the `:`"


_UNIT_NEEDED = {"timeout-minutes", "timeout_minutes"}


_LONGEST_LINE = 2000
"""Longest line, in characters, that is searched for known mistakes: some patterns need quadratic time."""


def for_unknown_key(key: str, known: Collection[str]) -> str:
    """Return a hint with the key that was probably meant, or with all known keys."""
    meant = key_meant(key, known)
    if not meant:
        return did_you_mean(key, known, "known keys")
    if not is_habit(key, meant):
        return f"did you mean `{meant}`?"
    return f"write `{meant}`" + (" with a unit, such as `timeout: 10m`" if key in _UNIT_NEEDED else "")


def nearest_file(path: Path) -> Path | None:
    """Return the file beside ``path`` with the most similar name, if any."""
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return None
    near = nearest(path.name, names, 0.6)
    return path.parent / near if near else None
