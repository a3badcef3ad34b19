"""Programs beside a command: samplers, which are never left running, and the readiness of services."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest

from perfflow.execute import invoke, service
from perfflow.execute.child import MARK, Spawner
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import ReadyProcess
from perfflow.execute.service import Address, MatchedLine
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, Side, Usage
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from tests.cli.shell import perfflow, start, write
from tests.cli.test_publish import raw_server
from tests.execute.plans import item
from tests.execute.test_child import wait_until
from tests.execute.test_leftovers import processes
from tests.long import rest_long
from tests.session.project import flow

ENDLESS = "trap 'echo end; exit 0' INT; echo begin; while :; do sleep 0.02; echo tick; done"


def beside(sampler: str = ENDLESS) -> Adapter:
    """Return an adapter of a bash sampler whose figure is the number of its lines with the word ``tick``."""

    def invocations(call: Call) -> tuple[Invocation, ...]:
        return (
            Invocation(("bash", "-c", sampler), {}, "sampled", beside=2.0),
            Invocation(call.command, {}, "watched"),
        )

    def outputs(call: Call) -> tuple[Path, ...]:
        return (call.folder / "sampled",)

    def parse(call: Call, _usage: Usage) -> Parsed:
        text = (call.folder / "sampled").read_text()
        if not text.endswith("end\n"):
            raise ToolOutputError("the sampler did not end well")
        return Parsed((Reading("rate", text.count("tick")),))

    return Adapter(name="figures", role=Role.MEASURE, invocations=invocations, outputs=outputs, parse=parse)


def wait_until_gone(pid: int | Path) -> None:
    """``pid``: also the file that holds it."""
    number = pid if isinstance(pid, int) else int(pid.read_text())
    wait_until(lambda: not Path(f"/proc/{number}").exists(), f"{number} still runs")


def run(keeper: Spawner, folder: Path, command: str, sampler: str = ENDLESS, timeout: float | None = None) -> Invoked:
    tool = beside(sampler)
    argv = ("bash", "-c", command)
    call = Call(CommandOptions(), folder, command=argv)
    env = {**os.environ, MARK: "sampler"}
    planned = replace(item("bench"), tool=tool)
    return invoke.run(keeper, ReadyProcess(planned, Side.BASELINE, argv, env, folder, timeout, tool, call), folder)


def reason(keeper: Spawner, folder: Path, command: str, sampler: str = ENDLESS, timeout: float | None = None) -> str:
    with pytest.raises(Failure) as caught:
        run(keeper, folder, command, sampler, timeout)
    return caught.value.reason


def test_it_has_begun_before_the_command_and_ends_after_it(keeper: Spawner, tmp_path: Path) -> None:
    command = f"cat {tmp_path}/sampled; sleep 0.3; kill -0 $(cat {tmp_path}/pid) && echo it still runs"
    done = run(keeper, tmp_path, command, f"echo $$ > {tmp_path}/pid; {ENDLESS}")
    assert done.parsed.readings[0].value > 0
    said = (tmp_path / "watched").read_text().splitlines()
    assert (said[0], said[-1]) == ("begin", "it still runs")
    wait_until_gone(tmp_path / "pid")


def test_what_is_accounted_for_is_the_command(keeper: Spawner, tmp_path: Path) -> None:
    busy = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    done = run(keeper, tmp_path, f"{sys.executable} -c '{busy}'")
    assert done.usage.user + done.usage.system >= 0.2


def test_a_command_that_fails_is_what_is_told(keeper: Spawner, tmp_path: Path) -> None:
    assert reason(keeper, tmp_path, "exit 3") == "bash exited with 3"


def test_a_sampler_that_cannot_begin_starts_no_command(keeper: Spawner, tmp_path: Path) -> None:
    said = reason(keeper, tmp_path, f"touch {tmp_path}/began", "echo no device >&2; exit 12")
    assert said == "figures: the sampler did not end well (exit status 12)"
    assert not (tmp_path / "began").exists()
    assert (tmp_path / "sampler.stderr").read_text() == "no device\n"


@pytest.mark.parametrize(
    ("sampler", "how"),
    [
        ("echo x; sleep 0.1; echo end", "bash exited with 0 before the command that it watches had ended"),
        ("echo x; sleep 0.1; kill -9 $$", "figures: the sampler did not end well (exit status -9)"),
    ],
)
def test_a_sampler_that_ends_by_itself_saw_only_a_part(keeper: Spawner, tmp_path: Path, sampler: str, how: str) -> None:
    assert reason(keeper, tmp_path, "sleep 0.5", sampler) == how


def test_a_time_limit_ends_both(keeper: Spawner, tmp_path: Path) -> None:
    sampler = f"echo $$ > {tmp_path}/pid; {ENDLESS}"
    assert "time limit" in reason(keeper, tmp_path, "sleep 60", sampler, timeout=0.3)
    wait_until_gone(tmp_path / "pid")


def test_one_that_is_deaf_to_the_signal_is_ended_all_the_same(
    keeper: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spawner, "run", partialmethod(Spawner.run, grace=0.2))
    deaf = f"trap '' INT TERM; echo $$ > {tmp_path}/pid; echo begin; while :; do sleep 0.05; done"
    assert "exit status -9" in reason(keeper, tmp_path, "true", deaf)
    wait_until_gone(tmp_path / "pid")


def _samplers(folder: Path) -> list[int]:
    """Return the iostat processes whose output is below a folder."""
    found = []
    for entry in processes():
        with suppress(OSError):
            is_one = (entry / "comm").read_text() == "iostat\n"
            if is_one and str(folder) in str((entry / "fd" / "1").readlink()):
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("number", rest_long([signal.SIGKILL, signal.SIGINT]))
def test_an_end_of_perfflow_leaves_no_sampler(tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path, flow(profile="{id: disk, uses: iostat, with: {command: sleep 61}}"))
    running = start("run", "flow.yaml", "--out", str(tmp_path / "out"), cwd=tmp_path)
    wait_until(lambda: bool(_samplers(tmp_path)), "the sampler did not start")
    (sampler,) = _samplers(tmp_path)
    time.sleep(0.2)
    running.send_signal(number)
    running.communicate(timeout=60)
    wait_until_gone(sampler)


@pytest.mark.long  # samples for seconds
def test_a_sampler_without_a_command_watches_what_measures_its_benchmark(tmp_path: Path) -> None:
    nap = "{id: nap, uses: command, runs: 1, with: {command: sleep 1.4}}"
    write(tmp_path, flow(baseline=nap, profile="{id: disk, uses: iostat, benchmark: nap}"))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    found = {row["metric"]: row for row in result["benchmarks"] if row["name"] == "nap"}
    assert 0 < found["cpu_user"]["baseline"]["value"] + found["cpu_idle"]["baseline"]["value"] <= 1.01


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
