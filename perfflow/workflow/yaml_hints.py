"""What people meant when their YAML does not parse, or parses into something else."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from yaml.nodes import MappingNode, Node

from perfflow.model.later import dataclass, late_pattern


@dataclass(frozen=True)
class Hint:
    """A known trap: 0-based position of its cause, what is wrong there, and what to write instead."""

    line: int
    column: int
    message: str
    hint: str


_TRAPS = (
    (
        late_pattern(r":\s+(?P<value>>\s*=?\s*[\d.][^\n,}]*?)\s*(?:[,}#].*)?$"),
        "`>` opens a block text in YAML",
        'quote it, such as "{value}", or write {bound}',
    ),
    (
        late_pattern(r"[{\[][^#'\"]*(?P<value>\$\{\{)"),
        "`{{` inside {{ }} or [ ] starts a mapping",
        'quote the text: "${{{{ ... }}}}", or write one key per line',
    ),
    (
        late_pattern(r"[:,\[]\s*(?P<value>>=?\s*[\d.][^,}\]]*)"),
        "a text cannot start with `>` here",
        'quote it, such as "{value}", or write {bound}',
    ),
    (
        late_pattern(r"(?:^\s*|[\[{,:-]\s*)(?P<value>\*[^\s,:}\]]*)(?=\s|:|,|\]|\}|$)"),
        "a text that starts with `*` is an alias in YAML",
        'quote the glob: "{value}"',
    ),
    (
        late_pattern(r":\s+(?P<value>\{\{)"),
        "`{{{{` starts a mapping in YAML",
        "expressions are written ${{{{ ... }}}}",
    ),
    (
        late_pattern(r"[:,\[-]\s+(?P<value>[@`%])"),
        "a text cannot start with `{value}`",
        "quote the text",
    ),
    (
        late_pattern(r"^\s*(?:-\s+)?[\w-]+:\s+[^'\"|>{\[&*!\s#][^#]*?(?P<value>:)(?:\s|$)"),
        "a `: ` inside an unquoted text",
        "quote the text, or use a block: `run: |`",
    ),
)
"""What YAML makes of a text that looks right, what to say of it, and what to write instead."""


def for_syntax_error(lines: list[str], line: int) -> Hint | None:
    """Look at the line where the parser gave up, and the one before it, for a known trap."""
    deeper = _indented_deeper(lines, line)
    if deeper:
        return deeper
    for number in (line, line - 1):
        text = lines[number] if 0 <= number < len(lines) else ""
        indent = text[: len(text) - len(text.lstrip())]
        if "\t" in indent:
            return Hint(number, indent.index("\t"), "a tab cannot indent YAML", "use spaces")
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


_KEY = late_pattern(r"(?P<indent> *)(?P<key>[\w-]+):(?=\s|$)")
_KEY_AND_TEXT = late_pattern(r"(?P<indent> *(?:- +)*)(?P<key>[\w-]+):[ \t]+(?![|>&*!#\[{'\"])\S")


def _indented_deeper(lines: list[str], line: int) -> Hint | None:
    """A key that is indented deeper than the one above it, which has a text: YAML takes it for more of that text."""
    key = _KEY.match(lines[line]) if 0 <= line < len(lines) else None
    above = [text for text in lines[max(0, line - _LOOKED_BACK) : line] if text.strip() and text.lstrip()[0] != "#"]
    before = _KEY_AND_TEXT.match(above[-1]) if above else None
    if not key or not before or len(key["indent"]) <= len(before["indent"]):
        return None
    message = f"`{key['key']}` is indented deeper than `{before['key']}` above it, so it would be part of its text"
    hint = f"check the indentation: start it in column {len(before['indent']) + 1}, where `{before['key']}` starts"
    return Hint(line, len(key["indent"]), message, hint)


_LOOKED_BACK = 20
"""Lines above a mistake among which the one before it is looked for."""
_LIBYAML = (
    ("another document", "a second document starts here", "a workflow file is one document: remove the `---`"),
    ("undefined alias", "an alias that nothing defines", 'quote a text that starts with `*`, such as "*/scalar"'),
    ("duplicate anchor", "an anchor of this name is already there", "give it another name"),
    ("mapping values are not allowed", "a `: ` where no value can stand", "quote a text that holds `: `"),
    ("could not find expected ':'", "a key without its `:`", "write `key: value`"),
    ("cannot start any token", "a text cannot start with this character", "quote the text"),
)
"""Parts of the parser's messages, and the same in a reader's words."""


def for_parser_message(message: str, start: tuple[int, int] | None, context: str) -> tuple[str, str]:
    """Return message and hint in a reader's words; ``start`` is the line and column of what was being read."""
    for part, ours, hint in _LIBYAML:
        if part in message:
            return ours, hint
    where = f"line {start[0] + 1}, column {start[1] + 1}" if start else "above"
    if "unexpected end of stream" in message or "quoted scalar" in context:
        return "these quotes are not closed", "close them, and escape quotes inside"
    if "node content" in message:
        return "a value is missing here, or a `[` or `{` is not closed", "look for a missing ] } or ,"
    if "flow" in context:
        return f"the list or map that starts in {where} is not closed, or lacks a comma", "look for a missing ] } or ,"
    if "block" in context:
        return "this line does not line up with those it belongs to", f"check the indentation: they start in {where}"
    return f"YAML: {message}", ""


