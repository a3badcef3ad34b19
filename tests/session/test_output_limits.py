"""Output of a step is read and stored within limits: an error instead of a hang or full memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perfflow.execute import invoke
from perfflow.execute.child import MARK, ChildExit, Spawner
from perfflow.execute.invoke import KEPT, STALLED
from perfflow.session import bench, perform
from perfflow.session.steps import check
from tests.cli.shell import perfflow, write
from tests.execute.test_child import wait_until
from tests.session.project import Project, samples, step


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ln -sf /dev/zero $PERFFLOW_OUTPUT", "a link, not a file"),
        ("ln -sf /etc/hostname $PERFFLOW_OUTPUT", "a link, not a file"),
        ("mkfifo $PERFFLOW_OUTPUT", "not a regular file"),
        ("mkdir $PERFFLOW_OUTPUT", "Is a directory"),
        ("head -c 2000000 /dev/zero > $PERFFLOW_OUTPUT", "larger than 1,048,576 bytes"),
        ("truncate -s 1T $PERFFLOW_OUTPUT", "larger than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("background", [False, True])
def test_outputs_are_a_small_regular_file(project: Project, command: str, said: str, *, background: bool) -> None:
    more = "; echo ready; sleep 60" if background else ""
    ready = ", background: true, ready: {regex: ready}" if background else ""
    result = project.run(f"stages: {{build: [{{id: make, run: '{command}{more}', timeout: 20s{ready}}}]}}")
    assert step(result, "make").status == "failed"
    assert said in step(result, "make").reason
    assert "at most 1 MiB of name=value lines" in step(result, "make").reason


def test_parse_reads_a_bounded_part_and_says_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MOST_PARSED", 2**20)
    project.write("flood.py", "print('latency 3 ms')\nfor _ in range(30_000): print('x' * 99)\n")
    result = project.run("""
stages:
  baseline:
    - {id: flood, run: python3 flood.py, runs: 2, parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}}
""")
    assert step(result, "flood").status == "failed"
    assert "`parse` reads at most 1 MiB, and stdout is longer" in step(result, "flood").reason


def test_half_a_gigabyte_of_output_takes_neither_memory_nor_disk(project: Project) -> None:
    write(
        project.folder,
        """
stages:
  baseline:
    - id: flood
      run: head -c 500000000 /dev/zero; echo
      runs: 1
      parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}
""",
    )

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))

    done = subprocess.run(
        [sys.executable, "-m", "perfflow", "run", "flow.yaml"],
        cwd=project.folder,
        capture_output=True,
        text=True,
        preexec_fn=bounded,
        timeout=900,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "`parse` reads at most 64 MiB" in done.stdout + done.stderr
    run = project.folder / ".perfflow" / "runs" / "latest" / ""
    assert sum(path.stat().st_size for path in Path(run).rglob("*") if path.is_file()) < KEPT + 10**6


def test_what_is_compared_is_bounded_and_regular(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_COMPARED", 1000)
    flow = """
stages:
  verify:
    - {{id: same, uses: same-output, with: {{command: "{command}", shell: true, runs: 2, files: [made]}}}}
"""
    result = project.run(flow.format(command="head -c 2000 /dev/zero; echo > made"))
    assert "cannot compare stdout: the file is larger than 1,000 bytes" in step(result, "same").reason
    result = project.run(flow.format(command="echo; rm -f made; mkfifo made"))
    assert step(result, "same").status == "failed"
    assert "not a regular file" in step(result, "same").reason


def test_a_step_that_prints_without_end_is_ended(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoke, "MOST_PRINTED", 2**22)
    result = project.run("stages: {build: [{id: yes, run: 'ulimit -f 4000000; yes 0123456789'}]}")
    assert "printed more than" in step(result, "yes").reason
    kept = project.folder / ".perfflow/runs/latest/steps/yes/stdout"
    assert kept.stat().st_size <= KEPT + 200


def test_artifacts_have_a_limit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "MOST_KEPT", 2**20)
    result = project.run("""
