"""Imports perfflow once and forks off each command that a test gives: half a second of processor time less for each.

    python fork_server.py SOCKET

SOCKET is the number of the file descriptor of one end of a pair of Unix sockets with message boundaries. A message is
JSON: ``words`` of the command line, ``cwd``, ``environ``, all of its environment, and ``script``, whether the first of
the words is a Python script that runs instead of perfflow. With it come three file
descriptors: standard output, standard error, and a socket that gets two lines: the process id, and the exit status as
``subprocess`` has it. What runs is ``python -m perfflow``, down to ``__main__``, in a process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
from importlib import import_module
from typing import Any

from pydantic import BaseModel

import perfflow
from perfflow.machine import noise

LONGEST_MESSAGE = 2**20
NOT_IMPORTED = (".drivers", ".link_recorder", ".__main__", "perfflow.testing")
"""What other interpreters run, or other programs."""
LATE = ("jinja2.sandbox", "networkx", "platformdirs", "psutil", "ruamel.yaml")
"""Imported by functions."""
GLANCE_SECONDS = 0.02
"""How long a run looks at the machine's noise here: that it looks is what tests are about, not what it sees."""


def main() -> None:
    """Serve until the other end is closed."""
    noise.GLANCE_SECONDS = GLANCE_SECONDS
    for module in pkgutil.walk_packages(perfflow.__path__, "perfflow."):
        if not any(part in module.name for part in NOT_IMPORTED):
            import_module(module.name)
    for name in LATE:
        import_module(name)
    _warm(BaseModel)
    gc.collect()
    # What was imported stays, so no process need copy the pages in which it is counted.
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        while True:
            message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_MESSAGE, 3)
            if not message:
                return
            if os.fork() == 0:
                asked.close()
                _attend(message, descriptors)
            for number in descriptors:
                os.close(number)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _warm(model: type[BaseModel]) -> None:
    """Build what checks values, which is put off until there are any."""
    for each in model.__subclasses__():
        if each.__module__.startswith("perfflow."):
            each.model_rebuild(raise_errors=False)
        _warm(each)


def _attend(message: bytes, descriptors: list[int]) -> None:
    """Start the command, and say how it ended: the server itself waits for nothing."""
    stdout, stderr, reply = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(reply)
        _become(json.loads(message), stdout, stderr)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(stdout)
    os.close(stderr)
    with contextlib.suppress(BrokenPipeError):
        os.write(reply, f"{pid}\n".encode())
        os.write(reply, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
    os._exit(0)


def _become(asked: dict[str, Any], stdout: int, stderr: int) -> None:
    """Turn this process into the one that was asked for."""
    for place, descriptor in ((1, stdout), (2, stderr)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    if asked["script"]:
        sys.argv = asked["words"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.argv = ["perfflow", *asked["words"]]
        runpy.run_module("perfflow", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main()
