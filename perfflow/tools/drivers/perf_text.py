"""Turn a recording of perf into text, with inlined callers where perf resolves them in time.

    python perf_text.py LIMIT perf script ARGUMENT... > perf.script

perf asks addr2line for the inlined callers of every frame, which takes minutes where programs are large. After LIMIT
seconds, or where perf itself is ended by a signal (it is by SIGPIPE when its addr2line ends), the text is made again
without them, and a line ``# without inlined callers: WHY`` ends it. The exit status is perf's.

Run by a bare interpreter, so: standard library only.
"""

# ruff: noqa: D103

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

NOTE = "# without inlined callers: {}\n"


def main() -> None:
    limit, argv = float(sys.argv[1]), sys.argv[2:]
    began = os.lseek(1, 0, os.SEEK_CUR)
    # A session of its own, since addr2line outlives a perf that is killed.
    child = subprocess.Popen([*argv, "--inline"], start_new_session=True)

    def stop(number: int, _: object) -> None:
        kill(child)
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        status = child.wait(limit)
        if status >= 0:
            sys.exit(status)
        why = f"perf was ended by signal {-status} while it looked for them"
    except subprocess.TimeoutExpired:
        why = f"more than {limit:g} s"
    kill(child)
    os.ftruncate(1, began)
    os.lseek(1, began, os.SEEK_SET)
    status = subprocess.call([*argv, "--no-inline"])
    os.write(1, NOTE.format(why).encode())
    sys.exit(status)


def kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


if __name__ == "__main__":
    main()