def for_key(key: Node) -> str:
    """A mapping as a key is nearly always an unquoted ``{{ x }}``."""
    if isinstance(key, MappingNode):
        return 'an expression is written ${{ ... }}, and quoted where a value starts with it: "${{ ... }}"'
    return "write a plain word before the `:`"


FOREIGN_KEYS = {
    "depends": "needs",
    "deps": "needs",
    "depends_on": "needs",
    "depends-on": "needs",
    "requires_steps": "needs",
    "after": "needs",
    "script": "run",
    "cmd": "run",
    "cmds": "run",
    "shell_command": "run",
    "inputs": "params",
    "vars": "params",
    "parameters": "params",
    "variables": "env",
    "environment": "env",
    "dir": "working-directory",
    "cwd": "working-directory",
    "workdir": "working-directory",
    "working_directory": "working-directory",
    "timeout-minutes": "timeout",
    "timeout_minutes": "timeout",
    "allow_failure": "continue-on-error",
    "ignore_error": "continue-on-error",
    "continue_on_error": "continue-on-error",
    "retry": "retries",
    "version": "perfflow",
    "jobs": "stages",
    "tasks": "stages",
    "when": "if",
    "strategy": "matrix",
    "action": "uses",
    "tool": "uses",
    "args": "with",
    "options": "with",
    "warm-up": "warmup",
}
"""Keys of other runners -> ours."""

_UNIT_NEEDED = {"timeout-minutes", "timeout_minutes"}


_LONGEST_LINE = 2000
"""Characters of a line in which a known trap is looked for: some patterns try one place after another."""
_SHOWN_KEYS = 14
_SEARCHED = 1000
"""Names among which a near one is looked for; each comparison takes some 20 μs."""


def nearest(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """The known name that is most like ``name``, '' where none is near."""
    if len(name) > 100:
        return ""
    found = difflib.get_close_matches(name, list(islice(known, _SEARCHED)), n=1, cutoff=cutoff)
    return found[0] if found else ""


def did_you_mean(name: str, known: Collection[str], otherwise: str = "") -> str:
    """Name the nearest of the known names, else all of them after ``otherwise``."""
    near = nearest(name, known)
    shown = ", ".join(islice(known, _SHOWN_KEYS)) + (", ..." if len(known) > _SHOWN_KEYS else "")
    return f"did you mean `{near}`?" if near else f"{otherwise}: {shown or 'none'}" if otherwise else ""


def meant_by(key: str, known: Collection[str]) -> str:
    """The key that was probably meant: another runner's word, another spelling, or the nearest one; else ''."""
    foreign = FOREIGN_KEYS.get(key.lower(), "")
    if foreign in known:
        return foreign
    spelled = {_squeezed(name): name for name in known}
    return spelled.get(_squeezed(key), "") or nearest(key, known, 0.6)


def _squeezed(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def for_unknown_key(key: str, known: Collection[str]) -> str:
    """Say which key was probably meant, or which there are."""
    meant = meant_by(key, known)
    if not meant:
        return did_you_mean(key, known, "known here")
    if FOREIGN_KEYS.get(key.lower()) == meant:
        return f"write `{meant}`" + (" with a unit, such as `timeout: 10m`" if key in _UNIT_NEEDED else "")
    return f"write `{meant}`" if _squeezed(key) == _squeezed(meant) else f"did you mean `{meant}`?"


def nearest_file(path: Path) -> Path | None:
    """A file beside ``path`` with nearly its name."""
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return None
    near = nearest(path.name, names, 0.6)
    return path.parent / near if near else None
