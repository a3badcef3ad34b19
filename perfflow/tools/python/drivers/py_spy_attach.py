"""Record a running process by py-spy: for a duration, or as long as a command runs that puts load on it.

    python py_spy_attach.py STATUS_FILE SECONDS PY_SPY [ARGUMENT ...] -- [COMMAND ...]

SECONDS is 0 where the command alone ends the recording. The command starts when py-spy has attached, and its standard
output is discarded. py-spy writes nothing when SIGTERM ends it, so SIGINT does. STATUS_FILE is JSON: ``status``, that
of the command (0 without one), ``recorded`` (s) and ``ended``, whether the process itself ended before the recording
did. The exit status is py-spy's, or the command's. A command of which nothing more is recorded runs to its end.

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
"""Seconds that py-spy may take to write what it recorded."""


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
    # One that a signal ended counts from 128, as in a shell.
    sys.exit(spy.returncode or (128 - status if status < 0 else status))


def record(spy: subprocess.Popen[str], load: list[str], seconds: float) -> dict[str, float | bool]:
    """Wait for what ends the recording, end it, and wait for the command. Returns what STATUS_FILE holds."""
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
