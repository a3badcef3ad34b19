"""Slow down the measured processes of head on purpose, to test whether a gate finds it.

A preloaded library makes each process compute for a share of the time that it has spent: a suite whenever it reads a
clock, so inside the regions that it times, and any other program once, when it ends.
"""

from __future__ import annotations

from pathlib import Path

from perfflow.execute.child import MARK, StartError
from perfflow.execute.context import TreeContext
from perfflow.execute.invoke import Failure
from perfflow.session.session import RunSession
from perfflow.tools import adapter

PLANTED = 0.2
"""The share by which each measured process is slowed down."""
_SOURCE = Path(adapter.__file__).parent / "drivers" / "planted_slowdown.c"
_NAME = "planted_slowdown.so"
_PATIENCE = 60.0


def plant(session: RunSession, head: TreeContext) -> None:
    """Compile the library and let the measured processes of head load it. Raises Failure without a C compiler."""
    path = session.folder.path / _NAME
    argv = ("cc", "-O1", "-shared", "-fPIC", "-o", str(path), str(_SOURCE))
    env = {**head.inherited, MARK: head.run_id}
    try:
        session.spawner().run(argv, env=env, cwd=session.folder.path, timeout=_PATIENCE)
    except StartError as error:
        raise Failure(f"a self-test needs a C compiler: {error}") from error
    if not path.exists():
        raise Failure("a self-test needs a C compiler, and `cc` does not work here")
    head.planted = {"LD_PRELOAD": str(path), "PERFFLOW_PLANTED": str(PLANTED)}
