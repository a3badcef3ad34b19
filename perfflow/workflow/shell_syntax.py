"""Find shell syntax in commands that run without a shell, where it would be passed as an ordinary argument.

Split into words, ``python3 s.py < n.txt`` runs with the arguments ``<`` and ``n.txt``, and ``true && sleep 1`` runs
only ``true``: the wrong program would be measured without an error. Quoting follows ``shlex.split``, which splits the
command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\+?=", re.ASCII)
_OPERATOR = re.compile(
    # A placeholder stands for a value that is not known yet; it is not a redirection.
    r"(?P<placeholder><(?:params|steps)\.[^<>\s]+>)"
    r"|(?P<operator>&>>?|\|\||&&|\|&?|;;?|<<<|<<-?|>>|[<>]&|[<>]\(|<>|>\||<|>|&|`"
    r"|\$(?:[({'\"]|[A-Za-z_]\w*|[0-9@*#?$!-]))"
    r"|(?P<pattern>[*?])",
    re.ASCII,
)


@dataclass(frozen=True)
class SyntaxPiece:
    """One piece of unquoted shell syntax: its text, and its offset in the command.

    ``variable`` is the name that a leading ``NAME=value`` sets, else ''. ``is_pattern`` marks a glob, which even a
    shell passes unchanged if no file matches.
    """

    text: str
    offset: int
    variable: str = ""
    is_pattern: bool = False

    @property
    def message(self) -> str:
        """The error message."""
        if self.variable:
            return f"`{self.text}` needs a shell, but this command runs without one: it would be the program to start"
        if self.is_pattern:
            return f"`{self.text}` is not expanded, since this command runs without a shell"
        what = "a backquote" if self.text == "`" else f"`{self.text}`"
        return f"{what} needs a shell, but this command runs without one: it would be an argument"

    def hint(self, *, takes_shell: bool = True) -> str:
        """Return the remedy, for tools that accept ``shell: true`` or for others."""
        if self.variable:
            return f"use `env: {{{self.variable}: ...}}`" + (", or add `shell: true`" if takes_shell else "")
        name = self.text.removeprefix("$")
        if self.text.startswith("$") and name.isidentifier():
            return f"write ${{{{ env.{name} }}}}, " + (
                "add `shell: true`, or quote it" if takes_shell else "or quote it"
            )
        if takes_shell:
            return "add `shell: true`, or quote it"
        return "quote it; or write a script, or `run:` with `parse`"


BASH_READS_RAW = "put it into a script; or add `| raw` to its `${{ }}`, then bash reads it"
"""The remedy for shell syntax in a value that is the whole text of a timed step."""
_SHELL_WORDS = frozenset(
    {"!", ".", ":", "[[", "{", "alias", "builtin", "case", "cd", "command", "coproc", "declare", "do", "eval", "exec"}
    | {"exit", "export", "for", "function", "if", "let", "local", "popd", "pushd", "read", "readonly", "return"}
    | {"select", "set", "shift", "shopt", "source", "time", "trap", "type", "typeset", "ulimit", "umask", "unset"}
    | {"until", "wait", "while"}
)
"""First words of a command that only a shell understands."""


def needs_shell(text: str) -> bool:
    """Return whether bash reads a command in another way than ``shlex.split``: operators, expansions, several lines.

    If in doubt, the answer is yes. A quote that is not closed needs no shell: it is an error in both.
    """
    text = text.strip()
    word = text.split(None, 1)[0] if text else ""
    return word in _SHELL_WORDS or bool(_ASSIGNMENT.match(text)) or any(_is_syntax(text))


def _is_syntax(text: str) -> Iterator[bool]:
    """Yield for each character outside single quotes whether it is shell syntax."""
    position, quote = 0, ""
    while position < len(text):
        letter = text[position]
        if quote == "'":
            quote = "" if letter == "'" else quote
        elif letter == "\\":
            position += 1
            # Before these, bash removes the backslash in double quotes and shlex does not, and a line continues.
            yield text[position : position + 1] in (("$", "`", "\n") if quote else ("\n",))
        elif quote:
            quote = "" if letter == '"' else quote
            yield letter in "$`"
        elif letter in "'\"":
            quote = letter
        else:
            starts_word = position == 0 or text[position - 1] in " \t=:"
            yield letter in "|&;<>()$`*?[]{}\n" or (letter in "~#" and starts_word)
        position += 1


def first(text: str) -> SyntaxPiece | None:
    """Return the first piece of shell syntax in a command; a glob only if there is nothing else; None without any."""
    leading = _ASSIGNMENT.match(text)
    if leading:
        return SyntaxPiece(leading[0].lstrip(), leading.start(1), variable=leading[1])
    pattern = None
    for found in _outside_of_quotes(text):
        if not found.is_pattern:
            return found
        pattern = pattern or found
    return pattern


def _outside_of_quotes(text: str) -> Iterator[SyntaxPiece]:
    position, quote = 0, ""
    while position < len(text):
        letter = text[position]
        if quote:
            if letter == "\\" and quote == '"':
                position += 1
            elif letter == quote:
                quote = ""
        elif letter == "\\":
            position += 1
        elif letter in "'\"":
            quote = letter
        elif match := _OPERATOR.match(text, position):
            if not match["placeholder"]:
                yield SyntaxPiece(match[0], position, is_pattern=bool(match["pattern"]))
            position = match.end()
            continue
        position += 1