stages:
  build:
    - {id: make, run: "echo 1 > a; truncate -s 2M b; mkfifo c", artifacts: [a, b, c]}
""")
    kept = project.folder / ".perfflow/runs/latest/steps/make/artifacts"
    assert [path.name for path in kept.iterdir()] == ["a"]
    assert "artifacts: b and all later files are left out" in step(result, "make").warnings[0]


def test_a_step_that_stops_the_spawner_goes_on_with_a_warning(project: Project) -> None:
    result = project.run("stages: {build: [{id: stop, run: 'kill -STOP $PPID; echo on'}, {id: after, run: 'true'}]}")
    assert [item.status for item in result.steps] == ["done", "done"]
    assert step(result, "stop").warnings == [STALLED]


def test_a_benchmark_that_stops_the_spawner_has_no_time(project: Project) -> None:
    project.write("stopper", "#!/bin/bash\n[ -e warm ] && kill -STOP $PPID\ntouch warm\n", executable=True)
    result = project.run(
        """
stages:
  baseline:
    - {id: fine, uses: command, runs: 3, with: {command: "true"}}
    - {id: stops, uses: command, runs: 3, with: {command: ./stopper}}
    - {id: other, uses: command, runs: 3, needs: [], with: {command: "true"}}
""",
        keep_going=True,
    )
    assert result.verdict == "error"
    assert step(result, "stops").status == "failed"
    assert STALLED in step(result, "stops").reason
    assert len(samples(result, "fine", "time")) == 3
    assert len(samples(result, "other", "time")) == 3


def test_a_service_that_floods_its_output_is_ended(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfflow.execute import service

    monkeypatch.setattr(service, "MOST_PRINTED", 2**22)
    result = project.run("""
stages:
  setup:
    - id: loud
      run: ulimit -f 4000000; echo ready; sleep 0.1; yes 0123456789
      background: true
      ready: {regex: ready}
  build:
    - {id: use, timeout: 60s, run: "while kill -0 ${{ steps.loud.outputs.pid }} 2>/dev/null; do sleep 0.05; done"}
""")
    assert "printed more than" in step(result, "loud").reason
    kept = project.folder / ".perfflow/runs/latest/steps/loud/stdout"
    assert kept.stat().st_size <= KEPT + 200


def test_a_service_that_floods_its_output_is_told_although_it_is_asked_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step can see that it is gone, and the services be stopped, before its thread knows of the end."""
    from perfflow.execute import service

    asked = threading.Event()

    class Late(Spawner):
        def _with_client_facts(self, finished: ChildExit) -> ChildExit:
            asked.wait()
            return super()._with_client_facts(finished)

        def stop(self) -> None:
            super().stop()
            asked.set()

    monkeypatch.setattr(service, "MOST_PRINTED", 2**20)
    out, env = tmp_path / "out", {"PATH": os.environ["PATH"], MARK: "test"}
    with Late() as spawner:
        loud = service.Service(spawner, ["yes"], env=env, cwd=tmp_path, stdout=out, stderr=tmp_path / "err")
        wait_until(lambda: loud.pid > 0 and not Path(f"/proc/{loud.pid}").exists(), "it was not ended")
        loud.stop()
        assert loud.unexpected_end.startswith("printed more than")


def test_the_receipt_fits_what_was_cut_and_masked(project: Project) -> None:
    write(
        project.folder,
        """
stages:
  build:
    - {id: long, run: "head -c 20000000 /dev/zero | tr '\\\\0' x; echo $OTHER_TOKEN"}
""",
    )
    env = {**os.environ, "OTHER_TOKEN": "correct-horse"}
    assert perfflow("run", "flow.yaml", cwd=project.folder, env=env).returncode == 3
    assert perfflow("receipt", "verify", cwd=project.folder).returncode == 0
    kept = (project.folder / ".perfflow/runs/latest/steps/long/stdout").read_text()
    assert kept.endswith("x***\n")
    receipt = json.loads((project.folder / ".perfflow/runs/latest/receipt.json").read_text())
    assert "steps/long/stdout" in receipt["files"]
