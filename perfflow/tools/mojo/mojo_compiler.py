"""What ``mojo build`` says against a source, and what helps where the source is of an older dialect of the language.

The remedies were tried with Mojo 1.2.0. Each belongs to the text of an error and of the line that it points to: the
compiler's own message seldom names a word that is gone, since to its parser that is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfflow.tools import tool_files

VERSION = "mojo-version.txt"
"""What the compiler prints of its version."""

_ERROR = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>[^\n]*)(?:\n(?P<source>[^\n]*))?", re.MULTILINE
)
# What it says without a place; of all others it also says that the module could not be parsed.
_GENERAL = re.compile(r"^\S*mojo: error: (?P<what>[^\n]*)", re.MULTILINE)
_STD = (
    "algorithm|atomic|base64|benchmark|bit|builtin|collections|compile|complex|ffi|format|gpu|hashlib|io|iter|itertools|"
    "logger|math|memory|os|pathlib|prelude|pwd|python|random|reflection|runtime|stat|subprocess|sys|tempfile|testing|"
    "time|utils"
)
_LONGEST_WHAT, _LONGEST_LINE, _MOST_REMEDIES = 120, 60, 2

REMEDIES: Mapping[str, str] = {
    r"'fn' has been removed": "write `def`, and `raises` after the arguments of one that may raise",
    r"^\s*alias\s+\w": "write `comptime NAME = ...` for `alias`",
    r"^\s*let\s+\w": "write `var` for `let`",
    r"\binout\s+self\b": "write `out self` in __init__ and `mut self` elsewhere for `inout self`",
    r"\binout\s+\w": "write `mut` for `inout`",
    r"\bowned\s+\w": "write `var` for `owned`",
    r"\bborrowed\s+\w": "leave out `borrowed`: arguments are read only unless told otherwise",
    r"'(?:if|for)' statement does not support decorators": "write `comptime if` or `comptime for`",
    rf"(?:unable to locate module '(?:{_STD})'|'(?:{_STD})' cannot import itself)": "modules of the standard "
    "library are imported from std: `from std.benchmark import run`",
    r"unable to locate module": "name the folder of that module in `include`",
    r"call to '(?:run|iter|iter_custom|bench_function|bench_with_input)'.*\n.*"
    r"\b(?:run|iter|iter_custom|bench_function|bench_with_input)\[": "functions are arguments now, `run(f)` or "
    "`b.iter(f)`, and say what they capture: `def f() {mut}:`",
    r"call to 'vectorize'.*\n.*\bvectorize\[\s*[A-Za-z_]\w*\s*,": "write `vectorize[WIDTH](n, body)` with `def "
    "body[width: Int](i: Int) {mut}:`",
    r"Could not infer capture convention": "say what a closure captures: `def f() {mut}:`, or {read}, {var}",
    r"unknown function effect 'unified'": "leave out `unified`: `def f() {mut}:`",
    r"may raise in a context that cannot raise": "add `raises`: `def main() raises:`",
    r"unknown declaration 'value'": "write `@fieldwise_init` and `struct A(Copyable, Movable):` for `@value`",
    r"\bsimdwidthof\b": "it is `simd_width_of` of std.sys",
    r"\bDTypePointer\b": "DTypePointer is gone: use a List, or `Pointer` of std.memory",
    r"unknown declaration '(?:str|int)'": "write `String(...)` for `str`, `Int(...)` for `int`",
    r"no matching function in initialization\n.*\bList\[": "write a list as `[1, 2, 3]`",
    r"unable to find suitable c compiler": "it links with the C compiler: apt-get install gcc",
    r"does not contain a 'main' function": "name the file that has `def main()`",
}
"""What helps where a pattern is found in an error's text, or in the line below; the more special ones come first."""


def why(folder: Path) -> str:
    """Return why the build in ``folder`` failed, in one line of at most 400 characters; '' where it said no error.

    That is the version, the place and text of the first error of which something is known to help, else of the first
    one, the line of the source, and what helps.
    """
    said = tool_files.first_text(folder)
    found = [(match, _remedy_for(f"{match['what']}\n{match['source'] or ''}")) for match in _ERROR.finditer(said)]
    if not found:
        general = _GENERAL.search(said)
        return _line(_version(folder), general["what"], "", [_remedy_for(general["what"])]) if general else ""
    first, _ = next((pair for pair in found if pair[1]), found[0])
    place = f"{Path(first['file']).name}:{first['line']}:{first['column']}: "
    remedies = list(dict.fromkeys(remedy for _, remedy in found))
    return _line(_version(folder), place + first["what"], first["source"] or "", remedies)


def _line(version: str, what: str, source: str, remedies: Sequence[str]) -> str:
    parts = [f"{version}: {tool_files.clean_name(what)[:_LONGEST_WHAT]}"]
    if source.strip():
        parts[0] += f": `{tool_files.clean_name(source)[:_LONGEST_LINE]}`"
    parts += [remedy for remedy in remedies if remedy][:_MOST_REMEDIES]
    line = "; ".join(parts)
    # Rather one remedy that is whole than two of which one is not.
    return line if len(line) < tool_files.LONGEST_NAME else "; ".join(parts[:2])


def _remedy_for(text: str) -> str:
    return next((says for pattern, says in REMEDIES.items() if re.search(pattern, text, re.MULTILINE)), "")


def _version(folder: Path) -> str:
    words = tool_files.first_text(folder, VERSION).split()
    return f"Mojo {tool_files.clean_name(words[1])[:20]}" if words[:1] == ["Mojo"] and words[1:] else "mojo"
