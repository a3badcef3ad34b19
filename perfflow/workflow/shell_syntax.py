"""What only a shell understands in a command that no shell reads: there it would be an argument like any other.

``python3 s.py < n.txt`` split into words runs with the arguments ``<`` and ``n.txt``, and ``true && sleep 1`` is
``true``: the wrong thing is measured, and passes. Quoting is that of ``shlex.split``, which makes the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfflow.model.later import dataclass, late_pattern

_ASSIGNMENT = late_pattern(r"\s*([A-Za-z_]\w*)\+?=", re.ASCII)
_OPERATOR = late_pattern(
    # A placeholder stands for a value that is not known yet, and is no redirection.
    r"(?P<placeholder><(?:params|steps)\.[^<>\s]+>)"
    r"|(?P<operator>&>>?|\|\||&&|\|&?|;;?|<<<|<<-?|>>|[<>]&|[<>]\(|<>|>\||<|>|&|`"
    r"|\$(?:[({'\"]|[A-Za-z_]\w*|[0-9@*#?$!-]))"
    r"|(?P<pattern>[*?])",
    re.ASCII,
)


@dataclass(frozen=True)
class SyntaxPiece:
    """One piece of shell syntax outside of quotes: its text, and where in the command it starts.

    ``variable`` is the name that a leading ``NAME=value`` sets, and else ''; ``is_pattern`` says that it is a glob,
    which a shell, too, leaves as it is where no file matches.
    """

    text: str
    offset: int
    variable: str = ""
    is_pattern: bool = False

    @property
    def message(self) -> str:
        """What is wrong with it."""
        if self.variable:
            return f"`{self.text}` sets a variable only in a shell; here it is the program to start"
        if self.is_pattern:
            return f"`{self.text}` names no files: no shell reads this command, and the argument stays as it is"
        what = "a backquote" if self.text == "`" else f"`{self.text}`"
        return f"{what} is for a shell, and no shell reads this command: it would be an argument"

    def hint(self, *, takes_shell: bool = True) -> str:
        """The remedy, for a tool that can run a shell's text or one that cannot."""
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


def first(text: str) -> SyntaxPiece | None:
    """The first thing in a command that only a shell understands, a glob only where there is nothing else."""
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
