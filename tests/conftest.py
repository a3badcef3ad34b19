"""What holds for all tests."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.cli.fork_server import be_brief
from tests.report.browser import Browser, browser

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTED = time.monotonic()
SLOW = 60.0
"""Seconds after which a test is named while the run goes on."""
FIRST = (
    *("tests/tools/test_contracts.py", "tests/docs/test_documents.py", "tests/hostile/test_inspection.py"),
    *("tests/session/test_code_layouts.py", "tests/jobs/cluster/test_placed_run.py", "tests/cli/mcp_server/"),
    *("tests/jobs/test_attribution.py", "tests/jobs/test_gate.py", "tests/jobs/test_optimize.py"),
    *("tests/report/test_flame.py", "tests/tools/test_drivers.py", "tests/test_wheel.py", "tests/unchanged/"),
    *("tests/tools/test_real", "tests/verdict/test_replay.py", "tests/workflow/test_schema.py", "tests/workflows/"),
)
"""What takes longest: begun last, it would leave the other process without work."""
MOST_FILES = 20
LOCK = "perfflow-tests"
"""How the name of a measuring lock begins that belongs to the tests."""
NOT_OF_SUITES = ("anyio", "hypothesispytest", "pytest_cov", "rerunfailures", "xdist")
"""Plugins of these tests, by the names under which pytest loads them."""
TRIES = "PERFFLOW_FUZZ_EXAMPLES"
"""How many inputs are generated for each test that tries any."""

os.environ.setdefault(TRIES, "20")
settings.register_profile("usual", settings(), max_examples=int(os.environ[TRIES]), deadline=None)
settings.load_profile("usual")


def _compile_crates_once(config: pytest.Config) -> None:
    """Let sccache keep what rustc makes of crates: a dozen tests build criterion, each in a folder of its own.

    Its server is started here, since perfflow would end one that a build of its own has started.
    """
    program = shutil.which("sccache")
    if program is None or hasattr(config, "workerinput") or "RUSTC_WRAPPER" in os.environ:
        return
    # The tests' own, so that another one, with other settings, goes on as it is.
    os.environ["SCCACHE_SERVER_PORT"] = str(20_000 + os.getpid() % 20_000)

    def ask(word: str) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run([program, word], env=environment, stdout=quiet, stderr=quiet, check=True)

    environment = {**os.environ, "SCCACHE_IDLE_TIMEOUT": "0"}
    with contextlib.suppress(subprocess.CalledProcessError):  # then each compiles its own
        ask("--start-server")
        os.environ["RUSTC_WRAPPER"] = program
        config.add_cleanup(partial(ask, "--stop-server"))


def pytest_configure(config: pytest.Config) -> None:
    """Let programs under test not know that the tests are spread over processes: pytest-benchmark, for one, asks."""
    _compile_crates_once(config)
    # A shell lets what it starts in the background ignore ^C, and nohup a hang-up; programs inherit that.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    # A measuring lock of its own for each worker: the tests are about decisions and need not wait for each other.
    lock = Path(tempfile.gettempdir()) / f"{LOCK}-{os.getuid()}-{os.getpid()}-{worker}.lock"
    # Who spreads the tests has set its own, which all of them would share.
    if LOCK in os.environ.get("PERFFLOW_LOCK_FILE", LOCK):
        os.environ["PERFFLOW_LOCK_FILE"] = str(lock)
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]
    # Programs under test write for a person unless a test says otherwise.
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        os.environ.pop(name, None)
    # The pytest of suites under test needs none of these tests' own plugins, which take it a second to import. The
    # workers of pytest-xdist, which do need them, are started by a process that leaves this alone.
    if worker or not getattr(config.option, "numprocesses", None):
        os.environ["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in NOT_OF_SUITES)
        # Thousands of tests are collected and stay: to look for garbage among them takes a third of the time.
        gc.disable()
    be_brief()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files come first; the order is the same in every process."""
    for item in items:
        # Generated inputs without Hypothesis: `scripts/test long` tries more of both.
        if item.name.startswith("test_mutated_"):
            item.add_marker("hypothesis")
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    """Let what was collected be left out of each search for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield one browser for all tests of a file, none of whose pages may complain."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not on PATH")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
        assert found.complaints == []


def _send_at_once(config: pytest.Config) -> None:
    """Let pytest-rerunfailures send what it says of a test at once.

    It writes twice in a row to a socket, and the second waits for the kernel's delayed acknowledgement of the first:
    40 ms for each of ten thousand tests.
    """
    found = getattr(getattr(config, "failures_db", None), "sock", None)
    if isinstance(found, socket.socket):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Spread files over the processes, and text cases by topic and contracts by tool, which would run for minutes."""
    from xdist.scheduler.loadfile import LoadFileScheduling

    def scope(nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path.endswith("tools/test_contracts.py"):
            return nodeid.rpartition("::")[0]
        return nodeid.partition(": ")[0] if path.endswith("cli/test_cases.py") else path

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = scope
    return scheduling


class _Teller:
    """Names failures and slow tests at once: a run that is cut off has said what it knew."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal
        self.files: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Iterator[None]:
        yield
        self.files[report.nodeid.partition("::")[0]] += report.duration
        again = str(report.outcome) == "rerun"
        if not (report.failed or again) and report.duration < SLOW:
            return
        what = "failed" if report.failed else "failed once, and is tried again" if again else "took its time"
        so_far = time.monotonic() - STARTED
        self.terminal.ensure_newline()
        self.terminal.write_line(f"[{so_far / 60:.1f} min] {report.nodeid} {what}: {report.duration:.0f} s")
        if report.failed or again:
            self.terminal.write_line(report.longreprtext[-4000:])

    def pytest_terminal_summary(self) -> None:
        """Tell which files take longest."""
        if len(self.files) > MOST_FILES:
            self.terminal.section(
                f"{MOST_FILES} slowest of {len(self.files)} files, {sum(self.files.values()):.0f} s in all"
            )
            for name, seconds in sorted(self.files.items(), key=lambda item: -item[1])[:MOST_FILES]:
                self.terminal.write_line(f"{seconds:.0f} s {name}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Tell where the results come together, which under xdist is not where the tests run."""
    _send_at_once(session.config)
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Teller(terminal), "teller")
