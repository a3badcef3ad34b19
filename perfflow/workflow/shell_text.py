"""Insert values into shell text, quoted for their place, and find shell syntax in commands that run without a shell.

``ShellText`` builds text from literal parts and values. ``shlex.quote`` alone is correct only outside quotes: in
``"..."`` its quotes would become part of the value, and a ``$(command)`` in the value would be executed. A value is
refused where no quoting is safe (inside backquotes or ``${...}``, after ``$`` or a backslash), and where this parser
cannot determine how bash reads the text.

``needs_shell`` and ``first_word`` find shell syntax in commands that run without a shell, where it would be passed as
an ordinary argument. Split into words, ``python3 s.py < n.txt`` runs with the arguments ``<`` and ``n.txt``, and ``true
&& sleep 1`` runs only ``true``: the wrong program would be measured without an error. Quoting follows ``shlex.split``,
which splits the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

_ADVICE = 'put it into `env: {VALUE: "${{ ... }}"}` and write "$VALUE"'


class UnquotableError(ValueError):
    """A value is at a place where no quoting is safe; ``hint`` is the remedy."""

    hint = _ADVICE


class _In(Enum):
    COMMANDS = auto()
    SINGLE = auto()
    DOUBLE = auto()
    ANSI = auto()
    COMMENT = auto()
    BACKQUOTES = auto()
    BRACES = auto()
    ARITHMETIC = auto()
    HERE = auto()


_CLOSERS = {_In.SINGLE: "'", _In.ANSI: "'", _In.DOUBLE: '"', _In.BACKQUOTES: "`", _In.BRACES: "}"}
_REFUSED = {_In.ANSI: "$'...'", _In.BACKQUOTES: "backquotes", _In.BRACES: "${...}"}
_HERE_START = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<word>(?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_SHIFT = re.compile(r"<<=?\s*[\d($]")
_NUMBER = re.compile(r"-?\d+")
_DEEPEST = 100
"""Most nested quotes, substitutions and here-documents that are tracked."""
_SEPARATORS = " \t\n;&|()<>"


@dataclass
class _Here:
    """A here-document whose body starts on the next line."""

    word: str
    quoted: bool
    dash: bool
    depth: int


@dataclass
class ShellText:
    """Shell text, and the quotes, substitutions and here-documents that are open at its end."""

    text: str = ""
    _open: list[_In] = field(default_factory=lambda: [_In.COMMANDS])
    _parens: list[int] = field(default_factory=lambda: [0])
    _heres: list[_Here] = field(default_factory=list)
    _unsure: bool = False
    _escaped: bool = False
    _dollar: bool = False
    _substituted: int = -1

    def add(self, text: str) -> None:
        """Append literal shell text."""
        if not text:
            return
        # Two literal parts are adjacent only with a raw value, which may have completed an escape or a substitution.
        self._unsure = self._unsure or self._escaped or self._dollar
        position, self.text = len(self.text), self.text + text
        # Once it is unclear how bash reads the text, the rest is not parsed, and values in it are refused.
        while position < len(self.text) and not self._unsure:
            position = self._step(position)
            if len(self._open) > _DEEPEST:
                self._unsure = True

    def add_words(self, words: list[str]) -> None:
        """Append values, quoted for this place. Raises UnquotableError if no quoting is safe."""
        if any("\0" in word for word in words):
            raise UnquotableError("the value contains a NUL character")
        self.text += self._quoted(words)

    def _quoted(self, words: list[str]) -> str:
        here = self._open[-1]
        joined = " ".join(words)
        refused = next((kind for kind in self._open if kind in _REFUSED), None)
        if refused:
            raise UnquotableError(f"an expression is not allowed inside {_REFUSED[refused]}")
        if self._unsure or _In.HERE in self._open[:-1]:
            raise UnquotableError("an expression is not allowed here, because it is unclear how bash reads this text")
        if self._escaped or self._dollar:
            raise UnquotableError(f"an expression is not allowed directly after `{self.text[-1]}`")
        if _In.ARITHMETIC in self._open:
            # bash expands the text in it despite quotes, and may even read it as commands.
            if not _NUMBER.fullmatch(joined):
                raise UnquotableError(f"only a whole number is allowed in ((...)), not {joined[:40]!r}")
            return joined
        match here:
            case _In.SINGLE:
                return joined.replace("'", "'\"'\"'")
            case _In.DOUBLE:
                return re.sub(r'([\\"$`])', r"\\\1", joined)
            case _In.COMMENT:
                return shlex.quote(" ".join(joined.splitlines()))
            case _In.HERE:
                return self._in_here(joined)
            case _:
                return " ".join(shlex.quote(word) for word in words)

    def _in_here(self, text: str) -> str:
        if "\n" in text:
            raise UnquotableError("a value of several lines is not allowed in a here-document")
        here = self._heres[0]
        if here.depth > 1:  # bash may end it with the substitution around it
            raise UnquotableError("an expression is not allowed in a here-document inside $(...)")
        line = self.text.rpartition("\n")[2] + text
        # Together with the following text, the line may become the delimiter of the document.
        self._unsure = here.word.startswith(line.lstrip("\t") if here.dash else line)
        return text if here.quoted else re.sub(r"([\\$`])", r"\\\1", text)

    def _step(self, position: int) -> int:
        """Read one character or token, and return the index of the next one."""
        letter, here = self.text[position], self._open[-1]
        self._escaped = self._dollar = False
        if here is _In.HERE:
            return self._step_here(position)
        if here is _In.COMMENT:
            return self._newline(position) if letter == "\n" else position + 1
        if letter == "\\" and here is not _In.SINGLE:
            self._escaped = position + 1 == len(self.text)
            return position + 2
        if letter == _CLOSERS.get(here):
            self._open.pop()
            return position + 1
        if here in (_In.SINGLE, _In.ANSI):
            return position + 1
        return self._step_expanding(position, letter, here)

    def _step_expanding(self, position: int, letter: str, here: _In) -> int:
        """Read one character outside single quotes: it may start a substitution, or outside double quotes a quote."""
        if letter == "$":
            return self._dollar_at(position, here)
        if letter == "`":
            self._open.append(_In.BACKQUOTES)
        elif here is _In.DOUBLE:
            pass
        elif letter == '"':
            self._open.append(_In.DOUBLE)
        elif letter == "'" and not (here is _In.BRACES and _In.DOUBLE in self._open):
            self._open.append(_In.SINGLE)
        elif here in (_In.COMMANDS, _In.ARITHMETIC):
            return self._step_commands(position, letter, here)
        return position + 1

    def _dollar_at(self, position: int, here: _In) -> int:
        following = self.text[position + 1 : position + 3]
        if following.startswith("$"):  # the process id
            return position + 2
        if following.startswith("(("):
            return self._enter(_In.ARITHMETIC, position + 3, parens=2)
        if following.startswith("("):
            return self._enter(_In.COMMANDS, position + 2, parens=1)
        if following.startswith("{"):
            self._open.append(_In.BRACES)
            return position + 2
        if following.startswith("'") and here is not _In.DOUBLE:
            self._open.append(_In.ANSI)
            return position + 2
        self._dollar = position + 1 == len(self.text)
        return position + 1

    def _enter(self, kind: _In, position: int, parens: int) -> int:
        self._open.append(kind)
        self._parens.append(parens)
        return position

    def _step_commands(self, position: int, letter: str, here: _In) -> int:
        # After `$(x)` the word continues, after `(x)` a new one starts.
        starts_word = position == 0 or (self.text[position - 1] in _SEPARATORS and position != self._substituted)
        if letter == "(":
            if self.text.startswith("((", position) and here is _In.COMMANDS:
                return self._enter(_In.ARITHMETIC, position + 2, parens=2)
            self._parens[-1] += 1
        elif letter == ")":
            self._close_paren(position)
        elif letter == "#" and here is _In.COMMANDS and starts_word:
            self._open.append(_In.COMMENT)
        elif letter == "\n":
            return self._newline(position)
        elif self.text.startswith("<<", position):
            return self._here_at(position, here)
        elif starts_word and len(self._open) > 1 and self.text.startswith("case", position):
            self._unsure = True  # patterns of `case` end in an unmatched `)`
        return position + 1

    def _close_paren(self, position: int) -> None:
        if self._parens[-1] > 0:
            self._parens[-1] -= 1
        if self._parens[-1] == 0 and len(self._parens) > 1:
            self._parens.pop()
            # Whether `((x))#` starts a comment depends on the context.
            self._unsure = self._unsure or (
                self._open.pop() is _In.ARITHMETIC and self.text.startswith("#", position + 1)
            )
            self._substituted = position + 1
            self._unsure = self._unsure or bool(self._heres)

    def _here_at(self, position: int, here: _In) -> int:
        if self.text.startswith("<<<", position):
            return position + 3
        if here is _In.ARITHMETIC:
            # A shift, or a here-document in `((a) | b)`, which looks like arithmetic.
            self._unsure = self._unsure or not _SHIFT.match(self.text, position)
            return position + 2
        match = _HERE_START.match(self.text, position)
        if not match:
            self._unsure = True
            return position + 2
        word = match["word"]
        plain = re.sub(r"['\"\\]", "", word)
        self._heres.append(_Here(plain, plain != word, bool(match["dash"]), len(self._open)))
        self._unsure = self._unsure or len(self._heres) > _DEEPEST
        # A delimiter at the end of this part may continue in a value.
        self._unsure = self._unsure or match.end() == len(self.text)
        return match.end()

    def _newline(self, position: int) -> int:
        if self._open[-1] is _In.COMMENT:
            self._open.pop()
        if any(here.depth != len(self._open) for here in self._heres):
            self._unsure = True  # the newline of a substitution inside the line that starts the here-document
        elif self._heres:
            self._open.append(_In.HERE)
            return self._end_of_here(position + 1)
        return position + 1

    def _step_here(self, position: int) -> int:
        letter = self.text[position]
        if letter == "\n":
            return self._end_of_here(position + 1)
        if self._heres[0].quoted:
            return position + 1
        if letter == "\\":
            self._escaped = position + 1 == len(self.text)
            return position + 2 if not self.text.startswith("\\\n", position) else position + 1
        if letter == "`":
            self._open.append(_In.BACKQUOTES)
        if letter == "$":
            return self._dollar_at(position, _In.DOUBLE)
        return position + 1

    def _end_of_here(self, position: int) -> int:
        """At the start of a line, skip the lines that end here-documents."""
        while self._heres and self._open[-1] is _In.HERE:
            here, end = self._heres[0], self.text.find("\n", position)
            line = self.text[position : end if end >= 0 else None]
            if (line.lstrip("\t") if here.dash else line) != here.word:
                return position
            if end < 0:
                self._unsure = True  # the line may continue in the next part
                return len(self.text)
            del self._heres[0]
            if not self._heres:
                self._open.pop()
            position = end + 1
        return position


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


def first_word(text: str) -> SyntaxPiece | None:
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
