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

from perfflow.execute import invoke, service
from perfflow.execute.child import MARK, ChildExit, Spawner
from perfflow.execute.invoke import KEPT, STALLED
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.sanitize import NO_EDGE
from perfflow.session import bench, perform
from perfflow.session.steps import check
from tests.cli.shell import perfflow, write
from tests.execute.test_child import wait_until
from tests.session.project import Project, flow, samples, step


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
    found = step(project.run(flow(build=f"{{id: make, run: '{command}{more}', timeout: 20s{ready}}}")), "make")
    assert found.status == "failed"
    assert said in found.reason
    assert "at most 1 MiB of name=value lines" in found.reason


PARSE = 'parse: {regex: "(?P<latency>[0-9]+) ms", units: {latency: ms}}'


def test_parse_reads_a_bounded_part_and_says_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MOST_PARSED", 2**20)
    project.write("flood.py", "print('latency 3 ms')\nfor _ in range(30_000): print('x' * 99)\n")
    found = step(project.run(flow(baseline=f"{{id: flood, run: python3 flood.py, runs: 2, {PARSE}}}")), "flood")
    assert found.status == "failed"
    assert "`parse` reads at most 1 MiB, and stdout is longer" in found.reason


def test_half_a_gigabyte_of_output_takes_neither_memory_nor_disk(project: Project) -> None:
    write(project.folder, flow(baseline=f"{{id: flood, run: head -c 500000000 /dev/zero; echo, runs: 1, {PARSE}}}"))

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))

    argv = [sys.executable, "-m", "perfflow", "run", "flow.yaml"]
    done = subprocess.run(
        argv, cwd=project.folder, capture_output=True, text=True, preexec_fn=bounded, timeout=900, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "`parse` reads at most 64 MiB" in done.stdout + done.stderr
    run = project.folder / ".perfflow" / "runs" / "latest" / ""
    assert sum(path.stat().st_size for path in Path(run).rglob("*") if path.is_file()) < KEPT + 10**6


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("head -c 2000 /dev/zero; echo > made", "cannot compare stdout: the file is larger than 1,000 bytes"),
        ("echo; rm -f made; mkfifo made", "not a regular file"),
    ],
)
def test_what_is_compared_is_bounded_and_regular(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.setattr(check, "MOST_COMPARED", 1000)
    options = f'{{command: "{command}", shell: true, runs: 2, files: [made]}}'
    found = step(project.run(flow(verify=f"{{id: same, uses: same-output, with: {options}}}")), "same")
    assert found.status == "failed"
    assert said in found.reason


def require_cut(project: Project, name: str, reason: str) -> None:
    """Assert that a step was ended since it printed too much, and that most of what it printed is not kept."""
    assert "printed more than" in reason
    assert (project.folder / ".perfflow/runs/latest/steps" / name / "stdout").stat().st_size <= KEPT + 200


def test_a_step_that_prints_without_end_is_ended(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoke, "MOST_PRINTED", 2**22)
    result = project.run("stages: {build: [{id: yes, run: 'ulimit -f 4000000; yes 0123456789'}]}")
    require_cut(project, "yes", step(result, "yes").reason)


def test_a_step_that_stops_the_spawner_goes_on_with_a_warning(project: Project) -> None:
    result = project.run("stages: {build: [{id: stop, run: 'kill -STOP $PPID; echo on'}, {id: after, run: 'true'}]}")
    assert [item.status for item in result.steps] == ["done", "done"]
    assert step(result, "stop").warnings == [STALLED]


def test_a_benchmark_that_stops_the_spawner_has_no_time(project: Project) -> None:
    project.write("stopper", "#!/bin/bash\n[ -e warm ] && kill -STOP $PPID\ntouch warm\n", executable=True)
    steps = [
        '{id: fine, uses: command, runs: 3, with: {command: "true"}}',
        "{id: stops, uses: command, runs: 3, with: {command: ./stopper}}",
        '{id: other, uses: command, runs: 3, needs: [], with: {command: "true"}}',
    ]
    result = project.run(flow(baseline=steps), keep_going=True)
    assert (result.verdict, step(result, "stops").status) == ("error", "failed")
    assert STALLED in step(result, "stops").reason
    assert [len(samples(result, name, "time")) for name in ("fine", "other")] == [3, 3]


def test_a_service_that_floods_its_output_is_ended(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_PRINTED", 2**22)
    run = "ulimit -f 4000000; echo ready; sleep 0.1; yes 0123456789"
    wait = "while kill -0 ${{ steps.loud.outputs.pid }} 2>/dev/null; do sleep 0.05; done"
    result = project.run(
        flow(
            setup=f"{{id: loud, run: {run}, background: true, ready: {{regex: ready}}}}",
            build=f'{{id: use, timeout: 60s, run: "{wait}"}}',
        )
    )
    require_cut(project, "loud", step(result, "loud").reason)


def test_a_service_that_floods_its_output_is_told_although_it_is_asked_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step can see that it is gone, and the services be stopped, before its thread knows of the end."""
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
    command = r"""head -c 20000000 /dev/zero | tr '\\0' x; echo $OTHER_TOKEN"""
    write(project.folder, flow(build=f'{{id: long, run: "{command}"}}'))
    env = {**os.environ, "OTHER_TOKEN": "correct-horse"}
    assert perfflow("run", "flow.yaml", cwd=project.folder, env=env).returncode == 3
    assert perfflow("receipt", "verify", cwd=project.folder).returncode == 0
    run = project.folder / ".perfflow/runs/latest"
    assert (run / "steps/long/stdout").read_text().endswith("x***\n")
    assert "steps/long/stdout" in json.loads((run / "receipt.json").read_text())["files"]


MAKE = """{id: make, artifacts: [out/a.txt, "**/${{ params.name }}.txt", ".git/*", none.txt], run:
       mkdir -p out/deep .git && echo one > out/a.txt && echo two > out/deep/b.txt && echo > .git/c.txt}"""


def test_what_globs_match_is_kept_with_the_run_and_in_its_receipt(project: Project) -> None:
    finished = project.finish(flow("params: {name: b}", build=[MAKE, "{id: later, run: echo changed > out/a.txt}"]))
    kept = finished.folder / "steps" / "make" / "artifacts"
    files = {str(path.relative_to(kept)): path.read_text() for path in kept.rglob("*") if path.is_file()}
    assert files == {"out/a.txt": "one\n", "out/deep/b.txt": "two\n"}
    warnings = [f"artifacts: `{glob}` matches no file" for glob in (".git/*", "none.txt")]
    assert step(finished.result, "make").warnings == warnings
    receipt = json.loads((finished.folder / "receipt.json").read_text())
    assert "steps/make/artifacts/out/deep/b.txt" in json.dumps(receipt)


def test_a_step_that_fails_keeps_its_files_and_its_reason(project: Project) -> None:
    finished = project.finish(flow(build='{id: make, run: "echo why > log; exit 3", artifacts: [log]}'))
    assert step(finished.result, "make").exit_code == 3
    assert (finished.folder / "steps" / "make" / "artifacts" / "log").read_text() == "why\n"


@pytest.mark.parametrize("glob", ["../other", "/etc/hostname", "a/../../b"])
def test_nothing_outside_the_tree_is_kept(project: Project, glob: str) -> None:
    text = flow(f"params: {{glob: {glob}}}", build='{id: make, run: "true", artifacts: ["%s"]}')
    with pytest.raises(UserError, match="not below the root of the tree"):
        project.open(text % glob)
    found = step(project.run(text % "${{ params.glob }}"), "make")
    assert found.status == "failed"
    assert "not below the root of the tree" in found.reason


def test_artifacts_have_a_limit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "MOST_KEPT", 2**20)
    make = '{id: make, run: "echo 1 > a; truncate -s 2M b; mkfifo c", artifacts: [a, b, c]}'
    finished = project.finish(flow(build=make))
    assert [path.name for path in (finished.folder / "steps/make/artifacts").iterdir()] == ["a"]
    assert "artifacts: b and all later files are left out" in step(finished.result, "make").warnings[0]


def search(keys: str = "", command: str = "grep x big") -> str:
    return flow(baseline=f"{{id: search, uses: command, runs: 3, {keys}with: {{command: {command}}}}}")


LAZY = "behaves differently when its output goes to /dev/null"


def warnings(result: Result) -> list[str]:
    """Warnings of the step, without those about the machine."""
    return [text for text in step(result, "search").warnings if "hostile machine" not in text]


@pytest.fixture
def big(project: Project) -> Project:
    """Input of which GNU grep without a reader stops at the first match."""
    project.write("big", "xxxxxxxxx yyyyyyyy\n" * 2_000_000)
    return project


def test_a_program_that_does_less_without_a_reader_is_warned_of(big: Project) -> None:
    result = big.run(search())
    (said,) = warnings(result)
    assert "grep x big` " + LAZY in said
    assert "use `stdout: pipe`" in said
    screen = terminal.render(result, width=NO_EDGE, color=False, unicode=True)
    assert screen.count(LAZY) == markdown.render(result).count(LAZY) == 1


@pytest.mark.parametrize("keys", ["stdout: pipe, ", "stdout: found.txt, "])
def test_output_that_somebody_reads_is_all_there(big: Project, keys: str) -> None:
    unread, read = (big.run(search(text)) for text in ("stdout: discard, ", keys))
    assert warnings(unread) == warnings(read) == []
    # 1 ms against 60 ms: a clear difference under any load of the machine.
    assert min(samples(read, "search", "cpu")) > 5 * max(samples(unread, "search", "cpu"))


def test_a_file_is_written_anew_by_each_run_in_the_working_directory(project: Project) -> None:
    old = project.write("inner/old.txt", "what was there before, and is longer")
    sides = "with: {command: echo baseline}, candidate: {command: echo other, stdout: other.txt}"
    keys = 'working-directory: inner, stdout: "${{ params.name }}.txt"'
    project.run(flow("params: {name: old}", baseline=f"{{id: bench, uses: command, runs: 3, {keys}, {sides}}}"))
    assert old.read_text() == "baseline\n"
    assert old.with_name("other.txt").read_text() == "other\n"


def test_each_side_of_a_comparison_is_looked_at(big: Project) -> None:
    (said,) = warnings(big.run(search("candidate: grep x big, ", "wc -l big")))
    assert "grep x big`" in said


def test_a_program_that_always_does_its_work_is_not_warned_of(project: Project) -> None:
    program = project.write("work.py", "print('x' * 100_000)\nfor _ in range(100_000): pass\n")
    assert warnings(project.run(search(command=f"python3 {program}"))) == []


def test_a_program_that_only_a_reader_makes_too_slow_is_measured_all_the_same(project: Project) -> None:
    slow = "import os, stat, time\nif stat.S_ISFIFO(os.fstat(1).st_mode): time.sleep(60)\n"
    result = project.run(search("timeout: 1s, ", f"python3 {project.write('slow.py', slow)}"))
    assert step(result, "search").status == "done", step(result, "search").reason


def test_a_profile_of_what_is_measured_has_its_output_where_that_has_it(project: Project) -> None:
    keys = 'runs: 1, warmup: 0, stdout: said.txt, with: {command: "true"}, candidate: echo other'
    project.run(flow(baseline=[f"{{id: bench, uses: command, {keys}}}", "{id: calls, uses: strace, benchmark: bench}"]))
    assert (project.folder / "said.txt").read_text() == "other\n"


def test_hyperfine_is_told_where_output_goes(project: Project) -> None:
    text = "{id: bench, uses: hyperfine, runs: 1, stdout: said.txt, with: {command: echo hello}}"
    found = step(project.run(flow(baseline=text)), "bench")
    assert found.status == "done", found.reason
    assert (project.folder / "said.txt").read_text() == "hello\n"


def test_a_fifo_is_not_waited_for(project: Project) -> None:
    os.mkfifo(project.folder / "queue")
    assert "stdout: 'queue' is not a file" in step(project.run(search("stdout: queue, ")), "search").reason


def test_dev_null_by_name_is_a_file_like_any_other(project: Project) -> None:
    assert step(project.run(search("stdout: /dev/null, ", "echo x")), "search").status == "done"
    assert Path("/dev/null").is_char_device()
