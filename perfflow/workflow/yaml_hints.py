"""What people meant when their YAML does not parse, or parses into something else."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from yaml.nodes import MappingNode, Node


@dataclass(frozen=True, slots=True)
class Hint:
    """A known trap: 0-based position of its cause, what is wrong there, and what to write instead."""

    line: int
    column: int
    message: str
    hint: str


_BLOCK_BOUND = re.compile(r":\s+(?P<value>>\s*=?\s*[\d.][^\n]*?)\s*(?:#.*)?$")
_FLOW_BOUND = re.compile(r"[:,\[]\s*(?P<value>>=?\s*[\d.][^,}\]]*)")
_STAR = re.compile(r"(?:^\s*|[\[{,:-]\s*)(?P<value>\*(?:[^\s,:}\]]*[/*.?][^\s,:}\]]*)?)(?=\s|:|,|\]|\}|$)")
_FLOW_TEMPLATE = re.compile(r"[{\[][^#'\"]*(?P<value>\$\{\{)")
_PLAIN_TEMPLATE = re.compile(r":\s+(?P<value>\{\{)")
_PLAIN_COLON = re.compile(r"^\s*(?:-\s+)?(?P<key>[\w-]+):\s+(?P<value>[^'\"|>{\[&*!\s#][^#]*:\s.*)$")
_RESERVED = re.compile(r":\s+(?P<value>[@`%!])")
_TRAPS = (
    (_BLOCK_BOUND, "`>` opens a block text in YAML", 'quote it, such as ">=45 GiB/s", or write ≥45 GiB/s'),
    (
        _FLOW_TEMPLATE,
        "`{` inside { } or [ ] starts a mapping",
        'quote the text: "${{ ... }}", or write one key per line',
    ),
    (_FLOW_BOUND, "a text cannot start with `>` here", 'quote it, such as ">=45 GiB/s", or write ≥45 GiB/s'),
    (_STAR, "a text that starts with `*` is an alias in YAML", 'quote the glob, such as "*/scalar"'),
    (_PLAIN_TEMPLATE, "`{{` starts a mapping in YAML", "expressions are written ${{ ... }}"),
    (_RESERVED, "a text cannot start with this character", "quote the text"),
    (_PLAIN_COLON, "a `: ` inside an unquoted text", "quote the text, or use a block: `run: |`"),
)


def for_syntax_error(lines: list[str], line: int) -> Hint | None:
    """Look at the line where the parser gave up, and the one before it, for a known trap."""
    for number in (line, line - 1):
        text = lines[number] if 0 <= number < len(lines) else ""
        indent = text[: len(text) - len(text.lstrip())]
        if "\t" in indent:
            return Hint(number, indent.index("\t"), "a tab cannot indent YAML", "use spaces")
        for pattern, message, hint in _TRAPS:
            match = pattern.search(text)
            if match:
                return Hint(number, match.start("value"), message, hint)
    return None


def for_key(value: Node) -> str:
    """A mapping as a key is nearly always an unquoted ``{{ x }}``."""
    return "quote it" if isinstance(value, MappingNode) else "expressions are written ${{ ... }}; quote other braces"


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


def for_unknown_key(key: str, known: list[str]) -> str:
    """Name the key that was probably meant: another runner's word, another spelling, or the nearest one."""
    foreign = FOREIGN_KEYS.get(key.lower())
    if foreign in known:
        return f"write `{foreign}`" + (" with a unit, such as `timeout: 10m`" if key in _UNIT_NEEDED else "")
    spelled = {name.replace("-", "").lower(): name for name in known}
    squeezed = key.replace("_", "").replace("-", "").lower()
    if squeezed in spelled:
        return f"write `{spelled[squeezed]}`"
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(sorted(known))}"


def nearest_file(path: Path) -> Path | None:
    """A file beside ``path`` with nearly its name."""
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return path.parent / near[0] if near else None
