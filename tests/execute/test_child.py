"""Real children of a real spawner: exit, remaining processes and resource usage."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfflow.execute import spawner as spawner_module
from perfflow.execute.child import MARK, PIPE, ChildExit, Ended, Left, Spawner, StartError, find_program

PYTHON = sys.executable
DEADLINE = 20.0


def env(mark: str = "test", **more: str) -> dict[str, str]:
    return {**os.environ, MARK: mark, **more}


def run(
    keeper: Spawner,
    *argv: str,
    cwd: Path = Path("/"),
    mark: str = "test",
    stdout: Any = None,
    stderr: Path | None = None,
    timeout: float | None = None,
    grace: float = 0.2,
    **more: Any,
) -> ChildExit:
    streams = {"stdout": stdout, "stderr": stderr}
    return keeper.run(argv, env=env(mark), cwd=cwd, timeout=timeout, grace=grace, **streams, **more)


def descriptors(keeper: Spawner, out: Path) -> str:
    """Return how many descriptors the spawner has, which closes its ends of streams while a child already runs."""
    run(keeper, "bash", "-c", "sleep 0.2; ls /proc/$PPID/fd | wc -l", stdout=out)
    return out.read_text()


def python(text: str) -> tuple[str, str, str]:
    return PYTHON, "-c", text


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """Return the processes whose environment carries a mark, or one below it."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word == wanted or word.startswith(wanted + b"/") for word in words):
                found.append(int(entry.name))
    return found


def wait_for(path: Path) -> str:
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} was not written")
    return path.read_text()


def wait_until_gone(mark: str) -> None:
    wait_until(lambda: not marked(mark), f"still running: {marked(mark)}")


@pytest.mark.parametrize("status", [0, 1, 3, 127, 255])
def test_exit_status(keeper: Spawner, status: int) -> None:
    done = run(keeper, "bash", "-c", f"exit {status}")
    assert (done.status, done.ended) == (status, Ended.EXITED)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_child_killed_by_a_signal_reports_minus_its_number(keeper: Spawner, number: signal.Signals) -> None:
    done = run(keeper, *python(f"import os; os.kill(os.getpid(), {number})"))
    assert (done.status, done.ended) == (-number, Ended.EXITED)


def test_streams_arguments_folder_and_environment_arrive_as_they_are(keeper: Spawner, tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    out.write_text("old text, longer than what comes now " * 9)
    text = (
        "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['WORD'], repr(sys.stdin.read()));"
        "print('oops', file=sys.stderr)"
    )
    words = ["two words", "$(x)", "", "ünï\udcff"]
    keeper.run([*python(text), *words], env=env(WORD="a\nb"), cwd=tmp_path, stdout=out, stderr=err)
    assert (out.read_text(), err.read_text()) == (f"{words} {tmp_path} a\nb ''\n", "oops\n")


def test_a_child_is_kept_to_one_core_and_the_next_one_is_not(keeper: Spawner, tmp_path: Path) -> None:
    usable, out = os.sched_getaffinity(0), tmp_path / "out"
    # The last core does not exist, so the child uses all of them.
    for core, expected in ((max(usable), {max(usable)}), (None, usable), (9999, usable)):
        run(keeper, *python("import os; print(sorted(os.sched_getaffinity(0)))"), stdout=out, core=core)
        assert json.loads(out.read_text()) == sorted(expected)


# Python ignores SIGPIPE and SIGXFSZ from its start.
SIGNALS = (
    "import os, signal;"
    "default = [n for n in range(1, 32) if n not in (9, 19)"
    " and signal.getsignal(n) not in (signal.SIG_DFL, signal.default_int_handler)];"
    "print(os.getpgid(0) == os.getpid(), default, len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
)
OPEN = "import os; print(*(n for n in range(100) if os.path.exists(f'/proc/self/fd/{n}')))"


@pytest.mark.parametrize(
    ("text", "printed"), [(SIGNALS, f"True [{signal.SIGPIPE}, {signal.SIGXFSZ}] 0\n"), (OPEN, "0 1 2\n")]
)
def test_a_child_has_default_signals_a_process_group_of_its_own_and_three_streams(
    keeper: Spawner, tmp_path: Path, text: str, printed: str
) -> None:
    run(keeper, PYTHON, "-I", "-c", text, stdout=tmp_path / "out")
    assert (tmp_path / "out").read_text() == printed


def test_programs_are_looked_up_as_the_child_would(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "prog"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    assert find_program("prog", str(program.parent), Path("/")) is None
    program.chmod(0o755)
    for name, path, cwd in (
        ("prog", f"/nowhere:{program.parent}", Path("/")),
        ("prog", "bin", tmp_path),
        ("./prog", "", program.parent),
        ("bin/prog", "", tmp_path),
    ):
        assert find_program(name, path, cwd) == str(program)
    assert find_program("bin", str(tmp_path), tmp_path) is None


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-program"], "no-such-program: not found or not executable"),
        (["./plain"], "./plain: not found or not executable"),
        (["./no-format"], "cannot start ./no-format: Exec format error"),
        (["/bin/true", "a\0b"], "cannot start /bin/true: embedded null"),
        (["/bin/true", "x" * 200_000], "cannot start /bin/true: Argument list too long"),
    ],
)
def test_what_cannot_be_started_says_why_and_the_spawner_goes_on(
    keeper: Spawner, tmp_path: Path, argv: list[str], reason: str
) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "no-format").write_bytes(b"\1\2\3\4")
    (tmp_path / "no-format").chmod(0o755)
    with pytest.raises(StartError) as caught:
        run(keeper, *argv, cwd=tmp_path)
    assert str(caught.value).startswith(reason)
    assert run(keeper, "true").status == 0


