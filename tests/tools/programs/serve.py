"""serve.py [SECONDS]: says that it is there, then works in hot() with pauses of a millisecond, like a service."""

import sys
import threading
import time


def hot(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number
    return total


def serve(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        # Long enough that a sampler sees it, although the program waits for a core after each pause.
        hot(1_000_000)
        time.sleep(0.001)


threading.Thread(target=threading.Event().wait, name="waiter", daemon=True).start()
sys.stdout.write("ready\n")
sys.stdout.flush()
serve(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
