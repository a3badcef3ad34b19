"""The style of a stream, chosen from the stream, the flags and the environment."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from perfflow.cli.style import style_of
from perfflow.report.sanitize import NO_EDGE
from tests.cli.shell import perfflow, write

LONG = "a reason that is longer than any terminal is wide " * 4
FAILING = f"""
name: {"n" * 60}
stages:
  verify:
    - {{id: tests, run: 'echo "{LONG}"; exit 3'}}
    - {{id: {"x" * 90}, run: 'true'}}
"""


class Tty(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "unicode", "color"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "linux"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_a_terminal(environ: dict[str, str], unicode: bool, color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": "60", **environ}.items():
        monkeypatch.setenv(name, value)
    style = style_of(Tty(io.BytesIO(), encoding="utf-8"))
    assert (style.unicode, style.color, style.width) == (unicode, color, 60)
    assert not style_of(Tty(io.BytesIO(), encoding="latin-1")).unicode


def test_what_is_no_terminal_has_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert style_of(io.TextIOWrapper(io.BytesIO())).width == NO_EDGE
    assert style_of(None).width == NO_EDGE


def test_nothing_is_cut_in_a_log(tmp_path: Path) -> None:
    write(tmp_path, FAILING)
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env={"COLUMNS": "60"})
    assert f"✗ FAIL  {'n' * 60}   nothing measured\n" in done.stdout
    assert f"  skipped: {'x' * 90}: `tests` failed\n" in done.stdout
    assert f"    | {LONG.rstrip()}" in done.stderr
    assert "…" not in done.stdout + done.stderr
    again = perfflow("report", cwd=tmp_path, env={"COLUMNS": "60"})
    # A report in a pipe has the lines for other systems.
    assert again.stdout == done.stdout.replace("report:", "review:gate:perf = fail\nreport:")
