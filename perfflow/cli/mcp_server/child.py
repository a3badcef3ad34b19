"""A ``perfflow`` command that a server started, and that does not outlive it.

Run as ``python -P -m perfflow.cli.mcp_server.child WORDS``. A server that is killed cannot end what it started, so the
kernel is asked to do it: the command gets SIGHUP, which ends it as ^C does. Not SIGTERM: the kernel sends the signal
once for each thread of the server that goes, and a command takes a second SIGHUP for the first.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys

from perfflow.machine import orphans


def main() -> None:
    """Run the command, where the server is still there."""
    server = int(sys.argv.pop(1))
    if sys.platform == "linux":
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # of a server that was started by nohup it would be ignored
        orphans.end_with_parent(signal.SIGHUP)
    if os.getppid() == server:  # else it went before it could be asked to be told
        runpy.run_module("perfflow", run_name="__main__")


if __name__ == "__main__":
    main()
