"""Screens of a real terminal from start to end of a run, in three widths, with ^Z and ^C."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.real_terminal import TMUX, settled, shell
from tests.cli.screen import is_golden
from tests.cli.shell import write
from tests.long import rest_long

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed: apt-get install tmux")
WIDTHS = [60, 80, 160]
HOSTILE = r"printf '\\033[31mred\\033[2J\\033]0;title\\007 日本 e\\xcc\\x81\\n::error::x\\n' >&2"
FLOW = f"""
name: decode
component: "Decoder \u65e5\u672c"
targets:
  suite/**: {{count: <30}}
  suite/decode/a-name-that-is-longer-than-any-column[size=1000]: {{count: <9}}
stages:
  build:
    - {{id: make, run: 'until [ -e made ]; do sleep .1; done'}}
    - {{id: a-step-with-a-name-that-is-longer-than-its-column, run: 'true'}}
  baseline:
    - id: measure
      run: 'until [ -e measured ]; do sleep .1; done; echo "{{\\"n\\": [$N]}}" > o.json'
      env: {{N: 20}}
      benchmark: suite/decode/a-name-that-is-longer-than-any-column[size=1000]
      parse: {{file: o.json, json: {{count: "n[]"}}, units: {{count: "1"}}, better: {{count: lower}}}}
      runs: 6
  profile:
    - {{id: cpu, uses: massif, requires: {{tool: nosuchtool}}, with: {{command: 'true'}}}}
  verify:
    - {{id: tests, run: "for i in $(seq 30); do echo line $i >&2; done; {HOSTILE}; exit 3"}}
    - {{id: after, run: 'true'}}
"""
SLOW = """
stages:
  build:
    - {id: first, run: 'true'}
    - {id: a-step-with-a-name-that-is-longer-than-its-column, run: 'until [ -e made ]; do sleep .1; done'}
    - {id: last, run: 'true', allow: {nothing-measured: the steps are the test}}
"""


@pytest.mark.parametrize("width", rest_long(WIDTHS))
def test_the_screens_of_a_run_that_fails(width: int, tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    with shell(tmp_path, width) as term:
        term.type("perfflow run flow.yaml", "Enter")
        start = term.wait(lambda lines: any(line.startswith("▶ build") for line in lines))
        (tmp_path / "made").touch()
        timed = term.wait(lambda lines: any("not updated while" in line for line in lines))
        (tmp_path / "measured").touch()
        is_golden(f"screen-fail-{width}", settled(term.prompt()))
    is_golden(f"screen-start-{width}", settled(start))
    is_golden(f"screen-timed-{width}", settled(timed))


@pytest.mark.parametrize("width", rest_long(WIDTHS))
def test_the_screens_of_a_run_that_passes_and_one_that_is_interrupted(width: int, tmp_path: Path) -> None:
    text = FLOW.replace("exit 3", "exit 0").replace("count: <9}", "count: <21}")
    write(tmp_path, text)
    write(tmp_path, SLOW, "slow.yaml")
    for name in ("made", "measured"):
        (tmp_path / name).touch()
    with shell(tmp_path, width) as term:
        term.type("perfflow run flow.yaml", "Enter")
        is_golden(f"screen-pass-{width}", settled(term.prompt()))
    (tmp_path / "made").unlink()
    with shell(tmp_path, width) as term:
        term.type("perfflow run slow.yaml", "Enter")
        term.wait(lambda lines: any(line.startswith("▶ build     a-st") for line in lines))
        term.type("C-c")
        is_golden(f"screen-interrupted-{width}", settled(term.prompt()))


@pytest.mark.long  # many sizes of one window
def test_a_window_made_narrower_and_wider_loses_no_line(tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.yaml")
    with shell(tmp_path, 80, 20) as term:
        term.type("perfflow run slow.yaml", "Enter")
        for width in (40, 100, 36, 80):
            term.wait(lambda lines: any(line.startswith("▶ build     a-st") for line in lines))
            term.resize(width)
            before = elapsed(term.screen())
            lines = term.wait(lambda lines, known=before: elapsed(lines) not in ("", known))  # type: ignore[misc]
            assert [line.split()[:2] for line in lines if line.startswith(("▶", "·"))] == [
                ["▶", "build"],
                ["·", "build"],
            ]
        history = term.everything()
        assert sum(line.startswith("✓ build     first") for line in history) == 1
        (tmp_path / "made").touch()
        last = term.prompt()
    assert any(line.startswith("✗ ERROR") for line in last)


def elapsed(lines: list[str]) -> str:
    found = [line for line in lines if line.startswith("perfflow slow")]
    return found[-1].partition("elapsed")[2] if found else ""


@pytest.mark.long  # stops as the live view of tests/cli/test_stopped.py
def test_stopped_and_gone_on_with_in_front_and_in_the_background(tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.yaml")
    with shell(tmp_path, 80, 40) as term:
        term.type("perfflow run slow.yaml", "Enter")
        term.wait(lambda lines: any(line.startswith("▶") for line in lines))
        term.type("C-z")
        stopped = term.prompt()
        assert not any(line.startswith(("▶", "·", "perfflow slow")) for line in stopped), "the block is taken away"
        assert any("Stopped" in line for line in stopped)
        term.type("fg", "Enter")
        again = term.wait(lambda lines: any(line.startswith("▶") for line in lines))
        assert again[: len(stopped) - 1] == stopped[:-1], "nothing of the shell is written over"
        assert sum(line.startswith("▶") for line in again) == 1
        term.type("C-z")
        term.prompt()
        term.type("bg", "Enter")
        term.type("echo typed", "Enter")
        behind = term.wait(lambda lines: lines[-2:] == ["typed", "%"])
        term.type("fg", "Enter")
        term.wait(lambda lines: any(line.startswith("▶") for line in lines))
        (tmp_path / "made").touch()
        last = term.prompt()
    assert last[: len(behind) - 1] == behind[:-1]
    assert sum("✓ build" in line for line in last) == 3
    assert any("nothing measured" in line for line in last)
