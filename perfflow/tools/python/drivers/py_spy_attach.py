"""Record a running process with py-spy, for a duration or while a command that puts load on it runs.

    python py_spy_attach.py STATUS_FILE SECONDS PY_SPY [ARGUMENT ...] -- [COMMAND ...]

If SECONDS is 0, the end of the command ends the recording. The command starts when py-spy has attached, and its
standard output is discarded. py-spy writes nothing after SIGTERM, so this driver sends SIGINT. STATUS_FILE is JSON:
``status`` of the command (0 without one), ``recorded`` (s), and ``ended``, whether the process ended before the
recording. The exit status is py-spy's, or the command's. The command runs to its end after the recording.

Run by a bare interpreter, so: standard library only.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ATTACHED = "Sampling process"
POLL = 0.01
WRITING = 60.0
"""The time limit (s) for py-spy to write its recording."""


def main() -> None:
    status_file, seconds, words = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    parting = words.index("--")
    with subprocess.Popen(words[:parting], stdout=subprocess.PIPE, text=True, errors="replace") as spy:
        for line in spy.stdout or ():
            sys.stdout.write(line)
            if ATTACHED in line:
                break
        else:
            spy.wait()
        reader = threading.Thread(target=shutil.copyfileobj, args=(spy.stdout, sys.stdout), daemon=True)
        reader.start()
        outcome = record(spy, words[parting + 1 :], seconds) if spy.poll() is None else {}
        reader.join()
    if spy.returncode == 0 and outcome:
        status_file.write_text(json.dumps(outcome) + "\n", encoding="utf-8")
    status = int(outcome.get("status", 1))
    # 128 and more mean that a signal ended the command, as in a shell.
    sys.exit(spy.returncode or (128 - status if status < 0 else status))


def record(spy: subprocess.Popen[str], load: list[str], seconds: float) -> dict[str, float | bool]:
    """Record until SECONDS or the end of the command or process, then wait for the command. Return the outcome."""
    began = time.monotonic()
    command = None
    try:
        command = subprocess.Popen(load, stdout=subprocess.DEVNULL) if load else None
        while spy.poll() is None:
            over = bool(seconds) and time.monotonic() - began >= seconds
            if over or (command is not None and command.poll() is not None):
                break
            time.sleep(POLL)
        recorded = time.monotonic() - began
        ended = spy.poll() is not None
        if not ended:
            spy.send_signal(signal.SIGINT)
            spy.wait(WRITING)
        status = command.wait() if command else 0
    except BaseException as error:
        for child in (spy, command):
            if child and child.poll() is None:
                child.send_signal(signal.SIGINT)
        if isinstance(error, OSError):
            sys.exit(f"{load[0]} could not be started: {error.strerror}")
        raise
    return {"status": status, "recorded": recorded, "ended": ended}


if __name__ == "__main__":
    main()
