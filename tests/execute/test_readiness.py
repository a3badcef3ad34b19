"""Readiness checks end within seconds, whatever the service sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.execute import service
from perfflow.execute.service import Address, MatchedLine
from tests.cli.test_publish import raw_server


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 404 Not Found\r\n", True),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", True),
        (b"HTTP/1.1 500 Error\r\n\r\n", False),
        (b"HTTP/1.1 2000\r\n", False),
        (b"SSH-2.0-OpenSSH\r\n", False),
        (b"", False),
    ],
)
def test_the_status_tells(answer: bytes, *, holds: bool) -> None:
    with raw_server(answer) as url:
        assert Address(f"{url}/health?x=1").holds() is holds


@pytest.mark.parametrize(("endless", "pause"), [(b"x", 0.05), (b"x" * 2**16, 0.0)])
def test_an_answer_without_end_is_none(monkeypatch: pytest.MonkeyPatch, endless: bytes, pause: float) -> None:
    monkeypatch.setattr(service, "_ANSWER", 0.3)
    with raw_server(endless=endless, pause=pause) as url:
        assert Address(url).holds() is False


def test_output_is_read_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_READ_AT_ONCE", 100)
    path = tmp_path / "stdout"
    path.write_text("x" * 950 + "\nlistening on 80\n")
    said = MatchedLine(r"listening on (?P<port>\d+)", (path, tmp_path / "none"))
    looks = 0
    while not said.holds():
        looks += 1
        assert looks < 20
    assert said.outputs() == {"port": "80"}