def test_a_stream_or_folder_that_cannot_be_opened_is_named(keeper: Spawner, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"stdout": tmp_path / "none" / "out"}, r"No such file or directory: .*/none/out"),
        ({"cwd": tmp_path / "gone"}, r"No such file or directory: .*/gone"),
        ({"stderr": tmp_path}, "Is a directory"),
    ]
    for keys, said in cases:
        with pytest.raises(StartError, match=said):
            run(keeper, "true", **keys)


@pytest.mark.parametrize("piped", [False, True])
def test_no_descriptor_leaks_over_many_children(fresh: Spawner, tmp_path: Path, piped: bool) -> None:
    stdout = PIPE if piped else tmp_path / "x"
    run(fresh, "true", stdout=stdout)
    before = descriptors(fresh, tmp_path / "out")
    for _ in range(20):
        run(fresh, "true", stdout=stdout)
        with pytest.raises(StartError):
            run(fresh, "true", stdout=stdout, stderr=tmp_path)
        with pytest.raises(StartError):
            run(fresh, "true", stdout=stdout, cwd=tmp_path / "none")
    assert descriptors(fresh, tmp_path / "out") == before


@pytest.mark.parametrize(
    ("traps", "said", "status"),
    [
        ("trap 'echo int; exit 5' INT", "int\n", 5),
        ("trap 'echo int' INT; trap 'echo term; exit 6' TERM", "int\nterm\n", 6),
        ("trap 'echo int' INT; trap 'echo term' TERM", "int\nterm\n", -9),
        ("trap '' INT TERM", "", -9),
    ],
)
def test_a_time_limit_asks_with_int_then_term_then_kills(
    keeper: Spawner, tmp_path: Path, traps: str, said: str, status: int
) -> None:
    out = tmp_path / "out"
    loop = f"{traps}; while :; do read -t 0.01 <> <(:); done"
    done = run(keeper, "bash", "-c", loop, stdout=out, timeout=0.3)
    assert (out.read_text(), done.status, done.ended) == (said, status, Ended.TIMEOUT)


def test_a_limit_of_years_is_no_limit(keeper: Spawner) -> None:
    assert run(keeper, "true", timeout=10**9 - 1.0).ended is Ended.EXITED


