"""Search texts for patterns, one request a line of JSON on stdin, its matches a line of JSON on stdout.

A pattern that tries too many ways cannot be stopped from inside of Python: this process is ended by its own alarm. Run
by a bare interpreter, so: standard library only.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import re
import signal
import sys


def main() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
        pattern = re.compile(asked["pattern"], asked["flags"])
        found = [[match.start(), match.groupdict()] for text in asked["texts"] for match in pattern.finditer(text)]
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
