"""Search texts for patterns. Each request is a line of JSON on stdin, its matches are a line of JSON on stdout.

Python cannot interrupt a search with catastrophic backtracking, so an alarm signal ends this process. A bare
interpreter runs this file, so it uses only the standard library.
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