def test_a_time_limit_ends_the_whole_tree_and_who_left_its_session(keeper: Spawner, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = f"setsid sleep 300 & sleep 300 & (trap '' INT TERM; echo $! $$ > {pids}; sleep 300; sleep 300)"
    done = run(keeper, "bash", "-c", text, mark="tree", timeout=0.5)
    assert done.ended is Ended.TIMEOUT
    assert wait_for(pids)
    wait_until_gone("tree")


def test_the_sweep_after_one_child_spares_those_of_another_spawner(keeper: Spawner, fresh: Spawner) -> None:
    """Several steps run in parallel under the mark of one run."""
    others: list[ChildExit] = []
    beside = in_thread(lambda: others.append(run(fresh, "sleep", "0.8", mark="side")))
    wait_until(lambda: bool(marked("side")), "the other child did not start")
    assert run(keeper, "sleep", "300", mark="side", timeout=0.1).ended is Ended.TIMEOUT
    beside.join()
    assert (others[0].status, others[0].ended) == (0, Ended.EXITED)


def test_background_processes_of_a_finished_child_are_ended(keeper: Spawner) -> None:
    done = run(keeper, "bash", "-c", "sleep 300 & sleep 300 & exit 0", mark="background")
    assert (done.status, done.ended) == (0, Ended.EXITED)
    wait_until_gone("background")


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_stop_from_another_thread_ends_the_child_and_starts_no_other(fresh: Spawner, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ended: list[ChildExit | BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                ended.append(run(fresh, "bash", "-c", f"echo go >> {ready}; sleep 300", mark="stopped"))
        except KeyboardInterrupt as error:
            ended.append(error)

    thread = in_thread(work)
    wait_for(ready)
    fresh.stop()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    first, second = ended
    assert isinstance(first, ChildExit)
    assert first.ended is Ended.STOPPED
    assert isinstance(second, KeyboardInterrupt)
    assert ready.read_text() == "go\n"
    wait_until_gone("stopped")


def test_closing_while_a_thread_waits_ends_both(tmp_path: Path) -> None:
    keeper = Spawner()
    ready = tmp_path / "ready"
    errors: list[Exception] = []

    def work() -> None:
        try:
            run(keeper, "bash", "-c", f"trap '' INT TERM; echo go > {ready}; sleep 300; sleep 300", mark="closed")
        except StartError as error:
            errors.append(error)

    thread = in_thread(work)
    wait_for(ready)
    keeper.close()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert "ended unexpectedly" in str(errors[0])
    wait_until_gone("closed")


def test_a_killed_spawner_is_an_error_and_its_child_is_ended(tmp_path: Path) -> None:
    keeper = Spawner()
    parent = tmp_path / "parent"
    killer = in_thread(lambda: os.kill(int(wait_for(parent)), signal.SIGKILL))
    with pytest.raises(StartError, match="ended unexpectedly"):
        run(keeper, "bash", "-c", f"echo $PPID > {parent}; sleep 300", mark="headless")
    killer.join()
    wait_until_gone("headless")
    with pytest.raises(StartError, match="ended unexpectedly"):
        run(keeper, "true")
    keeper.stop()
    keeper.close()


CLIENT = """
import os, sys
from pathlib import Path
from typing import Any
from perfflow.execute.child import MARK, Spawner
with Spawner() as keeper:
    keeper.run(["bash", "-c", sys.argv[1]], env={**os.environ, MARK: sys.argv[2]}, cwd=Path("/"))
"""


ROOT = str(Path(__file__).parents[2])


def client(script: str, mark: str, text: str = CLIENT) -> subprocess.Popen[bytes]:
    return subprocess.Popen([PYTHON, "-c", text, script, mark], env={**os.environ, "PYTHONPATH": ROOT})


@pytest.mark.parametrize("traps", ["", "trap '' INT TERM HUP;"], ids=["plain", "ignoring"])
def test_nothing_is_left_two_seconds_after_perfflow_was_killed(tmp_path: Path, traps: str) -> None:
    ready, mark = tmp_path / "ready", f"killed{len(traps)}"
    script = f"{traps} setsid bash -c 'sleep 300' & sleep 300 & (sleep 300; sleep 300) & echo up > {ready}; wait; wait"
    process = client(script, mark)
    wait_for(ready)
    assert len(marked(mark)) >= 4
    process.kill()
    process.wait()
    wait_until_gone(mark)


def test_a_perfflow_inside_a_step_ends_with_the_step(keeper: Spawner, tmp_path: Path) -> None:
    """Children of the inner run carry a mark below that of the outer run, in the session of their own spawner."""
    ready, err = tmp_path / "ready", tmp_path / "err"
    inner = f"trap '' INT TERM; echo up > {ready}; sleep 300; sleep 300"
    text = CLIENT.replace("MARK: sys.argv[2]", "MARK: os.environ[MARK] + '/inner'")
    script = f'trap "" INT TERM; PYTHONPATH={ROOT} {PYTHON} -c "$0" "$1" x; sleep 300'
    done = run(keeper, "bash", "-c", script, text, inner, mark="outer", stderr=err, timeout=2, grace=0.1)
    assert done.ended is Ended.TIMEOUT
    assert ready.exists(), err.read_text()
    wait_until_gone("outer")


C_PROGRAM = """
#include <stdlib.h>
#include <string.h>
int main(int n, char **words) { memset(malloc(atol(words[1])), 1, atol(words[1])); return 0; }
"""


def test_max_rss_sees_what_the_child_allocates_and_not_what_perfflow_holds(keeper: Spawner, tmp_path: Path) -> None:
    held = bytearray(b"x") * 60_000_000
    (tmp_path / "fill.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-O0", "-o", tmp_path / "fill", tmp_path / "fill.c"], check=True)
    usage = run(keeper, str(tmp_path / "fill"), "50000000").usage
    assert 50_000_000 <= usage.max_rss < 58_000_000
    assert usage.page_faults > 50_000_000 / 4096 / 600  # transparent huge pages need the fewest
    small = run(keeper, "true").usage
    assert small.max_rss <= small.rss_floor * 1.02
    assert small.rss_floor < 20_000_000 < len(held)


def test_sleeping_takes_wall_time_and_little_cpu(keeper: Spawner) -> None:
    usage = run(keeper, "sleep", "0.25").usage
    assert usage.wall >= 0.25
    assert usage.user + usage.system < 0.1
    assert usage.context_switches >= 1


def test_computing_takes_cpu_time_of_the_main_thread(keeper: Spawner) -> None:
    usage = run(keeper, *python("import time\nwhile time.process_time() < 0.2: pass")).usage
    cpu = usage.user + usage.system
    assert cpu >= 0.2
    assert usage.main_cpu == pytest.approx(cpu, rel=0.05)
    assert usage.queued is not None
    assert usage.wall - usage.queued < usage.wall + 1e-9


def test_cpu_time_of_reaped_grandchildren_counts_and_is_not_the_main_threads(keeper: Spawner) -> None:
    text = "while time.process_time() < 0.2: pass"
    usage = run(keeper, "bash", "-c", f"{PYTHON} -c 'import time\n{text}'; :").usage
    assert usage.user + usage.system >= 0.2
    assert usage.main_cpu is not None
    assert usage.main_cpu < 0.1


def test_cpu_time_of_a_grandchild_that_nobody_waits_for_counts_too(keeper: Spawner) -> None:
    burn = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    ended = "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)"
    text = f"import os\npid = os.fork()\nif pid:\n    {ended}\n    os._exit(0)\n{burn}\nos._exit(0)"
    usage = run(keeper, *python(text), left=Left.NAME).usage
    assert usage.user + usage.system >= 0.2


def test_the_spawner_answers_a_half_read_message_by_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header without a body means that the parent died while writing."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(spawner_module, "CONTROL", theirs.fileno())
        ours.sendall((100).to_bytes(4, "big") + b"part")
        ours.shutdown(socket.SHUT_WR)
        assert spawner_module.receive() is None


INTERRUPTED = """
import os, signal
from pathlib import Path
from typing import Any
from perfflow.execute.child import MARK, Spawner

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for number in range(0, 300, 3):
    with Spawner() as found:
        found.run(["true"], env={**os.environ, MARK: "test"}, cwd=Path("/"))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + number * 1e-5)
            for _ in range(100):
                found.run(["true"], env={**os.environ, MARK: "test"}, cwd=Path("/"))
        except KeyboardInterrupt:
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    raise SystemExit("it was not interrupted")
"""


def test_an_interrupt_at_any_moment_ends_the_wait() -> None:
    # Coverage tracing takes a lock, which an interrupt can leave held.
    untraced = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run([PYTHON, "-c", INTERRUPTED], env=untraced, timeout=120, check=True)


@pytest.mark.parametrize("size", [1, 70_000, 5_000_000])
def test_a_pipe_is_emptied_while_the_child_runs(fresh: Spawner, size: int) -> None:
    text = f"import os, stat\nassert stat.S_ISFIFO(os.fstat(1).st_mode)\nos.write(1, b'x')\nprint('x' * {size})"
    done = run(fresh, *python(text), stdout=PIPE, timeout=DEADLINE)
    assert (done.status, done.ended) == (0, Ended.EXITED)


def test_a_child_that_closes_its_pipe_goes_on_and_can_be_stopped(fresh: Spawner) -> None:
    before = time.process_time()
    done = run(fresh, "bash", "-c", "exec >&-; sleep 300", stdout=PIPE, timeout=0.3)
    assert done.ended is Ended.TIMEOUT
    assert time.process_time() - before < 1


def test_what_writes_to_a_pipe_without_end_is_stopped_in_good_order(fresh: Spawner, tmp_path: Path) -> None:
    script = f"trap 'echo int > {tmp_path}/said; exit 5' INT; while :; do echo; done"
    done = run(fresh, "bash", "-c", script, stdout=PIPE, timeout=0.3, grace=2)
    assert (done.status, done.ended, (tmp_path / "said").read_text()) == (5, Ended.TIMEOUT, "int\n")
