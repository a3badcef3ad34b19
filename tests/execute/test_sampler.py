"""Real samplers beside a command: started before it, interrupted after it, and never left running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest

from perfflow.execute import invoke
from perfflow.execute.child import MARK, Spawner
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, Side, Usage
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from tests.cli.shell import perfflow
from tests.execute.plans import item
from tests.execute.test_child import wait_until

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


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"{pid} still runs")


@pytest.fixture(scope="module")
def keeper() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


def run(keeper: Spawner, folder: Path, command: str, sampler: str = ENDLESS, timeout: float | None = None) -> Invoked:
    tool = beside(sampler)
    argv = ("bash", "-c", command)
    planned = replace(item("bench"), tool=tool)
    call = Call(CommandOptions(), folder, command=argv)
    env = {**os.environ, MARK: "sampler"}
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
    assert said[0] == "begin"
    assert said[-1] == "it still runs"
    wait_until_gone(int((tmp_path / "pid").read_text()))


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
    said = reason(keeper, tmp_path, "sleep 0.5", sampler)
    assert said == how


def test_a_time_limit_ends_both(keeper: Spawner, tmp_path: Path) -> None:
    said = reason(keeper, tmp_path, "sleep 60", f"echo $$ > {tmp_path}/pid; {ENDLESS}", timeout=0.3)
    assert "time limit" in said
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_one_that_is_deaf_to_the_signal_is_ended_all_the_same(
    keeper: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spawner, "run", partialmethod(Spawner.run, grace=0.2))
    deaf = f"trap '' INT TERM; echo $$ > {tmp_path}/pid; echo begin; while :; do sleep 0.05; done"
    assert "exit status -9" in reason(keeper, tmp_path, "true", deaf)
    wait_until_gone(int((tmp_path / "pid").read_text()))


def _samplers(folder: Path) -> list[int]:
    """Return the iostat processes whose output is below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_one = entry.name.isdecimal() and (entry / "comm").read_text() == "iostat\n"
            if is_one and str(folder) in str((entry / "fd" / "1").readlink()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("signal_name", ["KILL", "INT"])
def test_an_end_of_perfflow_leaves_no_sampler(tmp_path: Path, signal_name: str) -> None:
    step = {"id": "disk", "uses": "iostat", "with": {"command": "sleep 61"}}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"profile": [step]}}))
    argv = [sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", str(tmp_path / "out")]
    env = {**os.environ, "PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    running = subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: bool(_samplers(tmp_path)), "the sampler did not start")
    (sampler,) = _samplers(tmp_path)
    time.sleep(0.2)
    subprocess.run(["kill", f"-{signal_name}", str(running.pid)], check=True)
    running.wait(60)
    wait_until_gone(sampler)


def test_a_sampler_without_a_command_watches_what_measures_its_benchmark(tmp_path: Path) -> None:
    measured = {"id": "nap", "uses": "command", "runs": 1, "with": {"command": "sleep 1.4"}}
    sampled = {"id": "disk", "uses": "iostat", "benchmark": "nap"}
    stages = {"baseline": [measured], "profile": [sampled]}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": stages}))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    found = {row["metric"]: row for row in result["benchmarks"] if row["name"] == "nap"}
    assert 0 < found["cpu_user"]["baseline"]["value"] + found["cpu_idle"]["baseline"]["value"] <= 1.01
