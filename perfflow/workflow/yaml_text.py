"""Read YAML files into nodes with their positions, and write values as YAML.

- ``Readable`` limits the files that perfflow reads for a workflow: regular files of at most 1 MiB in allowed folders. A
  workflow may come from somebody else, and error messages show lines of the files that it names. So perfflow reads such
  files only inside the allowed folders, and follows no link out of them.
- ``read_file`` and ``read_text`` parse YAML: PyYAML's C loader with the scalars of the YAML 1.2 core schema (no
  ``on``/``no`` booleans, no sexagesimals, no dates), and limits that keep a hostile file from exhausting the memory or
  the stack.
- ``scalar`` and ``flow`` write one value.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

from perfflow.model.errors import Problem, SourcePosition, UserError
from perfflow.tools import regular_files
from perfflow.tools.regular_files import NotRegularError, TooLargeError
from perfflow.workflow import yaml_hints
from perfflow.workflow.document import MAX_DEPTH, MAX_NODES, Document
from perfflow.workflow.written_numbers import WrittenFloat, WrittenInt

LARGEST = 2**20
"""Most bytes of a file."""
_ALLOWED_HINT = "perfflow reads only the project, its own library, and the folder of a workflow that you name"


@dataclass(frozen=True)
class Readable:
    """Folders that may be read, with everything below them, as real paths.

    ``further`` has the folders that were added while the workflow was read, ``fixed`` the files whose bytes are known.
    """

    folders: tuple[str, ...]
    further: set[str] = field(default_factory=set, compare=False)
    fixed: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, *folders: Path) -> Readable:
        """Create it from these folders; links in their paths are resolved."""
        return cls(tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders)))

    def allow(self, folder: Path) -> None:
        """Allow one more folder."""
        self.further.add(os.path.realpath(folder))

    def fix(self, contents: Mapping[Path, bytes]) -> None:
        """Allow files, and take their bytes from ``contents`` instead of the disk."""
        self.fixed.update((os.path.abspath(path), raw) for path, raw in contents.items())  # noqa: PTH100 (no links)

    def bytes_of(self, path: Path, largest: int = LARGEST) -> bytes:
        """Return the bytes of a file of at most ``largest`` bytes.

        Raises UserError if the file is outside the folders, without showing its contents; OSError if it is not a
        regular file, is too large or cannot be read; ValueError for a NUL in the path.
        """
        raw = self.fixed.get(os.path.abspath(path)) if self.fixed else None  # noqa: PTH100 (links may have changed)
        return regular_files.read(self._real(path), largest) if raw is None else raw

    def holds(self, path: Path) -> bool:
        """Return whether a file is inside the folders after links are resolved."""
        if os.path.abspath(path) in self.fixed:  # noqa: PTH100 (links may have changed)
            return True
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(folder) for folder in (*self.folders, *self.further))

    def _real(self, path: Path) -> str:
        real = os.path.realpath(path)
        if self.holds(path):
            return real
        is_linked = real != os.path.abspath(path)  # noqa: PTH100 (resolve() would follow the link)
        hint = (
            "a symbolic link leads there; name the file itself, or copy it into the project"
            if is_linked
            else _ALLOWED_HINT
        )
        raise UserError.of(f"{path} lies outside the project", hint)


TOO_DEEP = f"the file has more than {MAX_DEPTH} levels of nesting"
TOO_MANY, TOO_MANY_HINT = f"the file has more than {MAX_NODES:,} values", "check that this is a workflow file"
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Line ends as libyaml counts them, so that line numbers agree."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML does not allow."""


class Loader(yaml.CSafeLoader):
    """CSafeLoader with the YAML 1.2 core schema; only its composer is used."""


_CORE_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in _CORE_SCALARS:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), list(_first))


