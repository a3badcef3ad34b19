"""Tests of a function, or of a tool's parser, by a table of what it is given and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from tests.tools.harness import USAGE, call_of, tool


def parsed_from(
    name: str, folder: Path, files: Mapping[str, object], *command: str, usage: Usage = USAGE, **options: Any
) -> Parsed:
    """Write files with these contents, text or what becomes JSON, and parse them."""
    for file, content in files.items():
        (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    return tool(name).parse(call_of(name, folder, *(command or ("/bin/x",)), **options), usage)


def refusals(name: str, file: str, *rows: tuple[object, str], **options: Any) -> Any:
    """Return a test that each content of a tool's file is refused with its reason, a regular expression."""

    @pytest.mark.parametrize(("content", "reason"), rows, ids=[reason for _, reason in rows])
    def test(content: object, reason: str, tmp_path: Path) -> None:
        with pytest.raises(ToolOutputError, match=reason):
            parsed_from(name, tmp_path, {file: content}, **options)

    return test


def answers(function: Callable[..., object], *rows: tuple[Any, ...]) -> Any:
    """Return a test of a function: each row holds its arguments and the answer."""

    @pytest.mark.parametrize("row", rows, ids=lambda row: str(row[0])[:60])
    def test(row: tuple[Any, ...]) -> None:
        *arguments, wanted = row
        assert function(*arguments) == wanted

    return test


def refused_by(function: Callable[..., object], *rows: tuple[Any, ...]) -> Any:
    """Return a test of a function: each row holds its arguments and why it refuses them, a regular expression."""

    @pytest.mark.parametrize("row", rows, ids=lambda row: row[-1])
    def test(row: tuple[Any, ...]) -> None:
        *arguments, reason = row
        with pytest.raises(ToolOutputError, match=reason):
            function(*arguments)

    return test


def argv_of(name: str, folder: Path, *command: str, **options: Any) -> tuple[str, ...]:
    """Return the words of the first process of a call."""
    return tool(name).invocations(call_of(name, folder, *command, **options))[0].argv
