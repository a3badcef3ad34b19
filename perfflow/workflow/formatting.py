"""The layout of a workflow file: indentation and line breaks the same in every file; values, quotes and comments stay.

What is on one line in ``{}`` or ``[]`` stays there unless the line is longer than 120 characters. Texts are not broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

from perfflow.model.errors import UserError
from perfflow.workflow.yaml_text import read_text

LONGEST = 120
"""Characters of a line with a map or list in brackets; a longer one is laid out over several lines."""
_MARK = "\ufeff"
_UNBROKEN = 2**20
"""Where ruamel.yaml would break a line: nowhere."""


def formatted(text: str, name: str) -> str:
    """The text of the file ``name`` in perfflow's layout: lines end in a line feed, and no byte order mark begins it.

    Raises UserError for what is not YAML, and where the new text would not say the same or would lose a comment.
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
        raise UserError.of(f"{name} cannot be laid out anew without a loss", "it is left as it is; lay it out by hand")
    return after


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _UNBROKEN
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _loaded(text: str, name: str) -> Any:
    from ruamel.yaml.error import YAMLError

    try:
        return _yaml().load(text)
    except (YAMLError, ValueError) as error:
        # Such as a key that is there twice, or a date that no month has.
        raise UserError.of(
            f"{name} cannot be read: {str(error).splitlines()[0]}", f"see `perfflow validate {name}`"
        ) from error


def _in_lines(node: Any) -> None:
    """Have a map or list written without brackets, and a comment behind it right behind its key."""
    node.fa.set_block_style()
    for token in node.ca.comment or ():
        if token is not None:
            token.start_mark.column = 0


def _dumped(root: Any) -> str:
    stream = StringIO()
    _yaml().dump(root, stream)
    return stream.getvalue()


def _outermost_in_brackets(node: Any) -> Iterator[Any]:
    """Maps and lists that are written in brackets and lie in no other such."""
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
    """What stands between the tokens of a text, without the spaces around it."""
    import yaml

    end = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        for comment in re.findall(r"#.*", text[end : token.start_mark.index]):
            yield comment.rstrip()
        end = max(end, token.end_mark.index)