class _NamedText(io.StringIO):
    """A text stream with a file name, which PyYAML copies into its marks."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


def read_file(path: Path, readable: Readable | None = None) -> Document:
    """Read one YAML file into nodes.

    Raises UserError if the file is not YAML, cannot be read, or lies outside ``readable`` (default: its own folder).
    """
    name = str(path)
    try:
        raw = (readable or Readable.of(path.parent)).bytes_of(path)
    except ValueError as error:
        raise UserError.of(f"invalid path {name!r}", "remove the NUL character") from error
    except OSError as error:
        raise UserError((_unreadable(path, error),)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError((_not_utf8(raw, error.start, name),)) from error
    return read_text(text, name)


def _not_utf8(raw: bytes, position: int, name: str) -> Problem:
    before = _BREAK.split(raw[:position].decode("utf-8-sig"))
    rest = raw[position:].splitlines() or [b""]
    text = before[-1] + rest[0].decode("utf-8", "replace")
    hint = "save it as UTF-8, or check that this is a workflow file"
    message = f"not a text file: byte 0x{raw[position]:02X} is not UTF-8"
    return Problem(message, hint, SourcePosition(name, len(before), len(before[-1]) + 1, text))


def _unreadable(path: Path, error: OSError) -> Problem:
    if isinstance(error, IsADirectoryError):
        inside = sorted(item.name for item in path.glob("*.y*ml"))[:3]
        return Problem(f"{path} is a directory", f"name one of its files, such as {path / inside[0]}" if inside else "")
    if isinstance(error, FileNotFoundError):
        near = yaml_hints.nearest_file(path)
        return Problem(f"{path}: no such file", f"did you mean {near}?" if near else "check the path")
    if isinstance(error, TooLargeError):
        hint = "check that this is a workflow file"
        return Problem("the file is larger than 1 MiB", hint, SourcePosition(str(path), 1, 1))
    if isinstance(error, NotRegularError):
        return Problem(f"{path} is not a regular file", "perfflow does not read FIFOs and devices; name a file")
    return Problem(f"{path}: {error.strerror}", "check its permissions")


def read_text(text: str, name: str) -> Document:
    """Parse YAML text. Raises UserError; of several syntax errors only the first, since it may cause the others."""
    lines = _BREAK.split(text)
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        raise UserError((_forbidden_problem(text, forbidden.start(), name, lines),))
    try:
        _check_limits(text, name, lines)
        root = Loader(_NamedText(text, name)).get_single_node()
    except yaml.YAMLError as error:
        raise UserError((_syntax_problem(error, name, lines),)) from error
    if not isinstance(root, MappingNode):
        raise UserError((_not_a_map(root, name, lines),))
    return Document(name, root, {name: lines})


def _forbidden_problem(text: str, position: int, name: str, lines: list[str]) -> Problem:
    before = _BREAK.split(text[:position])
    place = SourcePosition(name, len(before), len(before[-1]) + 1, lines[len(before) - 1])
    message = f"YAML does not allow the character U+{ord(text[position]):04X}"
    return Problem(message, "remove it, or check that this is a text file", place)


def _not_a_map(root: Node | None, name: str, lines: list[str]) -> Problem:
    hint = "start with `perfflow: 1`, then `stages:`"
    if root is None:
        return Problem("the file is empty", hint, SourcePosition(name, 1, 1, lines[0]))
    mark = root.start_mark
    kind = "a list" if isinstance(root, SequenceNode) else "a string"
    return Problem(
        f"a workflow must be a map, not {kind}",
        hint,
        SourcePosition(name, mark.line + 1, mark.column + 1, lines[mark.line]),
    )


def _check_limits(text: str, name: str, lines: list[str]) -> None:
    """Check nesting and size on the parser's events, before nodes are composed.

    The composer recurses, so deep nesting would overflow the C stack. It also needs a kilobyte for each value, so a
    file full of commas would exhaust the memory.
    """
    depth = values = 0
    for event in _events(text, name):
        if isinstance(event, yaml.NodeEvent):
            values += 1
            if values > MAX_NODES:
                raise UserError((_problem_at(*_start_of(event), name, lines, TOO_MANY, TOO_MANY_HINT),))
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise UserError((_problem_at(*_start_of(event), name, lines, TOO_DEEP, ""),))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _start_of(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line, mark.column) if mark else (0, 0)


def _events(text: str, name: str) -> Iterator[yaml.Event]:
    loader = Loader(_NamedText(text, name))
    while (event := loader.get_event()) is not None:
        yield event
        if isinstance(event, yaml.StreamEndEvent):
            return


def _syntax_problem(error: yaml.YAMLError, name: str, lines: list[str]) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).strip()
    if mark is None:
        return Problem(f"{name}: {message}", "check that this is a workflow file")
    if "nesting depth" in message:
        # libyaml 0.2.6 reads 1,000 levels ahead for the end of a key, and then refuses them, before its first event.
        return _problem_at(mark.line, mark.column, name, lines, TOO_DEEP, "")
    hinted = yaml_hints.for_syntax_error(lines, mark.line)
    if hinted:
        return _problem_at(hinted.line, hinted.column, name, lines, hinted.message, hinted.hint)
    start = getattr(error, "context_mark", None)
    context = str(getattr(error, "context", None) or "")
    text, hint = yaml_hints.for_parser_message(message, (start.line, start.column) if start else None, context)
    # For quotes and keys, show the start: the parser only fails further down.
    at = start if start and ("scalar" in context or "simple key" in context) else mark
    return _problem_at(at.line, at.column, name, lines, text, hint)


def _problem_at(line: int, column: int, name: str, lines: list[str], message: str, hint: str) -> Problem:
    """Return a problem at a 0-based position; a position after the last line is moved to the end of the text."""
    while line > 0 and (line >= len(lines) or not lines[line].strip()):
        line, column = line - 1, len(lines[line - 1]) if line - 1 < len(lines) else 0
    return Problem(message, hint, SourcePosition(name, line + 1, column + 1, lines[line]))


_PLAIN = re.compile(r"[\w./+=-][\w ./+=%-]*(?<! )")


def scalar(value: Any, old: str = "") -> str:
    """Return a value as YAML, in the same quotes as ``old``; other scalars are written as JSON, which is valid YAML."""
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.text
    if not isinstance(value, str):
        return json.dumps(value)
    if old.startswith("'") and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    quoted = json.dumps(value, ensure_ascii=False)
    return quoted if old.startswith('"') or not _is_plain(value) else value


def flow(value: Any) -> str:
    """Return nested data as YAML in one line, such as ``{action: 5%, for: {"core/**": {concern: 2%}}}``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else scalar(value)


def _is_plain(value: str) -> bool:
    """Return whether a string needs no quotes: it is no number, no reserved word, and has no YAML syntax."""
    if not _PLAIN.fullmatch(value):
        return False
    try:
        return bool(read_text(f"k: {value}", "").data() == {"k": value})
    except UserError:
        return False
