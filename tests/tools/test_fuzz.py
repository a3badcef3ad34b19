"""Damaged output gives ToolOutputError or sane figures, never another exception.

``PERFFLOW_FUZZ_EXAMPLES`` sets the number of examples per parser.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.errors import ToolOutputError
from tests.tools.harness import DATA, USAGE, call_of, check_sane, tool, tools

EXAMPLES = int(os.environ.get("PERFFLOW_FUZZ_EXAMPLES", "200"))
CASES = {
    name: sorted(case for case in (DATA / name).glob("*/*") if case.is_dir())
    for name in tools()
    if (DATA / name).exists()
}
NUMBERS = [
    b"0",
    b"-1",
    b"-0.0",
    b"1e999",
    b"NaN",
    b"Infinity",
    b"nan",
    b"inf",
    b"9" * 30,
    b"1" * 5000,
    b"1.5",
    b"",
    b"x",
]
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the content after one to three accidents."""
    for _ in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from([_flipped, _cut, _without_line, _doubled_line, _renumbered, _spliced]))(
            draw, content
        )
    return content


def _flipped(draw: st.DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(content) - 1)))
    return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]


def _cut(draw: st.DrawFn, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _without_line(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines)))
    return b"".join(lines[:at] + lines[at + 1 :])


def _doubled_line(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines)))
    return b"".join(lines[:at] + lines[at : at + 1] * draw(st.integers(2, 4)) + lines[at + 1 :])


def _renumbered(draw: st.DrawFn, content: bytes) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = draw(st.sampled_from(found))
    return content[: match.start()] + draw(st.sampled_from(NUMBERS)) + content[match.end() :]


def _spliced(draw: st.DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, len(content)))
    piece = draw(
        st.binary(max_size=8)
        | st.sampled_from([b";" * 50, b"(" * 50, b"[" * 3000, b"\\ud800", b"\x1b[31m", b"A" * 9000])
    )
    return content[:at] + piece + content[at:]


@pytest.mark.parametrize("name", CASES)
def test_damaged_output(name: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(st.sampled_from(CASES[name]))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "out"
            shutil.copytree(case, folder, ignore=shutil.ignore_patterns("parsed.json*", "stacks.folded*"))
            file = data.draw(st.sampled_from(sorted(folder.iterdir())))
            file.write_bytes(data.draw(damage(file.read_bytes())))
            _check(name, folder)

    check()


def _check(name: str, folder: Path) -> None:
    try:
        parsed = tool(name).parse(call_of(name, folder, "/tmp/demo/crash"), USAGE)
    except ToolOutputError as error:
        reason = str(error)
    else:
        reason = "none"
        check_sane(parsed)
    assert reason.isprintable()
    assert len(reason) < 600
