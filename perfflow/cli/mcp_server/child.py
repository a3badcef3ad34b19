"""A ``perfflow`` command that a server starts, and that ends with the server.

Started as ``python -P -m perfflow.cli.mcp_server.child SERVER_PID WORDS``. A killed server cannot end its commands, so
the kernel does: it sends SIGHUP, which ends the command as ^C does. SIGTERM would not do: the kernel sends the signal
once for each thread of the server that ends, and a command ignores a second SIGHUP, but not a second SIGTERM.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys

from perfflow.machine import orphans


def main() -> None:
    """Run the command if the server is still running."""
    server = int(sys.argv.pop(1))
    if sys.platform == "linux":
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under a server started with nohup, it would be ignored
        orphans.end_with_parent(signal.SIGHUP)
    if os.getppid() == server:  # else the server ended before end_with_parent took effect
        runpy.run_module("perfflow", run_name="__main__")


if __name__ == "__main__":
    main()
