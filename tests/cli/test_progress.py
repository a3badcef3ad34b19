"""Progress of a run, with a fake clock and a terminal that records."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import Mock

import pytest

from perfflow.cli.console import (
    OFF,
    Lines,
    Live,
    Pulse,
    Screen,
    ShownRun,
    SignsOfLife,
    Silence,
    View,
    block_lines,
    mode_of,
    rows_of,
)
from perfflow.cli.failure_block import failure_block
from perfflow.cli.step_text import LONGEST_PAUSE, Running, clock_text
from perfflow.cli.style import Style
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.machine.lock import LockQueue
from perfflow.plan.plan import Planned
from perfflow.report.expected import ExpectedTime
from perfflow.report.sanitize import cells
from perfflow.sampling.pairs import SamplingProgress
from perfflow.tools.adapter import Role
from tests.cli.screen import Terminal, is_golden
from tests.execute.plans import item

STYLE = Style(color=False, unicode=True, width=80)
BUILD = item("build")
BENCH = item("bench", "build", role=Role.MEASURE, alone=True)
TESTS = item("tests", "bench", role=Role.CHECK)
STEPS = [BUILD, BENCH, TESTS]
Told = TypeVar("Told", Live, Lines)


def cell(name: str, **changed: Any) -> Planned:
    """A step with any name, as in cells of a matrix."""
    return replace(item("cell", **changed), id=name)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def done(planned: Planned, seconds: float = 1.5) -> StepRun:
    return StepRun(planned, StepStatus.DONE, seconds=seconds)


def live(clock: Clock, write: Callable[[str], None], width: int = 80, **shown: Any) -> Live:
    screen = Screen(write, lambda: os.terminal_size((width, 24)), clock, lambda: "06:11:58")
    return Live(STYLE, ShownRun("decode", **shown), screen)


@contextmanager
def begun(told: Told, steps: Sequence[Planned], *started: Planned) -> Iterator[Told]:
    """Begin a run of these steps, and start the first ones."""
    with told:
        told.began(Path("runs/x"), steps)
        for step in started:
            told.started(step)
        yield told


def plain(clock: Clock) -> tuple[Lines, list[str]]:
    lines = list[str]()
    return Lines(STYLE, clock=clock, write=lines.append), lines


def test_finished_steps_scroll_up_and_the_block_stays_below_them() -> None:
    clock, terminal = Clock(), Terminal(80)
    known = {"bench": ExpectedTime(40.0, runs=3), "tests": ExpectedTime(5.0, runs=3)}
    with begun(live(clock, terminal.write, estimates=lambda _: known), STEPS, BUILD) as told:
        clock.now += 8
        told.ended(done(BUILD, 8))
        told.started(BENCH)
        clock.now += 12
        told.sampled(BENCH, SamplingProgress("encode/json", 34, "pair"))
        assert terminal.lines == [
            "✓ build     build                    run          8.0s",
            "perfflow decode  1/3 steps  elapsed 20s  about 33s left",
            "▶ build     bench                    12s of ~40s, encode/json: 34 pairs",
            "· build     tests                    ~5s",
            "  not updated while it is measured; as of 06:11:58",
        ]
        told.ended(done(BENCH, 40.2))
        told.ended(StepRun(TESTS, StepStatus.SKIPPED, "needs a GPU"))
    assert terminal.lines == [
        "✓ build     build                    run          8.0s",
        "✓ build     bench                    run          40.2s",
        "- build     tests                    run          skipped: needs a GPU",
    ]
    assert terminal.row == 3, "the cursor is below the last line"


def test_it_draws_at_most_once_a_second_and_never_while_something_timed_runs() -> None:
    clock, writes = Clock(), list[tuple[float, str]]()
    with begun(live(clock, lambda text: writes.append((clock.now, text))), STEPS, BENCH) as told:
        assert not any(thread.name == "progress" for thread in threading.enumerate())
        for number in range(100):
            clock.now += 0.05
            told.sampled(BENCH, SamplingProgress("bench", number + 1, "pair"))
    assert len(writes) <= 7, "one at its start, one for each of five seconds, one to clean up"
    times = [when for when, _ in writes[:-1]]
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(times))


def test_a_step_that_ends_beside_a_timed_one_is_shown_in_the_next_pause() -> None:
    clock, writes = Clock(), list[str]()
    shared = item("shared", role=Role.MEASURE)
    with begun(live(clock, writes.append), [shared, TESTS], shared, TESTS) as told:
        clock.now += 5
        before = len(writes)
        told.ended(done(TESTS))
        assert len(writes) == before
        told.sampled(shared, SamplingProgress("shared", 1, "pair"))
        assert "✓ build     tests" in writes[-1]


def test_an_exception_leaves_nothing_of_the_block() -> None:
    terminal = Terminal(80)
    note = "waiting for the machine, next in line: held by another\\u001b[31m run"
    shown = live(Clock(), terminal.write, 160)
    with pytest.raises(KeyboardInterrupt), begun(shown, STEPS, BENCH) as told:  # noqa: PT012
        told.waiting(BENCH, LockQueue("another\x1b[31m run", 1))
        assert f"▶ build     bench                    {note}" in terminal.lines
        raise KeyboardInterrupt
    assert terminal.lines == []


def test_waiting_is_shown_as_it_changes_and_is_in_no_other_time() -> None:
    clock, terminal = Clock(), Terminal(100)
    known = {"bench": ExpectedTime(40.0, runs=3)}
    with begun(live(clock, terminal.write, 100, estimates=lambda _: known), [BENCH], BENCH) as told:
        clock.now += 2
        told.waiting(BENCH, LockQueue("alice", 2))
        clock.now += 590
        told.waiting(BENCH, LockQueue("bob", 1))
        assert terminal.lines == [
            "perfflow decode  0/1 steps  elapsed 2s  waited 9m50s  about 38s left",
            "▶ build     bench                    waiting 9m50s for the machine, next in line: held by bob",
            "  updated every 10 s until it has the machine; as of 06:11:58",
        ]
        clock.now += 10
        told.granted(BENCH)
        clock.now += 3
        told.sampled(BENCH, SamplingProgress("bench", 1, "run"))
        assert terminal.lines[0] == "perfflow decode  0/1 steps  elapsed 5s  waited 10m00s  about 35s left"
        assert "▶ build     bench                    5s of ~40s, 1 run" in terminal.lines
        told.ended(replace(done(BENCH, 5), waited=600))
        told.began(Path("runs/x"), [TESTS])
        told.started(TESTS)
        clock.now += 2
        told.ended(done(TESTS, 2))
    assert terminal.lines[0] == "✓ build     bench                    run          5.0s (waited 10m00s for the machine)"


def test_lines_say_where_a_run_stands_and_what_changes() -> None:
    clock = Clock()
    shown, lines = plain(clock)
    with begun(shown, STEPS, BENCH) as told:
        for second in range(0, 100, 10):
            clock.now = 100.0 + second
            holder = "alice" if second < 40 else "bob" if second < 60 else "carol"
            told.waiting(BENCH, LockQueue(holder, 2 if second < 50 else 1))
        clock.now = 200.0
        told.granted(BENCH)
    assert [line.partition(" run ")[2].strip() for line in lines] == [
        "",
        "waiting for the machine, number 2 in line: held by alice",
        "waiting 30s for the machine, number 2 in line: held by alice",
        "waiting 50s for the machine, next in line: held by bob",
        "waiting 1m00s for the machine, next in line: held by carol",
        "has the machine, after 1m40s",
    ]


def test_a_silent_run_that_waits_for_10_s_says_so_once() -> None:
    clock, said = Clock(), list[str]()
    told = Silence(clock, said.append)
    for _ in range(3):
        told.started(BENCH)
        told.waiting(BENCH, LockQueue("alice", 2))
        clock.now += 5
        told.waiting(BENCH, LockQueue("alice", 1))
        told.granted(BENCH)
    assert said == []
    for _ in range(5):
        told.waiting(BENCH, LockQueue("bo\x1bb", 2))
        clock.now += 10
    assert said == ["waiting 10s for the machine, number 2 in line: held by bo\\u001bb\n"]


def test_a_terminal_made_narrower_has_no_leftovers() -> None:
    """Lines of the block were wrapped, so it takes more rows than lines."""
    assert [rows_of("x" * length, 40) for length in (0, 40, 79, 80, 81)] == [1, 1, 2, 2, 3]


def view(**changed: Any) -> View:
    many = [item(f"step-{number}", role=Role.CHECK) for number in range(9)]
    known: dict[str, Any] = {
        "name": "rust-hotpath",
        "running": [
            Running(cell("bench[case=decode/x/a-very-long-parameter-name]", role=Role.MEASURE, alone=True), 40.0)
        ],
        "coming": many,
        "ended": 3,
        "began": 0.0,
        "waited": 0.0,
        "now": 52.0,
        "estimates": {"step-0": ExpectedTime(185.0, runs=1)},
        "serial": True,
        "wall": "06:11:58",
    }
    return View(**(known | changed))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
@pytest.mark.parametrize("height", [4, 8, 24])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_block_fits(width: int, height: int, unicode: bool) -> None:
    hostile = [Running(cell(f"{'日本' * 20}\u202e{number}", role=Role.WORK), 0.0) for number in range(9)]
    for shown in (view(), view(running=hostile), view(running=[], coming=[])):
        lines = block_lines(shown, width, height, unicode=unicode, colored=False)
        assert 1 <= len(lines) <= min(12, height - 1)
        assert all(cells(line) < width and line.isprintable() for line in lines)
        assert unicode or "".join(lines).isascii()


@pytest.mark.parametrize(("width", "unicode"), [(60, True), (80, False), (160, True)])
def test_golden_block(width: int, unicode: bool) -> None:
    text = "".join(f"{line}\n" for line in block_lines(view(), width, 24, unicode=unicode, colored=False))
    is_golden(f"block-{width}{'' if unicode else '-ascii'}", text)


def test_no_time_left_is_invented() -> None:
    def header(**changed: Any) -> str:
        shown = view(running=[], coming=[BUILD, TESTS], **changed)
        return block_lines(shown, 100, 24, unicode=True, colored=False)[0]

    build, tests = ExpectedTime(3.0, runs=1), ExpectedTime(4.0, benchmarks=1, each=4.0)
    assert header(estimates={"build": build, "tests": ExpectedTime(4.0, runs=1)}).endswith("about 7s left")
    assert header(estimates={"build": build, "tests": tests}).endswith("at most 7s left")
    assert "left" not in header(estimates={"build": build})
    assert "left" not in header(estimates={"build": build, "tests": ExpectedTime(None, each=20.0)})
    assert "left" not in header(estimates={"build": build, "tests": tests}, serial=False)


def test_a_suite_shows_how_far_it_is_and_its_limit_once_it_has_said_how_many_benchmarks_it_has() -> None:
    clock, terminal = Clock(), Terminal(80)
    known = {"bench": ExpectedTime(None, each=20.0)}
    with begun(live(clock, terminal.write, estimates=lambda _: known), [BENCH], BENCH) as told:
        clock.now += 70
        told.sampled(BENCH, SamplingProgress("decode/json", 0, "pair", (12, 36)))
        assert terminal.lines[:2] == [
            "perfflow decode  0/1 steps  elapsed 1m10s  at most 10m50s left",
            "▶ build     bench                    1m10s of at most 12m00s, 12 of 36, decode…",
        ]
    shown, lines = plain(clock)
    with begun(shown, [BENCH], BENCH):
        clock.now += 70
        shown.sampled(BENCH, SamplingProgress("decode/json", 3, "pair", (12, 64)))
    assert lines[1].endswith("1m10s, 12 of 64, decode/json: 3 pairs\n")


def test_a_long_step_is_mentioned_after_twice_the_time_each() -> None:
    clock = Clock()
    shown, lines = plain(clock)
    with begun(shown, STEPS, BENCH) as told:
        for number in range(1300):
            clock.now += 1
            told.sampled(BENCH, SamplingProgress("bench", number + 1, "pair"))
        told.ended(done(BENCH, 1300))
    notes = [line.split("run", 1)[1].strip() for line in lines]
    assert notes == ["", *(f"{clock_text(at)}, {at} pairs" for at in (30, 60, 120, 240, 480, 960)), "21m40s"]
    assert LONGEST_PAUSE == 480


def test_a_step_that_is_quiet_for_long_has_one_line_for_it() -> None:
    running = Running(BENCH, 0.0)
    assert running.is_due(1000.0)
    assert not running.is_due(1400.0)
    assert running.is_due(1440.0)


def test_the_pulse_beats_while_untimed_steps_run_alone_and_has_ended_before_a_timed_one_starts() -> None:
    beaten = threading.Event()

    def beat() -> float:
        beaten.set()
        return 0.01

    def threads() -> int:
        return sum(thread.name == "progress" for thread in threading.enumerate())

    pulse = Pulse(beat)
    pulse.started(BUILD)
    assert beaten.wait(10)
    assert threads() == 1
    shared = item("shared", role=Role.MEASURE)
    pulse.started(shared)
    assert threads() == 0
    pulse.started(TESTS)
    assert threads() == 0, "another untimed step beside a timed one"
    pulse.ended(shared)
    assert threads() == 1
    pulse.close()
    assert threads() == 0


@pytest.mark.parametrize(
    ("asked", "terminal", "environ", "mode"),
    [
        (None, True, {"TERM": "xterm"}, "live"),
        (None, False, {"TERM": "xterm"}, "plain"),
        (None, False, {"TERM": "xterm", "FORCE_COLOR": "1"}, "plain"),
        (None, True, {"TERM": "dumb"}, "plain"),
        (None, True, {}, "plain"),
        (None, True, {"TERM": "xterm", "CI": "true"}, "plain"),
        (None, True, {"TERM": "xterm", "CI": "false"}, "live"),
        (None, True, {"TERM": "xterm", "NO_COLOR": "1"}, "plain"),
        (None, True, {"TERM": "xterm", "NO_COLOR": ""}, "live"),
        ("live", True, {"TERM": "xterm", "NO_COLOR": "1"}, "live"),
        ("live", True, {"TERM": "xterm", "CI": "true"}, "live"),
        ("live", False, {"TERM": "xterm"}, "plain"),
        ("plain", True, {"TERM": "xterm"}, "plain"),
        ("off", True, {"TERM": "xterm"}, "off"),
    ],
)
def test_the_mode_is_decided_by_the_flag_the_terminal_and_ci(
    asked: str | None, terminal: bool, environ: Mapping[str, str], mode: str
) -> None:
    stream = Mock(isatty=lambda: terminal)
    assert mode_of(asked, stream, environ) == mode
    assert mode_of(asked, None, environ) == OFF, "where the shell closed stderr nothing is shown"


def failed(planned: Planned, **changed: Any) -> StepRun:
    known: dict[str, Any] = {
        "reason": "it failed",
        "argv": ["./old", "a b"],
        "exit_code": 3,
        "log": "steps/x/stderr",
        "tail": ["last \x1b[31mwords"],
    }
    return StepRun(planned, StepStatus.FAILED, **(known | changed))


def test_a_failure_block_says_all_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "x"
    typed = ["perfflow", "run", "my flow.yaml", "--set=n=1"]
    without_log = failure_block(failed(BENCH), folder, {"bench": BENCH}, typed)
    (folder / "steps/x").mkdir(parents=True)
    (folder / "steps/x/stderr").touch()
    block = failure_block(failed(BENCH), folder, {"bench": BENCH}, typed)
    assert without_log == [line for line in block if "log:" not in line]
    # `--only` does not know a step that perfflow added.
    assert failure_block(failed(BENCH), folder, {}, typed) == block[:-1]
    assert block == [
        "    $ ./old 'a b'",
        "    exit status 3",
        "    | last \\u001b[31mwords",
        "    log:    runs/x/steps/x/stderr",
        "    repeat: perfflow run 'my flow.yaml' --set=n=1 --only bench",
    ]


def test_a_failure_block_of_the_side_that_failed_by_a_signal() -> None:
    run = failed(BENCH, exit_code=-11, failing=["./new"])
    assert failure_block(run, Path("/r"), {}, [])[:2] == ["    $ ./new", "    killed by signal 11 (SIGSEGV)"]


def test_long_shell_text_is_cut_and_keeps_its_lines() -> None:
    run = failed(BUILD, argv=["bash", "-c", "\n".join(f"line {number}" for number in range(40)) + "\n"])
    block = failure_block(run, Path("/r"), {}, [])
    assert block[0] == "    $ bash -c 'line 0"
    assert block[1] == "    > line 1"
    assert block[11] == "    > (29 more lines)"


def test_repeating_runs_those_whose_outputs_are_used_too() -> None:
    one = item("one")
    two = cell("two[k=1]", step={"run": "echo ${{ steps.one.outputs.path }}"})
    three = item("three", step={"run": 'echo ${{ steps["two[k=1]"].outputs.a }}'})
    steps = {found.id: found for found in (one, two, three)}
    (repeat,) = [line for line in failure_block(failed(three), Path("/r"), steps, ["perfflow"]) if "repeat" in line]
    assert repeat == "    repeat: perfflow --only one --only 'two[k=1]' --only three"


def test_nothing_is_said_about_a_step_that_ran_nothing() -> None:
    assert failure_block(StepRun(BUILD, StepStatus.FAILED, "no such tool"), Path("/r"), {}, ["perfflow"]) == []


def test_a_comparison_tells_how_far_it_is_after_2_s_and_then_each_time_after_twice_as_long() -> None:
    clock, said = Clock(), list[str]()
    told = SignsOfLife(STYLE, clock, said.append)
    for place in (2, 2, 1):
        told.waiting(BENCH, LockQueue("alice", place))
    assert [line.partition(", ")[2] for line in said] == [
        f"{word} in line: held by alice\n" for word in ("number 2", "next")
    ]
    said.clear()
    told.granted(BENCH)
    for second in range(1, 21):
        clock.now = 100.0 + second
        told.sampled(BENCH, SamplingProgress("decode", second, "pair"))
    assert said == [f"… measuring: {second}s, {second} pairs\n" for second in (2, 4, 8, 16)]
