"""Imports perfflow once and forks a process for each command of a test. Saves 0.5 s of CPU time per command.

    python fork_server.py SOCKET LISTENING

SOCKET is the number of the file descriptor of one end of a pair of Unix sockets with message boundaries; LISTENING is
that of a socket whose connections send one message each. A message is
JSON: ``words`` of the command line, ``cwd``, ``environ``, all of its environment, and ``script``, whether the first of
the words is a Python script that runs instead of perfflow. With it come file
descriptors: standard output, standard error, a socket that gets two lines: the process id, and the exit status as
``subprocess`` has it; and perhaps standard input. What runs is ``python -m perfflow``, down to ``__main__``, in a
process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

import perfflow
from perfflow.cli.mcp_server import calls
from perfflow.machine import noise
from perfflow.report import template
from perfflow.session import build_key
from perfflow.session.attribution import profiler_calls

LONGEST_MESSAGE = 2**20
NOT_IMPORTED = (".drivers", ".link_recorder", ".__main__", "perfflow.testing")
"""Paths run by other interpreters or other programs."""
LATE = ("jinja2.sandbox", "networkx", "platformdirs", "psutil", "ruamel.yaml")
"""Modules that functions import."""
USUAL_SAMPLES, USUAL_SECONDS = profiler_calls.SAMPLES, profiler_calls.PROFILING_SECONDS
"""What perfflow takes for a profile without ``be_brief``."""


def be_brief() -> None:
    """Let perfflow observe the machine and profile for a short time, since few tests depend on the findings.

    Most gates that fail would otherwise profile their program for 15 seconds, whatever the test is about.
    """
    noise.QUICK_CHECK_SECONDS = 0.002
    noise._calibrated = lambda now: 1000  # noqa: ARG005
    profiler_calls.SAMPLES, profiler_calls.PROFILING_SECONDS = 100, 1.0


def main() -> None:
    """Serve until the other end is closed."""
    be_brief()
    _prepare()
    _serve(*map(int, sys.argv[1:]))


def _prepare() -> None:
    """Do what each command would do anew: import, build validators, read templates, ask compilers for their version."""
    for module in pkgutil.walk_packages(perfflow.__path__, "perfflow."):
        if not any(part in module.name for part in NOT_IMPORTED):
            import_module(module.name)
    for name in LATE:
        import_module(name)
    _warm(BaseModel)
    # Each gate asks every compiler and runtime for its version, which takes longer than all else that most of them do.
    # Not by `toolchains`, whose threads would let an endless recursion in a forked process end with a SystemError.
    for name in filter(shutil.which, build_key._TOOLCHAINS):
        build_key._version(name)
    for name in template.environment().list_templates(extensions=["j2"]):
        template.environment().get_template(name)
    gc.collect()
    # Imported modules are never freed, so processes need not copy the pages with their reference counts.
    gc.freeze()


def _serve(number: int, listening: int) -> None:
    with (
        socket.socket(fileno=number) as asked,
        socket.socket(fileno=listening) as shells,
        selectors.DefaultSelector() as waited,
    ):
        # What a server for agents starts is forked too. It does not end with a killed server, as a child of that does.
        program = str(Path(shells.getsockname()).with_name("perfflow"))
        calls._command = lambda words: [program, *words]
        waited.register(asked, selectors.EVENT_READ)
        waited.register(shells, selectors.EVENT_READ)
        while True:
            for key, _ in waited.select():
                if key.fileobj is shells:
                    shell, _ = shells.accept()
                    with shell:
                        _start(shell, waited)
                elif key.fileobj is not asked:
                    waited.unregister(key.fileobj)
                    _say_how_it_ended(key)
                elif not _start(asked, waited):
                    return


def _start(asked: socket.socket, waited: selectors.BaseSelector) -> bool:
    """Fork the command of the next message and wait for its end. Return False if the other end is closed."""
    message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_MESSAGE, 4)
    if not message:
        return False
    stdout, stderr, reply, *stdin = descriptors
    streams = dict(zip((1, 2, 0), (stdout, stderr, *stdin), strict=False))
    pid = os.fork()
    if pid == 0:
        beside = [number for key in waited.get_map().values() for number in (key.fd, *(key.data or ())[1:])]
        for number in {reply, asked.fileno(), *beside}:
            os.close(number)
        waited.close()
        _become(json.loads(message), streams)
    for descriptor in streams.values():
        os.close(descriptor)
    with contextlib.suppress(BrokenPipeError):
        os.write(reply, f"{pid}\n".encode())
    waited.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, reply))
    return True


def _say_how_it_ended(key: selectors.SelectorKey) -> None:
    pid, reply = key.data
    os.close(key.fd)
    with contextlib.suppress(BrokenPipeError):
        os.write(reply, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
    os.close(reply)


def _warm(model: type[BaseModel]) -> None:
    """Build the pydantic validators, which are otherwise built at first use."""
    for each in model.__subclasses__():
        if each.__module__.startswith("perfflow."):
            each.model_rebuild(raise_errors=False)
        _warm(each)


def _become(asked: dict[str, Any], streams: dict[int, int]) -> NoReturn:
    """Turn this process into the requested command, with these file descriptors as its standard streams."""
    for place, descriptor in streams.items():
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(asked["cwd"])
    if asked["environ"].get("PATH") != os.environ.get("PATH"):
        build_key._version.cache_clear()
    os.environ.clear()
    os.environ.update(asked["environ"])
    try:
        if asked["script"]:
            sys.argv = asked["words"]
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            sys.argv = ["perfflow", *asked["words"]]
            runpy.run_module("perfflow", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _leave(end.code)
    _leave(0)


def _leave(code: object) -> NoReturn:
    """Exit as Python does, but let the kernel free the memory.

    Python clears every module at exit. Here that would copy all pages shared with the server, which takes three times
    as long as most commands.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
