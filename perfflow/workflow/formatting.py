"""Format workflow files: uniform indentation and line breaks; values, quotes and comments do not change.

Maps and lists in ``{}`` or ``[]`` stay on one line unless the line has more than 120 characters. Strings are not
wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from perfflow.model.errors import UserError
from perfflow.workflow.yaml_text import read_text

LONGEST = 120
"""Most characters of a line with a map or list in brackets; a longer one is split into several lines."""
_MARK = "\ufeff"
_UNBROKEN = 2**20
"""Line width for ruamel.yaml, so large that it never wraps."""


def formatted(text: str, name: str) -> str:
    """Return the formatted text of the file ``name``, with line feeds and without a byte order mark.

    Raises UserError if the text is not YAML, or if formatting would change its data or lose a comment.
    """
    body = text.removeprefix(_MARK).replace("\r\n", "\n")
    data = read_text(body, name).data()
    known = sorted(_comments(body))
    after = _dumped(_loaded(body, name))
    while True:
        root = _loaded(after, name)
        numbers = {number for number, line in enumerate(after.split("\n")) if len(line) > LONGEST}
        long = [node for node in _outermost_in_brackets(root) if node.lc.line in numbers]
        if not long:
            break
        for node in long:
            _in_lines(node)
        after = _dumped(root)
    if read_text(after, name).data() != data or sorted(_comments(after)) != known:
        message = f"{name} cannot be formatted without changing its data or comments"
        raise UserError.of(message, "the file is unchanged; format it by hand")
    return after


def _yaml() -> Any:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _UNBROKEN
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _loaded(text: str, name: str) -> Any:
    try:
        return _yaml().load(text)
    except (YAMLError, ValueError) as error:
        # For example a duplicate key, or an invalid date.
        raise UserError.of(
            f"{name} cannot be read: {str(error).splitlines()[0]}", f"see `perfflow validate {name}`"
        ) from error


def _in_lines(node: Any) -> None:
    """Switch a map or list to block style, and put a comment that follows it directly after its key."""
    node.fa.set_block_style()
    for token in node.ca.comment or ():
        if token is not None:
            token.start_mark.column = 0


def _dumped(root: Any) -> str:
    stream = StringIO()
    _yaml().dump(root, stream)
    return stream.getvalue()


def _outermost_in_brackets(node: Any) -> Iterator[Any]:
    """Yield maps and lists in brackets that are not inside another one in brackets."""
    if not hasattr(node, "fa"):
        return
    if node.fa.flow_style():
        if node:
            yield node
        return
    inner: Any = node.values() if isinstance(node, dict) else node
    for item in inner:
        yield from _outermost_in_brackets(item)


def _comments(text: str) -> Iterator[str]:
    """Yield the comments between the tokens of a text, without trailing spaces."""
    end = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        for comment in re.findall(r"#.*", text[end : token.start_mark.index]):
            yield comment.rstrip()
        end = max(end, token.end_mark.index)
