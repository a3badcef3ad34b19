"""Runs the real command in a folder, as a user's shell would.

Most commands are forked from a process that has already imported perfflow (``fork_server``). Tests of start-up use a
``fresh`` interpreter, and ``scripts/lowest`` starts each command in one.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
_ENVIRON = dict(os.environ)
"""The environment before any test changes it."""
_AT_START = ("PYTHON", "COVERAGE", "LC_", "LANG", "LD_", "MALLOC", "TZ")
"""Prefixes of the variables that an interpreter reads at start."""


def perfflow(
    *arguments: str,
    cwd: Path,
    path: str | None = None,
    env: dict[str, str] | None = None,
    measured: bool = False,
    timeout: float = 300,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """``measured``: the programs under test are Python and timed, so they must not be traced for coverage.

    ``fresh``: start an interpreter for the command.
    """
    own = {name: value for name, value in os.environ.items() if not (measured and name.startswith("COVERAGE"))}
    full = {**own, **(env or {})}
    if path is not None:
        full["PATH"] = path
    if not fresh and _starts_as_ever(full):
        return fork_server().run(arguments, cwd, full, timeout)
    argv = [sys.executable, "-m", "perfflow", *arguments]
    return subprocess.run(argv, cwd=cwd, env=full, capture_output=True, text=True, timeout=timeout, check=False)


class _Server:
    """The client of one fork server. It can be used from any thread."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.commands = Path(tempfile.mkdtemp(prefix="perfflow-tests-"))
        """A folder for PATH, in which ``perfflow`` is forked by the server too."""
        _write_command(self.commands)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as shells:
            shells.bind(str(self.commands / "server"))
            shells.listen()
            passed = [theirs.fileno(), shells.fileno()]
            file = str(Path(__file__).with_name("fork_server.py"))
            argv = [sys.executable, "-P", file, *map(str, passed)]
            # Its own session, so that ^C only reaches pytest.
            self._process = subprocess.Popen(argv, pass_fds=passed, cwd=ROOT, env=_ENVIRON, start_new_session=True)
        atexit.register(self.close)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)
        shutil.rmtree(self.commands)

    def run(
        self, words: Sequence[str], cwd: Path, environ: Mapping[str, str], timeout: float, *, script: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Fork perfflow, or a script if it is the first word."""
        asked = {"words": words, "cwd": str(cwd), "environ": dict(environ), "script": script}
        message = json.dumps(asked).encode()
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr, ours, ours.makefile() as answer:
            with theirs:
                descriptors = [stdout.fileno(), stderr.fileno(), theirs.fileno()]
                socket.send_fds(self._socket, [message], descriptors)
            pid = int(answer.readline())
            ours.settimeout(timeout)
            try:
                status = int(answer.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout) from None
            texts = [_text(file) for file in (stdout, stderr)]
        return subprocess.CompletedProcess(words, status, *texts)


def _write_command(folder: Path) -> None:
    names = (*_AT_START, "COVERAGE")
    usual = {name: value for name, value in _ENVIRON.items() if name.startswith(names)}
    installed = str(Path(sys.executable).parent / "perfflow")
    (folder / "installed.json").write_text(json.dumps([installed, names, usual]))
    program = folder / "perfflow"
    program.write_text(f"#!{sys.executable} -IS\n" + Path(__file__).with_name("shell_command.py").read_text())
    program.chmod(0o755)


def path_of_shells() -> str:
    """Return PATH for shells: perfflow is forked by the server, and other programs of its environment are found."""
    own = [part for part in os.environ["PATH"].split(":") if part != str(Path(sys.executable).parent)]
    return ":".join([str(fork_server().commands), str(Path(sys.executable).parent), *own])


def _text(file: IO[bytes]) -> str:
    """Return the text of a file with normalized line ends, as ``subprocess`` does."""
    file.seek(0)
    return io.TextIOWrapper(io.BytesIO(file.read())).read()


@cache
def fork_server() -> _Server:
    """Return the server of this pytest process. It is started at first use."""
    return _Server()


def _starts_as_ever(environ: Mapping[str, str]) -> bool:
    """Return whether the server can replace an interpreter with this environment. A traced one must exit itself."""
    ours, theirs = ({item for item in each.items() if item[0].startswith(_AT_START)} for each in (_ENVIRON, environ))
    return ours == theirs and not any(name.startswith("COVERAGE") for name, _ in ours)


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a command to interrupt or kill, without coverage: an interrupt could leave the lock of coverage held."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfflow", *arguments],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(folder: Path, text: str, name: str = "flow.yaml") -> Path:
    path = folder / name
    path.write_text(f"perfflow: 1\n{text}")
    return path
